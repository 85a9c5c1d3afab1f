import { SyncError, type SyncContext } from '../../contract/index.ts'
import { required } from '../../values/required.ts'
import { toSyncError } from '../kit/postgres/failures.ts'
import { connect, PostgresSession, quoteName, describeServer } from '../kit/postgres/session.ts'
import { formatLsn, parseLsn, type Lsn } from './lsn.ts'
import type { ReplicationOptions } from './replication-stream.ts'
import type { ReplicatedTable } from './replicated-tables.ts'

export interface SlotStatus {
  /** Acknowledged: nothing before it can be read again. */
  readonly confirmedLsn: Lsn
  /** End of the log on the server's disk. */
  readonly flushedLsn: Lsn
}

/** Returns the slot if it still has everything since the LSN; otherwise throws HISTORY_LOST. */
export async function checkSlot(
  session: PostgresSession,
  { slot, publication }: ReplicationOptions,
  tables: readonly ReplicatedTable[],
  since: Lsn,
  context: SyncContext,
): Promise<SlotStatus> {
  const [found] = await session.queryObjects<{
    confirmed: string | null
    flushed: string
    status: string | null
    plugin: string
    lag: string
  }>(
    `select confirmed_flush_lsn::text as confirmed, pg_current_wal_flush_lsn()::text as flushed, wal_status as status, plugin,
      pg_wal_lsn_diff(pg_current_wal_flush_lsn(), confirmed_flush_lsn)::text as lag from pg_replication_slots where slot_name = $1 and database = current_database()`,
    [slot],
  )
  if (found === undefined) throw historyLostError(`the replication slot "${slot}" does not exist`)
  if (found.status === 'lost' || found.confirmed === null)
    throw historyLostError(`the server invalidated the replication slot "${slot}" because its log had grown too large`)
  const confirmed = parseLsn(found.confirmed)
  // The server would silently start at the acknowledged LSN and skip everything in between.
  if (confirmed > since)
    throw historyLostError(
      `the replication slot "${slot}" is acknowledged beyond the committed state: the store was restored from a backup, or another client reads from the slot`,
    )
  const published = await listPublishedTables(session, publication)
  const missing = tables.find(({ id }) => !published.has(id))
  if (missing !== undefined) throw historyLostError(`${missing.id} is not part of the publication "${publication}"`)
  const facts = { slot, lagBytes: Number(found.lag), status: found.status ?? 'unknown' }
  if (found.status === 'unreserved')
    context.log.warn(
      'the server is about to invalidate the replication slot: run the sync more often, or raise max_slot_wal_keep_size',
      facts,
    )
  else context.log.info('replication slot', facts)
  return { confirmedLsn: confirmed, flushedLsn: parseLsn(found.flushed) }
}

/**
 * Everything before the LSN is committed, so the server may discard it. Legal only while no client reads the slot; a
 * disconnected reader that the server has not noticed yet defers it to the next cycle.
 */
export async function advanceSlot(session: PostgresSession, slot: string, lsn: Lsn): Promise<void> {
  await session
    .query('select pg_replication_slot_advance($1, $2::pg_lsn)', [slot, formatLsn(lsn)])
    .catch((error: unknown) => {
      if (!(error instanceof SyncError && error.code === 'SOURCE_UNAVAILABLE')) throw error
    })
}

/** At a lower level the log has too little detail to decode rows. */
export async function requireLogicalWal(session: PostgresSession): Promise<void> {
  const {
    rows: [[level] = []],
  } = await session.query("select current_setting('wal_level')")
  if (level !== 'logical')
    throw new SyncError(
      'SYNC_INVALID',
      `The server runs with wal_level = ${level}. Run: ALTER SYSTEM SET wal_level = logical, and restart it.`,
    )
}

export interface SlotSnapshot {
  readonly lsn: string
  /** Sees all rows as of that LSN, as long as the session is open. */
  readonly session: PostgresSession
}

