// One incremental cycle over an entity set of a service; it stops before the page `holdAt`.
import { input, openStore, run, report, waitForMessage, Worker } from './child-runtime.mjs'

const { url, service, pageSize, isTracked = false, holdAt = 0 } = input
const { odata } = await import(`${input.dist}/sources/odata/source.js`)
const source = odata({ url: service })
const { delta } = isTracked
  ? source.tracked('Orders', { pageSize })
  : source.entitySet('Orders', { cursor: 'At', lagMs: 0, pageSize })
const worker = new Worker({ name: 'office' })
worker.sync('orders', {
  database: worker.database('orders'),
  mode: 'incremental',
  async execute(state, context) {
    if (context.cycle.page === holdAt) await waitForMessage()
    return delta(state, context)
  },
})
const store = await openStore(url)
const { stopReason, resumed, counts, error } = await run(store, worker.plan('orders'), {
  onProgress: ({ kind, page }) => report(kind, { page }),
})
await store.close()
report('result', { stopReason, resumed, counts, error })
