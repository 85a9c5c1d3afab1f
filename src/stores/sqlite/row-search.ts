import type {
  ColumnStatistics,
  ColumnStatisticsRequest,
  RowSearch,
  RowSearchPage,
  RowSelection,
} from '../../contract/index.ts'
import { checkAsOf, toIsoTime } from '../kit/as-of.ts'
import { quoteIdentifier } from '../kit/column-names.ts'
import { computeStatistics, NO_STATISTICS } from '../kit/search/column-statistics.ts'
import { findRows, type SearchSteps, type SearchTuple } from '../kit/search/find-rows.ts'
import {
  caseVariants,
  isAscii,
  likePattern,
  type SearchDialect,
  type SearchTable,
} from '../kit/search/search-dialect.ts'
import { explainDeadline, keyBatches, PageCollector, scanOf } from '../kit/search/search-rows.ts'
import type { ColumnType } from '../kit/tables/column.ts'
import { DEADLINE_CONDITION, type Parameter, type TenantSession } from './connection.ts'
import { readRowsWhere } from './queries.ts'
import { findTable, unquoteIdentifier, type Table } from './table.ts'

export function searchRows(session: TenantSession, search: RowSearch): RowSearchPage {
  const table = findTable(session, search.database)
  if (table === null) return { rows: [], next: null, scanned: 0, scan: null }
  const target = searchTable(session, table, search)
  const scan = scanOf(DIALECT, target, search)
  return withDeadline(session, search, scan, () => {
    const found = run(session, findRows(DIALECT, target, search))
    const page = new PageCollector(found, search)
    for (const keys of keyBatches(found)) {
      if (page.isFull) break
      page.add(
        keys,
        readRowsWhere(session, table, target.source, '_key in (select value from json_each(?))', JSON.stringify(keys)),
      )
    }
    return page.toPage(scan)
  })
}

export function columnStatistics(session: TenantSession, request: ColumnStatisticsRequest): ColumnStatistics {
  const table = findTable(session, request.database)
  if (table === null) return NO_STATISTICS
  const target = searchTable(session, table, request)
  return withDeadline(session, request, null, () => run(session, computeStatistics(DIALECT, target, request)))
}

function withDeadline<T>(
  { connection }: TenantSession,
  { deadlineMs }: RowSelection,
  scan: RowSearchPage['scan'],
  body: () => T,
): T {
  try {
    return connection.withDeadline(deadlineMs, body)
  } catch (error) {
    throw explainDeadline(error, scan)
  }
}

function run<Result>({ connection }: TenantSession, steps: SearchSteps<Result>): Result {
  for (let step = steps.next(); ;) {
    if (step.done === true) return step.value
    const { sql, parameters } = step.value
    step = steps.next(connection.queryOnce(sql, parameters as Parameter[]) as SearchTuple[])
  }
}

function searchTable(session: TenantSession, table: Table, { asOf }: RowSelection): SearchTable {
  const { columns, name } = table
  if (asOf === undefined)
    return {
      name,
      source: table.live,
      columns,
      isPast: false,
      isIndexed: (column, ordered) => isIndexed(session, table, column, ordered),
    }
  checkHistory(session, table, asOf)
  const at = `'${toIsoTime(asOf)}'`
  const listed = ['_sequence', '_key', '_synced_at', '_upstream_at', '_extra', ...table.members].join(', ')
  return {
    name,
    source: `(select ${listed} from ${table.live} where _synced_at <= ${at}
      union all select ${listed} from ${table.history} where _synced_at <= ${at} and _until_at > ${at})`,
    columns,
    isPast: true,
    isIndexed: () => false,
  }
}

function checkHistory({ connection, tenantId }: TenantSession, { id }: Table, asOf: number): void {
  const { floor, startMs } = connection.one<{ floor: number; startMs: number | null }>(
    `select floor, case when floor = 0 then (select min(committed_at) from tidemark_commits c where c.tenant_id = t.tenant_id)
       else coalesce((select history_floor_at from tidemark_databases where database_id = ?2), floor_committed_at) end as startMs
     from tidemark_tenants t where tenant_id = ?1`,
    tenantId,
    id,
  )
  checkAsOf(asOf, { startMs, isCompacted: floor > 0 })
}

function isIndexed({ connection }: TenantSession, { name }: Table, column: string, ordered: string): boolean {
  const indexes = connection.all<{ first: string | null; sql: string | null }>(
    `select (select x.name from pragma_index_xinfo(i.name) x where x.seqno = 0) as first, (select s.sql from sqlite_schema s where s.name = i.name) as sql
     from pragma_index_list(?) i where i.partial = 0`,
    unquoteIdentifier(name),
  )
  return indexes.some(({ first, sql }) =>
    ordered === column
      ? first !== null && quoteIdentifier(first).toLowerCase() === column.toLowerCase()
      : first === null && sql !== null && withoutSpaces(sql).includes(`(${withoutSpaces(ordered)}`),
  )
}

function withoutSpaces(sql: string): string {
  return sql.replace(/\s+/g, '').toLowerCase()
}

/** Numbers of any size are stored as text, and times as they were written. */
function isStoredAsText(type: ColumnType): boolean {
  return type === 'numeric' || type === 'decimal'
}

const DIALECT: SearchDialect = {
  parameter: (number) => `?${number}`,
  ordered: (column, type) =>
    type === 'timestamp' || type === 'datetime'
      ? `julianday(${column})`
      : isStoredAsText(type)
        ? `cast(${column} as real)`
        : column,
  // As a number, an integer beyond 2^53 would be rounded.
  position: (ordered, type) =>
    type === 'bigint' ? `cast(${ordered} as text)` : type === 'bytes' ? `hex(${ordered})` : ordered,
  restore(text, type, bind) {
    if (type === 'bytes') return `unhex(${bind(text)})`
    if (type === 'bigint' || type === 'boolean') return bind(BigInt(text))
    return type === 'double' || type === 'timestamp' || type === 'datetime' || isStoredAsText(type)
      ? bind(Number(text))
      : bind(text)
  },
  given(text, type, bind) {
    if (type === 'boolean') return bind(text === 'true' ? 1 : 0)
    if (type === 'bigint') return bind(BigInt(text))
    if (type === 'double' || isStoredAsText(type)) return bind(Number(text))
    return type === 'timestamp' || type === 'datetime' ? `julianday(${bind(text)})` : bind(text)
  },
  display(column, type) {
    if (type === 'boolean') return `case ${column} when 0 then 'false' when 1 then 'true' end`
    if (type === 'bytes') return `hex(${column})`
    return type === 'bigint' || type === 'double' ? `cast(${column} as text)` : column
  },
  // LIKE ignores the case of ASCII letters only.
  contains: (text, wanted, bind) =>
    isAscii(wanted)
      ? `${text} like ${bind(likePattern(wanted))} escape '!'`
      : `${text} glob ${bind(`*${Array.from(wanted, globOf).join('')}*`)}`,
  deadline: DEADLINE_CONDITION,
  createIndex: (table, column, ordered) =>
    `create index ${quoteIdentifier(`${unquoteIdentifier(table)}_by_${unquoteIdentifier(column)}`)} on ${table} (${ordered})`,
}

function globOf(character: string): string {
  const variants = caseVariants(character)
  return variants.length > 1 || '*?['.includes(character) ? `[${variants.join('')}]` : character
}
