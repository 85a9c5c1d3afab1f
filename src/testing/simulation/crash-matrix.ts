import type { Execute } from '../../contract/index.ts'
import { runCycle } from '../../engine/cycle.ts'
import { DEFAULT_LIMITS, DEFAULT_SWEEP, type SyncPlan } from '../../engine/sync-plan.ts'
import { openSqliteStore } from '../../stores/sqlite/store.ts'
import { AdversarialSource, type SourceConnection } from './adversarial-source.ts'
import { delta, listing } from './connectors.ts'
import { FaultInjector } from './fault-injector.ts'
import { createFaultyStore } from './faulty-store.ts'
import { SourceOracle, type SyncFacts } from './oracle.ts'
import { RandomStream, Trace } from './random-stream.ts'
import { Scheduler, TIME_ZERO, type SimulatedProcess } from './scheduler.ts'
import { VirtualClock } from './virtual-clock.ts'
import { required } from '../../values/required.ts'

/** The result of crashing one run at every point. */
export interface CrashMatrixReport {
  /** Waits of the run without a crash: the points at which one can happen. */
  readonly waits: number
  readonly labels: readonly string[]
  readonly runs: number
  /** Crash points, and how the final state differed from that of the run without a crash. */
  readonly failures: ReadonlyArray<{ readonly crashes: string; readonly difference: string }>
}

/**
 * One small fixed history (a listing, changes, a listing with a sweep, changes, a delta with deletions), run once
 * without a crash and then with one at every wait, with one at every wait of every restart, and with pairs. The rows,
 * the checkpoints and the feed must be the same every time.
 */
export async function runCrashMatrix(options: { pairs: number; seed?: number }): Promise<CrashMatrixReport> {
  const chance = new RandomStream(options.seed ?? 1, 'pairs')
  const reference = await runWithCrashes(() => false)
  const failures: Array<{ crashes: string; difference: string }> = []
  let runs = 0
  const compare = async (
    crashes: string,
    crashesAt: (wait: number, ofLife: number, life: number) => boolean,
  ): Promise<void> => {
    runs++
    const outcome = await runWithCrashes(crashesAt)
    const difference = outcome.violation ?? firstDifference(outcome.end, reference.end)
    if (difference !== null) failures.push({ crashes, difference })
  }
  const waits = reference.labels.length
  for (let at = 1; at <= waits; at++) {
    await compare(`at wait ${at} (${reference.labels[at - 1]})`, (wait) => wait === at)
    await compare(`at wait ${at} of the first four restarts`, (_, ofLife, life) => life <= 4 && ofLife === at)
  }
  for (let i = 0; i < options.pairs; i++) {
    const first = chance.int(1, waits)
    const second = first + chance.int(1, waits)
    await compare(`at waits ${first} and ${second}`, (wait) => wait === first || wait === second)
  }
  return { waits, labels: reference.labels, runs, failures }
}

const WORKER = 'matrix'
const DATABASE = 'records'
const DAY_MS = 86_400_000

async function runWithCrashes(
  crashesAt: (wait: number, ofLife: number, life: number) => boolean,
): Promise<{ end: string; labels: string[]; violation: string | null }> {
  const store = await openSqliteStore({ file: ':memory:' })
  try {
    const scheduler = new Scheduler(1, new Trace())
    const faults = new FaultInjector(1, {})
    const source = new AdversarialSource(
      {
        lagMs: 0,
        skewMs: 0,
        granularityMs: 1,
        pageSize: 3,
        emptyPages: true,
        shuffled: false,
        monotonic: true,
        plain: false,
      },
      { now: () => scheduler.now, chance: new RandomStream(1, 'source'), faults },
    )
    const oracle = new SourceOracle({
      store,
      source,
      now: () => scheduler.now,
      worker: WORKER,
      database: DATABASE,
      syncs: SYNCS,
      isSourceIncomplete: false,
      runnerSkewMs: 0,
      storeHasClock: false,
    })
    const labels: string[] = []
    let [life, ofLife, act] = [0, 0, 0]
    let process: SimulatedProcess = scheduler.start('supervisor')
    const supervisor = process

    const live = async (): Promise<void> => {
      life++
      ofLife = 0
      const self = (process = scheduler.start(`life${life}`))
      const line: SourceConnection = { process: self, faults, source, latencyMs: () => 10, deadlineMs: 60_000 }
      const reached = createFaultyStore(store, {
        process: self,
        faults,
        latencyMs: () => 1,
        observe: (method, args, answer) => oracle.observe(method, args, answer),
        runLater: () => {},
      })
      const holder = `life${life}`
      while (act < STEPS.length) {
        const { sync } = required(STEPS[act], 'STEPS[act]')
        await runCycle(planOf(sync, line), {
          store: reached,
          ports: {
            clock: new VirtualClock(self),
            random: new RandomStream(1, 'jitter'),
            log: { debug() {}, info() {}, warn() {}, error() {} },
          },
          fetch: unreachable,
          secrets: { get: unreachable },
          holder,
          trigger: 'matrix',
        })
        await self.idle(1_000)
      }
    }
    scheduler.onWait = (waiting, label) => {
      if (waiting !== process) return
      labels.push(label)
      ofLife++
      if (!crashesAt(labels.length, ofLife, life)) return
      waiting.crash()
      // The lease of the crashed process expires first.
      void supervisor.idle(30_000).then(live)
    }
    required(STEPS[0], 'STEPS[0]').writeToSource(source)
    void live()
    while (act < STEPS.length && oracle.violations.length === 0) {
      const { sync, count } = required(STEPS[act], 'STEPS[act]')
      if (!(await scheduler.step())) return { end: '', labels, violation: 'no process is waiting' }
      if (scheduler.now - TIME_ZERO > DAY_MS) return { end: '', labels, violation: 'it does not end' }
      if ((oracle.completed.get(sync)?.count ?? 0) >= count) STEPS[++act]?.writeToSource(source)
    }
    await oracle.compareRows()
    await oracle.compareAudit()
    const rows = (await store.rows({ database: DATABASE, limit: 1_000 })).map((row) => [row.key, row.text])
    const feed = (await store.changes({ after: 0, limit: 1_000 })).map((entry) => [
      entry.sequence,
      entry.key,
      entry.action,
      entry.text,
      entry.sync,
      entry.cycle,
      entry.page,
    ])
    const checkpoints = await Promise.all(SYNCS.map(({ sync }) => store.readCheckpoint({ worker: WORKER, sync })))
    const end = JSON.stringify([
      rows,
      feed,
      checkpoints.map(({ version, committed, inflight }) => [version, committed, inflight]),
    ])
    return { end, labels, violation: oracle.violations[0]?.message ?? null }
  } finally {
    await store.close()
  }
}

