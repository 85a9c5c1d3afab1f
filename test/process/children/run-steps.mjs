// Runs the steps of a world, one cycle each, and reports each landed page. Its progress is in the registry alone, so it
// can be killed at any time and started again.
import { input, openStore, run, report, Worker } from './child-runtime.mjs'
import { World } from './world.mjs'

const { url, seed, keys, steps, pageSize, changesDeletes = false } = input
const world = new World({ seed, keys })
const store = await openStore(url)
let step = 0

/** Switches deletes between soft and hard every few steps. */
function workerNow() {
  const worker = new Worker({ name: 'world' })
  worker.database('items', { deletes: changesDeletes && step % 5 < 3 ? 'soft' : 'hard' })
  worker.sync('backfill', { database: 'items', mode: 'replace', execute: (state) => world.list(step, pageSize)(state) })
  worker.sync('delta', {
    database: 'items',
    mode: 'incremental',
    execute: (state) => world.changes(step, pageSize)(state),
  })
  return worker
}

report('open')
for (;;) {
  const [backfill, delta] = [
    await store.readCheckpoint({ worker: 'world', sync: 'backfill' }),
    await store.readCheckpoint({ worker: 'world', sync: 'delta' }),
  ]
  step = backfill.version + delta.version
  if (step >= steps) break
  const sync = step % 3 === 0 ? 'backfill' : 'delta'
  const result = await run(store, workerNow().plan(sync), {
    onProgress: (progress) => {
      if (progress.kind === 'begun') report('begun', { step, resumed: progress.resumed, page: progress.page })
      if (progress.kind === 'landed') report('landed', { step, page: progress.page, position: progress.headSequence })
    },
  })
  if (result.stopReason !== 'complete') {
    report('failed', { step, stopReason: result.stopReason, error: result.error })
    process.exit(1)
  }
  report('completed', { step })
  // Nothing is old enough for compaction: only rows that are no longer kept are removed, in steps.
  if (changesDeletes) while ((await store.compact({ before: 0, scanMax: 5 })).hasMore);
}
await store.close()
report('done')
