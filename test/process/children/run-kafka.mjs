// One incremental cycle over a topic; it stops before the page `holdAt`.
import { input, openStore, run, report, waitForMessage, Worker } from './child-runtime.mjs'

const { url, brokers, topic, pageSize, holdAt = 0 } = input
const { kafka } = await import(`${input.dist}/sources/kafka/source.js`)
const { delta } = kafka({ brokers }).topic(topic, { pageSize })
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
