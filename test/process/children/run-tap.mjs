// One incremental cycle of a tap; it stops before the page `holdAt`.
import { input, openStore, run, report, waitForMessage, Worker } from './child-runtime.mjs'

const { url, command, world, pageSize, holdAt = 0 } = input
const { singer } = await import(`${input.dist}/sources/singer/source.js`)
const stream = singer({ command, config: { world, api_key: 'sk_live_4711' }, pageSize }).stream('people')
const worker = new Worker({ name: 'office' })
worker.sync('people', {
  database: worker.database('people'),
  ...stream,
  async execute(state, context) {
    if (context.cycle.page === holdAt) await waitForMessage()
    return stream.execute(state, context)
  },
})
const store = await openStore(url)
const { stopReason, resumed, counts, error } = await run(store, worker.plan('people'), {
  onProgress: ({ kind, page }) => report(kind, { page }),
})
await store.close()
report('result', { stopReason, resumed, counts, error })
