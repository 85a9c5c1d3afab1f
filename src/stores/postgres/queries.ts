import type { ChangesQuery, DatabaseInfo, LogEntry, Row, RowsQuery } from '../../contract/index.ts'
import { mayHaveDeletedRows } from '../kit/tables/delete-state.ts'
import type { Parameter, TenantSession } from './connection.ts'
import { readHistory, readLog, selectVersions, type VersionsSelect } from './log.ts'
import { readTables, toMs, type Table } from './table.ts'
import { required } from '../../values/required.ts'

/** Reads of committed rows and log entries. */

export async function changes(session: TenantSession, { after, limit, databases }: ChangesQuery): Promise<LogEntry[]> {
  return session.connection.read(
    session.tenant,
    async (transaction) =>
      (await readLog(transaction, { after, until: Number.MAX_SAFE_INTEGER - 1, limit, databases })).entries,
  )
}

export async function rows(session: TenantSession, query: RowsQuery): Promise<Row[]> {
  return readRows(session, query.database, ...selectPage(query))
}

/** A row with its columns as the server wrote them. */
export interface LiveRow {
  readonly key: string
  readonly sequence: number
  readonly syncedAt: string
  readonly extra: string | null
  readonly values: ReadonlyArray<string | null>
}

/** The rows of a page, up to its bytes, and their table; null for an unknown database. */
export function readLiveRows(
  session: TenantSession,
  query: RowsQuery,
): Promise<{ table: Table | null; rows: LiveRow[] }> {
  const [select, ...parameters] = selectPage(query)
  return session.connection.read(session.tenant, async (transaction) => {
    const table = (await readTables(transaction, [query.database])).get(query.database)
    if (table === undefined) return { table: null, rows: [] }
    const { found } = await selectVersions(
      transaction,
      table,
      table.live,
      { ...select, orderBy: '_key' },
      ...parameters,
    )
    return { table, rows: found.map((version) => ({ ...version, values: version.values() })) }
  })
}

function selectPage({ after, limit, bytesMax = Infinity }: RowsQuery): [PageSelect, ...Parameter[]] {
  const where = after === undefined ? 'true' : '_key > $1'
  return [{ where, limit, bytesMax }, ...(after === undefined ? [] : [after])]
}

type PageSelect = Omit<VersionsSelect, 'orderBy'>

export async function row(session: TenantSession, database: string, key: string): Promise<Row | null> {
  return (await readRows(session, database, { where: '_key = $1', limit: 1, bytesMax: Infinity }, key))[0] ?? null
}

function readRows(
  session: TenantSession,
  database: string,
  select: PageSelect,
  ...parameters: Parameter[]
): Promise<Row[]> {
  return session.connection.read(session.tenant, async (transaction) => {
    const table = (await readTables(transaction, [database])).get(database)
    if (table === undefined) return []
    const { found } = await selectVersions(
      transaction,
      table,
      table.live,
      { ...select, orderBy: '_key' },
      ...parameters,
    )
    let bytes = 0
    const rows: Row[] = []
    for (const { key, sequence, upstreamAt, syncedAt, text } of found) {
      if (bytes >= select.bytesMax) break
      const record = required(text(), 'The record of a row')
      bytes += Buffer.byteLength(record)
      rows.push({ database, key, text: record, sequence, committedAt: toMs(syncedAt), upstreamAt })
    }
    return rows
  })
}

export function history(session: TenantSession, database: string, key: string): Promise<LogEntry[]> {
  return session.connection.read(session.tenant, async (transaction) => {
    const table = (await readTables(transaction, [database])).get(database)
    return table === undefined ? [] : readHistory(transaction, table, key)
  })
}

export function databases(session: TenantSession): Promise<DatabaseInfo[]> {
  return session.connection.read(session.tenant, async (transaction) => {
    const tables = [...(await readTables(transaction)).values()]
    return Promise.all(
      tables.map(async (table) => ({
        name: table.database,
        table: table.name,
        history: table.history,
        columns: table.memberKinds,
        rows: (await transaction.one<{ count: number }>(`select count(*) from ${table.live} l`)).count,
        ...(mayHaveDeletedRows(table) && { hasDeleted: true as const }),
      })),
    )
  })
}
