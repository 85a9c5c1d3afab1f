import { Command, Option } from 'commander'
import { didYouMean } from '../../values/did-you-mean.ts'
import { describeValue } from '../../config/names.ts'
import { SyncError, type SchemaChangeState, type SchemaInfo, type Store } from '../../contract/index.ts'
import { systemClock } from '../../platform/clock.ts'
import { required } from '../../values/required.ts'
import { actorName } from '../kit/actor.ts'
import { parseCount } from '../kit/arguments.ts'
import { maskSecrets } from '../../redaction/known-secrets.ts'
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
      .summary('show the columns of a table and its schema drift')
      .description(
        'Shows the columns of a database, the origin of their types, the fields stored in `_extra`, your own columns and indexes, and open schema drift.',
      ),
    plan: withChangeOptions(verb('plan'))
      .summary('show what a column change would do')
      .description(
        'Shows what a column change would do: the statements, the number of rewritten rows, the locks and the dependent objects. Without options, it plans columns for the fields in `_extra`.',
      ),
    apply: withChangeOptions(verb('apply'))
      .summary('change columns while syncs keep running')
      .description(
        'Applies a column change in small batches while syncs keep running. After an interruption, the same command continues it. Records, feed and history do not change.',
      )
      .option('--lose', 'allow the loss of your indexes, views and constraints')
      .option('--reason <text>', 'the reason, for the audit log')
      .option('--batch <n>', 'rows per batch', parseCount, BATCH_ROWS_DEFAULT)
      .option('--yes', 'apply the change instead of showing the plan'),
  }
}

const BATCH_ROWS_DEFAULT = 1_000

function collectArgument(text: string, earlier: readonly string[] | undefined): string[] {
  return [...(earlier ?? []), text]
}

function withChangeOptions(command: Command): Command {
  const each = (flags: string, description: string): Option => new Option(flags, description).argParser(collectArgument)
  return command
    .addOption(each('--widen <member=type>', 'change a column to a wider type: numeric, text, json'))
    .addOption(each('--narrow <member=type>', 'change a type; values that do not fit move to `_extra`'))
    .addOption(each('--promote <member>', 'move a field from `_extra` to a column; or member=type'))
    .addOption(each('--rename <member=column>', 'rename a column; the field in the record keeps its name'))
    .addOption(each('--drop <column>', 'drop a column; its values move to `_extra`'))
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
    if (cli.terminal.json)
      return cli.terminal.printDocument({
        ...targetDocument(target),
        database,
        ...planDocument(plan),
        change: changeDocument(info.change),
      })
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
    const running = isAsked ? null : info.change
    const hasWork = running !== null || plan.changes.length > 0
    if (flags.yes !== true) {
      if (!terminal.json)
        terminal.remark(...(running === null ? formatPlan(info, plan) : [describeRunningChange(running)]))
      if (hasWork)
        throw new RefusedError(
          'CONFIRMATION_NEEDED',
          `Nothing was changed. Add --yes to change the columns of ${database} (${target.storeLabel}).`,
          planDocument(plan),
        )
    }
    if (running === null && hasWork) {
      if (plan.dependentsLost.length > 0 && flags.lose !== true)
        throw new RefusedError(
          'SCHEMA_CHANGE_INVALID',
          `Nothing was changed: ${plan.dependentsLost.join(', ')} would be dropped. Add --lose to allow it.`,
          planDocument(plan),
        )
      await store.beginSchemaChange(database, {
        changes: plan.changes,
        actor: actorName(),
        reason: maskSecrets(flags.reason ?? ''),
        at: systemClock.now(),
        allowDependentLoss: flags.lose === true,
      })
    }
    const ended = hasWork ? await applyChange(cli, store, database, flags.batch) : null
    if (terminal.json)
      terminal.printDocument({
        ...targetDocument(target),
        database,
        ...planDocument(plan),
        applied: changeDocument(ended?.change ?? null),
        isDone: ended?.isDone ?? true,
      })
    else if (ended === null) terminal.print('No column changes are needed.')
    else if (ended.isDone)
      terminal.print(
        `Changed the columns of ${database}: ${formatNumber(ended.change.scanned)} rows and versions scanned, ${formatNumber(ended.change.rewritten)} rewritten.`,
      )
    else terminal.print(describeRunningChange(ended.change))
    return ended?.isDone === false ? EXIT_INTERRUPTED : 0
  })
}

const CHANGE_FLAG_NAMES: Required<Record<keyof ChangeFlags, true>> = {
  widen: true,
  narrow: true,
  promote: true,
  rename: true,
  drop: true,
}
const EXIT_INTERRUPTED = 130
const LOCK_RETRY_DELAY_MS = 500
const LOCK_TRIES_MAX = 600

/** Applies the change in batches until it is done or a stop signal arrives between two batches. */
async function applyChange(
  cli: Cli,
  store: Store,
  database: string,
  rowsMax: number,
): Promise<{ change: SchemaChangeState; isDone: boolean }> {
  const stopping = cli.listenForStop('Stopping after this batch. Run the same command to continue.')
  let last: SchemaChangeState | null = null
  for (let locked = 0; ;) {
    const step = await store.advanceSchemaChange(database, { at: systemClock.now(), rowsMax })
    // Another process has completed the change.
    if (step === null) return { change: required(last, 'the running schema change'), isDone: true }
    last = step.change
    if (step.isDone || stopping.aborted) return { change: step.change, isDone: step.isDone }
    if (!step.isLocked) {
      locked = 0
      continue
    }
    if (locked++ === 0) cli.terminal.remark('A query holds a lock on the table; retrying until it ends.')
    if (locked > LOCK_TRIES_MAX)
      throw new SyncError(
        'STORE_BUSY',
        `A query has held a lock on the table of ${database} for too long. End the query and run the same command to continue.`,
      )
    await systemClock.sleep(LOCK_RETRY_DELAY_MS, stopping).catch(() => {})
  }
}

