import { Command } from 'commander'
import { SyncError, type Store, type TimeRange } from '../../contract/index.ts'
import { runCycle } from '../../engine/cycle.ts'
import type { SyncPlan } from '../../engine/sync-plan.ts'
import { holderName, isHolderGone } from '../../platform/lease-holder.ts'
import { guardStrayExceptions } from '../../platform/stray-exceptions.ts'
import { guardStrayRejections } from '../../platform/stray-rejections.ts'
import { planPartitions } from '../../worker/plan-partitions.ts'
import { planRange } from '../../worker/plan-range.ts'
import { actorName } from '../kit/actor.ts'
import { estimateBackfill, formatBackfillPlan, type BackfillPlan } from '../kit/backfill-plan.ts'
import type { VerbAction, Cli } from '../cli.ts'
import { createRuntime } from '../kit/create-runtime.ts'
import { exitCodeOf } from '../kit/exit-code.ts'
import { openExistingStore } from '../kit/open-existing-store.ts'
import { createDisplay, resultDocument } from '../kit/progress.ts'
import { RefusedError } from '../kit/report-error.ts'
import {
  loadWorkerTarget,
  openTargetStore,
  printTarget,
  targetDocument,
  withStoreFlags,
  type TargetFlags,
  type WorkerTarget,
} from '../kit/target.ts'

interface BackfillFlags extends TargetFlags {
  readonly from?: string
  readonly to?: string
  readonly partition?: string[]
  readonly allowDeletes?: boolean
  readonly dryRun?: boolean
  readonly yes?: boolean
  readonly reveal?: boolean
}

export function backfillVerb(): Command {
  return withStoreFlags(new Command('backfill'))
    .summary('read everything, a range or partitions again')
    .description(
      'Reads the records of a sync again, also while `tidemark start` runs. With --from or --to only the records of that range: it deletes nothing, keeps every state, and continues after a crash. With --partition only these partitions: it deletes rows of them alone. Shows the plan; --yes runs it.',
    )
    .argument('<sync>', 'the sync')
    .option('--from <time>', 'first time to read: 2026-01-31 or 2026-01-31T12:00:00Z')
    .option('--to <time>', 'first time not to read; the default is no end')
    .option('--partition <key...>', 'partitions to read; see `state get --partitions`')
    .option('--allow-deletes', 'allow a sweep above the delete limit')
    .option('--dry-run', 'show the plan and stop')
    .option('--yes', 'run the plan')
    .option('--reveal', 'show raw cursor values')
}

export const backfill: VerbAction<[string, BackfillFlags]> = async (cli, name, flags) => {
  const target = await loadWorkerTarget(cli, flags)
  const plan = choosePlan(target, name, flags)
  printTarget(cli, target)
  const isConfirmed = flags.yes === true && flags.dryRun !== true
  const store = isConfirmed ? await openTargetStore(target) : await openExistingStore(target)
  try {
    const planned = await estimateBackfill(target, store, plan)
    const document = { event: 'plan', ...targetDocument(target), ...planned }
    if (isConfirmed && store !== null) {
      if (cli.terminal.json) cli.terminal.printDocument(document)
      else cli.terminal.remark(...formatBackfillPlan(planned))
      return await runPlan(cli, target, store, plan, flags)
    }
    if (flags.dryRun === true) {
      if (cli.terminal.json) cli.terminal.printDocument(document)
      else cli.terminal.print(...formatBackfillPlan(planned))
      return 0
    }
    cli.terminal.remark(...formatBackfillPlan(planned))
    throw refuse(target, planned, document)
  } finally {
    await store?.close()
  }
}

/** With partitions or a range, a plan of its own; otherwise the backfill of the pair, or the sync itself if it lists everything. */
function choosePlan({ worker }: WorkerTarget, name: string, { from, to, partition }: BackfillFlags): SyncPlan {
  if (partition !== undefined) {
    if (from !== undefined || to !== undefined)
      throw new SyncError('ARGUMENT_INVALID', '--partition excludes --from and --to. Leave out one of them.')
    return planPartitions(worker, name, partition)
  }
  if (from !== undefined || to !== undefined) {
    const range: TimeRange = { ...(from !== undefined && { from }), ...(to !== undefined && { to }) }
    return planRange(worker, name, range)
  }
  const plan = worker.plan(name)
  if (plan.pair?.role === 'delta') return worker.plan(plan.pair.backfill)
  if (plan.mode === 'replace') return plan
  throw new SyncError(
    'ARGUMENT_INVALID',
    `${name} only reads changes, so it has no backfill. Give a range with --from and --to, or run \`tidemark state reset ${name}\` to see what a start without state reads.`,
  )
}

async function runPlan(
  cli: Cli,
  target: WorkerTarget,
  store: Store,
  plan: SyncPlan,
  { reveal = false, allowDeletes = false }: BackfillFlags,
): Promise<number> {
  const signal = cli.listenForStop()
  const runtime = await createRuntime(cli, target)
  const { log } = runtime.ports
  const guards = [
    guardStrayRejections((reason) => log.error('unhandled promise rejection in a connector', { reason })),
    guardStrayExceptions((reason) => log.error('a timer or listener of a connector threw', { reason })),
  ]
  const display = createDisplay(cli, [plan.sync], { reveal, continuous: false })
  try {
    const result = await runCycle(plan, {
      ...runtime,
      store,
      signal,
      holder: holderName(),
      trigger: 'manual',
      allowDeletes,
      isHolderGone,
      actor: actorName(),
      onProgress: (progress) => display.showProgress(plan.sync, progress),
    })
    display.showResult(result)
    const interrupted = result.stopReason === 'cancelled'
    const failure = interrupted ? 'CANCELLED' : (result.error?.code ?? null)
    const exitCode = failure === null ? 0 : exitCodeOf(failure)
    if (cli.terminal.json)
      cli.terminal.printDocument({
        event: 'result',
        ok: exitCode === 0,
        interrupted,
        ...targetDocument(target),
        syncs: [resultDocument(result, reveal)],
      })
    return exitCode
  } finally {
    display.close()
    for (const guard of guards) guard.remove()
  }
}

function refuse({ tenant, storeLabel }: WorkerTarget, { sync }: BackfillPlan, document: object): RefusedError {
  return new RefusedError(
    'CONFIRMATION_NEEDED',
    `Nothing was read. Add --yes to run the plan for ${sync} (tenant ${tenant}, ${storeLabel}).`,
    document,
  )
}
