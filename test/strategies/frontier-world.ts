import {
  isSyncError,
  SyncError,
  type CommitOutcome,
  type Commit,
  type Execute,
  type Store,
} from '../../src/contract/index.ts'
import { runCycle } from '../../src/engine/cycle.ts'
import type { CycleResult } from '../../src/engine/cycle-options.ts'
import { DEFAULT_LIMITS, DEFAULT_SWEEP, type SyncPlan } from '../../src/engine/sync-plan.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import type { FetchContext, FrontierPage, FrontierState, frontier } from '../../src/strategies/index.ts'
import { FaultInjector, type FaultKind } from '../../src/testing/simulation/fault-injector.ts'
import { createFaultyStore } from '../../src/testing/simulation/faulty-store.ts'
import { hashOf, RandomStream, Trace } from '../../src/testing/simulation/random-stream.ts'
import { Scheduler, TIME_ZERO, type SimulatedProcess } from '../../src/testing/simulation/scheduler.ts'
import { VirtualClock } from '../../src/testing/simulation/virtual-clock.ts'
import { HOUR, MINUTE, SECOND } from '../engine/engine-fixture.ts'
import { NewestFirst, type Entry } from './newest-first.ts'

export interface Conditions {
  readonly items: number
  readonly operations: number
  readonly gapMs: number
  readonly limit: number
  readonly tokenMs: number
  /** Items show what the list is sorted by. */
  readonly ordered: boolean
  /** The source leaves out what is known and says so; it knows nothing of items that moved. */
  readonly cuts: boolean
  readonly moveShare: number
  readonly removeShare: number
  /** A burst of removals at the top: the anchors go all at once. */
  readonly purgeShare: number
  readonly burstShare: number
  readonly refreshMs: number
  readonly anchorsMax: number
  readonly pagesMax: number
  readonly minutesMax: number
  readonly offlineShare: number
  /** Share of pages that break off and claim to be the last. The same page, asked for again, is right. */
  readonly earlyEndShare: number
  readonly runners: number
  readonly verifies: boolean
  readonly rates: Readonly<Partial<Record<FaultKind, number>>>
}

export interface FrontierWorldResult {
  readonly seed: number
  readonly conditions: Conditions
  /** Null when every promise was kept. */
  readonly broken: string | null
  readonly faults: number
  readonly cycles: number
  readonly requests: number
  readonly virtualMs: number
  /** Why cycles ended, in the word of the source or else of the engine. */
  readonly stops: Readonly<Record<string, number>>
  readonly hash: string
}

const WORKER = 'world'
const DATABASE = 'bookmarks'
const STEPS_MAX = 60_000

/** One list and its copy, from the first bookmark to the verdict, under the production engine. A pure function of its options. */
export async function runFrontierWorld(
  seed: number,
  make: typeof frontier,
  overrides: Partial<Conditions> = {},
): Promise<FrontierWorldResult> {
  const store = await openSqliteStore({ file: ':memory:' })
  try {
    return await new World(seed, store, make, { ...draw(seed), ...overrides }).run()
  } finally {
    await store.close()
  }
}

function draw(seed: number): Conditions {
  const chance = new RandomStream(seed, 'conditions')
  const cuts = chance.chance(0.15)
  const rate = chance.pick([0, 0.3, 1, 1, 2])
  return {
    items: chance.pick([0, 3, 15, 30, 60]),
    operations: chance.int(10, 50),
    gapMs: chance.pick([10 * SECOND, 2 * MINUTE, 20 * MINUTE]),
    limit: chance.int(3, 12),
    tokenMs: chance.pick([Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 10 * MINUTE, 2 * HOUR]),
    ordered: chance.chance(0.5),
    cuts,
    moveShare: cuts ? 0 : chance.pick([0, 0.1, 0.3]),
    removeShare: chance.pick([0, 0.1, 0.25]),
    purgeShare: chance.pick([0, 0.02, 0.06]),
    burstShare: chance.pick([0, 0.03, 0.1]),
    refreshMs: chance.pick([0, MINUTE, 15 * MINUTE]),
    anchorsMax: chance.pick([10, 40, 500]),
    pagesMax: chance.pick([1, 2, 4, 100_000]),
    minutesMax: chance.pick([0, 0, 0.02]),
    offlineShare: chance.pick([0, 0.1, 0.3]),
    runners: chance.int(1, 2),
    verifies: chance.chance(0.6),
    earlyEndShare: chance.pick([0, 0.05, 0.2]),
    rates: Object.fromEntries(Object.entries(RATES).map(([kind, share]) => [kind, share * rate])),
  }
}

