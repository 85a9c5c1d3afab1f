import { Command, Option } from 'commander'
import { SyncError, type Store } from '../../contract/index.ts'
import { describeValue } from '../../config/names.ts'
import { classifyError } from '../../engine/classify-error.ts'
import { runCycle } from '../../engine/cycle.ts'
import type { CycleOptions, CycleResult, CycleProgress } from '../../engine/cycle-options.ts'
import type { DestinationResult } from '../../destinations/loop/run-destination.ts'
import type { SyncPlan } from '../../engine/sync-plan.ts'
import { holderName, isHolderGone } from '../../platform/lease-holder.ts'
import { guardStrayExceptions } from '../../platform/stray-exceptions.ts'
import { guardStrayRejections } from '../../platform/stray-rejections.ts'
import { isBackfillNeeded } from '../../runner/pair-backfill.ts'
import { sortByParents } from '../../worker/sync-order.ts'
import { parseCount } from '../kit/arguments.ts'
import { actorName } from '../kit/actor.ts'
import type { VerbAction, Cli } from '../cli.ts'
import { exitCodeOf, worstExitCode } from '../kit/exit-code.ts'
import { createRuntime } from '../kit/create-runtime.ts'
import { createDisplay, resultDocument } from '../kit/progress.ts'
import { exitCodeOfDestinations, runDestinations, toDestinationResultDocument } from '../kit/run-destinations.ts'
import { formatQueryCommand } from '../kit/query-command.ts'
import { matchesPattern } from '../kit/matches-pattern.ts'
import { formatRunSummary } from '../kit/run-summary.ts'
import {
  printTarget,
  openTargetStore,
  targetDocument,
  withStoreFlags,
  loadWorkerTarget,
  type Target,
  type TargetFlags,
  type WorkerTarget,
} from '../kit/target.ts'

interface RunFlags extends TargetFlags {
  readonly fresh?: boolean
  readonly allowDeletes?: boolean
  readonly backfill?: boolean
  readonly maxPages?: number
  readonly maxMinutes?: number
  readonly concurrency: number
  readonly reveal?: boolean
}

export function runVerb(): Command {
  return withStoreFlags(new Command('run'))
    .summary('run one cycle of each sync')
    .description(
      'Runs one cycle of each named sync, or of all syncs and then every destination once. Ctrl-C is always safe: committed pages stay, and the next run continues after them.',
    )
    .argument('[sync...]', 'the syncs to run, also patterns: stripe-* (default: all)')
    .option('--backfill', 'run the backfill of a tracked pair instead of the delta')
    .option('--fresh', 'abandon an unfinished cycle and start a new one')
    .option('--allow-deletes', 'allow a sweep that exceeds the delete limit')
    .option('--max-pages <n>', 'stop after N pages; the next run continues', parseCount)
    .option('--max-minutes <n>', 'stop after N minutes; the next run continues', parseCount)
    .addOption(new Option('--concurrency <n>', 'number of syncs to run in parallel').argParser(parseCount).default(4))
    .option('--reveal', 'show raw cursor values')
}

