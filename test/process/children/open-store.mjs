// Opens a store and runs one cycle, or reports why it cannot.
import { input, openStore, run, report, Worker } from './child-runtime.mjs'

const worker = new Worker({ name: 'office' })
worker.sync('listing', {
  database: worker.database('people'),
  execute: async () => ({ changes: [{ type: 'upsert', key: 'a', record: { n: 1 } }], hasMore: false }),
})

try {
  const store = await openStore(input.url)
  const { stopReason, cycle, error } = await run(store, worker.plan('listing'))
  report('result', { stopReason, cycle, error })
  await store.close()
} catch ({ code, remedy, message }) {
  report('refused', { code, remedy, message })
}
