// Runs the steps of a world and acknowledges every landed page in a file, so that the recorder sees both in order.
// Between steps the write-ahead log is checkpointed, with the store open or by closing it: a power cut is worst there.
import { openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { input, openStore, run, report, Worker } from './child-runtime.mjs'
import { World } from './world.mjs'

const { folder, seed, keys, steps, pageSize } = input
const file = join(folder, 'store.db')
const world = new World({ seed, keys })
const acknowledgements = openSync(join(folder, 'acknowledged'), 'a')
const worker = new Worker({ name: 'world' })
let step = 0
worker.database('items')
worker.sync('backfill', { database: 'items', mode: 'replace', execute: (state) => world.list(step, pageSize)(state) })
worker.sync('delta', {
  database: 'items',
  mode: 'incremental',
  execute: (state) => world.changes(step, pageSize)(state),
})

let store = await openStore(`sqlite:${file}`)
for (; step < steps; step++) {
  const { stopReason, error } = await run(store, worker.plan(step % 3 === 0 ? 'backfill' : 'delta'), {
    onProgress: (progress) => {
      if (progress.kind === 'landed') writeSync(acknowledgements, `${progress.headSequence}\n`)
    },
  })
  if (stopReason !== 'complete') throw new Error(`${stopReason}: ${error?.message}`)
  if (step % 4 === 1) {
    const other = new DatabaseSync(file)
    other.exec('pragma wal_checkpoint(passive)')
    other.close()
  }
  if (step % 4 === 3) {
    await store.close()
    store = await openStore(`sqlite:${file}`)
  }
}
await store.close()
report('done')
process.exit(0)
