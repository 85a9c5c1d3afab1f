import { hash } from 'node:crypto'
import { SyncError, type JsonObject } from '../../contract/index.ts'
import { parseJson } from '../../values/json.ts'
import { quoteIdentifier, quoteLiteral } from '../kit/column-names.ts'
import type { ColumnValue } from '../kit/tables/encode-record.ts'
import type { Connection, Transaction } from './connection.ts'
import { copyHistory, copyRows } from './rows.ts'
import { DROP_OLD_TABLES } from './migrations/0017-typed-tables.ts'
import { findFreeNames, growTable, readTables, schemaNameOf, tableSql, tableOf, type Table } from './table.ts'
import { required } from '../../values/required.ts'

export interface MigrationProgress {
  readonly moved: number
  readonly total: number
}

export interface MigrationOptions {
  readonly onProgress?: ((progress: MigrationProgress) => void) | undefined
  /** Entries per transaction. */
  readonly chunk?: number
}

/** Entries per transaction: after a crash, at most these are moved again. */
const ENTRIES_PER_TRANSACTION = 2_000
/** Entries whose commits are collected by one statement. */
const DIRECTORY_CHUNK = 100_000
const DEPENDENT_OBJECTS_EXIST = '2BP01'
/** PostgreSQL writes the year 0 as 1 BC. */
const UPSTREAM_AT_SQL =
  "(case when upstream_at like '0000-%' then '0001' || substr(upstream_at, 5) || ' BC' else upstream_at end)::timestamptz"

/** True while records are still in the log that stores had up to version 16. */
export async function isLogMigrationPending(transaction: Transaction): Promise<boolean> {
  return (
    (await transaction.get(
      "select from pg_class where relnamespace = to_regnamespace('tidemark') and relname = 'old_log'",
    )) !== undefined
  )
}

/**
 * Moves the entries of the old log into the tables of their databases. Every step is one transaction that also records
 * its progress, so the move is resumable, and several processes can run it together.
 */
export async function migrateLog(
  connection: Connection,
  { onProgress = () => {}, chunk = ENTRIES_PER_TRANSACTION }: MigrationOptions,
): Promise<void> {
  const tenants = await migrateStep(connection, '', async (transaction) => {
    await transaction.runLong(
      'create index if not exists old_log_by_sequence on tidemark.old_log (tenant_id, database_id, sequence)',
    )
    await transaction.runLong(
      'create index if not exists old_log_by_key on tidemark.old_log (tenant_id, database_id, key, sequence)',
    )
    await transaction.run("select set_config('tidemark.lists_tenants', 'yes', true)")
    return (await transaction.all<{ name: string }>('select tenant_id as name from tidemark.tenants order by 1')).map(
      ({ name }) => name,
    )
  })
  if (tenants === null) return
  let [moved, total] = [0, 0]
  for (const tenant of tenants) total += (await connection.read(tenant, countEntries)) ?? 0
  for (const tenant of tenants) {
    for (;;) {
      const count = await migrateStep(connection, tenant, (transaction) => moveChunk(transaction, chunk))
      if (count === null) return
      if (count === 'done') break
      moved += count
      onProgress({ moved: Math.min(moved, total), total })
    }
    if ((await migrateStep(connection, tenant, migrateRemainder)) === null) return
  }
  await migrateStep(connection, '', (transaction) => transaction.run(DROP_OLD_TABLES))
}

/** Returns null when another process has finished the move. */
function migrateStep<T>(
  connection: Connection,
  tenant: string,
  body: (transaction: Transaction) => Promise<T>,
): Promise<T | null> {
  return connection.write<T | null>(tenant, async (transaction) => {
    await transaction.run("select pg_advisory_xact_lock(hashtext('tidemark.migrate'))")
    await transaction.run(
      'set local statement_timeout = 0; set local enable_hashjoin = off; set local enable_mergejoin = off',
    )
    return (await isLogMigrationPending(transaction)) ? body(transaction) : null
  })
}

async function countEntries(transaction: Transaction): Promise<number | null> {
  if (!(await isLogMigrationPending(transaction))) return null
  const { count } = await transaction.one<{ count: number }>(
    'select count(*) from tidemark.old_log where tenant_id = $1',
    transaction.tenant,
  )
  return count
}

interface UnmigratedDatabase {
  id: number
  name: string
  view: string
  movedTo: number
  isMade: boolean
}

async function moveChunk(transaction: Transaction, chunk: number): Promise<number | 'done'> {
  const next = await transaction.get<UnmigratedDatabase>(
    `select database_id as id, name, table_name as view, moved_to as "movedTo", layout is not null as "isMade" from tidemark.databases
     where tenant_id = $1 and moved_to >= 0 order by database_id limit 1`,
    transaction.tenant,
  )
  if (next === undefined) return 'done'
  if (!next.isMade) await replaceView(transaction, next)
  const table = tableOf(await readTables(transaction, [next.name]), next.name)
  const entries = await readEntries(transaction, next, chunk)
  if (entries.length > 0) await moveEntries(transaction, table, entries)
  await transaction.run(
    'update tidemark.databases set moved_to = $3 where tenant_id = $1 and database_id = $2',
    transaction.tenant,
    next.id,
    entries.length < chunk ? -1 : (entries.at(-1)?.sequence ?? -1),
  )
  return entries.length
}

