// One process of a fleet, on the compiled package. Every call of the source is a line in a log that all of them share.
// argv: the options as JSON (`MemberOptions` in fleet.ts).
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'

const options = JSON.parse(process.argv[2])
const load = (file) => import(join(options.dist, file))
const { openStore } = await load('stores/open-store.js')
const { Worker } = await load('worker/worker.js')
const { systemClock } = await load('platform/clock.js')
const { holderName } = await load('platform/lease-holder.js')
const { systemRandom } = await load('platform/random.js')
const { listDeclaredSyncs } = await load('runner/declared-sync.js')
const { Runner } = await load('runner/runner.js')

function note(...words) {
  // Short lines appended in one call: the order of the file is the order of events.
  appendFileSync(options.log, `${words.join(' ')}\n`)
}

function source(name) {
  return async (state, { clock, cycle, signal }) => {
    const page = (state?.page ?? 0) + 1
    note('ask', name, process.pid, cycle.id, page)
    try {
      await clock.sleep(options.pageMs, signal)
      return {
        changes: [{ type: 'upsert', key: `${name}-${page}`, record: { page } }],
        hasMore: page % 3 !== 0,
        nextState: { page },
      }
    } finally {
      note('answer', name, process.pid, cycle.id, page)
    }
  }
}

const worker = new Worker({ name: 'fleet' })
const database = worker.database('rows')
for (let i = 0; i < options.continuous; i++)
  worker.sync(`c${i}`, { database, mode: 'incremental', schedule: 'continuous', execute: source(`c${i}`) })
for (let i = 0; i < options.manual; i++)
  worker.sync(`m${i}`, { database, mode: 'incremental', schedule: 'manual', execute: source(`m${i}`) })

for (let i = 0; i < (options.slots ?? 0); i++)
  worker.sync(`i${i}`, { database, mode: 'incremental', schedule: '30m', execute: source(`i${i}`) })

const store = await openStore(options.store)
const clock = {
  now: () => systemClock.now() + (options.clockAheadMs ?? 0),
  sleep: (ms, signal) => systemClock.sleep(ms, signal),
}
const silent = () => {}
const runner = new Runner({
  store,
  syncs: listDeclaredSyncs(worker, { limits: { leaseTtlMs: options.leaseTtlMs } }),
  holder: holderName(),
  concurrency: 3,
  pollMs: options.pollMs ?? 100,
  pauseMs: 20,
  ports: { clock, random: systemRandom, log: { debug: silent, info: silent, warn: silent, error: silent } },
  fetch: () => Promise.reject(new Error('no network here')),
  secrets: { get: (name) => name },
  onEvent: (event) => {
    if (event.kind === 'store') note('trouble', event.code, process.pid)
    if (event.kind === 'ended' && event.result.error !== null)
      note('failed', event.sync, process.pid, event.result.error.code)
  },
})
process.once('SIGTERM', () => {
  void runner.stop().then(async () => {
    await store.close()
    note('stopped', process.pid)
  })
})
await runner.start()
note('up', process.pid)
