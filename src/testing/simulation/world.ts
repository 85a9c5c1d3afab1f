import type { Store } from '../../contract/index.ts'
import type { CycleResult } from '../../engine/cycle-options.ts'
import { DEFAULT_LIMITS, DEFAULT_SWEEP, type SyncPlan } from '../../engine/sync-plan.ts'
import { AdversarialSource, type SourceConnection } from './adversarial-source.ts'
import { AnnouncedPauses } from './announced-pauses.ts'
import type { WorldResult } from './campaign.ts'
import { delta, listing, lookup } from './connectors.ts'
import { FaultInjector } from './fault-injector.ts'
import { Fleet } from './fleet.ts'
import { SourceOracle, type SyncFacts } from './oracle.ts'
import { RandomStream, Trace } from './random-stream.ts'
import { Scheduler, TIME_ZERO, type SimulatedProcess } from './scheduler.ts'
import { drawConfig, type WorldConfig, type WorldKind } from './world-config.ts'
import { SQLITE_IN_MEMORY, holdVirtualTimeDuring, type WorldStoreFactory } from './world-store-factory.ts'
import { required } from '../../values/required.ts'

export interface WorldOptions {
  readonly seed: number
  readonly kind?: WorldKind
  readonly overrides?: Partial<WorldConfig>
  /** Faults to keep, by id; all when absent, none when empty. */
  readonly only?: ReadonlySet<string>
  /** The store under test; in-memory SQLite when absent. */
  readonly store?: WorldStoreFactory
  /** Called after every cycle, with its requests to the source. */
  readonly onResult?: (result: CycleResult, requests: number) => void
  /** For directed tests: before the first step, and when the workload has ended but the world is not healed yet. */
  readonly onStart?: (world: World) => void
  readonly beforeHeal?: (world: World) => void
}

/** One world from its first record to its verdict. A pure function of its options. */
export async function runWorld(options: WorldOptions): Promise<WorldResult> {
  const trace = new Trace()
  const scheduler = new Scheduler(options.seed, trace)
  const store = await (options.store ?? SQLITE_IN_MEMORY).open(() => scheduler.now)
  try {
    return await new World(options, holdVirtualTimeDuring(store, scheduler), scheduler).run()
  } finally {
    await store.close()
  }
}

const WORKER = 'world'
const DATABASE = 'records'
const STEPS_MAX = 60_000
/** Maximum number of steps of a healed world until every sync has read everything once more. */
const HEALING_STEPS_MAX = 20_000

export class World {
  readonly config: WorldConfig
  readonly scheduler: Scheduler
  readonly source: AdversarialSource
  readonly oracle: SourceOracle
  readonly faults: FaultInjector
  readonly #options: WorldOptions
  readonly #workload: RandomStream
  readonly #schedule: RandomStream
  /** Never crashes: restarts runners, writes at the source, delivers delayed calls. */
  readonly #supervisor: SimulatedProcess
  readonly #windowMs: number
  readonly #fleet: Fleet
  #restarts = 0

