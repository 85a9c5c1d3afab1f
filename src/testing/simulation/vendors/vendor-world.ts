import { Worker } from '../../../config/worker.ts'
import type { Change, JsonObject, Store } from '../../../contract/index.ts'
import { runCycle } from '../../../engine/cycle.ts'
import type { SyncPlan } from '../../../engine/sync-plan.ts'
import type { Fields } from '../../simulators/kit/simulator.ts'
import { syncsOf, type DeclaredSync } from '../../../runner/declared-sync.ts'
import { readStatus } from '../../../runner/status.ts'
import type { Version } from '../../simulators/kit/truth-table.ts'
import type { VendorSimulator } from '../../simulators/kit/vendor-simulator.ts'
import type { Verdict } from '../campaign.ts'
import { Faults } from '../faults.ts'
import { Fleet } from '../fleet.ts'
import { Stream, Trace } from '../random.ts'
import { Scheduler, TIME_ZERO, type Process } from '../scheduler.ts'
import { VirtualClock } from '../virtual-clock.ts'
import { SQLITE_IN_MEMORY, waitedFor, type OpenWorldStore } from '../world-store.ts'
import { drawVendorConfig, type VendorChoice, type VendorWorldConfig } from './vendor-config.ts'
import { AnnouncedPauses } from '../announced-pauses.ts'
import { AnswerLies } from './answer-lies.ts'
import { vendorFetch } from './vendor-line.ts'
import { LISTING, TAMPERING, VendorOracle, type VendorSyncFacts } from './vendor-oracle.ts'
import { WriteHistory } from './written.ts'

export interface VendorWorldOptions extends VendorChoice {
  readonly seed: number
  /** Faults to keep, by id; all when absent, none when empty. */
  readonly only?: ReadonlySet<string> | undefined
  /** The store under test; SQLite in memory when absent. */
  readonly store?: OpenWorldStore | undefined
}

