// node bench/programs/scheduler.mjs <syncs per tenant> <seconds> <postgres url>: one process with five tenants, as one
// JSON line. The store is in memory and the source answers at once, so that only the scheduler and the engine are
// measured.
import { openSqliteStore } from '../../dist/stores/sqlite/store.js'
import { openPostgresStore } from '../../dist/stores/postgres/store.js'
import { Worker } from '../../dist/index.js'
import { systemClock } from '../../dist/platform/clock.js'
import { systemRandom } from '../../dist/platform/random.js'
import { listDeclaredSyncs } from '../../dist/runner/declared-sync.js'
import { Runner } from '../../dist/runner/runner.js'

const [count, seconds, url] = [Number(process.argv[2]), Number(process.argv[3]), process.argv[4]]
const TENANTS = ['large', 'small-1', 'small-2', 'small-3', 'small-4']
const IDLE_MS = seconds * 10_000
const WORKER = 'bench'
const SMALL = Math.min(count, 10)

const worker = new Worker({ name: WORKER })
const database = worker.database('rows')
for (let i = 0; i < count; i++)
  worker.sync(`s${i}`, {
    database,
    mode: 'incremental',
    schedule: '1d',
    execute: async () => ({ changes: [], hasMore: false }),
  })
const store = await openSqliteStore({ file: ':memory:' })
const silent = () => {}
let started = []
const runner = new Runner({
  store,
  tenants: TENANTS,
  syncs: listDeclaredSyncs(worker),
  holder: 'bench',
  concurrency: 16,
  secrets: { get: String },
  fetch,
  ports: {
    clock: systemClock,
    random: systemRandom,
    log: { debug: silent, info: silent, warn: silent, error: silent },
  },
  onEvent: (event) => event.kind === 'started' && started.push(event.tenant),
})

const ended = async (cycles) => {
  const from = performance.now()
  while (started.length < cycles || runner.status().running.length > 0)
    await new Promise((resolve) => setTimeout(resolve, 50))
  return performance.now() - from
}
const jobs = count * TENANTS.length
const bareMb = process.memoryUsage().rss / 2 ** 20
await runner.start()
const drainMs = await ended(jobs)
const halfway = Object.fromEntries(
  TENANTS.map((tenant) => [tenant, started.slice(0, jobs / 2).filter((other) => other === tenant).length]),
)
const drainedMb = process.memoryUsage().rss / 2 ** 20

started = []
for (let i = 0; i < count; i++)
  await store
    .forTenant('large')
    .signalSync({ worker: WORKER, sync: `s${i}` }, { kind: 'trigger', actor: 'bench', at: Date.now() })
for (const tenant of TENANTS.slice(1))
  for (let i = 0; i < SMALL; i++)
    await store
      .forTenant(tenant)
      .signalSync({ worker: WORKER, sync: `s${i}` }, { kind: 'trigger', actor: 'bench', at: Date.now() })
const fair = started.length
await ended(count + SMALL * 4)
const lastSmall = started.findLastIndex((tenant) => tenant !== 'large') + 1 - fair

const before = process.cpuUsage()
await new Promise((resolve) => setTimeout(resolve, IDLE_MS))
const { user, system } = process.cpuUsage(before)
await runner.stop()
await store.close()
console.log(
  JSON.stringify({
    jobs,
    cyclesPerSecond: jobs / (drainMs / 1_000),
    halfway,
    lastSmall,
    triggered: count + SMALL * 4,
    idleUsPerSync: (user + system) / (IDLE_MS / 1_000) / jobs,
    bareMb,
    drainedMb,
    peakMb: process.resourceUsage().maxRSS / 1024,
    postgres: { ...(await lookCost(url)), ...(await rates(url)) },
  }),
)

/** The cost of reading the changed syncs among ten thousand in PostgreSQL: when none changed, and when one did. */
async function lookCost(postgres) {
  const { default: pg } = await import('pg')
  const opened = await openPostgresStore({ url: postgres, tenant: 'idle' })
  const client = new pg.Client({ connectionString: postgres })
  await client.connect()
  await client.query(`begin; select set_config('tidemark.tenant', 'idle', true);
    insert into tidemark.registry (tenant_id, connector_id, stream_id) select 'idle', 'bench', 's' || n from generate_series(1, 10000) n; commit; analyze tidemark.registry`)
  await client.end()
  const timed = async (query) => {
    const ms = []
    for (let i = 0; i < 30; i++) {
      const from = performance.now()
      await opened.listSyncStatus({ at: Date.now(), recent: 1, ...query() })
      ms.push(performance.now() - from)
    }
    return ms.toSorted((a, b) => a - b)[15]
  }
  let changeToken
  const allMs = await timed(() => ({}))
  ;({ changeToken } = await opened.listSyncStatus({ at: Date.now(), recent: 1 }))
  const movedMs = await timed(() => ({ changedSince: changeToken }))
  const oneMs = await timed(() => ({ ref: { worker: 'bench', sync: 's77' } }))
  await opened.close()
  return { allMs, movedMs, oneMs }
}

/**
 * Throughput of a fleet's routine transactions on one PostgreSQL with sixteen clients, beside that of the smallest
 * possible transaction.
 */
async function rates(postgres) {
  const { default: pg } = await import('pg')
  const { runCycle } = await import('../../dist/engine/cycle.js')
  const pool = new pg.Pool({ connectionString: postgres, max: 16 })
  const opened = await openPostgresStore({ url: postgres, poolMax: 16 })
  await pool.query('create table bare (n integer primary key, value integer)')
  await pool.query('insert into bare select n, 0 from generate_series(0, 15) n')
  const ports = {
    clock: systemClock,
    random: systemRandom,
    log: { debug: silent, info: silent, warn: silent, error: silent },
  }
  const cycle = (tenant, i) =>
    runCycle(worker.plan(`s${i % count}`), {
      store: opened.forTenant(tenant),
      ports,
      fetch,
      secrets: { get: String },
      holder: `bench-${i}`,
      trigger: 'bench',
    })
  const rate = async (act) => {
    await Promise.all(Array.from({ length: 16 }, (_, i) => act(i)))
    let done = 0
    const end = performance.now() + seconds * 5_000
    await Promise.all(
      Array.from({ length: 16 }, async (_, i) => {
        for (; performance.now() < end; done++) await act(i)
      }),
    )
    return done / (seconds * 5)
  }
  const barePerSecond = await rate((i) => pool.query('update bare set value = value + 1 where n = $1', [i]))
  const cyclesPerSecond = await rate((i) => cycle(`tenant-${i}`, i))
  const cyclesOfOnePerSecond = await rate((i) => cycle('one', i))
  const slotsPerSecond = await rate(() =>
    opened.takeSlots({ worker: WORKER, pacer: 'api', count: 1, paceMs: 1, at: Date.now() }),
  )
  await opened.close()
  await pool.end()
  return { barePerSecond, cyclesPerSecond, cyclesOfOnePerSecond, slotsPerSecond }
}