const SYNCS: readonly SyncFacts[] = [
  { sync: 'list', mode: 'replace', listing: 'a', soleOwner: true, lagMs: 0 },
  { sync: 'delta', mode: 'incremental', windowMs: 1_000, usesSourceTime: false, deletions: 'apart' },
]

interface MatrixStep {
  readonly sync: string
  /** Complete cycles of the sync by the end of the step. */
  readonly count: number
  /** The writes at the source before the step; long ago, so that no horizon excludes them. */
  writeToSource(source: AdversarialSource): void
}

const STEPS: readonly MatrixStep[] = [
  {
    sync: 'list',
    count: 1,
    writeToSource: (source) =>
      ['a', 'b', 'c', 'd', 'e', 'f', 'g'].forEach((id, index) => writeAtHour(source, id, 1 + index)),
  },
  {
    sync: 'list',
    count: 2,
    writeToSource: (source) => (
      writeAtHour(source, 'b', 20),
      writeAtHour(source, 'd', 21, true),
      writeAtHour(source, 'h', 22),
      writeAtHour(source, 'g', 23, true)
    ),
  },
  {
    sync: 'delta',
    count: 1,
    writeToSource: (source) => (
      writeAtHour(source, 'a', 30),
      writeAtHour(source, 'h', 31, true),
      writeAtHour(source, 'd', 31),
      writeAtHour(source, 'i', 31),
      writeAtHour(source, 'j', 31)
    ),
  },
  {
    sync: 'delta',
    count: 2,
    writeToSource: (source) => (
      writeAtHour(source, 'j', 40, true),
      writeAtHour(source, 'h', 41),
      writeAtHour(source, 'c', 41)
    ),
  },
]

function writeAtHour(source: AdversarialSource, id: string, hour: number, deleted = false): void {
  source.write(id, { deleted, listings: ['a'], stamp: TIME_ZERO - 30 * DAY_MS + hour * 3_600_000 })
}

function planOf(sync: string, line: SourceConnection): SyncPlan {
  return {
    worker: WORKER,
    sync,
    mode: sync === 'list' ? 'replace' : 'incremental',
    databases: [{ name: DATABASE }],
    owner: 'owner',
    execute: withPacing(
      sync === 'list'
        ? listing(line, { listing: 'a', stamped: true })
        : delta(line, { windowMs: 1_000, deletions: 'apart', usesSourceTime: false }),
    ),
    pacers: [{ name: 'budget', allowedRequests: 1_000, intervalMs: 1_000 }],
    limits: { ...DEFAULT_LIMITS, leaseTtlMs: 10_000 },
    sweep: DEFAULT_SWEEP,
    scope: null,
    upstreamToleranceMs: 0,
  }
}

function withPacing(execute: Execute<any>): Execute<any> {
  return async (state, context) => {
    await context.pacer.wait()
    return execute(state, context)
  }
}

function firstDifference(end: string, reference: string): string | null {
  if (end === reference) return null
  let at = 0
  while (end[at] === reference[at]) at++
  return `…${end.slice(Math.max(0, at - 40), at + 80)}… instead of …${reference.slice(Math.max(0, at - 40), at + 80)}…`
}

function unreachable(): never {
  throw new Error('there is no network here')
}