export const run: VerbAction<[string[], RunFlags]> = async (cli, names, flags) => {
  const signal = cli.listenForStop()
  const target = await loadWorkerTarget(cli, flags)
  const chosen = selectSyncs(target, names).map((name) => resolvePlan(target, name, flags))
  printTarget(cli, target)

  const store = await openTargetStore(target)
  const plans = sortPlans(target, await selectPlans(target, store, chosen, flags)).map((plan) =>
    withLimits(plan, flags),
  )
  const runtime = await createRuntime(cli, target)
  const { log } = runtime.ports
  const guards = [
    guardStrayRejections((reason) => log.error('unhandled promise rejection in a connector', { reason })),
    guardStrayExceptions((reason) => log.error('a timer or listener of a connector threw', { reason })),
  ]
  const display = createDisplay(
    cli,
    plans.map(({ sync }) => sync),
    { reveal: flags.reveal === true, continuous: false },
  )
  let results: CycleResult[]
  let destinations: DestinationResult[] = []
  try {
    const options: Omit<CycleOptions, 'onProgress'> = {
      ...runtime,
      store,
      signal,
      holder: holderName(),
      trigger: 'manual',
      isHolderGone,
      fresh: flags.fresh === true,
      allowDeletes: flags.allowDeletes === true,
      actor: actorName(),
    }
    const started = new Map<string, Promise<CycleResult[]>>()
    const cycleOf = async (plan: SyncPlan): Promise<CycleResult> => {
      const onProgress = (progress: CycleProgress): void => display.showProgress(plan.sync, progress)
      const startedAt = options.ports.clock.now()
      const result = await runCycle(plan, { ...options, onProgress }).catch((error: unknown) =>
        createFailedResult(plan, startedAt, classifyError(error)),
      )
      display.showResult(result)
      return result
    }
    const parents = new Map(target.worker.manifest.syncs.map(({ name, after = [] }) => [name, after]))
    const resultsOf = async (plan: SyncPlan): Promise<CycleResult[]> => {
      // Parents are earlier in the list, so they have started.
      for (const parent of parents.get(plan.sync) ?? []) await started.get(parent)
      if (plan.pair?.role !== 'delta') return [await cycleOf(plan)]
      const { backfill } = plan.pair
      // The first backfill of a pair sets the anchor at which its delta starts.
      await started.get(backfill)
      const result = await cycleOf(plan)
      // A delta whose history is lost requests a backfill. The backfill runs now, and the delta resumes from its anchor.
      if (result.error?.code !== 'HISTORY_LOST' || started.has(backfill) || signal.aborted) return [result]
      const repair = await cycleOf(withLimits(target.worker.plan(backfill), flags))
      return [repair, repair.error === null && !signal.aborted ? await cycleOf(plan) : result]
    }
    results = (
      await runInParallel(plans, flags.concurrency, signal, (plan) => {
        const running = resultsOf(plan)
        started.set(plan.sync, running)
        return running
      })
    ).flat()
    display.close()
    if (names.length === 0 && !signal.aborted)
      destinations = await runDestinations(cli, target, store, runtime.ports, signal)
    if (!cli.terminal.json) {
      if (plans.length > 1) cli.terminal.print(...formatRunSummary(cli, results, plans.length))
      if (results.every(({ error }) => error === null)) await showQueryHint(cli, target, store, plans)
    }
  } finally {
    display.close()
    for (const guard of guards) guard.remove()
    await store.close()
  }

  const interrupted =
    signal.aborted && (results.length < plans.length || results.some(({ stopReason }) => stopReason === 'cancelled'))
  const exitCode = interrupted
    ? exitCodeOf('CANCELLED')
    : worstExitCode([exitCodeFor(results, names), exitCodeOfDestinations(destinations)])
  if (cli.terminal.json) {
    cli.terminal.printDocument({
      event: 'result',
      ok: exitCode === 0,
      interrupted,
      ...targetDocument(target),
      syncs: results.map((result) => resultDocument(result, flags.reveal === true)),
      ...(destinations.length > 0 && { destinations: destinations.map(toDestinationResultDocument) }),
    })
  }
  return exitCode
}

/** The store failed before the cycle acquired its lease. The other syncs still run. */
function createFailedResult(
  { worker, sync }: SyncPlan,
  startedAt: number,
  { code, message, advice }: SyncError,
): CycleResult {
  const counts = { created: 0, updated: 0, deleted: 0, swept: 0, unchanged: 0, stale: 0, missing: 0, quarantined: 0 }
  return {
    worker,
    sync,
    cycle: null,
    stopReason: 'error',
    endReason: null,
    resumed: false,
    pages: 0,
    counts,
    retries: 0,
    waitedMs: 0,
    startedAt,
    endedAt: startedAt,
    version: 0,
    headSequence: 0,
    tidemark: null,
    drift: [],
    error: { code, message, advice },
    retryAt: null,
  }
}

/** Starts items in order, at most `concurrencyMax` at a time. After the signal aborts, no further item starts. */
async function runInParallel<T, R>(
  items: readonly T[],
  concurrencyMax: number,
  signal: AbortSignal,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = []
  const queue = items.entries()
  await Promise.all(
    Array.from({ length: Math.min(concurrencyMax, items.length) }, async () => {
      for (const [index, item] of queue) {
        if (signal.aborted) return
        results[index] = await work(item)
      }
    }),
  )
  return results.filter((result) => result !== undefined)
}

