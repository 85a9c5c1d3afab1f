import { Command, Option } from 'commander'
import { parseInstantOrDate } from '../../values/instant.ts'
import { SyncError, type Difference, type Store, type VerificationReport } from '../../contract/index.ts'
import { holderName, isHolderGone } from '../../platform/lease-holder.ts'
import { explainDifferences, type Explanation } from '../../verify/explain-differences.ts'
import { GAP_TEXT, toOutcome } from '../../verify/describe-report.ts'
import type { VerificationScope } from '../../verify/compare-database.ts'
import { planVerification, type VerificationPlan } from '../../verify/verification-plan.ts'
import { verifyDatabase, type VerifyProgress, type VerifyResult } from '../../verify/verify-database.ts'
import { actorName } from '../kit/actor.ts'
import { parseCount, parseList } from '../kit/arguments.ts'
import type { Cli, VerbAction } from '../cli.ts'
import { formatNumber } from '../kit/counts.ts'
import { createRuntime } from '../kit/create-runtime.ts'
import { formatDuration } from '../kit/duration.ts'
import { exitCodeOf } from '../kit/exit-code.ts'
import { isoTime } from '../kit/json-document.ts'
import { toPrintable } from '../kit/printable.ts'
import { RefusedError } from '../kit/report-error.ts'
import { formatTable } from '../kit/table.ts'
import {
  loadWorkerTarget,
  openTargetStore,
  printTarget,
  targetDocument,
  withStoreFlags,
  type TargetFlags,
  type WorkerTarget,
} from '../kit/target.ts'

interface VerifyFlags extends TargetFlags {
  readonly sample?: number
  readonly full?: boolean
  readonly since?: string
  readonly repair?: boolean
  readonly yes?: boolean
  readonly allowDeletes?: boolean
  readonly budget?: number
  readonly ignore?: string[]
  readonly explain?: boolean
}

export function verifyVerb(): Command {
  return withStoreFlags(new Command('verify'))
    .summary('compare a database with its source')
    .description(
      'Compares the copy with its source, by the strongest means that the source has: digests of key ranges, a list of keys, or a listing of all records. Rows that differ are compared again after the lag of the source. Records a certificate. Writes no rows without --repair.',
    )
    .argument('<database>', 'the database')
    .addOption(
      new Option('--sample <n>', 'compare n rows at random').argParser(parseCount).conflicts(['full', 'since']),
    )
    .addOption(new Option('--full', 'compare every field of every record').conflicts(['since']))
    .option('--since <time>', 'compare records with a time from this on: 2026-01-31')
    .option('--budget <n>', 'send at most n requests', parseCount)
    .option('--ignore <fields>', 'fields whose differences do not count, separated by commas', parseList)
    .option('--repair', 'land the records of the source for the rows that differ')
    .option('--allow-deletes', 'let a repair delete more rows than the delete limit allows')
    .option('--yes', 'repair the rows instead of showing the plan')
    .option('--explain', 'show the likely causes and the settings that prevent them')
}

export const verify: VerbAction<[string, VerifyFlags]> = async (cli, database, flags) => {
  const signal = cli.listenForStop()
  const target = await loadWorkerTarget(cli, flags)
  const plan = planVerification(target.worker.plans(), database)
  const scope = toScope(flags)
  printTarget(cli, target)
  const store = await openTargetStore(target)
  try {
    await assertCopied(store, database)
    const result = await verifyDatabase(plan, {
      store,
      runtime: await createRuntime(cli, target),
      holder: `verify:${holderName()}`,
      isHolderGone,
      actor: actorName(),
      scope,
      ignore: [...(flags.ignore ?? []), ...declaredIgnore(target, database)],
      budget: flags.budget ?? null,
      repair: flags.repair === true && flags.yes === true,
      allowDeletes: flags.allowDeletes === true,
      signal,
      onProgress: createProgress(cli),
    })
    const { report } = result.verification
    const explanations = flags.explain === true ? await explain(store, plan, report.found) : []
    const document = { ...targetDocument(target), ...toDocument(result, flags.explain === true ? explanations : null) }
    if (!cli.terminal.json) printReport(cli, result, explanations)
    const open = report.found.filter(({ isRepaired }) => !isRepaired).length
    if (flags.repair === true && flags.yes !== true && report.error === null && open > 0)
      throw new RefusedError(
        'CONFIRMATION_NEEDED',
        `Nothing was changed. Add --yes to land the source's records for ${open === 1 ? 'this row' : `these ${formatNumber(open)} rows`} (tenant ${target.tenant}, ${target.storeLabel}).`,
        document,
      )
    if (cli.terminal.json) cli.terminal.printDocument(document)
    return exitCode(report)
  } finally {
    await store.close()
  }
}

/** 0 if no row is known to be wrong, or if all of them were repaired. */
function exitCode(report: VerificationReport): number {
  if (report.error !== null) return exitCodeOf(report.error.code)
  return toOutcome(report) === 'different' || toOutcome(report) === 'incomplete' ? 1 : 0
}

function toScope({ sample, full, since }: VerifyFlags): VerificationScope {
  if (sample !== undefined) return { kind: 'sample', rows: sample }
  if (since === undefined) return { kind: full === true ? 'full' : 'auto' }
  const time = parseInstantOrDate(since)
  if (time !== null) return { kind: 'since', time }
  throw new SyncError(
    'ARGUMENT_INVALID',
    `--since is ${JSON.stringify(since)}. Write a date such as 2026-01-31, or a time such as 2026-01-31T08:00:00Z.`,
  )
}

function declaredIgnore({ worker }: WorkerTarget, database: string): readonly string[] {
  return worker.verifications?.().find((declared) => declared.database === database)?.ignore ?? []
}

