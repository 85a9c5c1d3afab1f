// Works with a store, closes it, and reports the remains: files beside it, and descriptors of this process.
import { readdirSync, readlinkSync } from 'node:fs'
import { dirname } from 'node:path'
import { input, openStore, run, report, Worker } from './child-runtime.mjs'

const { url } = input
const worker = new Worker({ name: 'office' })
worker.sync('listing', {
  database: worker.database('people'),
  execute: async () => ({ changes: [{ type: 'upsert', key: 'a', record: { n: 1 } }], hasMore: false }),
})

for (let round = 0; round < 3; round++) {
  const store = await openStore(url)
  await run(store, worker.plan('listing'))
  const opened = descriptors()
  await store.close()
  report('closed', {
    opened: opened.length,
    left: descriptors(),
    files: readdirSync(dirname(url.slice('sqlite:'.length))),
  })
}

function descriptors() {
  return readdirSync('/proc/self/fd')
    .flatMap((name) => {
      try {
        return [readlinkSync(`/proc/self/fd/${name}`)]
      } catch {
        return []
      }
    })
    .filter((path) => path.includes('store.db'))
}
