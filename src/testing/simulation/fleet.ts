import { isSyncError, type Store } from '../../contract/index.ts'
import { runCycle } from '../../engine/cycle.ts'
import type { CycleOptions, CycleResult } from '../../engine/cycle-options.ts'
import type { SyncPlan } from '../../engine/sync-plan.ts'
import type { AnnouncedPauses } from './announced-pauses.ts'
import { FeedMirror } from './feed-mirror.ts'
import type { FaultInjector } from './fault-injector.ts'
import { createFaultyStore, type StoreMethod } from './faulty-store.ts'
import { RandomStream } from './random-stream.ts'
import { TIME_ZERO, type SimulatedProcess, type Scheduler } from './scheduler.ts'
import type { StoreOracle } from './store-oracle.ts'
import { VirtualClock } from './virtual-clock.ts'
import { required } from '../../values/required.ts'

export interface FleetOptions {
  readonly seed: number
  readonly scheduler: Scheduler
  /** Never crashes: restarts runners and delivers delayed calls. */
  readonly supervisor: SimulatedProcess
  readonly faults: FaultInjector
  readonly store: Store
  readonly database: string
  readonly oracle: Pick<StoreOracle<any>, 'observe' | 'reportViolation' | 'checkResult' | 'violations'>
  readonly random: RandomStream
  readonly conditions: FleetConditions
  /** The syncs that one runner process declares. */
  readonly plans: (process: SimulatedProcess) => SyncPlan[]
  readonly fetch: (process: SimulatedProcess) => CycleOptions['fetch']
  readonly secrets: CycleOptions['secrets']
  /** The end reasons and errors allowed in such a world. Anything else is a finding. */
  readonly expectedErrors: ReadonlySet<string>
  /** Whether an operator checks the source and confirms that the rows it no longer lists are deleted. */
  readonly confirmsDeletes: () => boolean
  /** Number of requests to the source so far. */
  readonly requests: () => number
  readonly onResult?: ((result: CycleResult, requests: number) => void) | undefined
  /** Called when a runner has persisted a pause in the store, and when a cycle has ended on its own. */
  readonly pauses?: Pick<AnnouncedPauses, 'onPauseStored' | 'onCycleEnd'>
}

/** Reliability of the runners' machines. */
export interface FleetConditions {
  readonly runners: number
  readonly runnerGapMs: number
  /** Maximum error of the runners' clocks. */
  readonly runnerSkewMs: number
  readonly storeLatencyMs: readonly [number, number]
  readonly leaseTtlMs: number
}

interface FleetRunner {
  readonly name: string
  readonly process: SimulatedProcess
  readonly clock: VirtualClock
  readonly restarts: number
  stopping: AbortController | null
  busy: boolean
}

const STEPS_MAX = 60_000

/** The runners of a world, the faults they meet, and the consumers of the feed. */
export class Fleet {
  /** The only sync that runs; all when null. */
  onlySync: string | null = null
  cycles = 0
  ended = false
  readonly #options: FleetOptions
  readonly #runners = new Map<string, FleetRunner>()
  readonly #confirmed = new Set<string>()
  #startsBlockedUntil = 0
  #isExclusive = false

  constructor(options: FleetOptions) {
    this.#options = options
    options.scheduler.onWait = (process, label) => this.#injectFault(process, label)
  }

  start(): void {
    const { scheduler, conditions, seed } = this.#options
    for (let i = 0; i < conditions.runners; i++) this.#startRunner(`runner${i + 1}`)
    for (let i = 0; i < 2; i++)
      void this.#consume(scheduler.start(`consumer${i + 1}`), new RandomStream(seed, `consumer${i}`))
  }

