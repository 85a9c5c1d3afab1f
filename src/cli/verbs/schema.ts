import { Command, Option } from 'commander'
import { didYouMean } from '../../config/did-you-mean.ts'
import { describeValue } from '../../config/names.ts'
import { SyncError, type SchemaChangeState, type SchemaInfo, type Store } from '../../contract/index.ts'
import { systemClock } from '../../platform/clock.ts'
import { actorName } from '../kit/actor.ts'
import { parseCount } from '../kit/arguments.ts'
import type { VerbAction, Cli } from '../cli.ts'
import { formatNumber } from '../kit/counts.ts'
import { isoTime } from '../kit/json-document.ts'
import { toPrintable } from '../kit/printable.ts'
import { RefusedError } from '../kit/report-error.ts'
import { planSchema, type ChangeFlags, type SchemaPlan } from '../kit/schema-plan.ts'
import { formatTable } from '../kit/table.ts'
import { targetDocument, withStoreFlags, type Target, type TargetFlags } from '../kit/target.ts'
import { withExistingStore, withStore } from '../kit/with-store.ts'

interface PlanFlags extends TargetFlags, ChangeFlags {}

interface ApplyFlags extends PlanFlags {
  readonly yes?: boolean
  readonly lose?: boolean
  readonly reason?: string
  readonly batch: number
}

export function schemaVerbs(): Record<'show' | 'plan' | 'apply', Command> {
  const verb = (name: string): Command => withStoreFlags(new Command(name)).argument('<database>', 'the database')
  return {
    show: verb('show')
      .summary('the columns of a table, and what they do not show')
      .description('Shows the columns of a database, where their types come from, what waits in `_extra`, what of the table is yours, and the drift that is open.'),
    plan: withChangeOptions(verb('plan'))
      .summary('what a change of columns would do')
      .description('Shows what a change of columns would do: the statements, how many rows are rewritten, the locks, and what depends on the columns. Without flags it makes room for what waits in `_extra`.'),
    apply: withChangeOptions(verb('apply'))
      .summary('change columns while records land')
      .description('Carries a plan out in small steps, while records land. Cut off at any moment, it goes on when it is run again. Records, feed and history stay the same.')
      .option('--lose', 'also when indexes, views or constraints of yours are lost with a column')
      .option('--reason <text>', 'why, for the audit log')
      .option('--batch <n>', 'rows of one step', parseCount, BATCH_ROWS_DEFAULT)
      .option('--yes', 'do it; without, the plan is shown and nothing changes'),
  }
}

const BATCH_ROWS_DEFAULT = 1_000

function collectArgument(text: string, earlier: readonly string[] | undefined): string[] {
  return [...(earlier ?? []), text]
}

function withChangeOptions(command: Command): Command {
  const each = (flags: string, description: string): Option => new Option(flags, description).argParser(collectArgument)
  return command
    .addOption(each('--widen <member=type>', 'give its column a type that holds more, such as numeric, text or json'))
    .addOption(each('--narrow <member=type>', 'give its column another type; values that do not fit it go to `_extra`'))
    .addOption(each('--promote <member>', 'give a member that waits in `_extra` a column; `member=type` names its type'))
    .addOption(each('--rename <member=column>', 'give its column another name; the member keeps its own'))
    .addOption(each('--drop <column>', 'take the column away; its values move to `_extra`'))
}

export const schemaShow: VerbAction<[string, TargetFlags]> = async (cli, database, flags) => {
  await withExistingStore(cli, flags, async (target, store) => {
    const info = await readSchema(store, target, database)
    if (cli.terminal.json) return cli.terminal.printDocument({ ...targetDocument(target), ...schemaDocument(info) })
    cli.terminal.print(...formatSchema(info))
  })
}

export const schemaPlan: VerbAction<[string, PlanFlags]> = async (cli, database, flags) => {
  await withExistingStore(cli, flags, async (target, store) => {
    const info = await readSchema(store, target, database)
    const plan = planSchema(info, flags)
    if (cli.terminal.json) return cli.terminal.printDocument({ ...targetDocument(target), database, ...planDocument(plan), change: changeDocument(info.change) })
    if (info.change !== null) cli.terminal.remark(describeRunningChange(info.change))
    cli.terminal.print(...formatPlan(info, plan))
  })
}