/** The named syncs. A name with `*` stands for every sync that it matches; a backfill only if it is named itself. */
function selectSyncs({ worker, name: workerName }: WorkerTarget, names: readonly string[]): string[] {
  const all = worker.plans().filter(({ pair }) => pair?.role !== 'backfill')
  const selected = names.flatMap((name) => {
    if (!name.includes('*')) return [name]
    const found = all.filter(({ sync }) => matchesPattern(sync, name)).map(({ sync }) => sync)
    if (found.length > 0) return found
    const known = all.slice(0, 10).map(({ sync }) => sync)
    throw new SyncError(
      'SYNC_UNKNOWN',
      `No sync of worker "${workerName}" matches ${describeValue(name)}. It has ${known.join(', ') || 'none'}.`,
    )
  })
  return [...new Set(selected)]
}

/** `run people --backfill` is `run people-backfill`. */
function resolvePlan(target: WorkerTarget, name: string, flags: RunFlags): SyncPlan {
  const plan = target.worker.plan(name)
  return flags.backfill === true && plan.pair?.role === 'delta' ? target.worker.plan(plan.pair.backfill) : plan
}

/** The named syncs, or all. While a pair needs a backfill, it runs before the delta. */
async function selectPlans(
  target: WorkerTarget,
  store: Store,
  chosen: readonly SyncPlan[],
  flags: RunFlags,
): Promise<SyncPlan[]> {
  const all = target.worker.plans()
  if (flags.backfill === true)
    return chosen.length > 0 ? [...chosen] : all.filter(({ pair }) => pair?.role === 'backfill')
  const requested = chosen.length > 0 ? chosen : all.filter(({ pair }) => pair?.role !== 'backfill')
  const plans: SyncPlan[] = []
  for (const plan of requested) {
    const { worker, pair } = plan
    const isNew = pair?.role === 'delta' && !requested.some(({ sync }) => sync === pair.backfill)
    if (isNew && isBackfillNeeded(await store.readCheckpoint({ worker, sync: pair.backfill })))
      plans.push(target.worker.plan(pair.backfill))
    plans.push(plan)
  }
  return plans
}

/** Parents run before their children, and the backfill of a pair before its delta. */
function sortPlans({ worker }: WorkerTarget, plans: readonly SyncPlan[]): SyncPlan[] {
  const { syncs } = worker.manifest
  if (syncs.every(({ after }) => after === undefined)) return [...plans]
  const order = sortByParents(syncs).map(({ name }) => name)
  return plans.toSorted((a, b) => order.indexOf(a.sync) - order.indexOf(b.sync))
}

/** Command-line limits override those of the worker. */
function withLimits(plan: SyncPlan, { maxPages, maxMinutes }: RunFlags): SyncPlan {
  return {
    ...plan,
    limits: {
      ...plan.limits,
      ...(maxPages === undefined ? {} : { pagesMax: maxPages }),
      ...(maxMinutes === undefined ? {} : { minutesMax: maxMinutes }),
    },
  }
}

/** A paused sync counts as a failure only if it was named on the command line. */
function exitCodeFor(results: readonly CycleResult[], names: readonly string[]): number {
  const failures = results.flatMap(({ sync, error }) =>
    error !== null && (error.code !== 'PAUSED' || names.includes(sync)) ? [error] : [],
  )
  return worstExitCode(failures.map(({ code }) => exitCodeOf(code)))
}

async function showQueryHint(cli: Cli, target: Target, store: Store, plans: readonly SyncPlan[]): Promise<void> {
  const { terminal } = cli
  if (plans.length === 0) terminal.remark('This worker declares no syncs. Declare one with worker.sync(name, …).')
  const names = plans.flatMap(({ databases }) => databases.slice(0, 1).map(({ name }) => name))
  const filled = (await store.databases()).find(({ name, rows }) => rows > 0 && names.includes(name))
  if (filled !== undefined)
    terminal.remark(terminal.colors.dim(`Query it: ${formatQueryCommand(cli, target, filled.table)}`))
}
