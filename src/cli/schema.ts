import { Command, Option } from 'commander'
import { didYouMean } from '../config/closest.ts'
import { shown } from '../config/names.ts'
import { SyncError, type SchemaChangeState, type SchemaInfo, type Store } from '../contract/index.ts'
import { systemClock } from '../platform/clock.ts'
import { actorName } from './actor.ts'
import { countArgument } from './arguments.ts'
import type { Act, Cli } from './cli.ts'
import { grouped } from './counts.ts'
import { isoTime } from './json-document.ts'
import { printable } from './printable.ts'
import { RefusedError } from './report-error.ts'
import { planSchema, type ChangeFlags, type SchemaPlan } from './schema-plan.ts'
import { table } from './table.ts'
import { targetDocument, withStoreFlags, type Target, type TargetFlags } from './target.ts'
import { reading, writing } from './with-store.ts'

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
    plan: changing(verb('plan'))
      .summary('what a change of columns would do')
      .description('Shows what a change of columns would do: the statements, how many rows are rewritten, the locks, and what depends on the columns. Without flags it makes room for what waits in `_extra`.'),
    apply: changing(verb('apply'))
      .summary('change columns while records land')
      .description('Carries a plan out in small steps, while records land. Cut off at any moment, it goes on when it is run again. Records, feed and history stay the same.')
      .option('--lose', 'also when indexes, views or constraints of yours are lost with a column')
      .option('--reason <text>', 'why, for the audit log')
      .option('--batch <n>', 'rows of one step', countArgument, BATCH)
      .option('--yes', 'do it; without, the plan is shown and nothing changes'),
  }
}

const BATCH = 1_000

function addArgument(text: string, earlier: readonly string[] | undefined): string[] {
  return [...(earlier ?? []), text]
}

function changing(command: Command): Command {
  const each = (flags: string, description: string): Option => new Option(flags, description).argParser(addArgument)
  return command
    .addOption(each('--widen <member=type>', 'give its column a type that holds more, such as numeric, text or json'))
    .addOption(each('--narrow <member=type>', 'give its column another type; values that do not fit it go to `_extra`'))
    .addOption(each('--promote <member>', 'give a member that waits in `_extra` a column; `member=type` names its type'))
    .addOption(each('--rename <member=column>', 'give its column another name; the member keeps its own'))
    .addOption(each('--drop <column>', 'take the column away; its values move to `_extra`'))
}

export const schemaShow: Act<[string, TargetFlags]> = async (cli, database, flags) => {
  await reading(cli, flags, async (target, store) => {
    const info = await schemaOf(store, target, database)
    if (cli.terminal.json) return cli.terminal.document({ ...targetDocument(target), ...infoDocument(info) })
    cli.terminal.print(...infoLines(info))
  })
}

export const schemaPlan: Act<[string, PlanFlags]> = async (cli, database, flags) => {
  await reading(cli, flags, async (target, store) => {
    const info = await schemaOf(store, target, database)
    const plan = planSchema(info, flags)
    if (cli.terminal.json) return cli.terminal.document({ ...targetDocument(target), database, ...planDocument(plan), change: changeDocument(info.change) })
    if (info.change !== null) cli.terminal.remark(underWay(info.change))
    cli.terminal.print(...planLines(info, plan))
  })
}

export const schemaApply: Act<[string, ApplyFlags]> = async (cli, database, flags) => {
  const { terminal } = cli
  return writing(cli, flags, async (target, store) => {
    const info = await schemaOf(store, target, database)
    const plan = planSchema(info, flags)
    const isAsked = Object.keys(CHANGE_FLAGS).some((name) => (flags[name as keyof ChangeFlags]?.length ?? 0) > 0)
    const goesOn = info.change !== null && !isAsked
    if (flags.yes !== true) {
      if (!terminal.json) terminal.remark(...(goesOn ? [underWay(info.change!)] : planLines(info, plan)))
      if (goesOn || plan.changes.length > 0) throw new RefusedError('CONFIRMATION_NEEDED', `Nothing was changed: the columns of ${database} (${target.store}) are changed only with --yes.`, planDocument(plan))
    }
    if (!goesOn && plan.changes.length > 0) {
      if (plan.lost.length > 0 && flags.lose !== true) throw new RefusedError('SCHEMA_CHANGE_INVALID', `Nothing was changed: ${plan.lost.join(', ')} would be lost. --lose gives them up.`, planDocument(plan))
      await store.beginSchemaChange(database, { changes: plan.changes, actor: actorName(), reason: flags.reason ?? '', at: systemClock.now(), lose: flags.lose === true })
    }
    const ended = goesOn || plan.changes.length > 0 ? await carryOut(cli, store, database, flags.batch) : null
    if (terminal.json) terminal.document({ ...targetDocument(target), database, ...planDocument(plan), applied: changeDocument(ended?.change ?? null), isDone: ended?.isDone ?? true })
    else if (ended === null) terminal.print('Nothing has to be changed.')
    else if (ended.isDone) terminal.print(`The columns of ${database} are changed: ${grouped(ended.change.scanned)} rows and versions were looked at, ${grouped(ended.change.rewritten)} rewritten.`)
    else terminal.print(underWay(ended.change))
    return ended?.isDone === false ? INTERRUPTED : 0
  })
}

const CHANGE_FLAGS: Required<Record<keyof ChangeFlags, true>> = { widen: true, narrow: true, promote: true, rename: true, drop: true }
const INTERRUPTED = 130
const LOCK_PAUSE_MS = 500
const LOCK_TRIES_MAX = 600

