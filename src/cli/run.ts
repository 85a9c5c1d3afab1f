import { Command, Option } from 'commander'
import type { Store, SyncError } from '../contract/index.ts'
import { classify } from '../engine/classify.ts'
import { runCycle } from '../engine/cycle.ts'
import type { CycleOptions, CycleResult, Progress } from '../engine/cycle-options.ts'
import type { SyncPlan } from '../engine/sync-plan.ts'
import { holderName, isDeadHolder } from '../platform/holder.ts'
import { guardStrayRejections } from '../platform/stray-rejections.ts'
import { countArgument } from './arguments.ts'
import type { Act, Cli } from './cli.ts'
import { exitCodeOf, worstExitCode } from './exit-code.ts'
import { outsideOf } from './outside.ts'
import { displayFor, resultDocument } from './progress.ts'
import { selectCommand } from './select-command.ts'
import { announce, openTargetStore, targetDocument, withStoreFlags, workerTarget, type Target, type TargetFlags, type WorkerTarget } from './target.ts'

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
    .summary('one cycle of each sync; Ctrl-C is always safe')
    .description('Runs one cycle of each named sync, or of all of them. Stopping it is always safe: what has landed stays, and the next run continues there.')
    .argument('[sync...]', 'the syncs to run (default: all)')
    .option('--backfill', 'of tracked pairs, run the backfill instead of the delta')
    .option('--fresh', 'give up an unfinished cycle and begin a new one')
    .option('--allow-deletes', 'confirm a sweep that was stopped because it would delete too much')
    .option('--max-pages <n>', 'stop after so many pages; the next run continues there', countArgument)
    .option('--max-minutes <n>', 'stop after so many minutes; the next run continues there', countArgument)
    .addOption(new Option('--concurrency <n>', 'how many syncs run side by side').argParser(countArgument).default(4))
    .option('--reveal', 'show cursors that stand in for a time as they are')
}

export const run: Act<[string[], RunFlags]> = async (cli, names, flags) => {
  const signal = cli.listenForStop()
  const target = await workerTarget(cli, flags)
  const chosen = names.length === 0 ? null : [...new Set(names)].map((name) => chosenPlan(target, name, flags))
  announce(cli, target)

  const store = await openTargetStore(target)
  const plans = (chosen ?? (await defaultPlans(target, store, flags))).map((plan) => withBudget(plan, flags))
  const outside = await outsideOf(cli, target)
  const guard = guardStrayRejections((message) => outside.ports.log.error('a promise that nobody waited for failed', { reason: message }))
  const display = displayFor(cli, plans.map(({ sync }) => sync), { reveal: flags.reveal === true, lasting: false })
  let results: CycleResult[]
  try {
    const options: Omit<CycleOptions, 'onProgress'> = {
      ...outside, store, signal, holder: holderName(), trigger: 'manual', isDead: isDeadHolder,
      fresh: flags.fresh === true, allowDeletes: flags.allowDeletes === true,
    }
    const begun = new Map<string, Promise<CycleResult>>()
    const cycleOf = async (plan: SyncPlan): Promise<CycleResult> => {
      // Of a pair that has never run, it is the backfill that finds the place where the delta begins.
      if (plan.pair?.role === 'delta') await begun.get(plan.pair.backfill)
      const progress = (given: Progress): void => display.progress(plan.sync, given)
      const startedAt = options.ports.clock.now()
      const result = await runCycle(plan, { ...options, onProgress: progress }).catch((error: unknown) => notBegun(plan, startedAt, classify(error)))
      display.done(result)
      return result
    }
    results = await inParallel(plans, flags.concurrency, signal, (plan) => {
      const running = cycleOf(plan)
      begun.set(plan.sync, running)
      return running
    })
    display.close()
    if (!cli.terminal.json && results.every(({ error }) => error === null)) await showNext(cli, target, store, plans)
  } finally {
    display.close()
    guard.remove()
    await store.close()
  }

  const interrupted = signal.aborted && (results.length < plans.length || results.some(({ stopReason }) => stopReason === 'cancelled'))
  const exitCode = interrupted ? exitCodeOf('CANCELLED') : exitCodeFor(results, names)
  if (cli.terminal.json) {
    cli.terminal.document({
      event: 'result', ok: exitCode === 0, interrupted, ...targetDocument(target),
      syncs: results.map((result) => resultDocument(result, flags.reveal === true)),
    })
  }
  return exitCode
}

/** The store failed before the cycle could take its lease; the other syncs may still fare better. */
function notBegun({ worker, sync }: SyncPlan, startedAt: number, { code, message, advice }: SyncError): CycleResult {
  const counts = { created: 0, updated: 0, deleted: 0, swept: 0, unchanged: 0, stale: 0, missing: 0, quarantined: 0 }
  return {
    worker, sync, cycle: null, stopReason: 'error', stopWord: null, resumed: false, pages: 0, counts, retries: 0, waitedMs: 0, startedAt, endedAt: startedAt,
    version: 0, position: 0, tidemark: null, drift: [], error: { code, message, advice }, retryAt: null,
  }
}

/** In the order they were given, each as soon as there is a place. After the signal no more are begun. */
async function inParallel<T, R>(items: readonly T[], placesMax: number, signal: AbortSignal, work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = []
  const queue = items.entries()
  await Promise.all(Array.from({ length: Math.min(placesMax, items.length) }, async () => {
    for (const [index, item] of queue) {
      if (signal.aborted) return
      results[index] = await work(item)
    }
  }))
  return results.filter((result) => result !== undefined)
}

/** The command line has the last word over what the worker declares. */
/** `run people --backfill` is `run people-backfill`. */
function chosenPlan(target: WorkerTarget, name: string, flags: RunFlags): SyncPlan {
  const plan = target.worker.plan(name)
  return flags.backfill === true && plan.pair?.role === 'delta' ? target.worker.plan(plan.pair.backfill) : plan
}

/** Everything; of a pair the delta, and the backfill as long as it has never been through. */
async function defaultPlans(target: WorkerTarget, store: Store, flags: RunFlags): Promise<SyncPlan[]> {
  const wanted: SyncPlan[] = []
  for (const plan of target.worker.plans()) {
    if (flags.backfill === true ? plan.pair?.role === 'backfill' : plan.pair?.role !== 'backfill' || (await store.read({ worker: plan.worker, sync: plan.sync })).version === 0) wanted.push(plan)
  }
  return wanted
}

function withBudget(plan: SyncPlan, { maxPages, maxMinutes }: RunFlags): SyncPlan {
  return {
    ...plan,
    limits: { ...plan.limits, ...(maxPages === undefined ? {} : { pagesMax: maxPages }), ...(maxMinutes === undefined ? {} : { minutesMax: maxMinutes }) },
  }
}

/** A paused sync is a failure only for somebody who named it. */
function exitCodeFor(results: readonly CycleResult[], names: readonly string[]): number {
  const failures = results.filter(({ error }) => error !== null && (error.code !== 'PAUSED' || names.length > 0))
  return worstExitCode(failures.map(({ error }) => exitCodeOf(error!.code)))
}

async function showNext({ terminal }: Cli, target: Target, store: Store, plans: readonly SyncPlan[]): Promise<void> {
  if (plans.length === 0) terminal.remark('This worker declares no syncs: there is nothing to run.')
  const names = plans.map(({ databases }) => databases[0]!.name)
  const filled = (await store.databases()).find(({ name, rows }) => rows > 0 && names.includes(name))
  if (filled !== undefined) terminal.remark(terminal.colors.dim(`Look at it: ${selectCommand(target, filled.view)}`))
}