async function readSchema(store: Store | null, { storeLabel, tenant }: Target, database: string): Promise<SchemaInfo> {
  const info = (await store?.schema(database)) ?? null
  if (info !== null) return info
  throw new SyncError(
    'ARGUMENT_INVALID',
    `${storeLabel} has no database ${describeValue(database)} for tenant ${tenant}.${didYouMean(database, (await store?.databaseNames()) ?? [])}`,
  )
}

// ── JSON output ─────────────────────────────────────────────────────────────────────────────────────────────────────

function schemaDocument({ change, drift, ...info }: SchemaInfo): object {
  const { types: _, locks: _l, ...rest } = info
  return {
    ...rest,
    waiting: info.waiting.map(({ types, ...own }) => ({
      ...own,
      types: Object.entries(types).map(([type, rows]) => ({ type, rows })),
    })),
    drift: drift.map(({ member, kind, column, type, found, sequence, at }) => ({
      member,
      kind,
      column,
      type,
      found,
      sequence,
      at: isoTime(at),
    })),
    change: changeDocument(change),
  }
}

function planDocument({
  actions,
  statements,
  rowsMax,
  locks,
  dependentsKept: kept,
  dependentsLost: lost,
}: SchemaPlan): object {
  return { actions, statements, rowsMax, locks, kept, lost }
}

function changeDocument(change: SchemaChangeState | null): object | null {
  if (change === null) return null
  const { phase, scanned, rewritten, actor, reason, startedAt } = change
  return { phase, scanned, rewritten, actor, reason, startedAt: isoTime(startedAt) }
}

// ── Text output ───────────────────────────────────────────────────────────────────────────────────────────────────────

function formatSchema(info: SchemaInfo): string[] {
  const waitingOf = (member: string): string => {
    const waiting = info.waiting.find((item) => item.member === member)
    return waiting === undefined
      ? '-'
      : `${formatNumber(waiting.rows)} (${Object.entries(waiting.types)
          .map(([type, rows]) => `${type} ×${formatNumber(rows)}`)
          .join(', ')})`
  }
  const members = new Set(info.columns.map(({ member }) => member))
  const without = info.waiting
    .filter(({ member }) => !members.has(member))
    .map(({ member }) => [toPrintable(member), '-', '-', '-', waitingOf(member)])
  return [
    `${info.table}: ${info.isRowsExact ? '' : 'about '}${formatNumber(info.rows)} rows${describeDeletedRows(info)}, ${formatNumber(info.versions)} earlier versions in ${info.history}`,
    ...formatTable(
      ['FIELD', 'COLUMN', 'TYPE', 'ORIGIN', 'IN _extra'],
      [
        ...info.columns.map(({ member, column, sqlType, origin, isHeld }) => [
          toPrintable(member),
          toPrintable(column ?? '-'),
          sqlType ?? '-',
          isHeld ? 'kept in _extra' : column === null ? '-' : origin,
          waitingOf(member),
        ]),
        ...without,
      ],
    ),
    ...(info.isWaitingExact
      ? []
      : [`Counted only the first ${formatNumber(info.waitingScanned)} rows with _extra values.`]),
    ...(info.ownColumns.length === 0 ? [] : [`your columns: ${toPrintable(info.ownColumns.join(', '))}`]),
    ...(info.ownIndexes.length === 0 ? [] : [`your indexes: ${toPrintable(info.ownIndexes.join(', '))}`]),
    ...info.drift.map(
      ({ member, kind, type, found, at }) =>
        `• ${toPrintable(member)}: ${DRIFT_TEXT[kind]}${kind === 'conflict' ? ` (${found} in ${type})` : ''}, since ${isoTime(at)}`,
    ),
    ...(info.change === null ? [] : [describeRunningChange(info.change)]),
  ]
}

function describeDeletedRows({ deletes, deletedRows = 0 }: SchemaInfo): string {
  if (deletes === undefined || (deletes === 'hard' && deletedRows === 0)) return ''
  return ` (${formatNumber(deletedRows)} deleted, with _deleted_at${deletes === 'hard' ? '; deletes are hard now, and these rows are being purged' : ''})`
}

const DRIFT_TEXT = {
  conflict: 'values do not fit the column type',
  frozen: 'new field, but the columns are frozen',
  taken: 'one of your columns has the same name',
} as const

function describeRunningChange({ phase, scanned, actor, startedAt }: SchemaChangeState): string {
  return `A column change by ${toPrintable(actor)} is running since ${isoTime(startedAt)}: ${phase}, ${formatNumber(scanned)} rows and versions scanned. Continue it with \`tidemark schema apply <database> --yes\`.`
}

function formatPlan({ database }: SchemaInfo, plan: SchemaPlan): string[] {
  if (plan.changes.length === 0) return ['No column changes are needed.']
  return [
    `Plan for ${database}:`,
    ...plan.actions.map(
      ({ member, action, column, from, to }) =>
        `  ${action.padEnd(8)} ${toPrintable(member)}${column !== null && column !== member ? ` (column ${toPrintable(column)})` : ''}${from === to ? '' : `: ${from ?? '_extra'} → ${to ?? '_extra'}`}`,
    ),
    ...plan.statements.map((statement) => `    ${toPrintable(statement)}`),
    `  rewrites at most ${formatNumber(plan.rowsMax)} rows and versions`,
    ...plan.locks.map((lock) => `  lock     ${lock}`),
    ...plan.dependentsKept.map((name) => `  keeps    ${toPrintable(name)}`),
    ...plan.dependentsLost.map((name) => `  loses    ${toPrintable(name)}`),
  ]
}
