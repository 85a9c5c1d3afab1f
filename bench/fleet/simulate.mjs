// node bench/fleet/simulate.mjs [tenants] [syncs of each] [processes] [slots of each] [minutes]: a fleet under virtual
// time, with the real runner and engine, as one JSON line. Every sync is due every hour and takes two seconds. All are
// due at once at first, as after an outage; ten minutes in, one process is killed.
import { Worker } from '../../dist/index.js'
import { listDeclaredSyncs } from '../../dist/runner/declared-sync.js'
import { Runner } from '../../dist/runner/runner.js'
import { MemoryStore } from './memory-store.mjs'
import { VirtualTime } from './virtual-time.mjs'

const [tenants, syncs, processes, places, minutes] = [1_000, 100, 8, 32, 75].map((usual, n) =>
  Number(process.argv[n + 2] ?? usual),
)
const HOUR = 3_600_000
const CYCLE_MS = 2_000
const time = new VirtualTime()
const start = time.now()
const memory = new MemoryStore(time, (error) => {
  console.error(error)
  process.exit(1)
})
const running = new Map()
const ran = new Map()
const lags = { first: [], second: [] }
let drainedAt = null
let overlaps = 0
let early = 0
let cycles = 0

const worker = new Worker({ name: 'fleet' })
const database = worker.database('rows')
for (let i = 0; i < syncs; i++) {
  const name = `s${i}`
  worker.sync(name, {
    database,
    mode: 'incremental',
    schedule: '1h',
    execute: async (_, { clock, secrets, signal, cycle }) => {
      const key = `${secrets.get('TENANT')}/${name}`
      if (running.has(key)) overlaps++
      running.set(key, cycle.id)
      const previous = ran.get(key)
      if (previous?.id !== cycle.id) {
        cycles++
        const lag = clock.now() - (previous === undefined ? start : previous.at + HOUR)
        if (lag < 0) early++
        lags[previous === undefined ? 'first' : 'second'].push(lag)
        if (lags.first.length === tenants * syncs) drainedAt ??= clock.now()
        ran.set(key, { id: cycle.id, at: cycle.startedAt })
      }
      try {
        await clock.sleep(CYCLE_MS, signal)
      } finally {
        running.delete(key)
      }
      return { changes: [], hasMore: false }
    },
  })
}
const names = Array.from({ length: tenants }, (_, i) => `tenant-${i}`)
const silent = () => {}
const plans = listDeclaredSyncs(worker)
let seed = 7
const random = { next: () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647 }
const members = Array.from({ length: processes }, (_, n) => {
  const process = { dead: false }
  const runner = new Runner({
    store: memory.door(process, names[0]),
    tenants: names,
    syncs: plans,
    holder: `process-${n}`,
    concurrency: places,
    secrets: (tenant) => ({ get: () => tenant }),
    fetch: silent,
    ports: { clock: time, random, log: { debug: silent, info: silent, warn: silent, error: silent } },
  })
  return { process, runner }
})

const began = performance.now()
const cpu = process.cpuUsage()
const starting = Promise.all(members.map(({ runner }) => runner.start()))
await time.run(() => false, start + 600_000)
await starting
// A killed process runs no further code.
members[0].process.dead = true
for (const { tenant, sync } of members[0].runner.status().running) running.delete(`${tenant}/${sync}`)
await time.run(() => false, start + minutes * 60_000)
const { user, system } = process.cpuUsage(cpu)
const perTenant = new Map()
for (const key of ran.keys()) perTenant.set(key.split('/')[0], (perTenant.get(key.split('/')[0]) ?? 0) + 1)
const at = (values, share) =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] / 1_000
console.log(
  JSON.stringify({
    syncs: tenants * syncs,
    tenants,
    processes,
    places: processes * places,
    cycles,
    overlaps,
    early,
    drainedAfterS: drainedAt === null ? null : (drainedAt - start) / 1_000,
    lagS: { p50: at(lags.second, 0.5), p99: at(lags.second, 0.99), max: at(lags.second, 1) },
    calls: memory.calls,
    heldShare: memory.calls.held / memory.calls.acquire,
    cpuMsPerCycle: (user + system) / 1_000 / cycles,
    realS: (performance.now() - began) / 1_000,
    peakMb: process.resourceUsage().maxRSS / 1024,
    fewestRunOfATenant: Math.min(...perTenant.values()),
  }),
)
process.exit(0)
