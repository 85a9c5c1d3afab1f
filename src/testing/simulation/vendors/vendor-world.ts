import { Worker } from '../../../config/worker.ts'
import type { Store } from '../../../contract/index.ts'
import type { SyncPlan } from '../../../engine/sync-plan.ts'
import { openSqliteStore } from '../../../stores/sqlite/store.ts'
import type { VendorSimulator } from '../../simulators/kit/vendor-simulator.ts'
import type { Verdict } from '../campaign.ts'
import { Faults } from '../faults.ts'
import { Fleet } from '../fleet.ts'
import { Stream, Trace } from '../random.ts'
import { Scheduler, TIME_ZERO, type Process } from '../scheduler.ts'
import { drawVendorConfig, type VendorChoice, type VendorWorldConfig } from './vendor-config.ts'
import { vendorFetch } from './vendor-line.ts'
import { VendorOracle, type VendorSyncFacts } from './vendor-oracle.ts'

export interface VendorWorldOptions extends VendorChoice {
  readonly seed: number
  /** Faults to keep, by id; all when absent, none when empty. */
  readonly only?: ReadonlySet<string> | undefined
}

/** The production engine and a vendor's source against that vendor's simulator: from its first record to its verdict. */
export async function runVendorWorld(options: VendorWorldOptions): Promise<Verdict> {
  const store = await openSqliteStore({ file: ':memory:' })
  try {
    return await new VendorWorld(options, store).run()
  } finally {
    await store.close()
  }
}

const WORKER = 'world'
const DATABASE = 'records'
const DELTA = 'sync'
const STEPS_MAX = 60_000
const HEALING_STEPS_MAX = 20_000
/** Writes of a pair's healed world, for its delta to bring without the listing's help. */
const LAST_WRITES = 6

class VendorWorld {
  readonly #options: VendorWorldOptions
  readonly #config: VendorWorldConfig
  readonly #scheduler: Scheduler
  readonly #trace = new Trace()
  readonly #faults: Faults
  readonly #workload: Stream
  readonly #schedule: Stream
  readonly #fate: Process
  readonly #simulator: VendorSimulator
  readonly #oracle: VendorOracle
  readonly #fleet: Fleet
  readonly #syncs: readonly VendorSyncFacts[]
  readonly #forgotten = new Map<string, number>()
  #writes = 0

