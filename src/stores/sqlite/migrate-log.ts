import { hash } from 'node:crypto'
import type { JsonObject } from '../../contract/index.ts'
import { quoteIdentifier } from '../kit/column-names.ts'
import { parseJson } from '../../values/json.ts'
import { growColumns } from '../kit/tables/grow-columns.ts'
import type { Connection, Parameter, TenantSession } from './connection.ts'
import { POSITIONS_PER_TENANT } from './migrations/0001-initial-tables.ts'
import {
  alterTable,
  bindValues,
  findFreeTableName,
  foreignColumns,
  COLUMN_LIMITS,
  SYSTEM_COLUMNS,
  RESERVED_NAMES,
  tableSql,
  requireNamedTable,
  type Table,
} from './table.ts'
import { required } from '../../values/required.ts'

/** Entries per transaction: after a crash, at most these are moved again. */
const ENTRIES_PER_TRANSACTION = 2_000

export interface MigrationProgress {
  readonly moved: number
  readonly total: number
}

/**
 * Moves the entries of the log that stores had up to version 16 into the tables of their databases. Every step is one
 * transaction that also records its progress, so the move is resumable, and two processes can run it together.
 */
export function migrateLog(connection: Connection, onProgress: (progress: MigrationProgress) => void = () => {}): void {
  // In one transaction: another process may finish meanwhile, and drop the log.
  const total = connection.read(() => (isLogMigrationPending(connection) ? countRemaining(connection) : null))
  if (total === null) return
  for (let moved = 0; ;) {
    const entries = connection.write(() => migrateStep(connection))
    if (entries === null) return
    moved += entries
    if (entries > 0) onProgress({ moved: Math.min(moved, total), total })
  }
}

/** For a new store, which has nothing to move. Runs in the transaction that creates it. */
export const DROP_OLD_TABLES =
  'drop table tidemark_log; drop table tidemark_rows; drop table tidemark_old_commits; drop table tidemark_migration'

function isLogMigrationPending(connection: Connection): boolean {
  return connection.get("select 1 from sqlite_schema where name = 'tidemark_migration'") !== undefined
}

function countRemaining(connection: Connection): number {
  return connection.one<{ entries: number }>(
    'select count(*) as entries from tidemark_log l join tidemark_migration m on m.database_id = l.database_id where l.position > m.moved',
  ).entries
}

interface OldLogEntry {
  position: number
  key: string
  action: 1 | 2 | 3
  previous: number | null
  cursor: string | null
  upstream_at: string | null
  record: string | null
  sync_id: number
  committed_at: number
}

/** Returns the number of moved entries; null when nothing is left to do, possibly because another process did it. */
function migrateStep(connection: Connection): number | null {
  if (!isLogMigrationPending(connection)) return null
  const next = connection.get<{ id: number; tenant_id: number; moved: number; database: string; tenant: string }>(
    `select m.database_id as id, m.tenant_id, m.moved, d.name as "database", t.name as tenant
     from tidemark_migration m join tidemark_databases d using (database_id) join tidemark_tenants t on t.tenant_id = m.tenant_id
     order by m.moved desc, m.database_id limit 1`,
  )
  if (next === undefined) {
    connection.exec(DROP_OLD_TABLES)
    return null
  }
  const session: TenantSession = { connection, tenant: next.tenant, tenantId: next.tenant_id }
  if (next.moved === 0) replaceView(session, next.id, next.database)
  const table = requireNamedTable(session, next.database)
  const entries = connection.all<OldLogEntry>(
    `select l.position, l.key, l.action, l.previous, l.cursor, l.upstream_at, l.record, c.sync_id, c.committed_at
     from tidemark_log l join tidemark_old_commits c on c.commit_id = l.commit_id
     where l.position > ? and l.position < ? and l.database_id = ? order by l.position limit ?`,
    Math.max(next.moved, next.tenant_id * POSITIONS_PER_TENANT),
    (next.tenant_id + 1) * POSITIONS_PER_TENANT,
    next.id,
    ENTRIES_PER_TRANSACTION,
  )
  const last = entries.at(-1)
  if (last !== undefined) {
    moveEntries(session, table, entries)
    connection.run('update tidemark_migration set moved = ? where database_id = ?', last.position, next.id)
  } else {
    migrateRowState(session, table)
    connection.run('delete from tidemark_migration where database_id = ?', next.id)
  }
  return entries.length
}