const RATES: Partial<Record<FaultKind, number>> = {
  crash: 0.008,
  terminate: 0.008,
  freeze: 0.003,
  'store-busy': 0.01,
  'store-unavailable': 0.005,
  'applied-unknown': 0.008,
  'applied-late': 0.005,
  'lost-unknown': 0.005,
  'rate-limited': 0.04,
  'server-error': 0.04,
  'timeout-before': 0.01,
  'timeout-after': 0.01,
}

class World {
  readonly #seed: number
  readonly #store: Store
  readonly #make: typeof frontier
  readonly #conditions: Conditions
  readonly #trace = new Trace()
  readonly #scheduler: Scheduler
  readonly #fate: SimulatedProcess
  readonly #faults: FaultInjector
  readonly #workload: RandomStream
  readonly #chance: RandomStream
  readonly #list: NewestFirst
  /** Every reading of the top by a sync: when it was asked for, and the newest place it showed. */
  readonly #tops: Record<string, Array<{ at: number; place: number }>> = { bookmarks: [], verify: [] }
  readonly #runners = new Map<string, { process: SimulatedProcess; lives: number; stopping: AbortController | null }>()
  /** When each cycle began. */
  readonly #began = new Map<number, number>()
  /** The page that each sync was last given with a wrong end, and the commits since: that page and the right answer. */
  readonly #cutShort = new Map<string, { asked: string; commits: number }>()
  readonly #confirmed = new Set<string>()
  readonly #completed = new Map<string, number>()
  readonly #stops: Record<string, number> = {}
  #chosen: string | null = null
  #nobodyBeginsUntil = 0
  #broken: string | null = null
  #cycles = 0
  #requests = 0
  #ended = false

  constructor(seed: number, store: Store, make: typeof frontier, conditions: Conditions) {
    this.#seed = seed
    this.#store = store
    this.#make = make
    this.#conditions = conditions
    this.#scheduler = new Scheduler(seed, this.#trace)
    this.#fate = this.#scheduler.start('fate')
    this.#faults = new FaultInjector(seed, conditions.rates)
    this.#workload = new RandomStream(seed, 'workload')
    this.#chance = new RandomStream(seed, 'latency')
    this.#list = new NewestFirst({ now: () => this.#scheduler.now, sleep: () => Promise.reject(new Error('no')) })
    this.#list.limit = conditions.limit
    this.#list.tokenMs = conditions.tokenMs
    this.#scheduler.onWait = (process, label) => this.#strike(process, label)
  }

