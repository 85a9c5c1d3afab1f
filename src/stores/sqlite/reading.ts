import type { ChangesQuery, Column, DatabaseInfo, LogEntry, QuarantineEntry, Row, SyncRef } from '../../contract/index.ts'
import type { Session } from './connection.ts'
import { ACTION_OF } from './encoding.ts'
import { POSITIONS_PER_TENANT } from './schema.ts'

/** What has landed, read back. */

export function changes(session: Session, { after, limit, databases }: ChangesQuery): LogEntry[] {
  const { connection, base } = session
  const named = databases === undefined ? '' : ` and d.name in (${databases.map(() => '?').join(',') || 'null'})`
  return connection.all<LogRow>(
    `${LOG} where l.position > ? and l.position < ?${named} order by l.position limit ?`,
    base + after, base + POSITIONS_PER_TENANT, ...(databases ?? []), limit,
  ).map((row) => toLogEntry(session, row))
}

export function rows(session: Session, { database, after, limit }: { database: string; after?: string; limit: number }): Row[] {
  return session.connection.all<RowRow>(
    `${ROWS} and (? is null or r.key > ?) order by r.key limit ?`, session.tenantId, database, after ?? null, after ?? null, limit,
  ).map((row) => toRow(session, row))
}

export function row(session: Session, database: string, key: string): Row | null {
  const found = session.connection.get<RowRow>(`${ROWS} and r.key = ?`, session.tenantId, database, key)
  return found === undefined ? null : toRow(session, found)
}

/** Every entry names the one before it of the same key, so a row's past is a walk and needs no index. */
export function history(session: Session, database: string, key: string): LogEntry[] {
  const { connection, tenantId } = session
  const entries: LogEntry[] = []
  let position = connection.get<{ position: number }>(
    'select r.position from tidemark_rows r join tidemark_databases d using (database_id) where r.tenant_id = ? and d.name = ? and r.key = ?',
    tenantId, database, key,
  )?.position ?? null
  while (position !== null) {
    const entry = connection.get<LogRow>(`${LOG} where l.position = ?`, position)
    // The end of the walk: compacted away, or the tombstone of a key that had never been there.
    if (entry === undefined || entry.database !== database || entry.key !== key) break
    entries.push(toLogEntry(session, entry))
    position = entry.previous
  }
  return entries.reverse()
}

export function databases(session: Session): DatabaseInfo[] {
  return session.connection.all<{ name: string; view_name: string; columns: string; rows: number }>(
    `select d.name, d.view_name, d.columns,
       (select count(*) from tidemark_rows r where r.tenant_id = d.tenant_id and r.database_id = d.database_id and r.status = 0) as rows
     from tidemark_databases d where d.tenant_id = ? order by d.name`, session.tenantId,
  ).map(({ name, view_name: view, columns, rows }) => ({ name, view, columns: JSON.parse(columns) as Column[], rows }))
}

export function databaseNames(session: Session): string[] {
  return session.connection.all<{ name: string }>('select name from tidemark_databases where tenant_id = ? order by name', session.tenantId).map(({ name }) => name)
}

export function quarantined(session: Session, query: { ref?: SyncRef; limit?: number }): QuarantineEntry[] {
  return session.connection.all<QuarantineEntry>(
    `select q.quarantine_id as id, g.connector_id as worker, g.stream_id as sync, q.database_name as "database", q.key, q.code, q.message, q.text,
       q.cycle_id as cycle, q.page, q.at
     from tidemark_quarantine q join tidemark_registry g using (sync_id)
     where q.tenant_id = ? and (? is null or (g.connector_id = ? and g.stream_id = ?)) order by q.quarantine_id desc limit ?`,
    session.tenantId, query.ref?.worker ?? null, query.ref?.worker ?? null, query.ref?.sync ?? null, query.limit ?? 1_000,
  ).map((entry) => ({ ...entry }))
}

const LOG = `select l.position, d.name as "database", l.key, l.action, l.record, c.committed_at, g.connector_id as worker, g.stream_id as sync,
    c.cycle_id as cycle, c.page, l.cursor, l.upstream_at, l.previous
  from tidemark_log l
  join tidemark_commits c on c.commit_id = l.commit_id
  join tidemark_registry g on g.sync_id = c.sync_id
  join tidemark_databases d on d.database_id = l.database_id`

const ROWS = `select d.name as "database", r.key, l.record, r.position, c.committed_at, r.upstream_at
  from tidemark_databases d
  join tidemark_rows r on r.tenant_id = d.tenant_id and r.database_id = d.database_id
  join tidemark_log l on l.position = r.position
  join tidemark_commits c on c.commit_id = l.commit_id
  where d.tenant_id = ? and d.name = ? and r.status = 0`

interface LogRow {
  position: number
  database: string
  key: string
  action: 1 | 2 | 3
  record: string | null
  committed_at: number
  worker: string
  sync: string
  cycle: number
  page: number
  cursor: string | null
  upstream_at: string | null
  previous: number | null
}

interface RowRow {
  database: string
  key: string
  record: string
  position: number
  committed_at: number
  upstream_at: string | null
}

function toLogEntry(session: Session, row: LogRow): LogEntry {
  return {
    sequence: row.position - session.base, database: row.database, key: row.key, action: ACTION_OF[row.action], text: row.record,
    committedAt: row.committed_at, worker: row.worker, sync: row.sync, cycle: row.cycle, page: row.page,
    cursor: row.cursor, upstreamAt: row.upstream_at,
  }
}

function toRow(session: Session, row: RowRow): Row {
  return {
    database: row.database, key: row.key, text: row.record, sequence: row.position - session.base,
    committedAt: row.committed_at, upstreamAt: row.upstream_at,
  }
}