/** Creates the table under the view's name, with its comment and its readers. */
async function replaceView(transaction: Transaction, { id, name, view }: UnmigratedDatabase): Promise<void> {
  const given = await readViewProperties(transaction, view)
  if (
    !(await transaction.tryRun(`drop view if exists ${view}`, {
      lockTimeoutMs: 60_000,
      refusals: [DEPENDENT_OBJECTS_EXIST],
    }))
  ) {
    throw new SyncError(
      'STORE_FOREIGN',
      `The view ${view} becomes a table, but other objects depend on it. Drop them, then open the store again.`,
    )
  }
  const names = await findFreeNames(transaction, schemaNameOf(transaction.tenant), name)
  await transaction.run(tableSql(names.name, names.history, []))
  for (const statement of given) await transaction.run(`${statement.before} ${names.name} ${statement.after}`)
  await transaction.run(
    "update tidemark.databases set table_name = $3, history_name = $4, layout = '[]' where tenant_id = $1 and database_id = $2",
    transaction.tenant,
    id,
    names.name,
    names.history,
  )
}

/**
 * Returns statements that copy the user's settings of the view to the table. Only SELECT is granted: other rights had
 * no effect on the view, and would let its readers write to the table.
 */
async function readViewProperties(
  transaction: Transaction,
  view: string,
): Promise<Array<{ before: string; after: string }>> {
  const found = await transaction.get<{
    comment: string | null
    readers: Array<{ role: string | null; isGrantable: boolean }>
  }>(
    `select obj_description(c.oid, 'pg_class') as comment, coalesce((
       select json_agg(json_build_object('role', r.rolname, 'isGrantable', g.is_grantable)) from aclexplode(c.relacl) g left join pg_roles r on r.oid = g.grantee
       where g.privilege_type = 'SELECT' and g.grantee <> c.relowner
     ), '[]') as readers
     from pg_class c where c.oid = to_regclass($1)`,
    view,
  )
  const { comment, readers } = found ?? { comment: null, readers: [] }
  return [
    ...(comment === null ? [] : [{ before: 'comment on table', after: `is ${quoteLiteral(comment)}` }]),
    ...readers.map(({ role, isGrantable }) => ({
      before: 'grant select on',
      after: `to ${role === null ? 'public' : quoteIdentifier(role)}${isGrantable ? ' with grant option' : ''}`,
    })),
  ]
}

interface OldLogEntry {
  sequence: number
  committed_at: number
  action: 1 | 2 | 3
  key: string
  cursor: string | null
  upstream_at: string | null
  text: string | null
  sync_id: number
  /** Sequence and time of the key's next entry. */
  until_sequence: number | null
  until_at: number | null
  /** Null when an earlier entry created the row and that entry was compacted. */
  created: number | null
  /** Fields of the key's row or tombstone. */
  owner_id: number
  is_current: boolean
  row_hash: string | null
  row_upstream_at: string | null
  row_writer: number
}

function readEntries(
  transaction: Transaction,
  { id, movedTo }: UnmigratedDatabase,
  limit: number,
): Promise<OldLogEntry[]> {
  return transaction.all<OldLogEntry>(
    `select l.sequence, l.committed_at, l.action, l.key, l.cursor, l.upstream_at, coalesce(l.exact, l.record::text) as text, coalesce(c.sync_id, 0) as sync_id,
       n.sequence as until_sequence, n.committed_at as until_at, b.sequence as created,
       coalesce(r.owner_id, 0) as owner_id, coalesce(r.sequence = l.sequence and r.status = 0, false) as is_current,
       r.hash as row_hash, r.upstream_at as row_upstream_at, coalesce(r.writer_id, 0) as row_writer
     from (select * from tidemark.old_log where tenant_id = $1 and database_id = $2 and sequence > $3 order by sequence limit ${limit}) l
     left join lateral (select sync_id from tidemark.old_commits where tenant_id = $1 and committed_at = l.committed_at limit 1) c on true
     left join lateral (
       select sequence, committed_at from tidemark.old_log where tenant_id = $1 and database_id = $2 and key = l.key and sequence > l.sequence order by sequence limit 1
     ) n on true
     left join lateral (
       select sequence from tidemark.old_log where tenant_id = $1 and database_id = $2 and key = l.key and sequence <= l.sequence and action = 1 order by sequence desc limit 1
     ) b on true
     left join lateral (
       select sequence, status, hash, upstream_at, writer_id, owner_id from tidemark.old_rows where tenant_id = $1 and database_id = $2 and key = l.key limit 1
     ) r on true
     order by l.sequence`,
    transaction.tenant,
    id,
    movedTo,
  )
}

