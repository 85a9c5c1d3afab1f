import { setTimeout as sleep } from 'node:timers/promises'
import { openStore } from '../../src/stores/open-store.ts'
import { Worker } from '../../src/worker/worker.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { createLog } from '../../src/platform/log.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { listDeclaredSyncs } from '../../src/runner/declared-sync.ts'
import { Runner } from '../../src/runner/runner.ts'

/** A process with one connector that leaves rejected promises behind, and one that works. */
const worker = new Worker({ name: 'stray' })
const database = worker.database('rows')
let good = 0
worker.sync('careless', {
  database,
  schedule: 'continuous',
  execute: async () => {
    void Promise.reject(new TypeError('this promise is not awaited'))
    void sleep(5).then(() => Promise.reject({ token: 'secret' }))
    return { changes: [], hasMore: false }
  },
})
worker.sync('good', {
  database,
  mode: 'incremental',
  schedule: 'continuous',
  execute: async () => ({ changes: [{ type: 'upsert', key: String(++good), record: { good } }], hasMore: false }),
})

const store = await openStore('sqlite::memory:')
const runner = new Runner({
  store,
  syncs: listDeclaredSyncs(worker),
  holder: 'stray',
  pollMs: 20,
  pauseMs: 10,
  ports: { clock: systemClock, random: systemRandom, log: createLog({ level: 'error' }) },
  fetch: () => Promise.reject(new Error('no network here')),
  secrets: { get: (name) => name },
})
await runner.start()
while ((await store.headSequence()) < 10) await sleep(20)
await runner.stop()
await store.close()
console.log(`good ${good}, listeners ${process.listenerCount('unhandledRejection')}`)
if (process.argv[2] === 'after') void Promise.reject(new Error('no runner any more'))
