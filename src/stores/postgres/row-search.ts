import {
  SyncError,
  type ColumnStatistics,
  type ColumnStatisticsRequest,
  type Row,
  type RowSearch,
  type RowSearchPage,
  type RowSelection,
} from '../../contract/index.ts'
import { checkAsOf, toIsoTime } from '../kit/as-of.ts'
import { createQueryTooLongError } from '../kit/query-too-long-error.ts'
import { computeStatistics, NO_STATISTICS } from '../kit/search/column-statistics.ts'
import { findRows, type SearchSteps } from '../kit/search/find-rows.ts'
import {
  caseVariants,
  isAscii,
  likePattern,
  type SearchDialect,
  type SearchTable,
} from '../kit/search/search-dialect.ts'
import { explainDeadline, keyBatches, PageCollector, scanOf } from '../kit/search/search-rows.ts'
import { textArray } from './binary-arrays.ts'
import { sqlTypeOf } from './binary-values.ts'
import type { Parameter, TenantSession, Transaction } from './connection.ts'
import { sqlStateOf } from './errors.ts'
import { selectVersions } from './log.ts'
import { readTables, toMs, type Table } from './table.ts'
import { required } from '../../values/required.ts'

export async function searchRows(session: TenantSession, search: RowSearch): Promise<RowSearchPage> {
  let scan: RowSearchPage['scan'] = null
  try {
    const page = await explore(session, search, async (transaction, table, target) => {
      scan = scanOf(DIALECT, target, search)
      const found = await run(transaction, findRows(DIALECT, target, search))
      const collector = new PageCollector(found, search)
      for (const keys of keyBatches(found)) {
        if (collector.isFull) break
        collector.add(keys, await readByKeys(transaction, table, target, keys))
      }
      return collector.toPage(scan)
    })
    return page ?? { rows: [], next: null, scanned: 0, scan }
  } catch (error) {
    throw explainDeadline(toSearchError(error, search), scan)
  }
}

export async function columnStatistics(
  session: TenantSession,
  request: ColumnStatisticsRequest,
): Promise<ColumnStatistics> {
  try {
    return (
      (await explore(session, request, (transaction, _table, target) =>
        run(transaction, computeStatistics(DIALECT, target, request)),
      )) ?? NO_STATISTICS
    )
  } catch (error) {
    throw explainDeadline(toSearchError(error, request), null)
  }
}

/** Returns null for an unknown database. */
function explore<T>(
  { connection, tenant }: TenantSession,
  selection: RowSelection,
  body: (transaction: Transaction, table: Table, target: SearchTable) => Promise<T>,
): Promise<T | null> {
  return connection.read(tenant, async (transaction) => {
    const table = (await readTables(transaction, [selection.database])).get(selection.database)
    if (table === undefined) return null
    const target = await searchTable(transaction, table, selection)
    // Other reads follow a key; here the planner has to choose.
    transaction.send(
      "select set_config('statement_timeout', $1, true), set_config('enable_sort', 'on', true), set_config('enable_bitmapscan', 'on', true)",
      String(selection.deadlineMs),
    )
    return body(transaction, table, target)
  })
}

async function run<Result>(transaction: Transaction, steps: SearchSteps<Result>): Promise<Result> {
  for (let step = steps.next(); ;) {
    if (step.done === true) return step.value
    const { sql, parameters } = step.value
    step = steps.next(await transaction.textRows(sql, ...(parameters as Parameter[])))
  }
}

async function readByKeys(
  transaction: Transaction,
  table: Table,
  { source }: SearchTable,
  keys: readonly string[],
): Promise<Row[]> {
  const select = { where: '_key = any($1::text[])', orderBy: '_key', limit: keys.length, bytesMax: Infinity } as const
  const { found } = await selectVersions(transaction, table, source, select, textArray(keys))
  return found.map(({ key, sequence, upstreamAt, syncedAt, text }) => ({
    database: table.database,
    key,
    text: required(text(), 'The record of a row'),
    sequence,
    committedAt: toMs(syncedAt),
    upstreamAt,
  }))
}

