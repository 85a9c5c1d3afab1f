// The receiver of the example, in a process of its own.
import { createServer } from 'node:http'
import { DatabaseSync } from '@photostructure/sqlite'
import { createJiti } from 'jiti'

const { dist, file, port, secret } = JSON.parse(process.argv[2])
const receiver = `${dist}/destinations/http/receiver.js`
const jiti = createJiti(import.meta.url, { alias: { 'tidemark/destinations/http/receiver': receiver } })
const { createSqliteReceiver } = await jiti.import('../../examples/http-receiver/receiver.ts')
const { toNodeListener } = await import(receiver)
const db = new DatabaseSync(file)
db.exec('pragma journal_mode = wal; pragma synchronous = normal')
createServer(toNodeListener(createSqliteReceiver(db, secret))).listen(port, '127.0.0.1', () => process.send('ready'))