  async run(): Promise<FrontierWorldResult> {
    for (let n = 0; n < this.#conditions.items; n++) this.#add()
    for (let n = 1; n <= this.#conditions.runners; n++) this.#startRunner(`runner${n}`)
    let busy = true
    void this.#work().then(() => void (busy = false))
    await this.#until(() => !busy, 'the workload did not end')
    await this.#heal()
    this.#ended = true
    return {
      seed: this.#seed,
      conditions: this.#conditions,
      broken: this.#broken,
      faults: this.#faults.injected.length,
      cycles: this.#cycles,
      requests: this.#requests,
      virtualMs: this.#scheduler.now - TIME_ZERO,
      stops: this.#stops,
      hash: this.#trace.digest(),
    }
  }

  /** Nothing happens any more, and every sync comes to rest: by forward passes alone nothing may be missing, after a sweep nothing may be too much. */
  async #heal(): Promise<void> {
    this.#faults.enabled = false
    await this.#rest('bookmarks')
    const alone = await this.#compare()
    if (alone.missing.length > 0)
      this.#break(
        `at rest, ${alone.missing.length} of ${this.#list.ids.length} items are missing: ${alone.missing.slice(0, 5).join(' ')}`,
      )
    if (!this.#conditions.verifies) return
    for (const sync of ['verify', 'bookmarks']) {
      await this.#rest(sync)
      const { missing, extra } = await this.#compare()
      if (missing.length > 0 || extra.length > 0)
        this.#break(
          `after ${sync} at rest, ${missing.length} items are missing and ${extra.length} are too many: ${[...missing, ...extra].slice(0, 5).join(' ')}`,
        )
    }
  }

  async #rest(sync: string): Promise<void> {
    this.#chosen = sync
    // Requests in progress have ended by then, and so has every lease.
    const from = (this.#nobodyBeginsUntil = this.#scheduler.now + HOUR)
    await this.#until(
      () => (this.#completed.get(sync) ?? 0) >= from,
      `${sync} did not complete a cycle in a healed world`,
    )
  }

  async #compare(): Promise<{ missing: string[]; extra: string[] }> {
    const keys = new Set((await this.#store.rows({ database: DATABASE, limit: 100_000 })).map(({ key }) => key))
    const ids = new Set(this.#list.ids)
    return { missing: [...ids].filter((id) => !keys.has(id)), extra: [...keys].filter((key) => !ids.has(key)) }
  }

  #break(message: string): void {
    this.#broken ??= message
  }

  async #until(isDone: () => boolean, complaint: string): Promise<void> {
    const last = this.#scheduler.steps + STEPS_MAX
    while (!isDone() && this.#broken === null) {
      if (this.#scheduler.steps >= last || !(await this.#scheduler.step())) this.#break(complaint)
    }
  }

  // ── the list's life ────────────────────────────────────────────────────────────────────────────────────────────────

  #names = 0

  #add(): void {
    this.#list.add(`i${++this.#names}`)
  }