/** Step by step, until it is done or somebody stops it between two steps. */
async function carryOut(cli: Cli, store: Store, database: string, rowsMax: number): Promise<{ change: SchemaChangeState; isDone: boolean }> {
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
    await systemClock.sleep(LOCK_PAUSE_MS, stopping).catch(() => {})
  }
}

async function schemaOf(store: Store | null, { store: where, tenant }: Target, database: string): Promise<SchemaInfo> {
  const info = await store?.schema(database) ?? null
  if (info !== null) return info
  throw new SyncError('ARGUMENT_INVALID', `${where} has no database ${shown(database)} for tenant ${tenant}.${didYouMean(database, await store?.databaseNames() ?? [])}`)
}

// ── for programs ─────────────────────────────────────────────────────────────────────────────────────────────────────

function infoDocument({ change, drift, ...info }: SchemaInfo): object {
  const { types: _, locks: _l, ...rest } = info
  return {
    ...rest, waiting: info.waiting.map(({ types, ...own }) => ({ ...own, types: Object.entries(types).map(([type, rows]) => ({ type, rows })) })),
    drift: drift.map(({ member, kind, column, type, found, sequence, at }) => ({ member, kind, column, type, found, sequence, at: isoTime(at) })), change: changeDocument(change),
  }
}

function planDocument({ actions, statements, rowsMax, locks, kept, lost }: SchemaPlan): object {
  return { actions, statements, rowsMax, locks, kept, lost }
}

function changeDocument(change: SchemaChangeState | null): object | null {
  if (change === null) return null
  const { phase, scanned, rewritten, actor, reason, startedAt } = change
  return { phase, scanned, rewritten, actor, reason, startedAt: isoTime(startedAt) }
}

// ── for people ───────────────────────────────────────────────────────────────────────────────────────────────────────

function infoLines(info: SchemaInfo): string[] {
  const waitingOf = (member: string): string => {
    const waiting = info.waiting.find((item) => item.member === member)
    return waiting === undefined ? '-' : `${grouped(waiting.rows)} (${Object.entries(waiting.types).map(([type, rows]) => `${type} ×${grouped(rows)}`).join(', ')})`
  }
  const members = new Set(info.columns.map(({ member }) => member))
  const without = info.waiting.filter(({ member }) => !members.has(member)).map(({ member }) => [printable(member), '-', '-', '-', waitingOf(member)])
  return [
    `${info.table}: ${info.isRowsExact ? '' : 'about '}${grouped(info.rows)} rows${deletedWords(info)}, ${grouped(info.versions)} earlier versions in ${info.history}`,
    ...table(['MEMBER', 'COLUMN', 'TYPE', 'FROM', 'IN _extra'], [
      ...info.columns.map(({ member, column, sqlType, origin, isHeld }) => [printable(member), printable(column ?? '-'), sqlType ?? '-', isHeld ? 'kept in _extra' : column === null ? '-' : origin, waitingOf(member)]), ...without,
    ]),
    ...(info.isWaitingExact ? [] : [`Only ${grouped(info.waitingScanned)} rows with an _extra were counted; there are more.`]),
    ...(info.ownColumns.length === 0 ? [] : [`your columns: ${printable(info.ownColumns.join(', '))}`]),
    ...(info.ownIndexes.length === 0 ? [] : [`your indexes: ${printable(info.ownIndexes.join(', '))}`]),
    ...info.drift.map(({ member, kind, type, found, at }) => `• ${printable(member)}: ${DRIFT_WORDS[kind]}${kind === 'conflict' ? ` (${found} in ${type})` : ''}, since ${isoTime(at)}`),
    ...(info.change === null ? [] : [underWay(info.change)]),
  ]
}

function deletedWords({ deletes, deletedRows = 0 }: SchemaInfo): string {
  if (deletes === undefined || (deletes === 'hard' && deletedRows === 0)) return ''
  return ` (${grouped(deletedRows)} deleted, with _deleted_at${deletes === 'hard' ? '; deletes are hard now, and these rows are being removed' : ''})`
}

const DRIFT_WORDS = { conflict: 'values that its column cannot hold', frozen: 'new, and the columns are frozen', taken: 'a column of yours has its name' } as const

function underWay({ phase, scanned, actor, startedAt }: SchemaChangeState): string {
  return `A change is under way since ${isoTime(startedAt)}, by ${printable(actor)}: ${phase}, ${grouped(scanned)} rows and versions looked at. \`tidemark schema apply <database> --yes\` goes on with it.`
}

function planLines({ database }: SchemaInfo, plan: SchemaPlan): string[] {
  if (plan.changes.length === 0) return ['Nothing has to be changed.']
  return [
    `The plan for ${database}:`,
    ...plan.actions.map(({ member, action, column, from, to }) => `  ${action.padEnd(8)} ${printable(member)}${column !== null && column !== member ? ` (column ${printable(column)})` : ''}${from === to ? '' : `: ${from ?? '_extra'} → ${to ?? '_extra'}`}`),
    ...plan.statements.map((statement) => `    ${printable(statement)}`),
    `  rewrites at most ${grouped(plan.rowsMax)} rows and versions`,
    ...plan.locks.map((lock) => `  lock     ${lock}`),
    ...plan.kept.map((name) => `  keeps    ${printable(name)}`),
    ...plan.lost.map((name) => `  loses    ${printable(name)}`),
  ]
}