/** Creates a slot and drops an old one of the same name, which is obsolete. */
export async function createSlot(
  session: PostgresSession,
  publisher: ReplicationOptions,
  tables: readonly ReplicatedTable[],
  signal: AbortSignal,
): Promise<SlotSnapshot> {
  const { url, slot, publication } = publisher
  await ensurePublished(session, publication, tables)
  const [old] = await session.queryObjects<{ pid: number | null }>(
    'select active_pid as pid from pg_replication_slots where slot_name = $1',
    [slot],
  )
  if (old !== undefined && old.pid !== null)
    throw new SyncError(
      'SOURCE_UNAVAILABLE',
      `The replication slot "${slot}" is in use by server process ${old.pid}. Stop the other reader, or set another \`slot\`.`,
    )
  if (old !== undefined) await session.query('select pg_drop_replication_slot($1)', [slot])

  const where = describeServer(url)
  const client = await connect(url, where, signal, { replication: 'database' })
  try {
    const created = await client.query<{ consistent_point: string; snapshot_name: string }>(
      `CREATE_REPLICATION_SLOT ${quoteName(slot)} LOGICAL pgoutput EXPORT_SNAPSHOT`,
    )
    const { consistent_point: lsn, snapshot_name: name } = required(created.rows[0], 'the created slot')
    const snapshot = await PostgresSession.open(url, signal)
    // The snapshot survives in the transaction that imports it after the exporting connection is closed.
    await snapshot.query('begin isolation level repeatable read read only')
    await snapshot.query(`set transaction snapshot '${name.replaceAll("'", "''")}'`)
    await snapshot.query(`select pg_advisory_lock(${buildLockKey(slot)})`)
    return { lsn, session: snapshot }
  } catch (error) {
    throw signal.aborted ? signal.reason : toSyncError(error, where)
  } finally {
    await client.end().catch(() => {})
  }
}

/** Whether another process is reading the slot's initial snapshot: changes must not overtake it. */
export async function isSnapshotInUse(session: PostgresSession, slot: string): Promise<boolean> {
  const {
    rows: [[isLocked] = []],
  } = await session.query(`select pg_try_advisory_xact_lock(${buildLockKey(slot)})`)
  return isLocked === 'f'
}

function buildLockKey(slot: string): string {
  return `hashtextextended('tidemark slot ' || '${slot.replaceAll("'", "''")}', 0)`
}

async function ensurePublished(
  session: PostgresSession,
  publication: string,
  tables: readonly ReplicatedTable[],
): Promise<void> {
  const published = await listPublishedTables(session, publication)
  const missing = tables
    .filter(({ id }) => !published.has(id))
    .map(({ quoted }) => quoted)
    .join(', ')
  if (missing === '') return
  const [existing] = await session.queryObjects('select 1 from pg_publication where pubname = $1', [publication])
  const name = quoteName(publication)
  const statement =
    existing === undefined
      ? `CREATE PUBLICATION ${name} FOR TABLE ${missing} WITH (publish_via_partition_root = true)`
      : `ALTER PUBLICATION ${name} ADD TABLE ${missing}`
  try {
    await session.query(statement)
  } catch (error) {
    if (error instanceof SyncError && error.code === 'SOURCE_FORBIDDEN')
      throw new SyncError(
        error.code,
        `The account is not allowed to publish these tables. As their owner, run: ${statement}`,
        { cause: error },
      )
    throw error
  }
}

async function listPublishedTables(session: PostgresSession, publication: string): Promise<Set<string>> {
  const { rows } = await session.query(
    "select schemaname || '.' || tablename from pg_publication_tables where pubname = $1",
    [publication],
  )
  return new Set(rows.flatMap(([id]) => id ?? []))
}

function historyLostError(what: string): SyncError {
  return new SyncError(
    'HISTORY_LOST',
    `The changes since the stored LSN are no longer available: ${what}. A backfill follows.`,
  )
}