  async #work(): Promise<void> {
    const { operations, gapMs, moveShare, removeShare, purgeShare, burstShare } = this.#conditions
    const chance = this.#workload
    for (let n = 0; n < operations; n++) {
      await this.#fate.idle(chance.chance(0.3) ? 0 : chance.int(1, gapMs))
      const { ids } = this.#list
      let share = chance.next()
      const falls = (part: number): boolean => (share -= part) < 0
      if (falls(purgeShare)) this.#list.remove(...ids.slice(0, chance.int(1, 25)))
      else if (falls(burstShare)) for (let count = chance.int(5, 40); count > 0; count--) this.#add()
      else if (ids.length > 0 && falls(moveShare))
        this.#list.add(chance.chance(0.5) ? chance.pick(ids.slice(0, 12)) : chance.pick(ids))
      else if (ids.length > 0 && falls(removeShare))
        this.#list.remove(chance.chance(0.5) ? chance.pick(ids.slice(0, 12)) : chance.pick(ids))
      else this.#add()
    }
    await this.#fate.idle(gapMs)
  }

  // ── runners ────────────────────────────────────────────────────────────────────────────────────────────────────────

  #startRunner(name: string): void {
    const lives = (this.#runners.get(name)?.lives ?? 0) + 1
    const runner = { process: this.#scheduler.start(name), lives, stopping: null }
    this.#runners.set(name, runner)
    void this.#run(name, runner).catch((error: unknown) => this.#break(`a runner ended with ${String(error)}`))
  }

  async #run(
    name: string,
    runner: { process: SimulatedProcess; lives: number; stopping: AbortController | null },
  ): Promise<void> {
    const { process } = runner
    const clock = new VirtualClock(process, (ms) => this.#break(`a process slept ${ms} ms`))
    const store = createFaultyStore(this.#store, {
      process,
      faults: this.#faults,
      latencyMs: () => (this.#faults.enabled ? this.#chance.int(1, 50) : 1),
      observe: async (method, args, answer) => {
        if (method === 'commit') await this.#observe(args[0] as Commit, answer as CommitOutcome)
      },
      runLater: (ms, call) =>
        void this.#fate
          .idle(ms)
          .then(call)
          .catch((error: unknown) => this.#break(`a late call failed: ${String(error)}`)),
    })
    const syncs = this.#conditions.verifies ? ['bookmarks', 'bookmarks', 'verify'] : ['bookmarks']
    while (!this.#ended) {
      await process.idle(this.#pauseMs())
      if (this.#scheduler.now < this.#nobodyBeginsUntil)
        await process.idle(this.#nobodyBeginsUntil - this.#scheduler.now)
      const plan = this.#plan(this.#chosen ?? this.#chance.pick(syncs), process)
      const began = this.#scheduler.now
      const stopping = (runner.stopping = new AbortController())
      let result: CycleResult | null = null
      try {
        result = await runCycle(plan, {
          store,
          ports: { clock, random: this.#chance, log: SILENT },
          fetch: unreachable,
          secrets: { get: unreachable },
          holder: `${name}.${runner.lives}`,
          trigger: 'simulation',
          signal: stopping.signal,
          allowDeletes: this.#confirmed.has(plan.sync),
        })
      } catch (error) {
        if (!isSyncError(error) || !EXPECTED.has(error.code)) this.#break(`a cycle threw ${String(error)}`)
      }
      runner.stopping = null
      this.#cycles++
      if (result !== null) this.#note(plan.sync, result, began)
      this.#trace.add(
        this.#scheduler.now - TIME_ZERO,
        `${name} ${plan.sync} ${result?.stopReason ?? 'threw'} ${result?.endReason ?? ''}`,
      )
    }
  }

  /** Between two cycles; now and then the machine is off for weeks. */
  #pauseMs(): number {
    if (!this.#faults.enabled) return MINUTE
    return this.#chance.chance(this.#conditions.offlineShare)
      ? this.#chance.int(1, 40) * this.#conditions.gapMs
      : this.#chance.int(0, 3 * this.#conditions.gapMs)
  }

  #note(sync: string, result: CycleResult, began: number): void {
    const word = result.endReason ?? result.stopReason
    this.#stops[word] = (this.#stops[word] ?? 0) + 1
    if (result.stopReason === 'complete') {
      this.#confirmed.delete(sync)
      if (!result.resumed) this.#completed.set(sync, began)
    }
    const code = result.error?.code
    if (code === 'MASS_DELETE') this.#confirmed.add(sync)
    if (code !== undefined && !EXPECTED.has(code)) this.#break(`${sync} failed with ${code}: ${result.error!.message}`)
  }

  #plan(sync: string, process: SimulatedProcess): SyncPlan {
    const { ordered, refreshMs, anchorsMax, pagesMax, minutesMax } = this.#conditions
    const execute: Execute<FrontierState> = this.#make<Entry>((context) => this.#fetch(sync, process, context), {
      id: ({ id }) => id,
      refreshMs,
      anchorsMax,
      ...(ordered && { order: ({ at }: Entry) => at }),
      toChange: ({ id }) => ({ type: 'upsert', key: id, record: { id } }),
    })
    return {
      worker: WORKER,
      sync,
      mode: sync === 'verify' ? 'replace' : 'incremental',
      databases: [{ name: DATABASE }],
      owner: 'owner',
      execute,
      pacers: [],
      limits: {
        ...DEFAULT_LIMITS,
        leaseTtlMs: 30_000,
        deadlineMs: 20_000,
        retriesMax: 1,
        ...(this.#faults.enabled && { pagesMax, minutesMax }),
      },
      sweep: DEFAULT_SWEEP,
      scope: null,
      upstreamToleranceMs: 0,
    }
  }

  async #fetch(sync: string, process: SimulatedProcess, context: FetchContext): Promise<FrontierPage<Entry>> {
    const at = context.clock.now()
    this.#requests++
    this.#began.set(context.cycle.id, context.cycle.startedAt)
    const latencyMs = (): number => (this.#faults.enabled ? this.#chance.int(5, 1_500) : 5)
    await process.wait('source:before', latencyMs(), context.signal)
    const fault = this.#faults.draw(process.name, 'source', [
      'rate-limited',
      'server-error',
      'timeout-before',
      'timeout-after',
    ])
    if (fault?.kind === 'rate-limited')
      throw new SyncError('RATE_LIMITED', 'too fast', { retryAfterMs: Math.round(fault.severity * 15 * MINUTE) })
    if (fault?.kind === 'server-error') throw new SyncError('SOURCE_UNAVAILABLE', 'broken')
    if (fault?.kind === 'timeout-before') await process.wait('source:hangs', 365 * 24 * HOUR, context.signal)
    const page = this.#endEarly(this.#cut(this.#list.read(context), context), sync, context)
    if (context.cursor === null) this.#tops[sync]!.push({ at, place: this.#list.entries[0]?.at ?? 0 })
    if (fault?.kind === 'timeout-after') await process.wait('source:hangs', 365 * 24 * HOUR, context.signal)
    await process.wait('source:after', latencyMs(), context.signal)
    return page
  }

  #cut(page: FrontierPage<Entry>, { sinceItemId }: FetchContext): FrontierPage<Entry> {
    const at = this.#conditions.cuts ? page.items.findIndex(({ id }) => id === sinceItemId) : -1
    return at === -1 ? page : { items: page.items.slice(0, at), nextCursor: null, reachedSince: true }
  }

  #endEarly(page: FrontierPage<Entry>, sync: string, { cursor }: FetchContext): FrontierPage<Entry> {
    if (page.reachedSince === true || !this.#faults.enabled || !this.#chance.chance(this.#conditions.earlyEndShare))
      return page
    // The time that a token was given at does not make it another page.
    const asked = cursor === null ? 'top' : cursor.split('@')[0]!
    const before = this.#cutShort.get(sync)
    if (before !== undefined && before.asked === asked && before.commits < 2) return page
    this.#cutShort.set(sync, { asked, commits: 0 })
    return { items: page.items.slice(0, this.#chance.int(0, page.items.length)), nextCursor: null }
  }

  #strike(process: SimulatedProcess, label: string): void {
    const runner = this.#runners.get(process.name)
    if (runner === undefined || runner.process !== process) return
    const fault = this.#faults.draw(process.name, label, ['crash', 'terminate', 'freeze'])
    if (fault?.kind === 'freeze') process.freeze(Math.round(fault.severity * 90_000))
    if (fault?.kind === 'terminate') queueMicrotask(() => runner.stopping?.abort())
    if (fault?.kind !== 'crash') return
    process.crash()
    void this.#fate.idle(this.#chance.int(1, 60_000)).then(() => this.#startRunner(process.name))
  }

  // ── the promise, at every commit ───────────────────────────────────────────────────────────────────────────────────

  /**
   * A tail that calls itself complete, a cycle that calls itself complete and a sweep that has taken place all say that
   * everything has been read that stood in the list when its top was last read: held against the list, there and then.
   */
  async #observe({ lease, transition: move }: Commit, outcome: CommitOutcome): Promise<void> {
    if (outcome.kind !== 'landed' || (move.kind !== 'continue' && move.kind !== 'complete')) return
    const { sync } = lease.ref
    const cutShort = this.#cutShort.get(sync)
    if (cutShort !== undefined) cutShort.commits++
    const state = move.state === null ? null : (JSON.parse(move.state) as FrontierState)
    const tops = this.#tops[sync]!
    // In replace mode the sweep depends on the last read of the top.
    if (sync === 'verify' && move.kind === 'continue') return
    if (sync !== 'verify' && state?.tailComplete !== true) return
    const top = sync === 'verify' ? tops.at(-1) : tops.find(({ at }) => at >= state!.checkedAt)
    if (top === undefined) return this.#break('nothing is known of when the top was read')
    const keys = new Set((await this.#store.rows({ database: DATABASE, limit: 100_000 })).map(({ key }) => key))
    const gap = this.#list.entries.filter(({ id, at }) => at <= top.place && !keys.has(id)).map(({ id }) => id)
    const began = this.#began.get(move.cycle)!
    // Also what has moved: it was there all the time.
    const lost =
      sync === 'verify'
        ? this.#list.entries.filter(({ id, since }) => since < began && !keys.has(id)).map(({ id }) => id)
        : []
    if (lost.length > 0) this.#break(`the sweep took ${lost.length} items that live: ${lost.slice(0, 5).join(' ')}`)
    if (gap.length > 0)
      this.#break(
        `${sync} says that it has read all, and ${gap.length} items are missing: ${gap.slice(0, 5).join(' ')}`,
      )
  }
}