async function moveEntries(transaction: Transaction, known: Table, entries: readonly OldLogEntry[]): Promise<void> {
  const [first, last] = [
    required(entries[0], 'The first entry').sequence,
    required(entries.at(-1), 'The last entry').sequence,
  ]
  const versions = entries.flatMap(({ action, text, ...entry }) =>
    action === 3 || text === null ? [] : [{ ...entry, action, text, record: parseJson(text) as JsonObject }],
  )
  const table =
    versions.length === 0
      ? known
      : await growTable(
          transaction,
          known,
          versions.map(({ record }) => record),
          first,
        )
  const [current, replaced]: [ColumnValue[][], ColumnValue[][]] = [[], []]
  for (const { record, ...entry } of versions) {
    const { values, extra } = table.encode(record, entry.text)
    const isCurrent = entry.is_current
    const row = [
      entry.key,
      entry.sequence,
      entry.action === 1 ? entry.sequence : (entry.created ?? 0),
      isCurrent ? entry.row_hash : hash('sha1', entry.text, 'base64').slice(0, 16),
      isCurrent ? entry.row_upstream_at : entry.upstream_at,
      entry.committed_at,
      entry.cursor,
      isCurrent ? entry.row_writer : entry.sync_id,
      entry.owner_id,
      extra,
      ...table.members.map(({ at }) => values[at] ?? null),
    ]
    if (isCurrent) current.push(row)
    else if (entry.until_sequence !== null) replaced.push([entry.until_sequence, entry.until_at, ...row])
  }
  if (current.length > 0) copyRows(transaction, table, current)
  if (replaced.length > 0) copyHistory(transaction, table, replaced)
  transaction.send(
    `insert into tidemark.deletions (tenant_id, sequence, database_id, key, upstream_at)
     select tenant_id, sequence, database_id, key, ${UPSTREAM_AT_SQL} from tidemark.old_log
     where tenant_id = $1 and database_id = $2 and sequence between $3 and $4 and action = 3`,
    transaction.tenant,
    table.id,
    first,
    last,
  )
}

/** Fills the commit directory, tombstones, contests and holdings. It is idempotent: an interrupted run starts over. */
async function migrateRemainder(transaction: Transaction): Promise<void> {
  const { tenant } = transaction
  for (const name of ['commits', 'tombstones', 'contests', 'holdings'])
    await transaction.run(`delete from tidemark.${name} where tenant_id = $1`, tenant)
  const { last } = await transaction.one<{ last: number | null }>(
    'select max(sequence) as last from tidemark.old_log where tenant_id = $1',
    tenant,
  )
  for (let after = 0; after < (last ?? 0); after += DIRECTORY_CHUNK) {
    // One row per run of equal commit and database: older versions did not order a commit by database.
    await transaction.runLong(
      `insert into tidemark.commits (tenant_id, first_sequence, last_sequence, database_id, sync_id, cycle_id, page, committed_at)
       select $1, min(e.sequence), max(e.sequence), e.database_id, coalesce(c.sync_id, 0), coalesce(c.cycle_id, 0), coalesce(c.page, 0), e.committed_at
       from (
         select *, count(*) filter (where is_first) over (order by sequence) as run from (
           select sequence, database_id, committed_at,
             (lag(database_id) over by_sequence, lag(committed_at) over by_sequence) is distinct from (database_id, committed_at) as is_first
           from tidemark.old_log where tenant_id = $1 and sequence > $2 and sequence <= $3 window by_sequence as (order by sequence)
         ) marked
       ) e
       left join lateral (select * from tidemark.old_commits where tenant_id = $1 and committed_at = e.committed_at limit 1) c on true
       group by e.run, e.database_id, e.committed_at, c.sync_id, c.cycle_id, c.page`,
      tenant,
      after,
      after + DIRECTORY_CHUNK,
    )
  }
  await transaction.runLong(
    `insert into tidemark.tombstones (tenant_id, database_id, key, sequence, status, upstream_at, writer_id, owner_id)
     select tenant_id, database_id, key, sequence, status, ${UPSTREAM_AT_SQL}, writer_id, owner_id from tidemark.old_rows where tenant_id = $1 and status <> 0`,
    tenant,
  )
  await transaction.runLong(
    `insert into tidemark.contests (tenant_id, database_id, key, cycle_id)
     select tenant_id, database_id, key, contested_by from tidemark.old_rows where tenant_id = $1 and contested_by is not null`,
    tenant,
  )
  await transaction.runLong(
    'insert into tidemark.holdings (tenant_id, owner_id, database_id) select distinct tenant_id, owner_id, database_id from tidemark.old_rows where tenant_id = $1 and status = 0',
    tenant,
  )
}
