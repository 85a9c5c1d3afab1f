import { SyncError, type Clock, type Pacing, type Row, type Secrets, type SyncContext } from '../../contract/index.ts'
import { runCycle } from '../../engine/cycle.ts'
import type { CycleOptions, CycleResult } from '../../engine/cycle-options.ts'
import type { SyncPlan } from '../../engine/sync-plan.ts'
import { openSqliteStore } from '../../stores/sqlite/store.ts'
import { FaultInjector, type FaultKind } from './fault-injector.ts'
import { createFaultyStore } from './faulty-store.ts'
import { RandomStream, Trace } from './random-stream.ts'
import { Scheduler, TIME_ZERO, type SimulatedProcess } from './scheduler.ts'
import { VirtualClock } from './virtual-clock.ts'
import { required } from '../../values/required.ts'

type Fetch = CycleOptions['fetch']

/** Options of `simulateWorker`. */
export interface SimulateWorkerOptions {
  /** Faulty runs of each sync. */
  readonly seeds: number
  readonly firstSeed?: number
  /** The real network. Every response is requested once and then replayed. */
  readonly fetch: Fetch
  readonly secrets: Secrets
  readonly onProgress?: (progress: { sync: string; done: number; of: number }) => void
}

/** The result of `simulateWorker` for all syncs. */
export interface WorkerReport {
  readonly syncs: readonly SyncReport[]
  readonly faults: number
  readonly sentence: string
}

/** The result of `simulateWorker` for one sync. */
export interface SyncReport {
  readonly sync: string
  readonly rows: number
  readonly pages: number
  readonly requests: number
  readonly seeds: number
  /** Kind → count. */
  readonly faults: Readonly<Record<string, number>>
  /** Null when every faulty run landed the same rows as the run without faults. */
  readonly failure: WorkerFailure | null
}

/** A problem of a sync, with the faults that reproduce it. */
export interface WorkerFailure {
  /** 0 when no faults are needed. */
  readonly seed: number
  readonly problem: 'fails' | 'differs by itself' | 'never completes' | 'lands other rows' | 'ends in another state'
  readonly message: string
  /** The fewest faults found that reproduce the problem. */
  readonly faults: readonly string[]
}

/**
 * Runs a user's own syncs under virtual time: first without faults, twice, to check that they are deterministic; then
 * repeatedly with crashes, lost responses, refusals and time-outs. The same rows must land every time.
 */
export async function simulateWorker(
  plans: readonly SyncPlan[],
  options: SimulateWorkerOptions,
): Promise<WorkerReport> {
  const syncs: SyncReport[] = []
  for (const plan of plans) syncs.push(await simulateSync(plan, options))
  const faults = syncs.reduce((sum, { faults: kinds }) => sum + Object.values(kinds).reduce((a, b) => a + b, 0), 0)
  const broken = syncs.filter(({ failure }) => failure !== null)
  const sentence =
    broken.length === 0
      ? `${syncs.length} syncs landed the same rows through ${faults} faults.`
      : `${broken.length} of ${syncs.length} syncs did not: ${broken.map(({ sync, failure }) => `${sync} ${required(failure, 'failure').problem}`).join(', ')}.`
  return { syncs, faults, sentence }
}

