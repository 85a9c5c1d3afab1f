// One cycle of a full listing, with a configurable delay; with `again`, retried until the sync is free. It stops at the
// page `holdAt`, with all earlier pages landed, until it receives a line; with `blocks` that line makes it block until
// the next.
import { setTimeout as sleep } from 'node:timers/promises'
import { blockUntilMessage, input, openStore, run, report, waitForMessage, Worker } from './child-runtime.mjs'

const {
  url,
  name,
  sync = 'listing',
  rows = 60,
  pageSize = 10,
  leaseTtlMs = 60_000,
  pageMs = 0,
  holdAt = 0,
  blocks = false,
  again = false,
  listen = false,
} = input
let landed = 0
const isLanded = (page) => landed >= page
const worker = new Worker({ name: 'office' })
worker.sync(sync, {
  database: worker.database(input.database ?? 'people'),
  limits: { leaseTtlMs },
  async execute(state, { cycle, signal }) {
    report('asked', { page: cycle.page })
    const from = state?.from ?? 0
    await sleep(pageMs, undefined, { signal })
    if (cycle.page === holdAt) await standStill(signal)
    const page = Array.from(
      { length: Math.min(pageSize, rows - from) },
      (_, index) => `p-${String(from + index).padStart(6, '0')}`,
    )
    return {
      changes: page.map((key) => ({ type: 'upsert', key, record: { id: key, by: name } })),
      hasMore: from + pageSize < rows,
      nextState: { from: from + pageSize },
    }
  },
})

const stopping = new AbortController()
if (listen) for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => stopping.abort())

const store = await openStore(url)
report('open')
for (;;) {
  const result = await run(store, worker.plan(sync), {
    signal: stopping.signal,
    onProgress: ({ kind, page }) => {
      if (kind === 'landed') landed = page
      report(kind, { page })
    },
  })
  if (result.stopReason === 'held' && again) {
    report('held')
    await sleep(100)
    continue
  }
  report('result', { stopReason: result.stopReason, resumed: result.resumed, pages: result.pages, error: result.error })
  break
}
await store.close()
report('closed')

async function standStill(signal) {
  // A page is read while the one before it lands.
  while (!isLanded(holdAt - 1)) await sleep(5)
  report('holding')
  await waitForMessage(signal)
  if (blocks) blockUntilMessage()
}
