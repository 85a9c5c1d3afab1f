import type { ChangesQuery, Column, DatabaseInfo, LogEntry, Row, RowsQuery } from '../../contract/index.ts'
import { quoteIdentifier } from '../kit/column-names.ts'
import { mayHaveDeletedRows, liveRows, type DeleteState } from '../kit/tables/delete-state.ts'
import type { Parameter, TenantSession } from './connection.ts'
import { readLog, requireCommit, versionColumns, toRowVersion } from './log.ts'
import { findTable, type Table } from './table.ts'
import { takeBytes } from './take-bytes.ts'

/** Reads of committed rows and log entries. */

export function changes(session: TenantSession, { after, limit, databases }: ChangesQuery): LogEntry[] {
  return readLog(session, { after, until: Number.MAX_SAFE_INTEGER, limit, databases }).entries
}

export function rows(session: TenantSession, { database, after, limit, bytesMax = Infinity }: RowsQuery): Row[] {
  const table = findTable(session, database)
  return table === null
    ? []
    : takeBytes(readRows(session, table, after ?? null, limit), bytesMax, ({ text }) => text).taken
}

export function row(session: TenantSession, database: string, key: string): Row | null {
  const table = findTable(session, database)
  return table === null ? null : readRow(session, table, key)
}

export function readRow({ connection }: TenantSession, table: Table, key: string): Row | null {
  const found = connection.tuple<RowValues>(`${selectRowsFrom(table)} where _key = ?`, key)
  return found === undefined ? null : toRow(table, found)
}

function* readRows({ connection }: TenantSession, table: Table, after: string | null, limit: number): Generator<Row> {
  const found = connection
    .prepareArrays(`${selectRowsFrom(table)} where _key > ? order by _key limit ?`)
    .iterate(after ?? '', limit) as unknown as Iterable<RowValues>
  for (const values of found) yield toRow(table, values)
}

/** Reads the rows of a source that `selectRowsFrom` can read, in no order. */
export function readRowsWhere(
  { connection }: TenantSession,
  table: Table,
  source: string,
  condition: string,
  ...parameters: Parameter[]
): Row[] {
  return connection
    .queryOnce(`${selectRowsFrom(table, source)} where ${condition}`, parameters)
    .map((values) => toRow(table, values as RowValues))
}

type RowValues = [
  sequence: number,
  key: string,
  syncedAt: string,
  upstreamAt: string | null,
  extra: string | null,
  ...members: Array<string | number | null>,
]
const FIRST_MEMBER_INDEX = 5

function selectRowsFrom({ live, selected }: Table, source = live): string {
  return `select _sequence, _key, _synced_at, _upstream_at, _extra${selected} from ${source}`
}

function toRow(table: Table, values: RowValues): Row {
  const [sequence, key, syncedAt, upstreamAt, extra] = values
  return {
    database: table.database,
    key,
    text: table.decode(sequence, extra, values, FIRST_MEMBER_INDEX),
    sequence,
    committedAt: Date.parse(syncedAt),
    upstreamAt,
  }
}

/** Returns every stored version of one key, with its deletions. */
export function history(session: TenantSession, database: string, key: string): LogEntry[] {
  const { connection, tenantId } = session
  const table = findTable(session, database)
  if (table === null) return []
  const versions = [table.history, table.live]
    .flatMap((from) =>
      connection.tuples<Parameters<typeof toRowVersion>[1]>(
        `select ${versionColumns(table)} from ${from} where _key = ?`,
        key,
      ),
    )
    .map((values) => toRowVersion(table, values))
  const deletions = connection
    .all<{ sequence: number; upstreamAt: string | null }>(
      'select sequence, upstream_at as upstreamAt from tidemark_deletions where tenant_id = ? and database_id = ? and key = ?',
      tenantId,
      table.id,
      key,
    )
    .map(({ sequence, upstreamAt }) => ({
      sequence,
      database,
      key,
      action: 'deleted' as const,
      text: null,
      cursor: null,
      upstreamAt,
    }))
  return [...versions, ...deletions]
    .toSorted((a, b) => a.sequence - b.sequence)
    .map((version) => {
      const { worker, sync, cycle, page, committedAt } = requireCommit(session, version.sequence)
      return { ...version, committedAt, worker, sync, cycle, page }
    })
}

export function databases(session: TenantSession): DatabaseInfo[] {
  const { connection, tenantId } = session
  return connection
    .all<DeleteState & { name: string; table: string; columns: string }>(
      'select name, table_name as "table", columns, deletes, purged_to as purgedTo from tidemark_databases where tenant_id = ? order by name',
      tenantId,
    )
    .map(({ name, table, columns, ...state }) => {
      const { rows } = connection.one<{ rows: number }>(
        `select count(*) as rows from ${liveRows(quoteIdentifier(table), state)}`,
      )
      return {
        name,
        table,
        history: `${table}_history`,
        columns: JSON.parse(columns) as Column[],
        rows,
        ...(mayHaveDeletedRows(state) && { hasDeleted: true as const }),
      }
    })
}