export const schemaApply: VerbAction<[string, ApplyFlags]> = async (cli, database, flags) => {
  const { terminal } = cli
  return withStore(cli, flags, async (target, store) => {
    const info = await readSchema(store, target, database)
    const plan = planSchema(info, flags)
    const isAsked = Object.keys(CHANGE_FLAG_NAMES).some((name) => (flags[name as keyof ChangeFlags]?.length ?? 0) > 0)
    const goesOn = info.change !== null && !isAsked
    if (flags.yes !== true) {
      if (!terminal.json) terminal.remark(...(goesOn ? [describeRunningChange(info.change!)] : formatPlan(info, plan)))
      if (goesOn || plan.changes.length > 0) throw new RefusedError('CONFIRMATION_NEEDED', `Nothing was changed: the columns of ${database} (${target.storeLabel}) are changed only with --yes.`, planDocument(plan))
    }
    if (!goesOn && plan.changes.length > 0) {
      if (plan.dependentsLost.length > 0 && flags.lose !== true) throw new RefusedError('SCHEMA_CHANGE_INVALID', `Nothing was changed: ${plan.dependentsLost.join(', ')} would be lost. --lose gives them up.`, planDocument(plan))
      await store.beginSchemaChange(database, { changes: plan.changes, actor: actorName(), reason: flags.reason ?? '', at: systemClock.now(), allowDependentLoss: flags.lose === true })
    }
    const ended = goesOn || plan.changes.length > 0 ? await applyChange(cli, store, database, flags.batch) : null
    if (terminal.json) terminal.printDocument({ ...targetDocument(target), database, ...planDocument(plan), applied: changeDocument(ended?.change ?? null), isDone: ended?.isDone ?? true })
    else if (ended === null) terminal.print('Nothing has to be changed.')
    else if (ended.isDone) terminal.print(`The columns of ${database} are changed: ${formatNumber(ended.change.scanned)} rows and versions were looked at, ${formatNumber(ended.change.rewritten)} rewritten.`)
    else terminal.print(describeRunningChange(ended.change))
    return ended?.isDone === false ? EXIT_INTERRUPTED : 0
  })
}

const CHANGE_FLAG_NAMES: Required<Record<keyof ChangeFlags, true>> = { widen: true, narrow: true, promote: true, rename: true, drop: true }
const EXIT_INTERRUPTED = 130
const LOCK_RETRY_DELAY_MS = 500
const LOCK_TRIES_MAX = 600

/** Step by step, until it is done or somebody stops it between two steps. */
async function applyChange(cli: Cli, store: Store, database: string, rowsMax: number): Promise<{ change: SchemaChangeState; isDone: boolean }> {
  const stopping = cli.listenForStop('The change stops after this step; the same command goes on with it.')
  let last: SchemaChangeState | null = null
  for (let locked = 0; ;) {
    const step = await store.advanceSchemaChange(database, { at: systemClock.now(), rowsMax })
    // Another process has taken the last step.
    if (step === null) return { change: last!, isDone: true }
    last = step.change
    if (step.isDone || stopping.aborted) return { change: step.change, isDone: step.isDone }
    if (!step.isLocked) {
      locked = 0
      continue
    }
    if (locked++ === 0) cli.terminal.remark('The table is held by a query; trying again until it ends.')
    if (locked > LOCK_TRIES_MAX) throw new SyncError('STORE_BUSY', `The table of ${database} is held by a query for too long. The same command goes on with the change.`)
    await systemClock.sleep(LOCK_RETRY_DELAY_MS, stopping).catch(() => {})
  }
}

async function readSchema(store: Store | null, { storeLabel: where, tenant }: Target, database: string): Promise<SchemaInfo> {
  const info = await store?.schema(database) ?? null
  if (info !== null) return info
  throw new SyncError('ARGUMENT_INVALID', `${where} has no database ${describeValue(database)} for tenant ${tenant}.${didYouMean(database, await store?.databaseNames() ?? [])}`)
}

// ── for programs ─────────────────────────────────────────────────────────────────────────────────────────────────────

function schemaDocument({ change, drift, ...info }: SchemaInfo): object {
  const { types: _, locks: _l, ...rest } = info
  return {
    ...rest, waiting: info.waiting.map(({ types, ...own }) => ({ ...own, types: Object.entries(types).map(([type, rows]) => ({ type, rows })) })),
    drift: drift.map(({ member, kind, column, type, found, sequence, at }) => ({ member, kind, column, type, found, sequence, at: isoTime(at) })), change: changeDocument(change),
  }
}

