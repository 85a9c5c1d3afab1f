import { isSyncError, type Store } from '../../contract/index.ts'
import { runCycle } from '../../engine/cycle.ts'
import type { CycleResult } from '../../engine/cycle-options.ts'
import { DEFAULT_LIMITS, DEFAULT_SWEEP, type SyncPlan } from '../../engine/sync-plan.ts'
import { openSqliteStore } from '../../stores/sqlite/store.ts'
import { AdversarialSource, type Line } from './adversarial-source.ts'
import { delta, listing } from './connectors.ts'
import { FeedMirror } from './feed-mirror.ts'
import { Faults, type Fault } from './faults.ts'
import { faultyStore } from './faulty-store.ts'
import { Oracle, type SyncFacts, type Violation } from './oracle.ts'
import { Stream, Trace } from './random.ts'
import { Scheduler, TIME_ZERO, type Process } from './scheduler.ts'
import { VirtualClock } from './virtual-clock.ts'
import { drawConfig, type WorldConfig, type WorldKind } from './world-config.ts'

export interface WorldOptions {
  readonly seed: number
  readonly kind?: WorldKind
  readonly overrides?: Partial<WorldConfig>
  /** Faults to keep, by id; all when absent, none when empty. */
  readonly only?: ReadonlySet<string>
  /** Opens the store under test; SQLite in memory when absent. */
  readonly openStore?: () => Promise<Store>
  /** Told of every cycle that ended, and of what it asked of the source. */
  readonly onResult?: (result: CycleResult, requests: number) => void
  /** For directed tests: before the first step, and when the workload has ended but the world is not healed yet. */
  readonly onStart?: (world: World) => void
  readonly beforeHeal?: (world: World) => void
}

export interface Verdict {
  readonly seed: number
  readonly kind: WorldKind
  readonly hash: string
  readonly faults: readonly Fault[]
  readonly violations: readonly Violation[]
  readonly steps: number
  readonly virtualMs: number
  readonly cycles: number
  readonly requests: number
  /** How commits were answered. */
  readonly outcomes: Oracle['outcomes']
  /** Every row at the end, as text. */
  readonly rows: string
  /** The last things that happened, oldest first. */
  readonly trail: readonly string[]
}

/** One world from its first record to its verdict. A pure function of its options. */
export async function runWorld(options: WorldOptions): Promise<Verdict> {
  const store = await (options.openStore ?? (() => openSqliteStore({ file: ':memory:' })))()
  try {
    return await new World(options, store).run()
  } finally {
    await store.close()
  }
}

const WORKER = 'world'
const DATABASE = 'records'
const STEPS_MAX = 60_000
/** How many steps a healed world may take until everything has been read once more. */
const HEALING_STEPS_MAX = 20_000

export class World {
  readonly config: WorldConfig
  readonly scheduler: Scheduler
  readonly source: AdversarialSource
  readonly oracle: Oracle
  readonly faults: Faults
  readonly #options: WorldOptions
  readonly #store: Store
  readonly #trace = new Trace()
  readonly #workload: Stream
  readonly #schedule: Stream
  /** Never crashes: restarts runners, writes at the source, delivers late calls. */
  readonly #fate: Process
  readonly #runners = new Map<string, Runner>()
  readonly #confirmed = new Set<string>()
  readonly #windowMs: number
  #chosen: string | null = null
  #nobodyBeginsUntil = 0
  #cycles = 0
  #ended = false

