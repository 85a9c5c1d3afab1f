import { existsSync } from 'node:fs'
import { Command, Option } from 'commander'
import { isSyncError, SyncError, type JsonValue, type SelectResult } from '../../contract/index.ts'
import { openColumnCipher } from '../../registry/column-cipher.ts'
import { stringifyJson } from '../../values/json.ts'
import { locateStore } from '../../stores/drivers.ts'
import { runSelect } from '../../stores/run-select.ts'
import { systemClock } from '../../platform/clock.ts'
import { actorName } from '../kit/actor.ts'
import { parseCountOrZero, parseTime } from '../kit/arguments.ts'
import { maskSecrets } from '../../redaction/known-secrets.ts'
import type { VerbAction, Cli } from '../cli.ts'
import { formatNumber } from '../kit/counts.ts'
import { RawJson } from '../kit/json-document.ts'
import { openExistingStore } from '../kit/open-existing-store.ts'
import { toPrintable } from '../kit/printable.ts'
import { formatQueryCommand } from '../kit/query-command.ts'
import { revealRows } from '../kit/reveal-values.ts'
import { truncateToWidth, formatTable } from '../kit/table.ts'
import {
  printTarget,
  resolveStoreTarget,
  targetDocument,
  withStoreFlags,
  type Target,
  type TargetFlags,
} from '../kit/target.ts'

interface QueryFlags extends TargetFlags {
  readonly limit: number
  /** Milliseconds since the epoch. */
  readonly asOf?: number
  readonly reveal?: boolean
  readonly reason?: string
}

export function queryVerb(): Command {
  return withStoreFlags(new Command('query'))
    .summary('query the stored rows with SQL')
    .description('Runs one SELECT on the store over a read-only connection. Without a statement, lists the tables.')
    .argument('[sql]', 'the SELECT statement')
    .addOption(new Option('--limit <n>', 'rows to show; 0 for all').argParser(parseCountOrZero).default(100))
    .option('--as-of <time>', 'query the tables as of a time (2026-01-31T12:00:00Z)', parseTime)
    .option('--reveal', 'decrypt the values of encrypted columns')
    .option('--reason <text>', 'why, for the audit log; needed for --reveal')
}

export const query: VerbAction<[string | undefined, QueryFlags]> = async (cli, sql, flags) => {
  const target = resolveStoreTarget(cli, flags)
  printTarget(cli, target)
  const location = locateStore(target.settings.storeUrl, target.settings.folder)
  if (location.storage.kind === 'file' && !existsSync(location.storage.path)) {
    throw new SyncError(
      'STORE_UNAVAILABLE',
      `The store ${target.storeLabel} does not exist yet. Run \`tidemark run\` to create it.`,
    )
  }
  const { limit, asOf } = flags
  checkReveal(sql, flags)
  if (asOf !== undefined) await checkAsOf(target, sql, asOf)
  if (sql === undefined) return listDatabases(cli, target)

  const selected = await runSelect(location, sql, { limit, tenant: target.tenant, asOf }).catch((error: unknown) => {
    if (!isSyncError(error) || !/no such table|42P01/.test(error.message)) throw error
    throw new SyncError(error.code, `${error.message} List the tables with \`tidemark query\`.`, { cause: error })
  })
  const { columns, truncated } = selected
  const rows = flags.reveal === true ? await revealSelected(cli, target, selected.rows, flags) : selected.rows
  const { terminal } = cli
  if (terminal.json) {
    terminal.printDocument({
      ...targetDocument(target),
      ...(asOf !== undefined && { asOf: new Date(asOf).toISOString() }),
      columns: new RawJson(columns),
      rows: new RawJson(rows.map((row) => Object.fromEntries(columns.map((name, at) => [name, row[at]])))),
      truncated,
    })
    return
  }
  const room = terminal.isInteractive ? Math.max(12, Math.floor(terminal.columns / 3)) : 2_000
  const order = orderColumns(columns)
  const cell = (row: readonly unknown[], at: number): string => truncateToWidth(toPrintable(formatCell(row[at])), room)
  if (rows.length > 0)
    terminal.print(
      ...formatTable(
        order.map(({ name }) => terminal.colors.bold(toPrintable(name))),
        rows.map((row) => order.map(({ at }) => cell(row, at))),
      ),
    )
  terminal.remark(
    terminal.colors.dim(
      `${formatNumber(rows.length)} ${rows.length === 1 ? 'row' : 'rows'}${truncated ? ' shown, more exist; --limit 0 shows all' : ''}`,
    ),
  )
}

