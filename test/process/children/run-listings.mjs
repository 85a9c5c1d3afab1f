// Lists the same records three times; the third time one of them has changed. Acknowledges every landed page in a file.
import { openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { input, openStore, run, report, Worker } from './child-runtime.mjs'

const { folder, pages, changed } = input
const acknowledgements = openSync(join(folder, 'acknowledged'), 'a')
const store = await openStore(`sqlite:${join(folder, 'store.db')}`)
const worker = new Worker({ name: 'world' })
let listing = 0
worker.database('items')
worker.sync('listing', {
  database: 'items',
  mode: 'replace',
  execute: async (state) => {
    const page = state?.page ?? 1
    const changes = ['a', 'b'].map((name) => ({
      type: 'upsert',
      key: `${page}${name}`,
      record: { name, revision: listing === 2 && page === changed ? 2 : 1 },
    }))
    return { changes, hasMore: page < pages, nextState: { page: page + 1 } }
  },
})
for (; listing < 3; listing++) {
  const { stopReason, error } = await run(store, worker.plan('listing'), {
    onProgress: (progress) => {
      if (progress.kind === 'landed') writeSync(acknowledgements, `${progress.headSequence}\n`)
    },
  })
  if (stopReason !== 'complete') throw new Error(`${stopReason}: ${error?.message}`)
}
await store.close()
report('done')
process.exit(0)