async function simulateSync(plan: SyncPlan, options: SimulateWorkerOptions): Promise<SyncReport> {
  const { seeds, firstSeed = 1, onProgress } = options
  const tape = new Map<string, RecordedResponse>()
  const counts: Record<string, number> = {}
  const first = await runSync(plan, options, tape, 0, NO_FAULTS)
  const report = (done: number, failure: WorkerFailure | null): SyncReport => ({
    sync: plan.sync,
    rows: first.rows.at(-1)?.length ?? 0,
    pages: first.pages,
    requests: first.requests,
    seeds: done,
    faults: counts,
    failure,
  })
  const explain = (run: SyncRun, seed: number): WorkerFailure | null => {
    const fault = (problem: WorkerFailure['problem'], message: string): WorkerFailure => ({
      seed,
      problem,
      message,
      faults: run.faults.map(({ id, kind }) => `${kind} at ${id}`),
    })
    if (run.error !== null) return fault(seed === 0 ? 'fails' : 'never completes', run.error)
    // A listing is compared after the cycle with faults as well. A delta is not: how far it may read depends on when it
    // ran.
    const cycles = first.rows
      .map((rows, cycle) => [rows, required(run.rows[cycle], 'run.rows[cycle]')] as const)
      .slice(plan.mode === 'replace' ? 0 : -1)
    const difference = cycles
      .map(([expected, actual]) => describeRowDifference(expected, actual))
      .find((found) => found !== null)
    if (difference !== undefined) return fault(seed === 0 ? 'differs by itself' : 'lands other rows', difference)
    if (run.states.at(-1) !== first.states.at(-1))
      return fault(
        seed === 0 ? 'differs by itself' : 'ends in another state',
        'The committed state differs from that of the run without faults.',
      )
    return null
  }
  const unaided = explain(first, 0) ?? explain(await runSync(plan, options, tape, 0, NO_FAULTS), 0)
  if (unaided !== null) return report(0, unaided)
  for (let seed = firstSeed; seed < firstSeed + seeds; seed++) {
    const run = await runSync(plan, options, tape, seed, null)
    for (const { kind } of run.faults) counts[kind] = (counts[kind] ?? 0) + 1
    const failure = explain(run, seed)
    onProgress?.({ sync: plan.sync, done: seed - firstSeed + 1, of: seeds })
    if (failure !== null)
      return report(
        seed - firstSeed + 1,
        await shrinkFaults(failure, run, (only) => runSync(plan, options, tape, seed, only), explain),
      )
  }
  return report(seeds, null)
}

/** Removes one fault after the other while the same problem remains. */
async function shrinkFaults(
  failure: WorkerFailure,
  run: SyncRun,
  again: (only: ReadonlySet<string>) => Promise<SyncRun>,
  explain: (run: SyncRun, seed: number) => WorkerFailure | null,
): Promise<WorkerFailure> {
  let kept = run.faults.map(({ id }) => id)
  let least = failure
  for (const id of run.faults.map((fault) => fault.id)) {
    const fewer = kept.filter((other) => other !== id)
    const shown = explain(await again(new Set(fewer)), failure.seed)
    if (shown?.problem !== failure.problem) continue
    kept = fewer
    least = shown
  }
  return least
}

interface SyncRun {
  /** Called after each complete cycle. */
  readonly rows: ReadonlyArray<readonly Row[]>
  readonly states: ReadonlyArray<string | null>
  readonly pages: number
  readonly requests: number
  readonly faults: FaultInjector['injected']
  readonly error: string | null
}

const NO_FAULTS: ReadonlySet<string> = new Set()
const FAULT_RATES: Partial<Record<FaultKind, number>> = {
  crash: 0.02,
  freeze: 0.005,
  'store-busy': 0.03,
  'store-unavailable': 0.01,
  'applied-unknown': 0.03,
  'lost-unknown': 0.02,
  'rate-limited': 0.08,
  'server-error': 0.08,
  'timeout-before': 0.03,
  'timeout-after': 0.03,
  truncated: 0.04,
}
/** Number of cycles that must complete: the second shows whether the first left a usable state. */
const CYCLES_REQUIRED = 2
const LAST_CYCLE_AT = TIME_ZERO + 200 * 24 * 3_600_000
const RESTARTS_MAX = 300
/** How long a call may take in real time before it counts as hanging. */
const REAL_MS_MAX = 60_000

/**
 * One run in a store of its own, until its cycles are complete. Faults strike until a third of the restarts are used.
 */
