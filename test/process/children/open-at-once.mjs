// Waits for a signal, then opens stores that were never opened before, and lands one cycle in each.
import { input, openStore, run, report, waitForMessage, Worker } from './child-runtime.mjs'

const { urls, name } = input
const worker = new Worker({ name: 'office' })
worker.sync(name, {
  database: worker.database('people'),
  execute: async () => ({ changes: [{ type: 'upsert', key: name, record: { id: name } }], hasMore: false }),
})

report('ready')
await waitForMessage()
for (const url of urls) {
  const store = await openStore(url)
  const { stopReason, error } = await run(store, worker.plan(name))
  report('result', { stopReason, error })
  await store.close()
}
process.exit(0)