function checkReveal(sql: string | undefined, { reveal = false, reason = '' }: QueryFlags): void {
  if (!reveal && reason === '') return
  if (!reveal) throw new SyncError('ARGUMENT_INVALID', '--reason is only used with --reveal.')
  if (sql === undefined) throw new SyncError('ARGUMENT_INVALID', '--reveal needs a SELECT statement.')
  if (reason.trim() === '')
    throw new SyncError('ARGUMENT_INVALID', '--reveal needs a --reason, which is written to the audit log.')
}

/** The audit entry is written before a value is shown. */
async function revealSelected(
  cli: Cli,
  target: Target,
  rows: SelectResult['rows'],
  { reason = '' }: QueryFlags,
): Promise<SelectResult['rows']> {
  const store = await openExistingStore(target)
  try {
    if (store === null || (await store.columnKeys()).length === 0) {
      cli.terminal.remark('The tenant has no encrypted columns.')
      return rows
    }
    const by = { actor: actorName(), at: systemClock.now() }
    const { rows: shown, revealed, unreadable } = revealRows(rows, await openColumnCipher(store, by))
    const what =
      [...revealed].map(([column, values]) => `${column} (${formatNumber(values)})`).join(', ') || 'no values'
    await store.recordReveal({ ...by, reason: maskSecrets(`${what}: ${reason}`) })
    if (unreadable > 0)
      cli.terminal.remark(
        `${formatNumber(unreadable)} encrypted values cannot be decrypted with the keys of this tenant.`,
      )
    return shown
  } finally {
    await store?.close()
  }
}

async function checkAsOf(target: Target, sql: string | undefined, at: number): Promise<void> {
  if (sql === undefined) throw new SyncError('ARGUMENT_INVALID', '--as-of needs a SELECT statement.')
  if (at > systemClock.now())
    throw new SyncError(
      'ARGUMENT_INVALID',
      `--as-of ${new Date(at).toISOString()} is in the future. Choose a past time.`,
    )
  // Opening the store migrates its history tables to the current version.
  await (await openExistingStore(target))?.close()
}

interface ColumnRef {
  readonly name: string
  readonly at: number
}

/** Moves the bookkeeping columns of a table, except its key, to the end. */
function orderColumns(columns: readonly string[]): ColumnRef[] {
  const isBookkeeping = ({ name }: ColumnRef): boolean => name.startsWith('_') && name !== '_key'
  const all = columns.map((name, at) => ({ name, at }))
  return [...all.filter((column) => !isBookkeeping(column)), ...all.filter(isBookkeeping)]
}

async function listDatabases(cli: Cli, target: Target): Promise<void> {
  const { terminal } = cli
  const store = await openExistingStore(target)
  const databases = store === null ? [] : await store.databases()
  await store?.close()
  if (terminal.json) {
    terminal.printDocument({
      ...targetDocument(target),
      databases: databases.map(({ name, table, history, rows, columns }) => ({
        name,
        table,
        history,
        rows,
        columns: columns.map((column) => ({ ...column })),
      })),
    })
    return
  }
  const [first] = databases
  if (first === undefined) {
    terminal.print('The store has no tables yet. Run `tidemark run` to fill it.')
    return
  }
  terminal.print(
    ...formatTable(
      ['SELECT FROM', 'ROWS', 'COLUMNS'],
      databases.map(({ table, rows, columns }) => [
        table,
        formatNumber(rows),
        columns.map(({ name }) => toPrintable(name)).join(', '),
      ]),
    ),
  )
  terminal.remark('', `Query one: ${formatQueryCommand(cli, target, first.table)}`)
}

function formatCell(value: unknown): string {
  if (value === null || value === undefined) return '-'
  return typeof value === 'object' ? stringifyJson(value as JsonValue) : String(value)
}