const SILENT = { debug() {}, info() {}, warn() {}, error() {} }

/** How a cycle may end in a world like these. Anything else is a finding. */
const EXPECTED: ReadonlySet<string> = new Set([
  'SOURCE_UNAVAILABLE',
  'SOURCE_TIMEOUT',
  'RATE_LIMITED',
  'STORE_BUSY',
  'STORE_UNAVAILABLE',
  'COMMIT_UNKNOWN',
  'LEASE_HELD',
  'LEASE_LOST',
  'VERSION_CONFLICT',
  'OVERLAP_UNRESOLVED',
  'MASS_DELETE',
])

function unreachable(): never {
  throw new Error('there is no network in this world')
}

export interface CampaignReport {
  readonly worlds: number
  readonly failures: FrontierWorldResult[]
  readonly sentence: string
}

/** Many worlds, one per seed, until the first that breaks a promise. */
export async function runCampaign(
  seeds: number,
  make: typeof frontier,
  { firstSeed = 1, overrides = {} }: { firstSeed?: number; overrides?: Partial<Conditions> } = {},
): Promise<CampaignReport> {
  const startedAt = performance.now()
  const stops: Record<string, number> = {}
  const failures: FrontierWorldResult[] = []
  let [worlds, faults, cycles, requests, virtualMs, digest] = [0, 0, 0, 0, 0, 0]
  for (let seed = firstSeed; seed < firstSeed + seeds && failures.length === 0; seed++) {
    const verdict = await runFrontierWorld(seed, make, overrides)
    // One in a hundred is run twice: a world that is not the same again could not be found again.
    if (hashOf(seed, 'repeat') % 100 === 0 && (await runFrontierWorld(seed, make, overrides)).hash !== verdict.hash)
      failures.push({ ...verdict, broken: 'the world is not the same when it is run again' })
    if (verdict.broken !== null) failures.push(verdict)
    worlds++
    faults += verdict.faults
    cycles += verdict.cycles
    requests += verdict.requests
    virtualMs += verdict.virtualMs
    digest = hashOf(digest, verdict.hash)
    for (const [word, count] of Object.entries(verdict.stops)) stops[word] = (stops[word] ?? 0) + count
  }
  const perSecond = Math.round(worlds / ((performance.now() - startedAt) / 1_000))
  const ends = Object.entries(stops)
    .toSorted(([, a], [, b]) => b - a)
    .map(([word, count]) => `${word} ${count}`)
    .join(', ')
  return {
    worlds,
    failures,
    sentence: `${worlds} worlds (${perSecond} a second), ${faults} faults, ${cycles} cycles, ${requests} pages asked for, ${Math.round(virtualMs / 24 / HOUR)} virtual days, ${failures.length} broken; ended by ${ends}; digest ${digest.toString(16)}.`,
  }
}
