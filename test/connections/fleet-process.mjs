import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** One process of a fleet: runs `people` continuously for every tenant that has the connection `crm`. */
const [, , place, store, vendor, concurrency] = process.argv
const load = (file) => import(pathToFileURL(join(place, 'dist', file)).href)
const [{ createTidemark }, { rest }, { Worker }] = await Promise.all([
  load('embed/index.js'),
  load('sources/rest/source.js'),
  load('worker/worker.js'),
])
const worker = new Worker({ name: 'fleet' })
const { people } = rest({
  baseUrl: vendor,
  connection: 'crm',
  streams: [{ name: 'people', path: '/people', key: 'id', page: { kind: 'none' } }],
})
worker.sync('people', { database: worker.database('people'), schedule: 'continuous', ...people })
const tidemark = createTidemark({ store, workers: [worker], tenants: 'all', concurrency: Number(concurrency) })
process.once('SIGTERM', () => void tidemark.stop().then(() => process.exit(0)))
await tidemark.start()
process.send?.('started')
