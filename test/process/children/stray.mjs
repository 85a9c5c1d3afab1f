// A connector with unawaited promises that reject: at once, later, and long after the cycle.
import { setTimeout as sleep } from 'node:timers/promises'
import { input, openStore, run, report, Worker } from './child-runtime.mjs'

const { url, guarded } = input
const strays = []
if (guarded) process.on('unhandledRejection', (reason) => strays.push(reason.message))

const worker = new Worker({ name: 'office' })
worker.sync('listing', {
  database: worker.database('people'),
  async execute(state) {
    const page = state?.page ?? 0
    if (page === 1) void Promise.reject(new Error('stray at once'))
    if (page === 2) void sleep(20).then(() => Promise.reject(new Error('stray later')))
    if (page === 3) void sleep(300).then(() => Promise.reject(new Error('stray after the end')))
    if (page === 1 || page === 2) await sleep(40)
    return {
      changes: [{ type: 'upsert', key: `p-${page}`, record: { page } }],
      hasMore: page < 5,
      nextState: { page: page + 1 },
    }
  },
})

const store = await openStore(url)
const { stopReason, pages, error } = await run(store, worker.plan('listing'), {
  onProgress: (progress) => report(progress.kind, { page: progress.page }),
})
await sleep(400)
report('result', { stopReason, pages, error, strays, position: await store.headSequence() })
await store.close()
