// Lands into a store until its disk is full, reports which operations still work, and on request continues with the
// same store.
import { setTimeout as sleep } from 'node:timers/promises'
import { input, openStore, run, report, waitForMessage, Worker } from './child-runtime.mjs'

const { url, rows, pageSize } = input
const worker = new Worker({ name: 'office' })
worker.sync('listing', {
  database: worker.database('people'),
  limits: { leaseTtlMs: 1_000 },
  async execute(state) {
    const from = state?.from ?? 0
    const page = Array.from(
      { length: Math.min(pageSize, rows - from) },
      (_, index) => `p-${String(from + index).padStart(6, '0')}`,
    )
    return {
      changes: page.map((key) => ({ type: 'upsert', key, record: { id: key, note: key.repeat(80) } })),
      hasMore: from + pageSize < rows,
      nextState: { from: from + pageSize },
    }
  },
})

const ref = { worker: 'office', sync: 'listing' }
const store = await openStore(url)
for (;;) {
  const { stopReason, error, resumed } = await run(store, worker.plan('listing'))
  // On a completely full disk not even the lease can be released.
  if (stopReason === 'held') {
    await sleep(100)
    continue
  }
  const { inflight, lastError } = await store.readCheckpoint(ref)
  const facts = {
    position: await store.headSequence(),
    landed: (await store.rows({ database: 'people', limit: rows })).length,
    page: inflight?.page ?? null,
    lastError: lastError?.code ?? null,
  }
  report('result', { stopReason, error, resumed, ...facts })
  if (stopReason === 'complete') break
  await waitForMessage()
}
await store.close()
process.exit(0)