  constructor(options: WorldOptions, store: Store, scheduler: Scheduler) {
    const { seed } = options
    this.#options = options
    this.config = drawConfig(seed, options.kind, options.overrides)
    const { config } = this
    this.scheduler = scheduler
    this.#supervisor = this.scheduler.start('supervisor')
    this.faults = new FaultInjector(seed, config.rates, options.only ?? null)
    this.#workload = new RandomStream(seed, 'workload')
    this.#schedule = new RandomStream(seed, 'latency')
    this.source = new AdversarialSource(config, {
      now: () => this.scheduler.now,
      chance: new RandomStream(seed, 'source'),
      faults: this.faults,
    })
    // Twice the source's skew: a horizon by its own clock, and a timestamp by it, may both be off.
    this.#windowMs = config.lagMs + 2 * config.skewMs + config.runnerSkewMs + config.granularityMs
    this.oracle = new SourceOracle({
      store,
      source: this.source,
      now: () => this.scheduler.now,
      worker: WORKER,
      database: DATABASE,
      syncs: this.#syncs(),
      isSourceIncomplete: config.omission !== 'none',
      runnerSkewMs: config.runnerSkewMs,
      timesGoBack: config.backStampShare > 0,
      storeHasClock: options.store?.ownClock === true,
    })
    const pauses = new AnnouncedPauses({
      now: () => this.scheduler.now,
      toleranceMs: 2 * config.runnerSkewMs,
      reportViolation: (oracle, message) => this.oracle.reportViolation(oracle, message),
    })
    this.#fleet = new Fleet({
      seed,
      scheduler: this.scheduler,
      supervisor: this.#supervisor,
      faults: this.faults,
      store,
      database: DATABASE,
      oracle: this.oracle,
      random: this.#schedule,
      conditions: config,
      plans: (process) =>
        this.#plans({
          process,
          faults: this.faults,
          source: this.source,
          latencyMs: () => this.#fleet.latencyMs(config.sourceLatencyMs),
          deadlineMs: config.deadlineMs,
          pauses,
        }),
      pauses,
      fetch: () => unreachable,
      secrets: { get: unreachable },
      expectedErrors: EXPECTED_ERRORS,
      requests: () => this.source.requests,
      onResult: options.onResult,
      // The operator confirms deletions of a correct source at once; of a faulty one, only after it has recovered.
      confirmsDeletes: () => config.omission === 'none' || this.#fleet.onlySync !== null,
    })
  }

  async run(): Promise<WorldResult> {
    const { config, scheduler, oracle } = this
    for (let i = 0; i < config.records; i++) this.#create()
    if (config.omission !== 'none') this.source.omitFromListing = () => this.#drawOmission()
    this.#fleet.start()

    this.#options.onStart?.(this)
    let busy = true
    void this.#runWorkload().then(() => void (busy = false))
    await this.#fleet.runUntil(() => !busy, STEPS_MAX, 'the workload did not end')

    this.#options.beforeHeal?.(this)
    this.faults.enabled = false
    this.source.omitFromListing = null
    // Half the worlds heal by a restart of everything, the others while old cycles are still running.
    if (this.#schedule.chance(0.5)) this.#fleet.crashAll()
    await this.#fleet.advanceTime(
      this.#windowMs + 2 * config.skewMs + config.runnerSkewMs + config.granularityMs + 1_000 + config.restMs,
    )
    const syncs = this.#syncs()
    for (const facts of syncs) {
      // Invariant 13: after two undisturbed listings the copy is right. One is enough where timestamps are true and
      // nothing lags.
      if (facts.mode === 'replace' && (config.backStampShare > 0 || facts.lagMs > 0))
        await this.#runAtRest(facts, false, false)
      await this.#runAtRest(facts)
    }
    // An old page of one sync may have protected a row from the other's sweep; by now no such page is in flight.
    if (config.kind === 'owners' || config.kind === 'pair')
      for (const facts of syncs) if (facts.mode === 'replace') await this.#runAtRest(facts, true)

    this.#fleet.ended = true
    if (oracle.violations.length === 0) {
      await oracle.compareRows()
      await oracle.compareAudit()
    }
    return {
      seed: this.#options.seed,
      kind: config.kind,
      hash: this.scheduler.trace.digest(),
      faults: this.faults.injected,
      violations: oracle.violations,
      steps: scheduler.steps,
      virtualMs: scheduler.now - TIME_ZERO,
      cycles: this.#fleet.cycles,
      requests: this.source.requests,
      outcomes: oracle.outcomes,
      rows: oracle.digest(),
      trail: this.scheduler.trace.recent(),
    }
  }

  /** Runs an action after this much virtual time. */
  scheduleAfter(ms: number, act: () => void): void {
    void this.#supervisor.idle(ms).then(act)
  }

  /** Sets the clocks of all running runners, right or wrong. */
  setClocks(errorMs: number): void {
    this.#fleet.setClocks(errorMs)
  }

  /** Deltas run before the listing that would hide the changes they missed. */
  #syncs(): SyncFacts[] {
    const { kind, usesSourceTime: asksTime, deletions } = this.config
    const windowMs = this.#windowMs
    const incremental: SyncFacts = { sync: 'delta', mode: 'incremental', windowMs, usesSourceTime: asksTime, deletions }
    // The times of two runners are compared, and each may be off.
    const lagMs = this.config.monotonic ? 0 : this.config.lagMs + 2 * this.config.runnerSkewMs
    const replace = (listing: string, soleOwner: boolean): SyncFacts => ({
      sync: `list-${listing}`,
      mode: 'replace',
      listing,
      soleOwner,
      lagMs,
    })
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

  /**
   * Runs one sync until a cycle that began in the healed world has completed, then compares the rows with the source.
   */
  async #runAtRest(facts: SyncFacts, isLast = false, compares = true): Promise<void> {
    const { source, oracle, scheduler, config } = this
    this.#fleet.onlySync = facts.sync
    await this.#fleet.advanceTime(
      2 * config.runnerSkewMs + (facts.mode === 'replace' && facts.lagMs > 0 ? facts.lagMs + 1 : 0),
    )
    const from = scheduler.now - config.runnerSkewMs
    const requests = source.requests
    const steps = scheduler.steps
    await this.#fleet.runUntil(
      () => (oracle.completed.get(facts.sync)?.beganAt ?? 0) >= from,
      HEALING_STEPS_MAX,
      `${facts.sync} did not complete a cycle in a healed world`,
    )
    if (oracle.violations.length > 0) return
    // An old cycle may have to end first, every runner may have one in progress, and confirming takes a page.
    const bound =
      (source.ids().length / config.pageSize + 4) * 3 * (config.runners + 2) +
      20 +
      (config.lookup ? 2 * source.ids().length : 0)
    if (source.requests - requests > bound)
      oracle.reportViolation(
        'O14',
        `${facts.sync} took ${source.requests - requests} requests and ${scheduler.steps - steps} steps to read ${source.ids().length} records`,
      )
    if (!compares) return
    switch (config.kind) {
      case 'delta':
        oracle.compareWithSource(null, config.deletions !== 'none')
        break
      case 'pair':
        oracle.compareWithSource(null, isLast)
        break
      case 'owners':
        if (facts.sync === 'list-b') oracle.compareWithSource(['a', 'b'], isLast)
        break
      default:
        oracle.compareWithSource(['a'], true)
    }
  }

  // ── the source's workload ──────────────────────────────────────────────────────────────────────────────────────────

  async #runWorkload(): Promise<void> {
    const { config, source } = this
    for (let i = 0; i < config.operations; i++) {
      await this.#supervisor.idle(this.#workload.chance(0.2) ? 0 : this.#workload.int(1, config.gapMs))
      if (config.skewMs > 0 && this.#workload.chance(0.2))
        source.clockErrorMs = this.#workload.int(-config.skewMs, config.skewMs)
      const ids = source.ids()
      const live = ids.filter((id) => !required(source.latest(id), 'the result of latest').deleted)
      const dead = ids.filter((id) => required(source.latest(id), 'the result of latest').deleted)
      const draw = this.#workload.next()
      if (draw < config.bulkShare) for (const id of live) this.#write(id)
      else if (draw > 1 - config.deleteShare && live.length > 0) this.#write(this.#workload.pick(live), true)
      else if (draw > 1 - 1.6 * config.deleteShare && dead.length > 0) this.#write(this.#workload.pick(dead))
      else if ((draw > 0.7 && config.records > 6) || live.length === 0) this.#create()
      else this.#write(this.#workload.pick(live))
    }
    await this.#supervisor.idle(config.gapMs)
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
    const listings =
      config.kind !== 'owners'
        ? ['a']
        : known === undefined || this.#workload.chance(0.3)
          ? this.#workload.pick([['a'], ['b'], ['a', 'b'], ['a', 'b']])
          : known
    const back = config.backStampShare > 0 && this.#workload.chance(config.backStampShare)
    const stamp = back ? (source.latest(id)?.stamp ?? this.scheduler.now) - this.#workload.int(1, 3_600_000) : undefined
    source.write(id, { deleted, unstorable, lagMs, listings, ...(stamp !== undefined && { stamp }) })
  }

  /** A listing that omits so many stored rows that it must not be trusted. */
  #drawOmission(): ReadonlySet<string> | null {
    const fault = this.faults.draw('source', 'source.list whole', ['listing-lie'])
    if (fault === null) return null
    const held = this.oracle.rowKeys()
    if (held.length === 0) {
      this.faults.withdraw(fault)
      return null
    }
    const count =
      this.config.omission === 'all'
        ? held.length
        : this.config.omission === 'some'
          ? Math.floor(held.length * 0.4)
          : Math.min(held.length, Math.floor(held.length * 0.6) + 1)
    return new Set(new RandomStream(this.#options.seed, fault.id).shuffle(held).slice(0, count))
  }

  #plans(line: SourceConnection): SyncPlan[] {
    const { config } = this
    const deletes = config.deletes === 'changing' ? (++this.#restarts % 2 === 0 ? 'hard' : 'soft') : config.deletes
    const lineOf = (mode: SyncFacts['mode']): SourceConnection => ({
      ...line,
      responseLatencyMs: () => this.#fleet.latencyMs(config.responseLatencyMs?.[mode] ?? config.sourceLatencyMs),
    })
    return this.#syncs().map((facts): SyncPlan => ({
      worker: WORKER,
      sync: facts.sync,
      mode: facts.mode,
      databases: [{ name: DATABASE, ...(deletes !== undefined && { deletes }) }],
      owner: config.kind === 'owners' ? facts.sync : 'owner',
      execute:
        facts.mode === 'replace'
          ? listing(lineOf('replace'), { listing: facts.listing, stamped: config.stamped })
          : delta(lineOf('incremental'), {
              windowMs: facts.windowMs,
              deletions: facts.deletions,
              usesSourceTime: facts.usesSourceTime,
            }),
      ...(config.lookup &&
        facts.mode === 'replace' && { lookup: lookup(line, { listing: facts.listing, stamped: config.stamped }) }),
      pacers: [],
      limits: {
        ...DEFAULT_LIMITS,
        leaseTtlMs: config.leaseTtlMs,
        deadlineMs: config.deadlineMs,
        retriesMax: config.retriesMax,
        pagesMax: config.pagesMax,
      },
      sweep: DEFAULT_SWEEP,
      scope: null,
      lagMs: facts.mode === 'replace' ? facts.lagMs : 0,
      // The later of two timestamps of one record may be older by this much.
      upstreamToleranceMs: config.skewMs === 0 ? 0 : 2 * config.skewMs + config.granularityMs,
      ...(config.kind === 'pair' && facts.mode === 'incremental' && { listings: ['list-a'] }),
    }))
  }
}

/** The end reasons and errors allowed in a world like these. Anything else is a finding. */
const EXPECTED_ERRORS: ReadonlySet<string> = new Set([
  'SOURCE_UNAVAILABLE',
  'SOURCE_TIMEOUT',
  'SOURCE_INVALID',
  'RATE_LIMITED',
  'STORE_BUSY',
  'STORE_UNAVAILABLE',
  'COMMIT_UNKNOWN',
  'LEASE_HELD',
  'LEASE_LOST',
  'VERSION_CONFLICT',
  'OVERLAP_UNRESOLVED',
  'MASS_DELETE',
  'LISTING_INCOMPLETE',
  'CURSOR_STALLED',
  'CURSOR_CYCLE',
])

function unreachable(): never {
  throw new Error('there is no network in this world')
}