async function runSync(
  plan: SyncPlan,
  options: SimulateWorkerOptions,
  tape: Map<string, RecordedResponse>,
  seed: number,
  only: ReadonlySet<string> | null,
): Promise<SyncRun> {
  const store = await openSqliteStore({ file: ':memory:' })
  const scheduler = new Scheduler(seed, new Trace())
  const faults = new FaultInjector(seed, FAULT_RATES, only)
  const chance = new RandomStream(seed, 'latency')
  let calls = new UserCalls()
  const supervisor = scheduler.start('supervisor')
  let [lives, completed, pages, requests] = [0, 0, 0, 0]
  let fatal: string | null = null

  const rows: Row[][] = []
  const states: Array<string | null> = []
  const landed = async (): Promise<void> => {
    rows.push(
      (await Promise.all(plan.databases.map(({ name }) => store.rows({ database: name, limit: 1_000_000 })))).flat(),
    )
    states.push((await store.readCheckpoint({ worker: plan.worker, sync: plan.sync })).committed)
    completed++
  }
  const isOver = (): boolean => completed >= CYCLES_REQUIRED || fatal !== null

  const live = async (): Promise<void> => {
    if (++lives > RESTARTS_MAX / 3) faults.enabled = false
    const process = scheduler.start('runner')
    const clock = new VirtualClock(process)
    const own = (calls = new UserCalls())
    const wrapped: SyncPlan = {
      ...plan,
      execute: (state, context) => own.run(() => plan.execute(state, trackContextCalls(context, own))),
    }
    while (!isOver()) {
      const result = await runCycle(wrapped, {
        store: createFaultyStore(store, {
          process,
          faults,
          latencyMs: () => (completed < CYCLES_REQUIRED - 1 ? chance.int(1, 50) : 0),
          runLater: () => {},
        }),
        ports: { clock, random: chance, log: SILENT_LOG },
        secrets: options.secrets,
        holder: `life${lives}`,
        trigger: 'simulation',
        isHolderGone: () => true,
        fetch: (input, init) =>
          own.runWaiting(async () => {
            requests++
            return faultyFetch(process, faults, chance, input, init, () =>
              own.runReal(() => recordOrReplay(tape, options.fetch, input, init)),
            )
          }),
      }).catch((error: unknown): Pick<CycleResult, 'stopReason' | 'pages' | 'error'> => ({
        stopReason: 'error',
        pages: 0,
        error: error instanceof SyncError ? { code: error.code, message: error.message, advice: '' } : null,
      }))
      pages += result.pages
      if (result.stopReason === 'complete') await landed()
      if (result.stopReason === 'complete' && completed === CYCLES_REQUIRED - 1) {
        // The last cycle has no faults and the same virtual time in every run, so that a time-dependent source returns
        // the same records.
        faults.enabled = false
        await process.idle(Math.max(0, LAST_CYCLE_AT - clock.now()))
        continue
      }
      if (result.stopReason === 'complete') continue
      if (!faults.enabled && ++lives > RESTARTS_MAX)
        fatal = `${result.error?.code ?? result.stopReason}: ${result.error?.message ?? ''}`
      else if (result.error !== null && FATAL_CODES.has(result.error.code))
        fatal = `${result.error.code}: ${result.error.message}`
      await process.idle(60_000)
    }
  }
  scheduler.onWait = (process, label) => {
    if (process === supervisor) return
    const fault = faults.draw('runner', label, ['crash', 'freeze'])
    if (fault?.kind === 'freeze') process.freeze(Math.round(plan.limits.leaseTtlMs * (0.5 + 2 * fault.severity)))
    if (fault?.kind !== 'crash') return
    process.crash()
    void supervisor.idle(1_000).then(live)
  }
  if (only !== null && only.size === 0) faults.enabled = false
  void live()
  try {
    while (!isOver()) {
      if (!(await calls.settle(REAL_MS_MAX))) fatal = `\`execute\` did not return within ${REAL_MS_MAX / 1_000} s.`
      else if (!(await scheduler.step()) || scheduler.now - TIME_ZERO > 400 * 24 * 3_600_000)
        fatal = 'The cycle makes no progress.'
    }
    return { rows, states, pages, requests, faults: faults.injected, error: fatal }
  } finally {
    await store.close()
  }
}

const SILENT_LOG = { debug() {}, info() {}, warn() {}, error() {} }

/** Errors that a retry cannot resolve. */
const FATAL_CODES: ReadonlySet<string> = new Set([
  'CONNECTOR_FAILED',
  'PAGE_INVALID',
  'STATE_MISSING',
  'STATE_INVALID',
  'STATE_TOO_LARGE',
  'CURSOR_STALLED',
  'CURSOR_CYCLE',
  'EMPTY_PAGES',
  'AUTH_REJECTED',
  'SECRET_MISSING',
  'DATABASE_UNKNOWN',
  'PACER_UNKNOWN',
  'MASS_DELETE',
  'SCOPE_CHANGED',
  'INTERNAL',
])

// ── the user's code, and real time ───────────────────────────────────────────────────────────────────────────────────

/**
 * Virtual time stops while the user's code works in real time, and continues when all it does is wait. One instance per
 * process run: a crash leaves waits behind that never end, and they must not affect the next run.
 */
class UserCalls {
  #running = 0
  #waiting = 0
  #real = 0
  #changed: () => void = () => {}

  async run<T>(call: () => Promise<T>): Promise<T> {
    this.#running++
    try {
      return await call()
    } finally {
      this.#running--
      this.#changed()
    }
  }

