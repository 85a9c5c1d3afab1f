import type { Fields, RecordVersion, VendorSimulator } from '@tidemark/simulators'
import { Worker } from '../../../worker/worker.ts'
import type { Change, JsonObject, Store } from '../../../contract/index.ts'
import { runCycle } from '../../../engine/cycle.ts'
import type { SyncPlan } from '../../../engine/sync-plan.ts'
import { listDeclaredSyncs, type DeclaredSync } from '../../../runner/declared-sync.ts'
import { readStatus } from '../../../runner/status.ts'
import type { WorldResult } from '../campaign.ts'
import { FaultInjector } from '../fault-injector.ts'
import { Fleet } from '../fleet.ts'
import { RandomStream, Trace } from '../random-stream.ts'
import { Scheduler, TIME_ZERO, type SimulatedProcess } from '../scheduler.ts'
import { VirtualClock } from '../virtual-clock.ts'
import { SQLITE_IN_MEMORY, holdVirtualTimeDuring, type WorldStoreFactory } from '../world-store-factory.ts'
import { drawVendorConfig, type VendorSelection, type VendorWorldConfig } from './vendor-config.ts'
import { AnnouncedPauses } from '../announced-pauses.ts'
import { FalseResponses } from './false-responses.ts'
import { createVendorFetch } from './vendor-connection.ts'
import { LISTING, TAMPERING, VendorOracle, type VendorSyncFacts } from './vendor-oracle.ts'
import { WriteHistory } from './write-history.ts'
import { required } from '../../../values/required.ts'

export interface VendorWorldOptions extends VendorSelection {
  readonly seed: number
  /** Faults to keep, by id; all when absent, none when empty. */
  readonly only?: ReadonlySet<string> | undefined
  /** The store under test; in-memory SQLite when absent. */
  readonly store?: WorldStoreFactory | undefined
}

/**
 * Runs the production engine and a vendor's source against that vendor's simulator, from its first record to its
 * verdict.
 */
export async function runVendorWorld(options: VendorWorldOptions): Promise<WorldResult> {
  const scheduler = new Scheduler(options.seed, new Trace())
  const store = await (options.store ?? SQLITE_IN_MEMORY).open(() => scheduler.now)
  try {
    return await new VendorWorld(options, holdVirtualTimeDuring(store, scheduler), scheduler).run()
  } finally {
    await store.close()
  }
}

const WORKER = 'world'
const DATABASE = 'records'
const DELTA = 'sync'
const STEPS_MAX = 60_000
const HEALING_STEPS_MAX = 20_000
/** Writes of a pair's healed world, which its delta must deliver without the listing. */
const LAST_WRITES = 6
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const YEAR_MS = 365 * 24 * 3_600_000

class VendorWorld {
  readonly #options: VendorWorldOptions
  readonly #config: VendorWorldConfig
  readonly #scheduler: Scheduler
  readonly #faults: FaultInjector
  readonly #workload: RandomStream
  readonly #schedule: RandomStream
  readonly #supervisor: SimulatedProcess
  readonly #simulator: VendorSimulator
  readonly #oracle: VendorOracle
  readonly #fleet: Fleet
  readonly #syncs: readonly VendorSyncFacts[]
  readonly #expiredTokens = new Map<string, number>()
  readonly #history = new WriteHistory()
  readonly #pauses: AnnouncedPauses
  readonly #falseResponses: FalseResponses

