// One incremental cycle over a table of a database; it stops before the page `holdAt`.
import { input, openStore, run, report, waitForMessage, Worker } from './child-runtime.mjs'

const { url, source, table, pageSize, holdAt = 0 } = input
const { sql } = await import(`${input.dist}/sources/sql/source.js`)
const { delta } = sql({ url: source }).table(table, { cursor: 'updated_at', lagMs: 0, pageSize })
const worker = new Worker({ name: 'office' })
worker.sync('items', {
  database: worker.database('items'),
  mode: 'incremental',
  async execute(state, context) {
    if (context.cycle.page === holdAt) await waitForMessage()
    return delta(state, context)
  },
})
const store = await openStore(url)
const { stopReason, resumed, counts, error } = await run(store, worker.plan('items'), {
  onProgress: ({ kind, page }) => report(kind, { page }),
})
await store.close()
report('result', { stopReason, resumed, counts, error })
