import type { ChangesQuery, Column, DatabaseInfo, LogEntry, QuarantineEntry, Row, SyncRef } from '../../contract/index.ts'
import { textArray } from './arrays.ts'
import type { Parameter, Session } from './connection.ts'
import { ACTION_OF } from './rows.ts'

/** What has landed, read back. */

export async function position(session: Session): Promise<number> {
  const [tenant] = await all<{ sequence: number }>(session, 'select sequence from tidemark.tenants where tenant_id = $1', session.tenant)
  return tenant?.sequence ?? 0
}

/**
 * The page is cut from its own table first, in the order of its key, and only then joined: asked for all at once, a
 * planner that has no statistics yet would join everything, sort it and throw most of it away.
 */
export async function changes(session: Session, { after, limit, databases }: ChangesQuery): Promise<LogEntry[]> {
  const named = databases === undefined ? '' : ' and database_id = any(array(select database_id from tidemark.databases where tenant_id = $1 and name = any($4::text[])))'
  const found = await all<LogRow>(
    session,
    `${logJoined(`(select * from tidemark.log where tenant_id = $1 and sequence > $2${named} order by sequence limit $3)`)} order by l.sequence`,
    session.tenant, after, limit, ...(databases === undefined ? [] : [textArray(databases)]),
  )
  return found.map(toLogEntry)
}

export async function rows(session: Session, { database, after, limit }: { database: string; after?: string; limit: number }): Promise<Row[]> {
  const above = after === undefined ? '' : ' and key > $4'
  const found = await all<RowRow>(
    session, `${rowsJoined(`${above} order by key limit $3`)} order by r.key`, session.tenant, database, limit, ...(after === undefined ? [] : [after]),
  )
  return found.map(toRow)
}

export async function row(session: Session, database: string, key: string): Promise<Row | null> {
  const [found] = await all<RowRow>(session, rowsJoined(' and key = $3'), session.tenant, database, key)
  return found === undefined ? null : toRow(found)
}

/** Every entry names the one before it of the same key, so a row's past is a walk and needs no index. */
export async function history(session: Session, database: string, key: string): Promise<LogEntry[]> {
  const found = await all<LogRow>(
    session,
    `with recursive walk as (
       select l.sequence, l.previous from tidemark.rows r join tidemark.databases d using (tenant_id, database_id)
         join tidemark.log l on l.tenant_id = r.tenant_id and l.sequence = r.sequence and l.database_id = r.database_id and l.key = r.key
         where r.tenant_id = $1 and d.name = $2 and r.key = $3
       union all
       -- The walk ends at what was compacted away, or at the tombstone of a key that had never been there.
       select l.sequence, l.previous from walk join tidemark.log l on l.tenant_id = $1 and l.sequence = walk.previous and l.key = $3
         join tidemark.databases d on d.tenant_id = $1 and d.database_id = l.database_id and d.name = $2
     )
     ${logJoined('(select * from tidemark.log where tenant_id = $1 and sequence = any(array(select sequence from walk)))')} order by l.sequence`,
    session.tenant, database, key,
  )
  return found.map(toLogEntry)
}

export async function databases(session: Session): Promise<DatabaseInfo[]> {
  const found = await all<{ name: string; view_name: string; columns: string; rows: number }>(
    session,
    `select d.name, d.view_name, d.columns,
       (select count(*) from tidemark.rows r where r.tenant_id = d.tenant_id and r.database_id = d.database_id and r.status = 0) as rows
     from tidemark.databases d where d.tenant_id = $1 order by d.name`, session.tenant,
  )
  return found.map(({ name, view_name: view, columns, rows }) => ({ name, view, columns: JSON.parse(columns) as Column[], rows }))
}

export async function databaseNames(session: Session): Promise<string[]> {
  return (await all<{ name: string }>(session, 'select name from tidemark.databases where tenant_id = $1 order by name', session.tenant)).map(({ name }) => name)
}

export function quarantined(session: Session, query: { ref?: SyncRef; limit?: number }): Promise<QuarantineEntry[]> {
  return all<QuarantineEntry>(
    session,
    `select q.quarantine_id as id, g.connector_id as worker, g.stream_id as sync, q.database_name as "database", q.key, q.code, q.message, q.text,
       q.cycle_id as cycle, q.page, q.at
     from tidemark.quarantine q join tidemark.registry g using (tenant_id, sync_id)
     where q.tenant_id = $1 and ($2::text is null or (g.connector_id = $2 and g.stream_id = $3)) order by q.quarantine_id desc limit $4`,
    session.tenant, query.ref?.worker ?? null, query.ref?.sync ?? null, query.limit ?? 1_000,
  )
}

function all<Found extends object>(session: Session, sql: string, ...parameters: Parameter[]): Promise<Found[]> {
  return session.connection.read(session.tenant, (transaction) => transaction.all<Found>(sql, ...parameters))
}

function logJoined(log: string): string {
  return `select l.sequence, d.name as "database", l.key, l.action, coalesce(l.exact, l.record::text) as record, l.committed_at,
      c.worker, c.sync, c.cycle, c.page, l.cursor, l.upstream_at
    from ${log} l
    cross join lateral (
      select g.connector_id as worker, g.stream_id as sync, c.cycle_id as cycle, c.page
      from tidemark.commits c join tidemark.registry g on g.tenant_id = $1 and g.sync_id = c.sync_id
      where c.tenant_id = $1 and c.committed_at = l.committed_at limit 1
    ) c
    cross join lateral (select name from tidemark.databases where tenant_id = $1 and database_id = l.database_id limit 1) d`
}

function rowsJoined(which: string): string {
  return `select $2::text as "database", r.key, coalesce(l.exact, l.record::text) as record, r.sequence, l.committed_at, r.upstream_at
    from (
      select key, sequence, upstream_at from tidemark.rows
      where tenant_id = $1 and database_id = (select database_id from tidemark.databases where tenant_id = $1 and name = $2) and status = 0${which}
    ) r
    cross join lateral (select exact, record, committed_at from tidemark.log where tenant_id = $1 and sequence = r.sequence limit 1) l`
}

interface LogRow {
  sequence: number
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
}

interface RowRow {
  database: string
  key: string
  record: string
  sequence: number
  committed_at: number
  upstream_at: string | null
}

function toLogEntry(row: LogRow): LogEntry {
  return {
    sequence: row.sequence, database: row.database, key: row.key, action: ACTION_OF[row.action], text: row.record,
    committedAt: row.committed_at, worker: row.worker, sync: row.sync, cycle: row.cycle, page: row.page,
    cursor: row.cursor, upstreamAt: row.upstream_at,
  }
}

function toRow(row: RowRow): Row {
  return { database: row.database, key: row.key, text: row.record, sequence: row.sequence, committedAt: row.committed_at, upstreamAt: row.upstream_at }
}