/** The production engine and a vendor's source against that vendor's simulator: from its first record to its verdict. */
export async function runVendorWorld(options: VendorWorldOptions): Promise<Verdict> {
  const scheduler = new Scheduler(options.seed, new Trace())
  const store = await (options.store ?? SQLITE_IN_MEMORY).open(() => scheduler.now)
  try {
    return await new VendorWorld(options, waitedFor(store, scheduler), scheduler).run()
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
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const YEAR_MS = 365 * 24 * 3_600_000

class VendorWorld {
  readonly #options: VendorWorldOptions
  readonly #config: VendorWorldConfig
  readonly #scheduler: Scheduler
  readonly #faults: Faults
  readonly #workload: Stream
  readonly #schedule: Stream
  readonly #fate: Process
  readonly #simulator: VendorSimulator
  readonly #oracle: VendorOracle
  readonly #fleet: Fleet
  readonly #syncs: readonly VendorSyncFacts[]
  readonly #forgotten = new Map<string, number>()
  readonly #history = new WriteHistory()
  readonly #pauses: AnnouncedPauses
  readonly #lies: AnswerLies

  constructor(options: VendorWorldOptions, store: Store, scheduler: Scheduler) {
    const { seed } = options
    const config = drawVendorConfig(seed, options)
    const { stream } = config
    this.#options = options
    this.#config = config
    this.#scheduler = scheduler
    this.#fate = this.#scheduler.start('fate')
    this.#faults = new Faults(seed, config.rates, options.only ?? null)
    this.#workload = new Stream(seed, 'workload')
    this.#schedule = new Stream(seed, 'latency')
    const clock = { now: () => this.#scheduler.now, sleep: (ms: number) => this.#fate.idle(ms) }
    this.#simulator = stream.open({ clock, random: new Stream(seed, 'vendor') }, config)
    this.#syncs = this.#plans().map(({ sync, mode, lagMs = 0 }) => (mode === 'replace' ? { sync, mode, lagMs } : { sync, mode, promise: promiseOf(config) }))
    this.#lies = new AnswerLies(stream, () => this.#scheduler.now, config.dateSkewMs)
    this.#oracle = new VendorOracle({
      store, now: () => this.#scheduler.now, worker: WORKER, database: DATABASE, syncs: [...this.#syncs, { sync: TAMPERING, mode: 'tampering' }], simulator: this.#simulator, stream, pageSize: config.pageSize,
      history: this.#history, granularityMs: stream.granularityMs(config), clockBackMs: () => this.#simulator.records.stampsBackMs, listsBehindMs: (sinceMs) => config.replicaBehindMs + this.#lies.cachedMs + this.#lies.repeatedMs(sinceMs), dateBehindMs: () => this.#lies.dateBehindMs,
      cachedMs: () => this.#lies.cachedMs, isDateWrong: () => this.#lies.isDateWrong,
      health: async () => new Map((await readStatus({ store, syncs: this.#declared(), now: this.#scheduler.now })).map(({ sync, health }) => [sync, health])),
      runnerSkewMs: config.runnerSkewMs, storeHasClock: options.store?.ownClock === true,
    })
    this.#pauses = new AnnouncedPauses({
      now: () => this.#scheduler.now, toleranceMs: 2 * config.runnerSkewMs, violate: (oracle, message) => this.#oracle.violate(oracle, message),
    })
    this.#fleet = new Fleet({
      seed, scheduler: this.#scheduler, fate: this.#fate, faults: this.#faults, store, database: DATABASE, oracle: this.#oracle, chance: this.#schedule, conditions: config,
      plans: () => this.#plans(), pauses: this.#pauses,
      fetch: (process) => vendorFetch({
        lies: this.#lies, process, faults: this.#faults, stream, simulator: this.#simulator, forgotten: this.#forgotten, pauses: this.#pauses, deadlineMs: config.deadlineMs,
        latencyMs: () => this.#fleet.latencyMs(config.vendorLatencyMs),
      }),
      secrets: { get: () => 'secret' }, expected: EXPECTED, requests: () => this.#simulator.requests.entries.length,
      // An answer may leave out what the vendor holds; in a healed world whoever looks finds it gone.
      confirmsDeletes: () => !this.#faults.enabled,
    })
  }

  async run(): Promise<Verdict> {
    const oracle = this.#oracle
    const { stream, kind, records, lag, replicaBehindMs } = this.#config
    this.#simulator.records.lag = { share: 0, maxMs: 0 }
    stream.prepare?.(this.#simulator)
    Object.assign(this.#simulator.records, { lag, replicaBehindMs })
    for (let i = 0; i < records; i++) this.#create()
    this.#fleet.start()
    await this.#during(this.#work(this.#config.operations))
    if (this.#config.isAbsence) await this.#absence()

    this.#faults.enabled = false
    // Half the worlds heal by a restart of everything, the others while old cycles are still under way.
    if (this.#schedule.chance(0.5)) this.#fleet.crashAll()
    switch (kind) {
      case 'replace':
        await this.#rest(LISTING, 1)
        oracle.compareTruth()
        await this.#restRepaired()
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
      seed: this.#options.seed, kind: `${stream.vendor} ${stream.name} ${kind}`, hash: this.#scheduler.trace.digest(), faults: this.#faults.injected, violations: oracle.violations,
      steps: this.#scheduler.steps, virtualMs: this.#scheduler.now - TIME_ZERO, cycles: this.#fleet.cycles, requests: this.#simulator.requests.entries.length,
      outcomes: oracle.outcomes,
      // A vendor's chance is drawn from by requests and writes alike, so without faults its ids would be others.
      rows: '',
      trail: this.#scheduler.trace.recent(),
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
    // After an absence it is the delta that finds out, and orders the backfill.
    if (oracle.owesBackfill) {
      await this.#rest(LISTING, 1)
      await this.#rest(DELTA, 2 * cyclesPerRound)
    }
    oracle.compareTruth()
    await this.#rest(LISTING, 1)
    oracle.compareTruth()
    await this.#restRepaired()
  }

  /** O17: whatever was stored, two undisturbed listings repair it. */
  async #restRepaired(): Promise<void> {
    if (this.#oracle.violations.length > 0) return
    await this.#tamper()
    for (let n = 0; n < 2; n++) await this.#rest(LISTING, 1)
    if (this.#oracle.violations.length === 0) this.#oracle.compareRepaired()
  }

  /** Leaves in the store what a vendor with a wrong clock could have said: a commit like any other, by a sync of the same owner. */
  async #tamper(): Promise<void> {
    const plan = this.#plans().find(({ sync }) => sync === LISTING)!
    const changes = this.#forgeries()
    const { pair: _, ...alone } = plan
    this.#oracle.isTampering = this.#oracle.wasTamperedWith = true
    await this.#fleet.alone(async (store) => {
      const clock = new VirtualClock(this.#fate)
      const log = { debug() {}, info() {}, warn() {}, error() {} }
      const { stopReason, error } = await runCycle(
        { ...alone, sync: TAMPERING, mode: 'incremental', execute: async () => ({ changes, hasMore: false, nextState: {} }) },
        { store, ports: { clock, random: this.#workload, log }, fetch: () => Promise.reject(new Error('there is nothing to ask')), secrets: { get: () => 'secret' }, holder: TAMPERING, trigger: 'simulation' },
      )
      if (stopReason !== 'complete') this.#oracle.violate('O13', `the tampering ended with ${stopReason} ${error?.message ?? ''}`)
    })
    this.#oracle.isTampering = false
  }

  #forgeries(): Change[] {
    const { stream: { type } } = this.#config
    const forged = (key: string, fields: Fields): Change => ({ type: 'upsert', key, record: { forged: true, ...fields } as JsonObject })
    const at = (offMs: number): { upstreamUpdatedAt: string } => ({ upstreamUpdatedAt: new Date(this.#scheduler.now + offMs).toISOString() })
    const changes = this.#simulator.records.latest(type).flatMap(({ id, deleted }): Change[] => {
      switch (this.#workload.int(0, deleted ? 7 : 5)) {
        case 0:
          return [{ ...forged(id, {}), ...at(YEAR_MS) }]
        case 1:
          return [{ type: 'delete', key: id, ...at(YEAR_MS) }]
        case 2:
          return [forged(id, {})]
        case 3:
          return [{ ...forged(id, { old: true }), ...at(-YEAR_MS) }]
        default:
          return []
      }
    })
    return [...changes, { ...forged('never there', {}), ...at(YEAR_MS) }]
  }

  /** Runs one sync until so many cycles that began in a world at rest are complete. */
  async #rest(sync: string, cycles: number): Promise<void> {
    const { runnerSkewMs, stream, dateSkewMs } = this.#config
    this.#fleet.chosen = sync
    await this.#fleet.pass(stream.lagMaxMs + 20_000 + 4 * runnerSkewMs + Math.max(0, -dateSkewMs, this.#pauses.untilMs - this.#scheduler.now))
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

  /** Nobody runs anything for longer than the vendor keeps what was changed and deleted. */
  async #absence(): Promise<void> {
    const { retentionMs } = this.#config.stream
    this.#fleet.crashAll()
    const absenceMs = retentionMs! + 2 * DAY_MS
    void this.#fate.idle(HOUR_MS).then(() => this.#work(LAST_WRITES))
    await this.#fleet.pass(absenceMs)
    this.#simulator.forget(this.#scheduler.now - retentionMs!)
    await this.#during(this.#work(LAST_WRITES))
  }

  async #during(work: Promise<void>): Promise<void> {
    let busy = true
    void work.then(() => void (busy = false))
    await this.#fleet.until(() => !busy, STEPS_MAX, 'the workload did not end')
  }

  // ── the vendor's life ──────────────────────────────────────────────────────────────────────────────────────────────

  async #work(operations: number): Promise<void> {
    const { gapMs, bulkShare, deleteShare, clockBackMs, stream: { type } } = this.#config
    for (let i = 0; i < operations; i++) {
      await this.#fate.idle(this.#workload.chance(0.2) ? 0 : this.#workload.int(1, gapMs))
      const live = this.#simulator.records.current(type)
      const draw = this.#workload.next()
      if (clockBackMs > 0 && i === Math.floor(operations / 2)) this.#simulator.records.stampsBackMs = clockBackMs
      if (draw < bulkShare) await this.#updateAll(live)
      else if (draw > 1 - deleteShare && live.length > 0) this.#remove(this.#workload.pick(live).id)
      else if (draw > 0.6 || live.length === 0) this.#create()
      else this.#update(this.#workload.pick(live).id)
    }
    await this.#fate.idle(gapMs)
  }

  #create(): void {
    const { stream } = this.#config
    this.#note(this.#simulator.create(stream.type, { ...stream.home?.(this.#simulator, this.#workload), ...this.#nextFields() }))
  }

  #update(id: string): void {
    this.#simulator.update(this.#config.stream.type, id, this.#nextFields())
    this.#note(id)
  }

  /** Several times within one second, as an import does it. */
  async #updateAll(live: readonly Version[]): Promise<void> {
    const { bulkRepeats, stream: { type } } = this.#config
    for (let n = 0; n < bulkRepeats; n++) {
      if (n > 0) await this.#fate.idle(this.#workload.int(0, 300))
      for (const { id } of live) if (this.#simulator.records.find(type, id)?.deleted === false) this.#update(id)
    }
  }

  #remove(id: string): void {
    this.#history.count++
    this.#simulator.remove(this.#config.stream.type, id)
    this.#note(id)
  }

  #nextFields(): Fields {
    return this.#config.stream.fields(++this.#history.count, this.#workload)
  }

  #note(id: string): void {
    const { records } = this.#simulator
    this.#history.add(records.find(this.#config.stream.type, id)!, records.stampsBackMs > 0)
  }

  // ── the worker ─────────────────────────────────────────────────────────────────────────────────────────────────────

  #plans(): SyncPlan[] {
    return this.#declared().map(({ plan }) => plan)
  }

  #declared(): DeclaredSync[] {
    const { kind, stream, limited, leaseTtlMs, deadlineMs, retriesMax, pagesMax } = this.#config
    const worker = new Worker({ name: WORKER })
    const database = worker.database(DATABASE)
    const options = { database, pacer: limited && stream.pacer !== undefined ? worker.pacer('vendor', stream.pacer) : [] }
    const source = stream.source(this.#config)
    if ('mode' in source) worker.sync(LISTING, { ...options, ...source })
    else if (kind === 'pair') worker.track(DELTA, { ...options, source })
    else if (kind === 'replace') worker.sync(LISTING, { ...options, mode: 'replace', execute: source.backfill })
    else worker.sync(DELTA, { ...options, mode: 'incremental', execute: source.delta })
    return syncsOf(worker, { limits: { leaseTtlMs, deadlineMs, retriesMax, pagesMax } })
  }
}

function promiseOf({ stream, ...conditions }: VendorWorldConfig) {
  const source = stream.source(conditions)
  if ('mode' in source) throw new Error(`${stream.vendor} has no delta.`)
  return source.promise
}

/** How a cycle may end in a world like these. Anything else is a finding. */
const EXPECTED: ReadonlySet<string> = new Set([
  'SOURCE_UNAVAILABLE', 'SOURCE_TIMEOUT', 'SOURCE_INVALID', 'RATE_LIMITED', 'AUTH_REJECTED', 'CURSOR_REJECTED', 'HISTORY_LOST', 'STORE_BUSY', 'STORE_UNAVAILABLE', 'COMMIT_UNKNOWN',
  'LEASE_HELD', 'LEASE_LOST', 'VERSION_CONFLICT', 'OVERLAP_UNRESOLVED', 'MASS_DELETE', 'LISTING_INCOMPLETE', 'CURSOR_STALLED', 'CURSOR_CYCLE',
])