/** Creates the table under the view's name. */
function replaceView(session: TenantSession, id: number, database: string): void {
  const { connection } = session
  const { view } = connection.one<{ view: string }>(
    'select table_name as view from tidemark_databases where database_id = ?',
    id,
  )
  connection.exec(`drop view if exists ${quoteIdentifier(view)}`)
  connection.run("update tidemark_databases set table_name = '' where database_id = ?", id)
  const name = findFreeTableName(session, database)
  connection.run('update tidemark_databases set table_name = ? where database_id = ?', name, id)
  connection.exec(tableSql(id, name))
  connection.run('update tidemark_migration set moved = 1 where database_id = ?', id)
}

/** Replays the entries in commit order: each one archives the version before it. */
function moveEntries(session: TenantSession, known: Table, entries: readonly OldLogEntry[]): void {
  const { connection, tenantId } = session
  const base = tenantId * POSITIONS_PER_TENANT
  const records = entries.map(({ record }) => (record === null ? null : (parseJson(record) as JsonObject)))
  const columns = growColumns(
    known.columns,
    records.filter((record) => record !== null),
    required(entries[0], 'The first entry').position - base,
    {
      reserved: [...RESERVED_NAMES, ...foreignColumns(session, known)],
      ...COLUMN_LIMITS,
    },
  )
  const table = columns === known.columns ? known : alterTable(session, known, columns)
  const all = [...SYSTEM_COLUMNS, ...table.members].join(', ')
  const members = [...SYSTEM_COLUMNS, ...table.members].map(() => '?').join(', ')
  for (const [at, entry] of entries.entries()) {
    const sequence = entry.position - base
    const syncedAt = new Date(entry.committed_at).toISOString()
    connection.run(
      `insert into ${table.history} (_until_sequence, _until_at, ${all}) select ?, ?, ${all} from ${table.name} where _key = ?`,
      sequence,
      syncedAt,
      entry.key,
    )
    const before = connection.get<{ created: number; owner: number }>(
      `select _created_sequence as created, _owner as owner from ${table.name} where _key = ?`,
      entry.key,
    )
    connection.run(`delete from ${table.name} where _key = ?`, entry.key)
    const record = records[at] ?? null
    if (record === null || entry.record === null) {
      connection.run(
        'insert into tidemark_deletions (tenant_id, sequence, database_id, key, upstream_at) values (?, ?, ?, ?, ?)',
        tenantId,
        sequence,
        table.id,
        entry.key,
        entry.upstream_at,
      )
      continue
    }
    // An update whose first version was compacted was created earlier.
    const created =
      entry.action === 1 ? sequence : (before?.created ?? (entry.previous === null ? 0 : entry.previous - base))
    const encoded = table.encoder.encode(record)
    const held: Parameter[] = []
    bindValues(table, encoded, held)
    connection.run(
      `insert into ${table.name} (${all}) values (${members})`,
      entry.key,
      sequence,
      created,
      hash('sha1', entry.record, 'base64').slice(0, 16),
      entry.upstream_at,
      syncedAt,
      entry.cursor,
      entry.sync_id,
      before?.owner ?? 0,
      encoded.extra,
      ...held,
    )
  }
}

/** Migrates the state that the log does not have: hashes, times and owners of the current rows, and the tombstones. */
function migrateRowState({ connection, tenantId }: TenantSession, { id, name }: Table): void {
  connection.run(
    `update ${name} set (_hash, _upstream_at, _writer, _owner) = (
       select r.hash, r.upstream_at, r.writer_id, r.owner_id from tidemark_rows r where r.tenant_id = ?1 and r.database_id = ?2 and r.key = ${name}._key
     ) where exists (select 1 from tidemark_rows r where r.tenant_id = ?1 and r.database_id = ?2 and r.key = ${name}._key and r.status = 0)`,
    tenantId,
    id,
  )
  connection.run(
    `insert into tidemark_tombstones (tenant_id, database_id, key, sequence, status, upstream_at, writer_id, owner_id)
     select tenant_id, database_id, key, position % ${POSITIONS_PER_TENANT}, status, upstream_at, writer_id, owner_id
     from tidemark_rows where tenant_id = ? and database_id = ? and status <> 0`,
    tenantId,
    id,
  )
  connection.run(
    `insert into tidemark_contests (tenant_id, database_id, key, cycle_id)
     select tenant_id, database_id, key, contested_by from tidemark_rows where tenant_id = ? and database_id = ? and contested_by is not null`,
    tenantId,
    id,
  )
}