/** Before the first cycle every record is missing. */
async function assertCopied(store: Store, database: string): Promise<void> {
  if ((await store.databaseNames()).includes(database)) return
  throw new SyncError('ARGUMENT_INVALID', `${database} was never copied. Run \`tidemark run\` first.`)
}

function createProgress({ terminal }: Cli): (progress: VerifyProgress) => void {
  let shown = 0
  return (progress) => {
    if (terminal.json) return
    if (progress.kind === 'compared') {
      if (progress.rows - shown < PROGRESS_ROWS) return
      shown = progress.rows
      terminal.remark(terminal.colors.dim(`${formatNumber(progress.rows)} rows compared`))
    } else if (progress.kind === 'settling')
      terminal.remark(
        terminal.colors.dim(
          `${formatNumber(progress.rows)} ${progress.rows === 1 ? 'row differs' : 'rows differ'}; comparing again${progress.lagMs > 0 ? ` after ${formatDuration(progress.lagMs)}` : ''}`,
        ),
      )
    else terminal.remark(terminal.colors.dim(`repairing ${formatNumber(progress.rows)} rows`))
  }
}

const PROGRESS_ROWS = 100_000

/** Differences to print. */
const SHOWN_MAX = 20

async function explain(
  store: Store,
  { sources }: VerificationPlan,
  found: readonly Difference[],
): Promise<Explanation[]> {
  const [source] = sources
  if (source === undefined || found.length === 0) return []
  const { writer, syncs, lagMs } = source
  const listing = syncs.at(-1)?.sync ?? writer.sync
  return explainDifferences(found, {
    sync: writer.sync,
    listing,
    hasDelta: writer.mode === 'incremental',
    lagMs,
    cycles: await store.cycles({ worker: writer.worker, sync: writer.sync }, { limit: 1_000 }),
  })
}

function toDocument({ verification, requestsMin }: VerifyResult, explanations: readonly Explanation[] | null): object {
  const { id, database, actor, startedAt, report } = verification
  const { found, endedAt, ...counts } = report
  return {
    verification: id,
    database,
    actor,
    outcome: toOutcome(report),
    startedAt: isoTime(startedAt),
    endedAt: isoTime(endedAt),
    ...counts,
    ...(requestsMin !== null && { requestsMin }),
    found: found.map((difference) => ({ ...difference, digest: undefined, since: isoTime(difference.since) })),
    ...(explanations !== null && { explanations }),
  }
}

function printReport(
  { terminal }: Cli,
  { verification, requestsMin }: VerifyResult,
  explanations: readonly Explanation[],
): void {
  const { report, database, id } = verification
  const { colors } = terminal
  const outcome = toOutcome(report)
  const color =
    outcome === 'equal' || outcome === 'repaired' ? colors.green : outcome === 'unsettled' ? colors.yellow : colors.red
  const shown = report.found.slice(0, SHOWN_MAX)
  if (shown.length > 0)
    terminal.print(
      ...formatTable(
        ['KEY', 'DIFFERENCE', 'CAUSE', 'SOURCE TIME', 'COPY TIME', 'REPAIRED'],
        shown.map(({ key, kind, isSettled, cause, upstreamAt, copyUpstreamAt, isRepaired }) => [
          toPrintable(key, 60),
          isSettled ? kind : `${kind}?`,
          cause,
          upstreamAt ?? '-',
          copyUpstreamAt ?? '-',
          isRepaired ? 'yes' : 'no',
        ]),
      ),
      '',
    )
  if (report.found.length > shown.length)
    terminal.print(`… and ${formatNumber(report.found.length - shown.length)} more rows (--json lists up to 1,000)`, '')
  const { missing, stale, extra } = report.differences
  const minimum = requestsMin === null ? '' : ` (${formatNumber(requestsMin)} at least)`
  terminal.print(
    `${color(OUTCOME_TEXT[outcome])}  ${database}, verification ${id}`,
    `compared     ${formatNumber(report.rows)} rows by ${report.method}, ${formatNumber(report.requests)} requests${minimum}, in ${formatDuration(report.endedAt - verification.startedAt)}`,
    `differences  ${formatNumber(missing)} missing, ${formatNumber(stale)} stale, ${formatNumber(extra)} extra${report.unsettled > 0 ? `; ${formatNumber(report.unsettled)} unsettled, which may be changes since the last cycle` : ''}`,
    ...(report.repaired > 0 ? [`repaired     ${formatNumber(report.repaired)}`] : []),
    ...(report.ignored > 0 ? [`ignored      ${formatNumber(report.ignored)} rows differ only in ignored fields`] : []),
    ...(report.moved > 0
      ? [`moved        ${formatNumber(report.moved)} rows changed meanwhile and are equal now`]
      : []),
    ...(report.incomplete === null ? [] : [`incomplete   ${GAP_TEXT[report.incomplete]}`]),
    ...(report.error === null ? [] : [`error        ${report.error.code}: ${toPrintable(report.error.message)}`]),
  )
  for (const { cause, count, reason, setting } of explanations)
    terminal.print(
      '',
      `${colors.bold(cause)} (${formatNumber(count)} ${count === 1 ? 'row' : 'rows'}): ${toPrintable(reason)}.`,
      ...(setting === null ? [] : [`  set ${colors.bold(setting)}`]),
    )
}

const OUTCOME_TEXT = {
  equal: 'equal',
  different: 'different',
  unsettled: 'equal, except for possible changes since the last cycle',
  repaired: 'repaired',
  incomplete: 'incomplete',
  failed: 'failed',
} as const