  constructor(options: VendorWorldOptions, store: Store) {
    const { seed } = options
    const config = drawVendorConfig(seed, options)
    const { stream } = config
    this.#options = options
    this.#config = config
    this.#scheduler = new Scheduler(seed, this.#trace)
    this.#fate = this.#scheduler.start('fate')
    this.#faults = new Faults(seed, config.rates, options.only ?? null)
    this.#workload = new Stream(seed, 'workload')
    this.#schedule = new Stream(seed, 'latency')
    const clock = { now: () => this.#scheduler.now, sleep: (ms: number) => this.#fate.idle(ms) }
    this.#simulator = stream.open({ clock, random: new Stream(seed, 'vendor') }, config)
    this.#syncs = this.#plans().map(({ sync, mode }) => (mode === 'replace' ? { sync, mode } : { sync, mode, promise: promiseOf(config) }))
    this.#oracle = new VendorOracle({
      store, now: () => this.#scheduler.now, worker: WORKER, database: DATABASE, syncs: this.#syncs, simulator: this.#simulator, stream, pageSize: config.pageSize, writes: () => this.#writes,
      runnerSkewMs: config.runnerSkewMs,
    })
    this.#fleet = new Fleet({
      seed, scheduler: this.#scheduler, fate: this.#fate, faults: this.#faults, store, database: DATABASE, oracle: this.#oracle, chance: this.#schedule, conditions: config,
      plans: () => this.#plans(),
      fetch: (process) => vendorFetch({
        process, faults: this.#faults, stream, simulator: this.#simulator, forgotten: this.#forgotten, deadlineMs: config.deadlineMs,
        latencyMs: () => this.#fleet.latencyMs(config.vendorLatencyMs),
      }),
      secrets: { get: () => 'secret' }, expected: EXPECTED, requests: () => this.#simulator.requests.entries.length,
      // No vendor leaves out what it holds; whoever looks finds it gone.
      confirmsDeletes: () => true,
    })
  }

  async run(): Promise<Verdict> {
    const oracle = this.#oracle
    const { stream, kind, records, lag } = this.#config
    this.#simulator.records.lag = { share: 0, maxMs: 0 }
    stream.prepare?.(this.#simulator)
    this.#simulator.records.lag = lag
    for (let i = 0; i < records; i++) this.#create()
    this.#fleet.start()
    await this.#during(this.#work(this.#config.operations))

    this.#faults.enabled = false
    // Half the worlds heal by a restart of everything, the others while old cycles are still under way.
    if (this.#schedule.chance(0.5)) this.#fleet.crashAll()
    switch (kind) {
      case 'replace':
        await this.#rest(LISTING, 1)
        oracle.compareTruth()
        break
      case 'delta':
        await this.#rest(DELTA, 2 * promiseOf(this.#config).cyclesPerRound)
        if (oracle.violations.length === 0) oracle.compareTruth(oracle.owedSince(promiseOf(this.#config)))
        break
      case 'pair':
        await this.#restPair()
        break
      default:
        kind satisfies never
    }
    this.#fleet.ended = true
    if (oracle.violations.length === 0) {
      await oracle.compareRows()
      await oracle.compareAudit()
    }
    return {
      seed: this.#options.seed, kind: `${stream.vendor} ${stream.name} ${kind}`, hash: this.#trace.digest(), faults: this.#faults.injected, violations: oracle.violations,
      steps: this.#scheduler.steps, virtualMs: this.#scheduler.now - TIME_ZERO, cycles: this.#fleet.cycles, requests: this.#simulator.requests.entries.length,
      outcomes: oracle.outcomes,
      // A vendor's chance is drawn from by requests and writes alike, so without faults its ids would be others.
      rows: '',
      trail: this.#trace.recent(),
    }
  }

  /** The delta is judged before the listing that would hide what it missed. */
  async #restPair(): Promise<void> {
    const oracle = this.#oracle
    const { cyclesPerRound } = promiseOf(this.#config)
    if (oracle.owesBackfill || !oracle.completed.has(LISTING)) await this.#rest(LISTING, 1)
    this.#fleet.chosen = DELTA
    await this.#during(this.#work(LAST_WRITES))
    await this.#rest(DELTA, 2 * cyclesPerRound)
    oracle.compareTruth()
    await this.#rest(LISTING, 1)
    oracle.compareTruth()
  }

  /** Runs one sync until so many cycles that began in a world at rest are complete. */
  async #rest(sync: string, cycles: number): Promise<void> {
    const { runnerSkewMs, stream } = this.#config
    this.#fleet.chosen = sync
    await this.#fleet.pass(stream.lagMaxMs + 20_000 + 4 * runnerSkewMs)
    for (let done = 0; done < cycles; done++) {
      const count = this.#oracle.completed.get(sync)?.count ?? 0
      const from = this.#scheduler.now + runnerSkewMs
      if (done === 0) await this.#fleet.pass(2 * runnerSkewMs)
      const isDone = (): boolean => {
        const completed = this.#oracle.completed.get(sync)
        return completed !== undefined && completed.count > count && (done > 0 || completed.beganAt >= from)
      }
      await this.#fleet.until(isDone, HEALING_STEPS_MAX, `${sync} did not complete a cycle in a healed world`)
    }
  }

  async #during(work: Promise<void>): Promise<void> {
    let busy = true
    void work.then(() => void (busy = false))
    await this.#fleet.until(() => !busy, STEPS_MAX, 'the workload did not end')
  }

  // ── the vendor's life ──────────────────────────────────────────────────────────────────────────────────────────────

  async #work(operations: number): Promise<void> {
    const { gapMs, bulkShare, deleteShare, stream: { type } } = this.#config
    for (let i = 0; i < operations; i++) {
      await this.#fate.idle(this.#workload.chance(0.2) ? 0 : this.#workload.int(1, gapMs))
      const live = this.#simulator.records.current(type)
      const draw = this.#workload.next()
      if (draw < bulkShare) for (const { id } of live) this.#update(id)
      else if (draw > 1 - deleteShare && live.length > 0) this.#remove(this.#workload.pick(live).id)
      else if (draw > 0.6 || live.length === 0) this.#create()
      else this.#update(this.#workload.pick(live).id)
    }
    await this.#fate.idle(gapMs)
  }

  #create(): void {
    const { stream } = this.#config
    this.#simulator.create(stream.type, { ...stream.home?.(this.#simulator, this.#workload), ...stream.fields(++this.#writes, this.#workload) })
  }

  #update(id: string): void {
    const { stream } = this.#config
    this.#simulator.update(stream.type, id, stream.fields(++this.#writes, this.#workload))
  }

  #remove(id: string): void {
    this.#writes++
    this.#simulator.remove(this.#config.stream.type, id)
  }

  // ── the worker ─────────────────────────────────────────────────────────────────────────────────────────────────────

  #plans(): SyncPlan[] {
    const { kind, stream, limited, leaseTtlMs, deadlineMs, retriesMax, pagesMax } = this.#config
    const worker = new Worker({ name: WORKER })
    const database = worker.database(DATABASE)
    const options = { database, pacer: limited && stream.pacer !== undefined ? worker.pacer('vendor', stream.pacer) : [] }
    const source = stream.source(this.#config)
    if ('mode' in source) worker.sync(LISTING, { ...options, ...source })
    else if (kind === 'pair') worker.track(DELTA, { ...options, source })
    else if (kind === 'replace') worker.sync(LISTING, { ...options, mode: 'replace', execute: source.backfill })
    else worker.sync(DELTA, { ...options, mode: 'incremental', execute: source.delta })
    return worker.plans({ limits: { leaseTtlMs, deadlineMs, retriesMax, pagesMax } })
  }
}

/** As `worker.track` calls the listing's half. */
const LISTING = `${DELTA}-backfill`

function promiseOf({ stream, ...conditions }: VendorWorldConfig) {
  const source = stream.source(conditions)
  if ('mode' in source) throw new Error(`${stream.vendor} has no delta.`)
  return source.promise
}

/** How a cycle may end in a world like these. Anything else is a finding. */
const EXPECTED: ReadonlySet<string> = new Set([
  'SOURCE_UNAVAILABLE', 'SOURCE_TIMEOUT', 'SOURCE_INVALID', 'RATE_LIMITED', 'AUTH_REJECTED', 'CURSOR_REJECTED', 'STORE_BUSY', 'STORE_UNAVAILABLE', 'COMMIT_UNKNOWN',
  'LEASE_HELD', 'LEASE_LOST', 'VERSION_CONFLICT', 'OVERLAP_UNRESOLVED', 'MASS_DELETE', 'CURSOR_STALLED', 'CURSOR_CYCLE',
])
