// One cycle of a full listing, as slow or as blocking as asked; with `again`, tried until nobody else holds the sync.
import { setTimeout as sleep } from 'node:timers/promises'
import { input, openStore, run, say, Worker } from './outside.mjs'

const { url, name, sync = 'listing', rows = 60, pageSize = 10, leaseTtlMs = 60_000, pageMs = 0, block = null, again = false, listen = false } = input
const worker = new Worker({ name: 'office' })
worker.sync(sync, {
  database: worker.database(input.database ?? 'people'),
  limits: { leaseTtlMs },
  async execute(state, { cycle, signal }) {
    say('asked', { page: cycle.page })
    const from = state?.from ?? 0
    await sleep(pageMs, undefined, { signal })
    // Not one timer fires and not one answer is read in that time.
    if (block?.page === cycle.page) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, block.ms)
    const page = Array.from({ length: Math.min(pageSize, rows - from) }, (_, index) => `p-${String(from + index).padStart(6, '0')}`)
    return {
      changes: page.map((key) => ({ type: 'upsert', key, record: { id: key, by: name } })),
      hasMore: from + pageSize < rows, nextState: { from: from + pageSize },
    }
  },
})

const stopping = new AbortController()
if (listen) for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => stopping.abort())

const store = await openStore(url)
say('open')
for (;;) {
  const result = await run(store, worker.plan(sync), {
    signal: stopping.signal,
    onProgress: (progress) => say(progress.kind, { page: progress.page }),
  })
  if (result.stopReason === 'held' && again) {
    say('held')
    await sleep(100)
    continue
  }
  say('result', { stopReason: result.stopReason, resumed: result.resumed, pages: result.pages, error: result.error })
  break
}
await store.close()
say('closed')
