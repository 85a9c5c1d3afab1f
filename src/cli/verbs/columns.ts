import { randomBytes } from 'node:crypto'
import { Command } from 'commander'
import { describeValue } from '../../config/names.ts'
import { SyncError, type Store } from '../../contract/index.ts'
import { rewriteColumns, type RewriteResult } from '../../engine/rewrite-columns.ts'
import type { SyncPlan } from '../../engine/sync-plan.ts'
import { holderName, isHolderGone } from '../../platform/lease-holder.ts'
import { didYouMean } from '../../values/did-you-mean.ts'
import type { Cli, VerbAction } from '../cli.ts'
import { actorName } from '../kit/actor.ts'
import { formatNumber } from '../kit/counts.ts'
import { createRuntime } from '../kit/create-runtime.ts'
import { toPrintable } from '../kit/printable.ts'
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

interface ApplyFlags extends TargetFlags {
  readonly yes?: boolean
}

export function columnsVerbs(): Record<'plan' | 'apply', Command> {
  const verb = (name: string): Command => withStoreFlags(new Command(name)).argument('<database>', 'the database')
  return {
    plan: verb('plan')
      .summary('show which rows changed column rules rewrite')
      .description(
        'Shows how many stored rows the declared column rules rewrite, and why rows have to be read from the source again.',
      ),
    apply: verb('apply')
      .summary('rewrite stored rows by changed column rules')
      .description(
        'Rewrites the stored rows by the declared column rules, without reading the source. After an interruption, the same command continues. Refused if the stored rows do not have what the rules need.',
      )
      .option('--yes', 'rewrite the rows instead of showing the plan'),
  }
}

/** The rewriting of one sync of the database. */
interface SyncRewrite extends RewriteResult {
  readonly sync: string
  /** The command that reads the source again. */
  readonly backfill: string
}

export const columnsPlan: VerbAction<[string, TargetFlags]> = async (cli, database, flags) =>
  withPlans(cli, database, flags, async (target, store, plans) => {
    const planned = await rewriteAll(cli, { target, store, plans, database }, true)
    if (cli.terminal.json) cli.terminal.printDocument(toDocument(target, database, planned))
    else cli.terminal.print(...formatPlan(database, planned))
    return 0
  })

export const columnsApply: VerbAction<[string, ApplyFlags]> = async (cli, database, flags) =>
  withPlans(cli, database, flags, async (target, store, plans) => {
    const { terminal } = cli
    const rewriting = { target, store, plans, database }
    const planned = await rewriteAll(cli, rewriting, true)
    const lost = planned.filter((one) => Object.keys(one.lost).length > 0)
    if (lost.length > 0 || flags.yes !== true) {
      if (!terminal.json) terminal.remark(...formatPlan(database, planned))
      const [first] = lost
      throw new RefusedError(
        first === undefined ? 'CONFIRMATION_NEEDED' : 'COLUMNS_INVALID',
        first === undefined
          ? `Nothing was changed. Add --yes to rewrite the rows of ${database} (tenant ${target.tenant}, ${target.storeLabel}).`
          : `Nothing was changed: only the source has what the rules of ${database} need. Run \`${first.backfill}\` to read it again.`,
        toDocument(target, database, planned),
      )
    }
    const rewritten = await rewriteAll(cli, rewriting, false)
    const isApplied = rewritten.every((one) => one.isApplied)
    if (terminal.json) terminal.printDocument({ ...toDocument(target, database, rewritten), applied: isApplied })
    else terminal.print(...rewritten.map((one) => formatResult(database, one)))
    return isApplied ? 0 : 1
  })

async function withPlans(
  cli: Cli,
  database: string,
  flags: TargetFlags,
  body: (target: WorkerTarget, store: Store, plans: readonly SyncPlan[]) => Promise<number>,
): Promise<number> {
  const target = await loadWorkerTarget(cli, flags)
  const all = target.worker.plans()
  const plans = all.filter(
    ({ pair, databases }) => pair?.role !== 'delta' && databases.some(({ name }) => name === database),
  )
  const names = [...new Set(all.flatMap(({ databases }) => databases.map(({ name }) => name)))]
  if (plans.length === 0)
    throw new SyncError(
      'ARGUMENT_INVALID',
      `The worker has no database ${describeValue(database)}.${didYouMean(database, names)}`,
    )
  printTarget(cli, target)
  const store = await openTargetStore(target)
  try {
    return await body(target, store, plans)
  } finally {
    await store.close()
  }
}

interface Rewriting {
  readonly target: WorkerTarget
  readonly store: Store
  readonly plans: readonly SyncPlan[]
  readonly database: string
}

async function rewriteAll(
  cli: Cli,
  { target, store, plans, database }: Rewriting,
  dryRun: boolean,
): Promise<SyncRewrite[]> {
  const signal = cli.listenForStop('Stopping after this page. Run the same command to continue.')
  const { ports } = await createRuntime(cli, target)
  const covered = plans.flatMap(({ sync, pair }) => (pair?.role === 'backfill' ? [sync, pair.delta] : [sync]))
  const results: SyncRewrite[] = []
  for (const plan of plans) {
    const result = await rewriteColumns(plan, {
      store,
      ports,
      holder: `columns:${holderName()}`,
      isHolderGone,
      actor: actorName(),
      database,
      others: new Set(covered),
      dryRun,
      random: randomBytes,
      signal,
    })
    const backfill = plan.mode === 'replace' ? `backfill ${plan.sync}` : `state reset ${plan.sync}`
    results.push({ ...result, sync: plan.sync, backfill: `npx tidemark ${backfill}` })
  }
  return results
}

function toDocument(target: WorkerTarget, database: string, results: readonly SyncRewrite[]): object {
  return {
    ...targetDocument(target),
    database,
    syncs: results.map(({ sync, rows, changed, refused, lost, backfill }) => ({
      sync,
      rows,
      changed,
      refused,
      lost: Object.entries(lost).map(([reason, count]) => ({ reason, rows: count })),
      ...(Object.keys(lost).length > 0 && { backfill }),
    })),
  }
}

function formatPlan(database: string, results: readonly SyncRewrite[]): string[] {
  return results.flatMap(({ sync, rows, changed, refused, lost, backfill }) => [
    `${toPrintable(database)}: ${formatNumber(changed)} of ${formatNumber(rows)} rows of ${toPrintable(sync)} change.`,
    ...(refused > 0 ? [`  ${formatNumber(refused)} rows are not accepted by the rules or the schema; they stay.`] : []),
    ...Object.entries(lost).map(([reason, count]) => `  ${formatNumber(count)} rows: ${toPrintable(reason)}.`),
    ...(Object.keys(lost).length > 0 ? [`  Only the source has them: ${backfill}`] : []),
    '  Earlier versions in the history and in the feed keep their values.',
  ])
}

function formatResult(database: string, { sync, changed, refused, isApplied }: SyncRewrite): string {
  const rewritten = `Rewrote ${formatNumber(changed)} rows of ${toPrintable(database)} (${toPrintable(sync)})`
  if (isApplied) return `${rewritten}; all of its rows follow the rules now.`
  return `${rewritten}; ${formatNumber(refused)} rows were not accepted and keep their form.`
}