const QUERY_CANCELED = '57014'

function toSearchError(error: unknown, { deadlineMs }: RowSelection): unknown {
  const state = error instanceof SyncError ? sqlStateOf(error.cause) : null
  if (state === QUERY_CANCELED) return createQueryTooLongError(deadlineMs)
  // A value that its type cannot represent, for example a number with a larger exponent.
  return state?.startsWith('22') === true
    ? new SyncError(
        'ARGUMENT_INVALID',
        'A filter or the position of the page has a value that its column cannot have.',
        {
          cause: error,
        },
      )
    : error
}

async function searchTable(transaction: Transaction, table: Table, { asOf }: RowSelection): Promise<SearchTable> {
  const { columns, name } = table
  if (asOf === undefined) {
    const indexed = await readIndexedColumns(transaction, table)
    return { name, source: table.live, columns, isPast: false, isIndexed: (column) => indexed.has(column) }
  }
  await checkHistory(transaction, table, asOf)
  const at = `timestamptz '${toIsoTime(asOf)}'`
  const listed = ['_sequence', '_key', '_created_sequence', '_cursor', '_upstream_at', '_synced_at', '_extra']
    .concat(table.members.map((member) => member.name))
    .join(', ')
  return {
    name,
    source: `(select ${listed} from ${table.live} l where _synced_at <= ${at}
      union all select ${listed} from ${table.history} h where _synced_at <= ${at} and _until_at > ${at})`,
    columns,
    isPast: true,
    isIndexed: () => false,
  }
}

async function checkHistory(transaction: Transaction, { id }: Table, asOf: number): Promise<void> {
  const { floor, startMs } = await transaction.one<{ floor: number; startMs: number | null }>(
    `select floor::float8 as floor, (case when floor = 0 then (select min(committed_at) from tidemark.commits c where c.tenant_id = t.tenant_id)
       else coalesce((select history_floor_at from tidemark.databases where tenant_id = $1 and database_id = $2), floor_committed_at) end)::float8 as "startMs"
     from tidemark.tenants t where tenant_id = $1`,
    transaction.tenant,
    id,
  )
  checkAsOf(asOf, { startMs, isCompacted: floor > 0 })
}

/** The quoted names of the columns with which an index begins. */
async function readIndexedColumns(transaction: Transaction, { name }: Table): Promise<Set<string>> {
  const rows = await transaction.all<{ name: string }>(
    `select distinct '"' || replace(a.attname, '"', '""') || '"' as name from pg_index i
     join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
     join pg_class c on c.oid = i.indexrelid join pg_am m on m.oid = c.relam
     where i.indrelid = to_regclass($1) and i.indisvalid and i.indpred is null and m.amname = 'btree'`,
    name,
  )
  return new Set(rows.map((row) => row.name))
}

const DIALECT: SearchDialect = {
  parameter: (number) => `$${number}`,
  ordered: (column) => column,
  position: (ordered) => `${ordered}::text`,
  restore: (text, type, bind) => `${bind(text)}::${sqlTypeOf(type)}`,
  given: (text, type, bind) => `${bind(text)}::${sqlTypeOf(type)}`,
  display: (column, type) => (type === 'text' ? column : `${column}::text`),
  contains: (text, wanted, bind) =>
    isAscii(wanted)
      ? `${text} ilike ${bind(likePattern(wanted))} escape '!'`
      : `${text} ~ ${bind(Array.from(wanted, patternOf).join(''))}`,
  deadline: null,
  createIndex: (table, _column, ordered) => `create index concurrently on ${table} (${ordered}, _key)`,
}

function patternOf(character: string): string {
  const variants = caseVariants(character)
  if (variants.length > 1) return `[${variants.join('')}]`
  return /[\w\s]/.test(character) || !isAscii(character) ? character : `\\${character}`
}