  crashAll(): void {
    for (const runner of this.#runners.values()) this.#crash(runner)
  }

  /** Sets the clocks of all running runners, right or wrong. */
  setClocks(errorMs: number): void {
    for (const { clock } of this.#runners.values()) clock.errorMs = errorMs
  }

  /** A healed world is also fast: a lease shorter than a response would prevent every cycle from finishing. */
  latencyMs([least, most]: readonly [number, number]): number {
    return this.#options.faults.enabled ? this.#options.random.int(least, most) : 5
  }

  /** Advances time; running cycles continue, and no new one begins. */
  async advanceTime(ms: number): Promise<void> {
    const { scheduler, supervisor } = this.#options
    let passed = false
    this.#startsBlockedUntil = scheduler.now + ms
    void supervisor.idle(ms).then(() => void (passed = true))
    await this.runUntil(() => passed, STEPS_MAX, 'time did not advance')
  }

  /** Runs an action while no runner begins a cycle. */
  async runExclusively(work: (store: Store) => Promise<void>): Promise<void> {
    const { supervisor, oracle, faults, store: shared } = this.#options
    const store = createFaultyStore(shared.forTenant(shared.tenant), {
      process: supervisor,
      faults,
      latencyMs: () => 1,
      observe: (method, args, answer) => oracle.observe(method, args, answer),
      runLater: () => {},
    })
    let isDone = false
    this.#isExclusive = true
    void work(store)
      .catch((error: unknown) => oracle.reportViolation('O13', String(error)))
      .then(() => void (isDone = true))
    await this.runUntil(() => isDone, STEPS_MAX, 'the exclusive action did not end')
    this.#isExclusive = false
  }

  async runUntil(isDone: () => boolean, stepsMax: number, complaint: string): Promise<void> {
    const { scheduler, oracle } = this.#options
    const last = scheduler.steps + stepsMax
    while (!isDone() && oracle.violations.length === 0) {
      if (scheduler.steps >= last || !(await scheduler.step())) {
        oracle.reportViolation('O13', complaint)
        return
      }
    }
  }

  // ── runners ────────────────────────────────────────────────────────────────────────────────────────────────────────

  #startRunner(name: string): void {
    const { scheduler, conditions, random: chance, oracle } = this.#options
    const process = scheduler.start(name)
    const clock = new VirtualClock(process, (ms) => oracle.reportViolation('O14', `a process slept ${ms} ms`))
    clock.errorMs = conditions.runnerSkewMs === 0 ? 0 : chance.int(-conditions.runnerSkewMs, conditions.runnerSkewMs)
    const runner: FleetRunner = {
      name,
      process,
      clock,
      restarts: (this.#runners.get(name)?.restarts ?? 0) + 1,
      stopping: null,
      busy: false,
    }
    this.#runners.set(name, runner)
    void this.#run(runner).catch((error: unknown) =>
      oracle.reportViolation('O13', `a runner ended with ${String(error)}`),
    )
  }

  async #run(runner: FleetRunner): Promise<void> {
    const {
      scheduler,
      conditions,
      random: chance,
      oracle,
      faults,
      supervisor,
      store: shared,
      secrets,
      expectedErrors: expected,
      requests,
      pauses,
    } = this.#options
    const { process, clock } = runner
    const store = createFaultyStore(shared.forTenant(shared.tenant), {
      process,
      faults,
      latencyMs: () => this.latencyMs(conditions.storeLatencyMs),
      observe: (method, args, answer) => {
        if (method === STORE_PAUSE_METHOD) pauses?.onPauseStored(process)
        return oracle.observe(method, args, answer)
      },
      runLater: (ms, call) =>
        void supervisor
          .idle(ms)
          .then(call)
          .catch((error: unknown) => oracle.reportViolation('O5', `a delayed call failed: ${String(error)}`)),
    })
    const plans = this.#options.plans(process)
    const fetch = this.#options.fetch(process)
    const log = { debug() {}, info() {}, warn() {}, error() {} }
    while (!this.ended) {
      await process.idle(chance.int(0, conditions.runnerGapMs))
      while (this.#isExclusive || scheduler.now < this.#startsBlockedUntil)
        await process.idle(Math.max(1_000, this.#startsBlockedUntil - scheduler.now))
      const plan =
        this.onlySync === null
          ? chance.pick(plans)
          : required(
              plans.find(({ sync }) => sync === this.onlySync),
              'the match in plans',
            )
      runner.stopping = new AbortController()
      runner.busy = true
      const asked = requests()
      let result: CycleResult | null = null
      try {
        result = await runCycle(plan, {
          store,
          ports: { clock, random: chance, log },
          fetch,
          secrets,
          holder: `${runner.name}.${runner.restarts}`,
          trigger: 'simulation',
          signal: runner.stopping.signal,
          allowDeletes: this.#confirmed.has(plan.sync),
        })
      } catch (error) {
        // Acquiring the lease failed.
        if (!isSyncError(error) || !expected.has(error.code))
          oracle.reportViolation('O13', `a cycle threw ${String(error)}`)
      }
      runner.busy = false
      this.cycles++
      if (result?.stopReason === 'held') await process.idle(chance.int(0, conditions.leaseTtlMs))
      if (result !== null) this.#noteResult(plan, result, requests() - asked)
      if (result !== null && !isStoreFailure(result)) pauses?.onCycleEnd(process)
      // A source that asks for a pause is polled only as often as an impatient person would.
      if (result?.error?.code === 'RATE_LIMITED') await process.idle(chance.int(0, EARLY_RETRY_MS_MAX))
      scheduler.trace.add(
        scheduler.now - TIME_ZERO,
        `${runner.name} ${plan.sync} ${result?.stopReason ?? 'threw'} ${result?.error?.code ?? ''} ${result?.pages ?? 0}`,
      )
      if (runner.stopping.signal.aborted) {
        process.crash()
        this.#restart(runner)
      }
    }
  }

  #noteResult(plan: SyncPlan, result: CycleResult, requests: number): void {
    const { oracle, expectedErrors: expected, confirmsDeletes, onResult } = this.#options
    onResult?.(result, requests)
    const code = result.error?.code
    if (result.stopReason === 'complete') {
      this.#confirmed.delete(plan.sync)
      oracle.checkResult(plan.sync, result.cycle)
    }
    if (code === 'MASS_DELETE' && confirmsDeletes()) this.#confirmed.add(plan.sync)
    if (code === 'MASS_DELETE' && result.counts.swept > 0)
      oracle.reportViolation('O2', `${plan.sync} was refused its sweep but swept ${result.counts.swept} rows`)
    if (code !== undefined && !expected.has(code))
      oracle.reportViolation('O13', `${plan.sync} failed with ${code}: ${required(result.error, 'the error').message}`)
  }

  #injectFault(process: SimulatedProcess, label: string): void {
    const { faults, supervisor, conditions } = this.#options
    const runner = this.#runners.get(process.name)
    if (runner === undefined || runner.process !== process) return
    const fault = faults.draw(process.name, label, PROCESS_FAULTS)
    switch (fault?.kind) {
      case 'crash':
        return this.#crash(runner)
      case 'freeze':
        return process.freeze(Math.round(conditions.leaseTtlMs * (0.2 + 3 * fault.severity)))
      case 'clock-step':
        if (conditions.runnerSkewMs === 0) return faults.withdraw(fault)
        runner.clock.errorMs = Math.round(conditions.runnerSkewMs * (2 * fault.severity - 1))
        return
      case 'terminate':
        if (!runner.busy || runner.stopping?.signal.aborted === true) return faults.withdraw(fault)
        // The stop arrives between two calls, as a signal does, and not inside the current one.
        queueMicrotask(() => process.isRunning && required(runner.stopping, 'runner.stopping').abort())
        void supervisor
          .idle(1 + Math.round(10_000 * fault.severity))
          .then(() => process.isRunning && this.#crash(runner))
        return
      default:
    }
  }

  #crash(runner: FleetRunner): void {
    runner.process.crash()
    this.#restart(runner)
  }

  #restart(runner: FleetRunner): void {
    void this.#options.supervisor.idle(this.#options.random.int(1, 5_000)).then(() => this.#startRunner(runner.name))
  }

