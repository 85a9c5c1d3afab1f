import { createServer } from 'node:http'
import { DatabaseSync } from '@photostructure/sqlite'
import { toNodeListener } from 'tidemark/destinations/http/receiver'
import { createSqliteReceiver } from './receiver.ts'

const db = new DatabaseSync(process.env['COPY_FILE'] ?? 'copy.db')
db.exec('pragma journal_mode = wal')
const server = createServer(toNodeListener(createSqliteReceiver(db, process.env['COPY_SECRET'] ?? '')))
server.listen(Number(process.env['PORT'] ?? 8080), '127.0.0.1', () => console.log(server.address()))
