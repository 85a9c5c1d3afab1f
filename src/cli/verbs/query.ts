import { existsSync } from 'node:fs'
import { Command, Option } from 'commander'
import { isSyncError, SyncError, type JsonValue } from '../../contract/index.ts'
import { stringifyJson } from '../../values/json.ts'
import { locateStore } from '../../stores/drivers.ts'
import { systemClock } from '../../platform/clock.ts'
import { parseCountOrZero, parseTime } from '../kit/arguments.ts'
import type { VerbAction, Cli } from '../cli.ts'
import { formatNumber } from '../kit/counts.ts'
import { RawJson } from '../kit/json-document.ts'
import { openExistingStore } from '../kit/open-existing-store.ts'
import { toPrintable } from '../kit/printable.ts'
import { formatQueryCommand } from '../kit/query-command.ts'
import { runSelect } from '../kit/run-select.ts'
import { truncateToWidth, formatTable } from '../kit/table.ts'
import { printTarget, resolveStoreTarget, targetDocument, withStoreFlags, type Target, type TargetFlags } from '../kit/target.ts'

interface QueryFlags extends TargetFlags {
  readonly limit: number
  /** In ms. */
  readonly asOf?: number
}

export function queryVerb(): Command {
  return withStoreFlags(new Command('query'))
    .summary('look at what has landed, with SQL')
    .description('Runs one SELECT on the store, on a connection that cannot write. Without one, lists what there is to select from.')
    .argument('[sql]', 'the statement')
    .addOption(new Option('--limit <n>', 'how many rows to show; 0 for all').argParser(parseCountOrZero).default(100))
    .option('--as-of <time>', 'show the tables as they were, such as 2026-01-31T12:00:00Z', parseTime)
}

export const query: VerbAction<[string | undefined, QueryFlags]> = async (cli, sql, flags) => {
  const target = resolveStoreTarget(cli, flags)
  printTarget(cli, target)
  const location = locateStore(target.settings.storeUrl, target.settings.folder)
  if (location.storage.kind === 'file' && !existsSync(location.storage.path)) {
    throw new SyncError('STORE_UNAVAILABLE', `There is no store at ${target.storeLabel} yet. \`tidemark run\` makes it.`)
  }
  const { limit, asOf } = flags
  if (asOf !== undefined) await checkAsOf(target, sql, asOf)
  if (sql === undefined) return listDatabases(cli, target)

  const { columns, rows, truncated } = await runSelect(location, sql, { limit, tenant: target.tenant, asOf }).catch((error: unknown) => {
    if (!isSyncError(error) || !/no such table|42P01/.test(error.message)) throw error
    throw new SyncError(error.code, `${error.message} \`tidemark query\` alone lists what there is.`, { cause: error })
  })
  const { terminal } = cli
  if (terminal.json) {
    terminal.printDocument({ ...targetDocument(target), ...(asOf !== undefined && { asOf: new Date(asOf).toISOString() }), columns: new RawJson(columns), rows: new RawJson(rows.map((row) => Object.fromEntries(columns.map((name, at) => [name, row[at]])))), truncated })
    return
  }
  const room = terminal.isInteractive ? Math.max(12, Math.floor(terminal.columns / 3)) : 2_000
  const order = orderColumns(columns)
  const cell = (row: readonly unknown[], at: number): string => truncateToWidth(toPrintable(formatCell(row[at])), room)
  if (rows.length > 0) terminal.print(...formatTable(order.map((at) => terminal.colors.bold(toPrintable(columns[at]!))), rows.map((row) => order.map((at) => cell(row, at)))))
  terminal.remark(terminal.colors.dim(`${formatNumber(rows.length)} ${rows.length === 1 ? 'row' : 'rows'}${truncated ? ' of more; --limit 0 shows all' : ''}`))
}

async function checkAsOf(target: Target, sql: string | undefined, at: number): Promise<void> {
  if (sql === undefined) throw new SyncError('ARGUMENT_INVALID', '--as-of needs a statement.')
  if (at > systemClock.now()) throw new SyncError('ARGUMENT_INVALID', `--as-of ${new Date(at).toISOString()} is in the future.`)
  // Opening migrates a store of an older version, whose history has another shape.
  await (await openExistingStore(target))?.close()
}

/** The bookkeeping columns of a table come last, except its key. */
function orderColumns(columns: readonly string[]): number[] {
  const isBookkeeping = (at: number): boolean => columns[at]!.startsWith('_') && columns[at] !== '_key'
  const places = columns.map((_, at) => at)
  return [...places.filter((at) => !isBookkeeping(at)), ...places.filter(isBookkeeping)]
}

async function listDatabases(cli: Cli, target: Target): Promise<void> {
  const { terminal } = cli
  const store = await openExistingStore(target)
  const databases = store === null ? [] : await store.databases()
  await store?.close()
  if (terminal.json) {
    terminal.printDocument({ ...targetDocument(target), databases: databases.map(({ name, table: relation, history, rows, columns }) => ({ name, table: relation, history, rows, columns: columns.map((column) => ({ ...column })) })) })
    return
  }
  if (databases.length === 0) {
    terminal.print('Nothing has landed yet. `tidemark run` fills it.')
    return
  }
  terminal.print(...formatTable(['SELECT FROM', 'ROWS', 'COLUMNS'], databases.map(({ table: relation, rows, columns }) => [relation, formatNumber(rows), columns.map(({ name }) => toPrintable(name)).join(', ')])))
  terminal.remark('', `Look at one: ${formatQueryCommand(cli, target, databases[0]!.table)}`)
}

function formatCell(value: unknown): string {
  if (value === null || value === undefined) return '-'
  return typeof value === 'object' ? stringifyJson(value as JsonValue) : String(value)
}