  // ── O7: consumers ──────────────────────────────────────────────────────────────────────────────────────────────────

  /** Reads the feed in pages of random size, stops and continues, and compares the resulting table with the rows. */
  async #consume(process: SimulatedProcess, chance: RandomStream): Promise<void> {
    const { oracle, store, database, scheduler } = this.#options
    // The oracle knows under which conditions each entry was made; a consumer cannot.
    const mirror = new FeedMirror(
      (promise, message) => oracle.reportViolation(promise, `a consumer: ${message}`),
      () => true,
    )
    for (;;) {
      await process.idle(Math.max(chance.int(10, 20_000), this.#startsBlockedUntil - scheduler.now))
      const limit = chance.int(1, 30)
      const entries = await store.changes({ after: mirror.lastSequence, limit })
      mirror.apply(entries)
      if (entries.length < limit && mirror.lastSequence !== (await store.headSequence()))
        oracle.reportViolation(
          'O7',
          `a consumer got a short page at ${mirror.lastSequence}, before the end of the feed`,
        )
      if (entries.length < limit && entries.length > 0) {
        const rows = await store.rows({ database, limit: 100_000 })
        if (rows.length !== mirror.rows.size || rows.some((row) => mirror.rows.get(row.key)?.text !== row.text))
          oracle.reportViolation('O7', 'a consumer that read the whole feed has different rows from the table')
      }
    }
  }
}

const EARLY_RETRY_MS_MAX = 20_000
const STORE_PAUSE_METHOD: StoreMethod = 'recordPause'

/** True also when it was stopped from outside: then unsaved knowledge of the runner may be lost. */
function isStoreFailure({ stopReason, error }: CycleResult): boolean {
  return stopReason === 'cancelled' || (error !== null && /^(STORE_|COMMIT_|LEASE_|VERSION_)/.test(error.code))
}

const PROCESS_FAULTS = ['crash', 'freeze', 'terminate', 'clock-step'] as const
