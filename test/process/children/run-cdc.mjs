// Follows the tables of a shop, cycle after cycle, until the parent sends a line; then runs one more cycle.
import { input, openStore, run, report, Worker } from './child-runtime.mjs'

const { url, source, pageSize } = input
const { postgresCdc } = await import(`${input.dist}/sources/postgres-cdc/source.js`)
const worker = new Worker({ name: 'office' })
worker.track('orders', {
  database: worker.database('orders'),
  databases: [worker.database('lines')],
  source: postgresCdc({ url: source, tables: [{ table: 'orders' }, { table: 'lines', database: 'lines' }], pageSize }),
})

let stopping = false
process.stdin.once('data', () => (stopping = true))
const store = await openStore(url)
const onProgress = ({ kind, page }) => report(kind, { page })
report('open')
for (;;) {
  const isLast = stopping
  const backfill = await store.readCheckpoint({ worker: 'office', sync: 'orders-backfill' })
  if (backfill.lastSuccessAt === null) {
    const { stopReason, resumed, error } = await run(store, worker.plan('orders-backfill'), { onProgress })
    report('backfill', { stopReason, resumed, error })
  }
  const { stopReason, resumed, counts, error } = await run(store, worker.plan('orders'), { onProgress })
  report('cycle', { stopReason, resumed, counts, error })
  if (isLast && stopReason === 'complete') break
}
await store.close()
process.exit(0)