  async runWaiting<T>(call: () => Promise<T>): Promise<T> {
    this.#waiting++
    this.#changed()
    try {
      return await call()
    } finally {
      this.#waiting--
    }
  }

  async runReal<T>(call: () => Promise<T>): Promise<T> {
    this.#real++
    try {
      return await call()
    } finally {
      this.#real--
      this.#changed()
    }
  }

  /** False when the time is up. */
  async settle(msMax: number): Promise<boolean> {
    let timeout: NodeJS.Timeout | undefined
    const late = new Promise<false>((resolve) => void (timeout = setTimeout(() => resolve(false), msMax)))
    try {
      while (this.#real > 0 || (this.#running > 0 && this.#waiting === 0)) {
        const changed = new Promise<true>((resolve) => void (this.#changed = () => resolve(true)))
        if (!(await Promise.race([changed, late]))) return false
        await new Promise((resolve) => setImmediate(resolve))
      }
      return true
    } finally {
      clearTimeout(timeout)
    }
  }
}

function trackContextCalls(context: SyncContext, calls: UserCalls): SyncContext {
  const clock: Clock = {
    now: () => context.clock.now(),
    sleep: (ms, signal) => calls.runWaiting(() => context.clock.sleep(ms, signal)),
  }
  const pacer: Pacing = { wait: (name) => calls.runWaiting(() => context.pacer.wait(name)) }
  return { ...context, clock, pacer, fetch: (input, init) => calls.runWaiting(() => context.fetch(input, init)) }
}

// ── the network ──────────────────────────────────────────────────────────────────────────────────────────────────────

interface RecordedResponse {
  readonly status: number
  readonly headers: Array<[string, string]>
  readonly body: string
}

async function recordOrReplay(
  tape: Map<string, RecordedResponse>,
  fetch: Fetch,
  input: string | URL,
  init: RequestInit = {},
): Promise<RecordedResponse> {
  const { signal: _, ...rest } = init
  const key = `${init.method ?? 'GET'} ${String(input)} ${typeof init.body === 'string' ? init.body : ''}`
  const known = tape.get(key)
  if (known !== undefined) return known
  const response = await fetch(input, rest)
  const answer = { status: response.status, headers: [...response.headers], body: await response.text() }
  tape.set(key, answer)
  return answer
}

async function faultyFetch(
  process: SimulatedProcess,
  faults: FaultInjector,
  chance: RandomStream,
  _input: string | URL,
  init: RequestInit | undefined,
  ask: () => Promise<RecordedResponse>,
): Promise<Response> {
  const signal = init?.signal ?? undefined
  await process.wait('fetch:before', chance.int(5, 500), signal)
  const fault = faults.draw('runner', 'fetch', [
    'rate-limited',
    'server-error',
    'timeout-before',
    'timeout-after',
    'truncated',
  ])
  if (fault?.kind === 'rate-limited')
    return new Response('', { status: 429, headers: { 'retry-after': String(Math.ceil(fault.severity * 5)) } })
  if (fault?.kind === 'server-error') return new Response('', { status: 503 })
  if (fault?.kind === 'timeout-before') await process.wait('fetch:hangs', NEVER_MS, signal)
  const { status, headers, body } = await ask()
  if (fault?.kind === 'timeout-after') await process.wait('fetch:hangs', NEVER_MS, signal)
  await process.wait('fetch:after', chance.int(5, 500), signal)
  const text = fault?.kind === 'truncated' ? body.slice(0, Math.floor(body.length * fault.severity)) : body
  return new Response(NO_BODY_STATUSES.has(status) ? null : text, {
    status,
    headers: headers.filter(([name]) => name !== 'content-length' && name !== 'content-encoding'),
  })
}

const NEVER_MS = 400 * 24 * 3_600_000
const NO_BODY_STATUSES: ReadonlySet<number> = new Set([204, 205, 304])

function describeRowDifference(expected: readonly Row[], actual: readonly Row[]): string | null {
  const rows = new Map(actual.map((row) => [`${row.database} ${row.key}`, row.text]))
  for (const row of expected) {
    const name = `${row.database} ${row.key}`
    if (!rows.has(name)) return `${row.key} of ${row.database} is missing.`
    if (rows.get(name) !== row.text) return `${row.key} of ${row.database} has different content.`
    rows.delete(name)
  }
  const [left] = rows.keys()
  return left === undefined
    ? null
    : `${left.slice(left.indexOf(' ') + 1)} of ${left.slice(0, left.indexOf(' '))} should not exist.`
}