  constructor(options: VendorWorldOptions, store: Store, scheduler: Scheduler) {
    const { seed } = options
    const config = drawVendorConfig(seed, options)
    const { stream } = config
    this.#options = options
    this.#config = config
    this.#scheduler = scheduler
    this.#supervisor = this.#scheduler.start('supervisor')
    this.#faults = new FaultInjector(seed, config.rates, options.only ?? null)
    this.#workload = new RandomStream(seed, 'workload')
    this.#schedule = new RandomStream(seed, 'latency')
    const clock = { now: () => this.#scheduler.now, sleep: (ms: number) => this.#supervisor.idle(ms) }
    this.#simulator = stream.open({ clock, random: new RandomStream(seed, 'vendor') }, config)
    this.#syncs = this.#plans().map(({ sync, mode, lagMs = 0 }) =>
      mode === 'replace' ? { sync, mode, lagMs } : { sync, mode, guarantee: guaranteeOf(config) },
    )
    this.#falseResponses = new FalseResponses(stream, () => this.#scheduler.now, config.dateSkewMs)
    this.#oracle = new VendorOracle({
      store,
      now: () => this.#scheduler.now,
      worker: WORKER,
      database: DATABASE,
      syncs: [...this.#syncs, { sync: TAMPERING, mode: 'tampering' }],
      simulator: this.#simulator,
      stream,
      pageSize: config.pageSize,
      history: this.#history,
      granularityMs: stream.granularityMs(config),
      clockBackMs: () => this.#simulator.records.clockBackMs,
      listsBehindMs: (sinceMs) =>
        config.replicaBehindMs + this.#falseResponses.oldestCachedMs + this.#falseResponses.oldestRepeatMs(sinceMs),
      dateBehindMs: () => this.#falseResponses.dateBehindMs,
      oldestCachedMs: () => this.#falseResponses.oldestCachedMs,
      newestCachedAt: (sinceMs) => this.#falseResponses.newestCachedAt(sinceMs),
      isDateWrong: () => this.#falseResponses.isDateWrong,
      health: async () =>
        new Map(
          (await readStatus({ store, syncs: this.#declared(), now: this.#scheduler.now })).map(({ sync, health }) => [
            sync,
            health,
          ]),
        ),
      runnerSkewMs: config.runnerSkewMs,
      storeHasClock: options.store?.ownClock === true,
    })
    this.#pauses = new AnnouncedPauses({
      now: () => this.#scheduler.now,
      toleranceMs: 2 * config.runnerSkewMs,
      reportViolation: (oracle, message) => this.#oracle.reportViolation(oracle, message),
    })
    this.#fleet = new Fleet({
      seed,
      scheduler: this.#scheduler,
      supervisor: this.#supervisor,
      faults: this.#faults,
      store,
      database: DATABASE,
      oracle: this.#oracle,
      random: this.#schedule,
      conditions: config,
      plans: () => this.#plans(),
      pauses: this.#pauses,
      fetch: (process) =>
        createVendorFetch({
          falseResponses: this.#falseResponses,
          process,
          faults: this.#faults,
          stream,
          simulator: this.#simulator,
          expiredTokens: this.#expiredTokens,
          pauses: this.#pauses,
          deadlineMs: config.deadlineMs,
          latencyMs: () => this.#fleet.latencyMs(config.vendorLatencyMs),
        }),
      secrets: { get: () => 'secret' },
      expectedErrors: EXPECTED_ERRORS,
      requests: () => this.#simulator.requests.entries.length,
      // A response may omit records the vendor has; in a healed world the operator confirms deletions.
      confirmsDeletes: () => !this.#faults.enabled,
    })
  }

  async run(): Promise<WorldResult> {
    const oracle = this.#oracle
    const { stream, kind, records, lag, replicaBehindMs } = this.#config
    this.#simulator.records.lag = { share: 0, maxMs: 0 }
    stream.prepare?.(this.#simulator)
    Object.assign(this.#simulator.records, { lag, replicaBehindMs })
    for (let i = 0; i < records; i++) this.#create()
    this.#fleet.start()
    await this.#during(this.#runWorkload(this.#config.operations))
    if (this.#config.hasLongDowntime) await this.#simulateDowntime()

    this.#faults.enabled = false
    // Half the worlds heal by a restart of everything, the others while old cycles are still running.
    if (this.#schedule.chance(0.5)) this.#fleet.crashAll()
    switch (kind) {
      case 'replace':
        await this.#runAtRest(LISTING, 1)
        oracle.compareWithVendor()
        await this.#checkRepair()
        break
      case 'delta':
        await this.#runAtRest(DELTA, 2 * guaranteeOf(this.#config).cyclesPerRound)
        if (oracle.violations.length === 0) this.#compareAfterDelta(oracle.responsibleSince(guaranteeOf(this.#config)))
        break
      case 'pair':
        await this.#runPairAtRest()
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
      seed: this.#options.seed,
      kind: `${stream.vendor} ${stream.name} ${kind}`,
      hash: this.#scheduler.trace.digest(),
      faults: this.#faults.injected,
      violations: oracle.violations,
      steps: this.#scheduler.steps,
      virtualMs: this.#scheduler.now - TIME_ZERO,
      cycles: this.#fleet.cycles,
      requests: this.#simulator.requests.entries.length,
      outcomes: oracle.outcomes,
      // Requests and writes draw from the same random stream of a vendor, so without faults its ids would differ.
      rows: '',
      trail: this.#scheduler.trace.recent(),
    }
  }

  /** The delta is checked before a listing could hide the changes it missed. */
  async #runPairAtRest(): Promise<void> {
    const oracle = this.#oracle
    const { cyclesPerRound } = guaranteeOf(this.#config)
    if (oracle.needsBackfill || !oracle.completed.has(LISTING)) await this.#runAtRest(LISTING, 1)
    this.#fleet.onlySync = DELTA
    await this.#during(this.#runWorkload(LAST_WRITES))
    await this.#runAtRest(DELTA, 2 * cyclesPerRound)
    // After an outage the delta detects the gap and requests the backfill.
    if (oracle.needsBackfill) {
      await this.#runAtRest(LISTING, 1)
      await this.#runAtRest(DELTA, 2 * cyclesPerRound)
    }
    this.#compareAfterDelta()
    await this.#runAtRest(LISTING, 1)
    oracle.compareWithVendor()
    await this.#checkRepair()
  }

  #compareAfterDelta(owedSince?: number): void {
    const { deletes } = guaranteeOf(this.#config).reports(null)
    this.#oracle.compareWithVendor(owedSince, { hasDeletes: deletes })
  }

  /** O17: whatever was stored, two undisturbed listings repair it. */
  async #checkRepair(): Promise<void> {
    if (this.#oracle.violations.length > 0) return
    await this.#tamper()
    for (let n = 0; n < 2; n++) await this.#runAtRest(LISTING, 1)
    if (this.#oracle.violations.length === 0) this.#oracle.compareRepaired()
  }

  /**
   * Stores rows that a vendor with a wrong clock could have returned: an ordinary commit by a sync of the same owner.
   */
  async #tamper(): Promise<void> {
    const plan = required(
      this.#plans().find(({ sync }) => sync === LISTING),
      'the match in the result of #plans',
    )
    const changes = this.#forgeChanges()
    const { pair: _, ...alone } = plan
    this.#oracle.isTampering = this.#oracle.wasTampered = true
    await this.#fleet.runExclusively(async (store) => {
      const clock = new VirtualClock(this.#supervisor)
      const log = { debug() {}, info() {}, warn() {}, error() {} }
      const { stopReason, error } = await runCycle(
        {
          ...alone,
          sync: TAMPERING,
          mode: 'incremental',
          execute: async () => ({ changes, hasMore: false, nextState: {} }),
        },
        {
          store,
          ports: { clock, random: this.#workload, log },
          fetch: () => Promise.reject(new Error('there is nothing to ask')),
          secrets: { get: () => 'secret' },
          holder: TAMPERING,
          trigger: 'simulation',
        },
      )
      if (stopReason !== 'complete')
        this.#oracle.reportViolation('O13', `the tampering ended with ${stopReason} ${error?.message ?? ''}`)
    })
    this.#oracle.isTampering = false
  }

  #forgeChanges(): Change[] {
    const {
      stream: { type },
    } = this.#config
    const forged = (key: string, fields: Fields): Change => ({
      type: 'upsert',
      key,
      record: { forged: true, ...fields } as JsonObject,
    })
    const at = (offMs: number): { upstreamUpdatedAt: string } => ({
      upstreamUpdatedAt: new Date(this.#scheduler.now + offMs).toISOString(),
    })
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

  /**
   * Runs one sync until this many cycles that began in the quiescent world are complete. A process that was frozen may
   * commit an old page shortly before a listing begins, which then leaves rows of that page to the next listing.
   */
  async #runAtRest(sync: string, cycles: number): Promise<void> {
    const { runnerSkewMs, stream, dateSkewMs } = this.#config
    this.#fleet.onlySync = sync
    await this.#fleet.advanceTime(
      stream.lagMaxMs +
        20_000 +
        4 * runnerSkewMs +
        Math.max(0, -dateSkewMs, this.#pauses.untilMs - this.#scheduler.now),
    )
    for (let done = 0; done < cycles; done++) {
      const count = this.#oracle.completed.get(sync)?.count ?? 0
      const from = this.#scheduler.now + runnerSkewMs
      if (done === 0) await this.#fleet.advanceTime(2 * runnerSkewMs)
      const isDone = (): boolean => {
        const completed = this.#oracle.completed.get(sync)
        if (sync === LISTING && this.#oracle.hasUnsweptRows) return false
        return completed !== undefined && completed.count > count && (done > 0 || completed.beganAt >= from)
      }
      await this.#fleet.runUntil(isDone, HEALING_STEPS_MAX, `${sync} did not complete a cycle in a healed world`)
    }
  }

  /** No sync runs for longer than the vendor keeps changes and deletions. */
  async #simulateDowntime(): Promise<void> {
    const { retentionMs } = this.#config.stream
    this.#fleet.crashAll()
    const absenceMs = required(retentionMs, 'retentionMs') + 2 * DAY_MS
    void this.#supervisor.idle(HOUR_MS).then(() => this.#runWorkload(LAST_WRITES))
    await this.#fleet.advanceTime(absenceMs)
    this.#simulator.prune(this.#scheduler.now - required(retentionMs, 'retentionMs'))
    await this.#during(this.#runWorkload(LAST_WRITES))
  }

  async #during(work: Promise<void>): Promise<void> {
    let busy = true
    void work.then(() => void (busy = false))
    await this.#fleet.runUntil(() => !busy, STEPS_MAX, 'the workload did not end')
  }

  // ── the vendor's workload ──────────────────────────────────────────────────────────────────────────────────────────

  async #runWorkload(operations: number): Promise<void> {
    const {
      gapMs,
      bulkShare,
      deleteShare,
      clockBackMs,
      stream: { type },
    } = this.#config
    for (let i = 0; i < operations; i++) {
      await this.#supervisor.idle(this.#workload.chance(0.2) ? 0 : this.#workload.int(1, gapMs))
      const live = this.#simulator.records.current(type)
      const draw = this.#workload.next()
      if (clockBackMs > 0 && i === Math.floor(operations / 2)) this.#simulator.records.clockBackMs = clockBackMs
      if (draw < bulkShare) await this.#updateAll(live)
      else if (draw > 1 - deleteShare && live.length > 0) this.#remove(this.#workload.pick(live).id)
      else if (draw > 0.6 || live.length === 0) this.#create()
      else this.#update(this.#workload.pick(live).id)
    }
    await this.#supervisor.idle(gapMs)
  }

  #create(): void {
    const { stream } = this.#config
    this.#recordWrite(
      this.#simulator.create(stream.type, {
        ...stream.parentFields?.(this.#simulator, this.#workload),
        ...this.#nextFields(),
      }),
    )
  }

  #update(id: string): void {
    this.#simulator.update(this.#config.stream.type, id, this.#nextFields())
    this.#recordWrite(id)
  }

  /** Writes several times within one second, as an import does. */
  async #updateAll(live: readonly RecordVersion[]): Promise<void> {
    const {
      bulkRepeats,
      stream: { type },
    } = this.#config
    for (let n = 0; n < bulkRepeats; n++) {
      if (n > 0) await this.#supervisor.idle(this.#workload.int(0, 300))
      for (const { id } of live) if (this.#simulator.records.find(type, id)?.deleted === false) this.#update(id)
    }
  }

  #remove(id: string): void {
    this.#history.count++
    this.#simulator.remove(this.#config.stream.type, id)
    this.#recordWrite(id)
  }

  #nextFields(): Fields {
    return this.#config.stream.fields(++this.#history.count, this.#workload)
  }

  #recordWrite(id: string): void {
    const { records } = this.#simulator
    this.#history.add(
      required(records.find(this.#config.stream.type, id), 'the match in records'),
      records.clockBackMs > 0,
    )
  }

  // ── the worker ─────────────────────────────────────────────────────────────────────────────────────────────────────

  #plans(): SyncPlan[] {
    return this.#declared().map(({ plan }) => plan)
  }

  #declared(): DeclaredSync[] {
    const { kind, stream, limited, leaseTtlMs, deadlineMs, retriesMax, pagesMax } = this.#config
    const worker = new Worker({ name: WORKER })
    const database = worker.database(DATABASE)
    const options = {
      database,
      pacer: limited && stream.pacer !== undefined ? worker.pacer('vendor', stream.pacer) : [],
    }
    const source = stream.source(this.#config)
    if ('mode' in source) worker.sync(LISTING, { ...options, ...source })
    else if (kind === 'pair') worker.track(DELTA, { ...options, source })
    else if (kind === 'replace') worker.sync(LISTING, { ...options, mode: 'replace', execute: source.backfill })
    else worker.sync(DELTA, { ...options, mode: 'incremental', execute: source.delta })
    return listDeclaredSyncs(worker, { limits: { leaseTtlMs, deadlineMs, retriesMax, pagesMax } })
  }
}

function guaranteeOf({ stream, ...conditions }: VendorWorldConfig) {
  const source = stream.source(conditions)
  if ('mode' in source) throw new Error(`${stream.vendor} has no delta.`)
  return source.guarantee
}

/** The end reasons and errors allowed in a world like these. Anything else is a finding. */
const EXPECTED_ERRORS: ReadonlySet<string> = new Set([
  'SOURCE_UNAVAILABLE',
  'SOURCE_TIMEOUT',
  'SOURCE_INVALID',
  'RATE_LIMITED',
  'AUTH_REJECTED',
  'CURSOR_REJECTED',
  'HISTORY_LOST',
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