  constructor(options: WorldOptions, store: Store) {
    const { seed } = options
    this.#options = options
    this.#store = store
    this.config = drawConfig(seed, options.kind, options.overrides)
    const { config } = this
    this.scheduler = new Scheduler(seed, this.#trace)
    this.#fate = this.scheduler.start('fate')
    this.faults = new Faults(seed, config.rates, options.only ?? null)
    this.#workload = new Stream(seed, 'workload')
    this.#schedule = new Stream(seed, 'latency')
    this.source = new AdversarialSource(config, { now: () => this.scheduler.now, chance: new Stream(seed, 'source'), faults: this.faults })
    // Twice the source's skew: a horizon by its own clock, and a stamp by it, may both be off.
    this.#windowMs = config.lagMs + 2 * config.skewMs + config.runnerSkewMs + config.granularityMs
    this.oracle = new Oracle({
      store, source: this.source, now: () => this.scheduler.now, worker: WORKER, database: DATABASE, syncs: this.#syncs(), lies: config.lie !== 'none',
    })
    this.scheduler.onWait = (process, label) => this.#strike(process, label)
  }

  async run(): Promise<Verdict> {
    const { config, scheduler, oracle } = this
    for (let i = 0; i < config.records; i++) this.#create()
    if (config.lie !== 'none') this.source.lie = () => this.#hide()
    for (let i = 0; i < config.runners; i++) this.#startRunner(`runner${i + 1}`)
    for (let i = 0; i < 2; i++) void this.#consume(scheduler.start(`consumer${i + 1}`), new Stream(this.#options.seed, `consumer${i}`))

    this.#options.onStart?.(this)
    let busy = true
    void this.#work().then(() => void (busy = false))
    await this.#until(() => !busy, STEPS_MAX, 'the workload did not end')

    this.#options.beforeHeal?.(this)
    this.faults.enabled = false
    this.source.lie = null
    // Half the worlds heal by a restart of everything, the others while old cycles are still under way.
    if (this.#schedule.chance(0.5)) for (const runner of this.#runners.values()) this.#crash(runner)
    await this.#pass(this.#windowMs + 2 * config.skewMs + config.runnerSkewMs + config.granularityMs + 1_000 + config.restMs)
    const syncs = this.#syncs()
    for (const facts of syncs) await this.#rest(facts)
    // What an old page of one sync told may have kept a row from the other's sweep; by now no such page is under way.
    if (config.kind === 'owners' || config.kind === 'pair') for (const facts of syncs) if (facts.mode === 'replace') await this.#rest(facts, true)

    this.#ended = true
    if (oracle.violations.length === 0) {
      await oracle.compareRows()
      await oracle.compareAudit()
    }
    return {
      seed: this.#options.seed, kind: config.kind, hash: this.#trace.digest(), faults: this.faults.injected, violations: oracle.violations,
      steps: scheduler.steps, virtualMs: scheduler.now - TIME_ZERO, cycles: this.#cycles, requests: this.source.requests, outcomes: oracle.outcomes,
      rows: oracle.digest(), trail: this.#trace.recent(),
    }
  }

  /** Does something after so much virtual time. */
  at(ms: number, act: () => void): void {
    void this.#fate.idle(ms).then(act)
  }

  /** Sets the clocks of all runners at work, right or wrong. */
  setClocks(errorMs: number): void {
    for (const { clock } of this.#runners.values()) clock.errorMs = errorMs
  }

  /** Deltas come before the listing that would hide what they missed. */
  #syncs(): SyncFacts[] {
    const { kind, asksTime, deletions } = this.config
    const windowMs = this.#windowMs
    const incremental: SyncFacts = { sync: 'delta', mode: 'incremental', windowMs, asksTime, deletions }
    const replace = (listing: string, soleOwner: boolean): SyncFacts => ({ sync: `list-${listing}`, mode: 'replace', listing, soleOwner })
    switch (kind) {
      case 'replace':
      case 'lie':
        return [replace('a', true)]
      case 'delta':
        return [incremental]
      case 'pair':
        return [incremental, replace('a', true)]
      case 'owners':
        return [replace('a', false), replace('b', false)]
      default:
        return kind satisfies never
    }
  }

  /** Runs one sync until a cycle that began in the healed world has completed, then compares with the truth. */
  async #rest(facts: SyncFacts, isLast = false): Promise<void> {
    const { source, oracle, scheduler, config } = this
    this.#chosen = facts.sync
    const from = scheduler.now + config.runnerSkewMs
    await this.#pass(2 * config.runnerSkewMs)
    const requests = source.requests
    const steps = scheduler.steps
    await this.#until(() => (oracle.completed.get(facts.sync)?.beganAt ?? 0) >= from, HEALING_STEPS_MAX, `${facts.sync} did not complete a cycle in a healed world`)
    if (oracle.violations.length > 0) return
    // An old cycle may have to end first, every runner may have one under way, and confirming takes a page.
    const bound = (source.ids().length / config.pageSize + 4) * 3 * (config.runners + 2) + 20
    if (source.requests - requests > bound) oracle.violate('O14', `${facts.sync} took ${source.requests - requests} requests and ${scheduler.steps - steps} steps to read ${source.ids().length} records`)
    switch (config.kind) {
      case 'delta':
        oracle.compareTruth(null, config.deletions !== 'none')
        break
      case 'pair':
        oracle.compareTruth(null, isLast)
        break
      case 'owners':
        if (facts.sync === 'list-b') oracle.compareTruth(['a', 'b'], isLast)
        break
      default:
        oracle.compareTruth(['a'], true)
    }
  }

  /** Lets time go by; what is under way goes on, and nobody begins anything. */
  async #pass(ms: number): Promise<void> {
    let passed = false
    this.#nobodyBeginsUntil = this.scheduler.now + ms
    void this.#fate.idle(ms).then(() => void (passed = true))
    await this.#until(() => passed, STEPS_MAX, 'time stood still')
  }