function planDocument({ actions, statements, rowsMax, locks, dependentsKept: kept, dependentsLost: lost }: SchemaPlan): object {
  return { actions, statements, rowsMax, locks, kept, lost }
}

function changeDocument(change: SchemaChangeState | null): object | null {
  if (change === null) return null
  const { phase, scanned, rewritten, actor, reason, startedAt } = change
  return { phase, scanned, rewritten, actor, reason, startedAt: isoTime(startedAt) }
}

// ── for people ───────────────────────────────────────────────────────────────────────────────────────────────────────

function formatSchema(info: SchemaInfo): string[] {
  const waitingOf = (member: string): string => {
    const waiting = info.waiting.find((item) => item.member === member)
    return waiting === undefined ? '-' : `${formatNumber(waiting.rows)} (${Object.entries(waiting.types).map(([type, rows]) => `${type} ×${formatNumber(rows)}`).join(', ')})`
  }
  const members = new Set(info.columns.map(({ member }) => member))
  const without = info.waiting.filter(({ member }) => !members.has(member)).map(({ member }) => [toPrintable(member), '-', '-', '-', waitingOf(member)])
  return [
    `${info.table}: ${info.isRowsExact ? '' : 'about '}${formatNumber(info.rows)} rows${describeDeletedRows(info)}, ${formatNumber(info.versions)} earlier versions in ${info.history}`,
    ...formatTable(['MEMBER', 'COLUMN', 'TYPE', 'FROM', 'IN _extra'], [
      ...info.columns.map(({ member, column, sqlType, origin, isHeld }) => [toPrintable(member), toPrintable(column ?? '-'), sqlType ?? '-', isHeld ? 'kept in _extra' : column === null ? '-' : origin, waitingOf(member)]), ...without,
    ]),
    ...(info.isWaitingExact ? [] : [`Only ${formatNumber(info.waitingScanned)} rows with an _extra were counted; there are more.`]),
    ...(info.ownColumns.length === 0 ? [] : [`your columns: ${toPrintable(info.ownColumns.join(', '))}`]),
    ...(info.ownIndexes.length === 0 ? [] : [`your indexes: ${toPrintable(info.ownIndexes.join(', '))}`]),
    ...info.drift.map(({ member, kind, type, found, at }) => `• ${toPrintable(member)}: ${DRIFT_TEXT[kind]}${kind === 'conflict' ? ` (${found} in ${type})` : ''}, since ${isoTime(at)}`),
    ...(info.change === null ? [] : [describeRunningChange(info.change)]),
  ]
}

function describeDeletedRows({ deletes, deletedRows = 0 }: SchemaInfo): string {
  if (deletes === undefined || (deletes === 'hard' && deletedRows === 0)) return ''
  return ` (${formatNumber(deletedRows)} deleted, with _deleted_at${deletes === 'hard' ? '; deletes are hard now, and these rows are being removed' : ''})`
}

const DRIFT_TEXT = { conflict: 'values that its column cannot hold', frozen: 'new, and the columns are frozen', taken: 'a column of yours has its name' } as const

function describeRunningChange({ phase, scanned, actor, startedAt }: SchemaChangeState): string {
  return `A change is under way since ${isoTime(startedAt)}, by ${toPrintable(actor)}: ${phase}, ${formatNumber(scanned)} rows and versions looked at. \`tidemark schema apply <database> --yes\` goes on with it.`
}

function formatPlan({ database }: SchemaInfo, plan: SchemaPlan): string[] {
  if (plan.changes.length === 0) return ['Nothing has to be changed.']
  return [
    `The plan for ${database}:`,
    ...plan.actions.map(({ member, action, column, from, to }) => `  ${action.padEnd(8)} ${toPrintable(member)}${column !== null && column !== member ? ` (column ${toPrintable(column)})` : ''}${from === to ? '' : `: ${from ?? '_extra'} → ${to ?? '_extra'}`}`),
    ...plan.statements.map((statement) => `    ${toPrintable(statement)}`),
    `  rewrites at most ${formatNumber(plan.rowsMax)} rows and versions`,
    ...plan.locks.map((lock) => `  lock     ${lock}`),
    ...plan.dependentsKept.map((name) => `  keeps    ${toPrintable(name)}`),
    ...plan.dependentsLost.map((name) => `  loses    ${toPrintable(name)}`),
  ]
}