  async #until(isDone: () => boolean, stepsMax: number, complaint: string): Promise<void> {
    const last = this.scheduler.steps + stepsMax
    while (!isDone() && this.oracle.violations.length === 0) {
      if (this.scheduler.steps >= last || !(await this.scheduler.step())) {
        this.oracle.violate('O13', complaint)
        return
      }
    }
  }

  // ── the source's life ──────────────────────────────────────────────────────────────────────────────────────────────

  async #work(): Promise<void> {
    const { config, source } = this
    for (let i = 0; i < config.operations; i++) {
      await this.#fate.idle(this.#workload.chance(0.2) ? 0 : this.#workload.int(1, config.gapMs))
      if (config.skewMs > 0 && this.#workload.chance(0.2)) source.clockErrorMs = this.#workload.int(-config.skewMs, config.skewMs)
      const ids = source.ids()
      const live = ids.filter((id) => !source.latest(id)!.deleted)
      const dead = ids.filter((id) => source.latest(id)!.deleted)
      const draw = this.#workload.next()
      if (draw < config.bulkShare) for (const id of live) this.#write(id)
      else if (draw > 1 - config.deleteShare && live.length > 0) this.#write(this.#workload.pick(live), true)
      else if (draw > 1 - 1.6 * config.deleteShare && dead.length > 0) this.#write(this.#workload.pick(dead))
      else if (draw > 0.7 && config.records > 6 || live.length === 0) this.#create()
      else this.#write(this.#workload.pick(live))
    }
    await this.#fate.idle(config.gapMs)
  }

  #create(): void {
    const id = `r${this.#workload.int(0, 46_655).toString(36).padStart(3, '0')}`
    this.#write(id)
  }

  #write(id: string, deleted = false): void {
    const { config, source } = this
    const lagMs = this.#workload.chance(0.3) ? this.#workload.int(0, config.lagMs) : 0
    const unstorable = !deleted && this.#workload.chance(config.unstorableShare)
    const known = source.latest(id)?.listings
    const listings = config.kind !== 'owners' ? ['a'] : known === undefined || this.#workload.chance(0.3) ? this.#workload.pick([['a'], ['b'], ['a', 'b'], ['a', 'b']]) : known
    source.write(id, { deleted, unstorable, lagMs, listings })
  }

  /** A listing that leaves out so many of the rows we hold that it must not be believed. */
  #hide(): ReadonlySet<string> | null {
    const fault = this.faults.draw('source', 'source.list whole', ['listing-lie'])
    if (fault === null) return null
    const held = this.oracle.rowKeys()
    if (held.length === 0) {
      this.faults.withdraw(fault)
      return null
    }
    const count = this.config.lie === 'all' ? held.length : Math.min(held.length, Math.floor(held.length * 0.6) + 1)
    return new Set(new Stream(this.#options.seed, fault.id).shuffle(held).slice(0, count))
  }

  // ── runners ────────────────────────────────────────────────────────────────────────────────────────────────────────

  #startRunner(name: string): void {
    const process = this.scheduler.start(name)
    const { config } = this
    const clock = new VirtualClock(process, (ms) => this.oracle.violate('O14', `somebody slept ${ms} ms`))
    clock.errorMs = config.runnerSkewMs === 0 ? 0 : this.#schedule.int(-config.runnerSkewMs, config.runnerSkewMs)
    const runner: Runner = { name, process, clock, lives: (this.#runners.get(name)?.lives ?? 0) + 1, stopping: null, busy: false }
    this.#runners.set(name, runner)
    void this.#run(runner).catch((error: unknown) => this.oracle.violate('O13', `a runner ended with ${String(error)}`))
  }

  async #run(runner: Runner): Promise<void> {
    const { config, scheduler } = this
    const { process, clock } = runner
    const store = faultyStore(this.#store.forTenant(this.#store.tenant), {
      process, faults: this.faults, latencyMs: () => this.#latencyMs(config.storeLatencyMs),
      observe: (method, args, answer) => this.oracle.observe(method, args, answer),
      later: (ms, call) => void this.#fate.idle(ms).then(call).catch((error: unknown) => this.oracle.violate('O5', `a late call failed: ${String(error)}`)),
    })
    const plans = this.#plans({ process, faults: this.faults, source: this.source, latencyMs: () => this.#latencyMs(config.sourceLatencyMs), deadlineMs: config.deadlineMs })
    const log = { debug() {}, info() {}, warn() {}, error() {} }
    while (!this.#ended) {
      await process.idle(this.#schedule.int(0, config.runnerGapMs))
      while (scheduler.now < this.#nobodyBeginsUntil) await process.idle(this.#nobodyBeginsUntil - scheduler.now)
      const plan = this.#chosen === null ? this.#schedule.pick(plans) : plans.find(({ sync }) => sync === this.#chosen)!
      runner.stopping = new AbortController()
      runner.busy = true
      const requests = this.source.requests
      let result: CycleResult | null = null
      try {
        result = await runCycle(plan, {
          store, ports: { clock, random: this.#schedule, log }, fetch: unreachable, secrets: { get: unreachable },
          holder: `${runner.name}.${runner.lives}`, trigger: 'simulation', signal: runner.stopping.signal,
          allowDeletes: this.#confirmed.has(plan.sync),
        })
      } catch (error) {
        // The lease could not even be asked for.
        if (!isSyncError(error) || !EXPECTED.has(error.code)) this.oracle.violate('O13', `a cycle threw ${String(error)}`)
      }
      runner.busy = false
      this.#cycles++
      if (result?.stopReason === 'held') await process.idle(this.#schedule.int(0, config.leaseTtlMs))
      if (result !== null) this.#noteResult(plan, result, this.source.requests - requests)
      scheduler.trace.add(scheduler.now - TIME_ZERO, `${runner.name} ${plan.sync} ${result?.stopReason ?? 'threw'} ${result?.error?.code ?? ''} ${result?.pages ?? 0}`)
      if (runner.stopping.signal.aborted) {
        process.crash()
        this.#restart(runner)
      }
    }
  }

  #noteResult(plan: SyncPlan, result: CycleResult, requests: number): void {
    this.#options.onResult?.(result, requests)
    const code = result.error?.code
    if (result.stopReason === 'complete') {
      this.#confirmed.delete(plan.sync)
      this.oracle.judgeResult(plan.sync, result.cycle)
    }
    // Whoever looks at an honest source confirms; at a lying one, not before it has come to its senses.
    if (code === 'MASS_DELETE' && (this.config.lie === 'none' || this.#chosen !== null)) this.#confirmed.add(plan.sync)
    if (code === 'MASS_DELETE' && result.counts.swept > 0) this.oracle.violate('O2', `${plan.sync} was refused its sweep and swept ${result.counts.swept}`)
    if (code !== undefined && !EXPECTED.has(code)) this.oracle.violate('O13', `${plan.sync} failed with ${code}: ${result.error!.message}`)
  }

  /** A healed world is also a quick one: a lease shorter than an answer would never let anybody finish. */
  #latencyMs([least, most]: readonly [number, number]): number {
    return this.faults.enabled ? this.#schedule.int(least, most) : 5
  }

  #plans(line: Line): SyncPlan[] {
    const { config } = this
    return this.#syncs().map((facts): SyncPlan => ({
      worker: WORKER, sync: facts.sync, mode: facts.mode, databases: [{ name: DATABASE }],
      owner: config.kind === 'owners' ? facts.sync : 'owner',
      execute: facts.mode === 'replace'
        ? listing(line, { listing: facts.listing, stamped: config.stamped })
        : delta(line, { windowMs: facts.windowMs, deletions: facts.deletions, asksTime: facts.asksTime }),
      pacers: [],
      limits: { ...DEFAULT_LIMITS, leaseTtlMs: config.leaseTtlMs, deadlineMs: config.deadlineMs, retriesMax: config.retriesMax, pagesMax: config.pagesMax },
      sweep: DEFAULT_SWEEP,
      scope: null,
      // Of two stamps of one record, the later may be older by this much.
      upstreamToleranceMs: config.skewMs === 0 ? 0 : 2 * config.skewMs + config.granularityMs,
    }))
  }

  #strike(process: Process, label: string): void {
    const runner = this.#runners.get(process.name)
    if (runner === undefined || runner.process !== process) return
    const fault = this.faults.draw(process.name, label, PROCESS_FAULTS)
    const { config } = this
    switch (fault?.kind) {
      case 'crash':
        return this.#crash(runner)
      case 'freeze':
        return process.hold(Math.round(config.leaseTtlMs * (0.2 + 3 * fault.amount)))
      case 'clock-step':
        if (config.runnerSkewMs === 0) return this.faults.withdraw(fault)
        runner.clock.errorMs = Math.round(config.runnerSkewMs * (2 * fault.amount - 1))
        return
      case 'terminate':
        if (!runner.busy || runner.stopping?.signal.aborted === true) return this.faults.withdraw(fault)
        // Not inside the call that is being made, but as a signal does: between two of them.
        queueMicrotask(() => process.alive && runner.stopping!.abort())
        void this.#fate.idle(1 + Math.round(10_000 * fault.amount)).then(() => process.alive && this.#crash(runner))
        return
      default:
    }
  }

  #crash(runner: Runner): void {
    runner.process.crash()
    this.#restart(runner)
  }

  #restart(runner: Runner): void {
    void this.#fate.idle(this.#schedule.int(1, 5_000)).then(() => this.#startRunner(runner.name))
  }

  // ── O7: consumers ──────────────────────────────────────────────────────────────────────────────────────────────────

  /** Reads the feed in pages of any size, stops and goes on, and holds the table it gets against the rows. */
  async #consume(process: Process, chance: Stream): Promise<void> {
    const mirror = new FeedMirror((oracle, message) => this.oracle.violate(oracle, `a consumer: ${message}`))
    for (;;) {
      await process.idle(chance.int(10, 20_000))
      const limit = chance.int(1, 30)
      const entries = await this.#store.changes({ after: mirror.position, limit })
      mirror.apply(entries)
      if (entries.length < limit && mirror.position !== (await this.#store.position())) this.oracle.violate('O7', `a consumer got a short page at ${mirror.position}, before the end of the feed`)
      if (entries.length < limit && entries.length > 0) {
        const rows = await this.#store.rows({ database: DATABASE, limit: 100_000 })
        if (rows.length !== mirror.rows.size || rows.some((row) => mirror.rows.get(row.key)?.text !== row.text)) this.oracle.violate('O7', 'a consumer that read the whole feed holds other rows than the table')
      }
    }
  }
}

interface Runner {
  readonly name: string
  readonly process: Process
  readonly clock: VirtualClock
  readonly lives: number
  stopping: AbortController | null
  busy: boolean
}

const PROCESS_FAULTS = ['crash', 'freeze', 'terminate', 'clock-step'] as const

/** How a cycle may end in a world like these. Anything else is a finding. */
const EXPECTED: ReadonlySet<string> = new Set([
  'SOURCE_UNAVAILABLE', 'SOURCE_TIMEOUT', 'SOURCE_INVALID', 'RATE_LIMITED', 'STORE_BUSY', 'STORE_UNAVAILABLE', 'COMMIT_UNKNOWN',
  'LEASE_HELD', 'LEASE_LOST', 'VERSION_CONFLICT', 'OVERLAP_UNRESOLVED', 'MASS_DELETE', 'CURSOR_STALLED', 'CURSOR_CYCLE',
])

function unreachable(): never {
  throw new Error('there is no network in this world')
}
