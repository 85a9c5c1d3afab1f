import { SyncError, type SyncContext } from '../../contract/index.ts'
import { toSyncError } from '../kit/postgres/failures.ts'
import { connect, PostgresSession, quoteName, describeServer } from '../kit/postgres/session.ts'
import { formatLsn, parseLsn, type Lsn } from './lsn.ts'
import type { ReplicationOptions } from './replication-stream.ts'
import type { ReplicatedTable } from './replicated-tables.ts'

export interface SlotStatus {
  /** What was acknowledged: nothing before it can be asked for again. */
  readonly confirmedLsn: Lsn
  /** How far the log has come on the server's disk. */
  readonly flushedLsn: Lsn
}

/** The slot, if it still holds everything since the position; else HISTORY_LOST. */
export async function checkSlot(session: PostgresSession, { slot, publication }: ReplicationOptions, tables: readonly ReplicatedTable[], since: Lsn, context: SyncContext): Promise<SlotStatus> {
  const [found] = await session.queryObjects<{ confirmed: string | null; flushed: string; status: string | null; plugin: string; lag: string }>(
    `select confirmed_flush_lsn::text as confirmed, pg_current_wal_flush_lsn()::text as flushed, wal_status as status, plugin,
      pg_wal_lsn_diff(pg_current_wal_flush_lsn(), confirmed_flush_lsn)::text as lag from pg_replication_slots where slot_name = $1 and database = current_database()`, [slot],
  )
  if (found === undefined) throw historyLostError(`the replication slot "${slot}" is gone`)
  if (found.status === 'lost' || found.confirmed === null) throw historyLostError(`the server gave up the replication slot "${slot}", whose log had grown too long`)
  const confirmed = parseLsn(found.confirmed)
  // The server would silently begin there, as if nothing lay between.
  if (confirmed > since) throw historyLostError(`more has been acknowledged on the replication slot "${slot}" than is landed here: the store was put back, or somebody else reads from the slot`)
  const published = await listPublishedTables(session, publication)
  const missing = tables.find(({ id }) => !published.has(id))
  if (missing !== undefined) throw historyLostError(`${missing.id} is not part of the publication "${publication}"`)
  const facts = { slot, lagBytes: Number(found.lag), status: found.status ?? 'unknown' }
  if (found.status === 'unreserved') context.log.warn('the server is about to give up the replication slot: run more often, or raise max_slot_wal_keep_size', facts)
  else context.log.info('replication slot', facts)
  return { confirmedLsn: confirmed, flushedLsn: parseLsn(found.flushed) }
}

/** Everything before it is landed: the server may forget it. Nobody must be reading; a reader that is about to be noticed as gone makes it wait for the next cycle. */
export async function advanceSlot(session: PostgresSession, slot: string, lsn: Lsn): Promise<void> {
  await session.query('select pg_replication_slot_advance($1, $2::pg_lsn)', [slot, formatLsn(lsn)]).catch((error: unknown) => {
    if (!(error instanceof SyncError && error.code === 'SOURCE_UNAVAILABLE')) throw error
  })
}

/** Without it a server keeps too little in its log to tell rows from it. */
export async function requireLogicalWal(session: PostgresSession): Promise<void> {
  const { rows } = await session.query("select current_setting('wal_level')")
  if (rows[0]![0] !== 'logical') throw new SyncError('SYNC_INVALID', `The server writes its log at the level ${rows[0]![0]}. Run: ALTER SYSTEM SET wal_level = logical, and restart it.`)
}

export interface SlotSnapshot {
  readonly lsn: string
  /** Everything as it was at that very place of the log, for as long as the session is open. */
  readonly session: PostgresSession
}

/** A new slot; an old one of that name is of no more use to anybody here. */
export async function createSlot(session: PostgresSession, publisher: ReplicationOptions, tables: readonly ReplicatedTable[], signal: AbortSignal): Promise<SlotSnapshot> {
  const { url, slot, publication } = publisher
  await ensurePublished(session, publication, tables)
  const [old] = await session.queryObjects<{ pid: number | null }>('select active_pid as pid from pg_replication_slots where slot_name = $1', [slot])
  if (old !== undefined && old.pid !== null) throw new SyncError('SOURCE_UNAVAILABLE', `The replication slot "${slot}" is being read from by the process ${old.pid} of the server.`)
  if (old !== undefined) await session.query('select pg_drop_replication_slot($1)', [slot])

  const where = describeServer(url)
  const client = await connect(url, where, signal, { replication: 'database' })
  try {
    const created = await client.query<{ consistent_point: string; snapshot_name: string }>(`CREATE_REPLICATION_SLOT ${quoteName(slot)} LOGICAL pgoutput EXPORT_SNAPSHOT`)
    const { consistent_point: lsn, snapshot_name: name } = created.rows[0]!
    const snapshot = await PostgresSession.open(url, signal)
    // The snapshot lives on in the transaction that takes it, when the connection that made it is closed.
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

/** Whether somebody is reading all rows as they were when the slot was made: changes must not get ahead of that. */
export async function isSnapshotInUse(session: PostgresSession, slot: string): Promise<boolean> {
  const { rows } = await session.query(`select pg_try_advisory_xact_lock(${buildLockKey(slot)})`)
  return rows[0]![0] === 'f'
}

function buildLockKey(slot: string): string {
  return `hashtextextended('tidemark slot ' || '${slot.replaceAll("'", "''")}', 0)`
}

async function ensurePublished(session: PostgresSession, publication: string, tables: readonly ReplicatedTable[]): Promise<void> {
  const published = await listPublishedTables(session, publication)
  const missing = tables.filter(({ id }) => !published.has(id)).map(({ quoted }) => quoted).join(', ')
  if (missing === '') return
  const [known] = await session.queryObjects('select 1 from pg_publication where pubname = $1', [publication])
  const name = quoteName(publication)
  const statement = known === undefined ? `CREATE PUBLICATION ${name} FOR TABLE ${missing} WITH (publish_via_partition_root = true)` : `ALTER PUBLICATION ${name} ADD TABLE ${missing}`
  try {
    await session.query(statement)
  } catch (error) {
    if (error instanceof SyncError && error.code === 'SOURCE_FORBIDDEN') throw new SyncError(error.code, `The account may not publish these tables. As their owner, run: ${statement}`, { cause: error })
    throw error
  }
}

async function listPublishedTables(session: PostgresSession, publication: string): Promise<Set<string>> {
  const { rows } = await session.query("select schemaname || '.' || tablename from pg_publication_tables where pubname = $1", [publication])
  return new Set(rows.map(([id]) => id!))
}

function historyLostError(what: string): SyncError {
  return new SyncError('HISTORY_LOST', `The changes since the stored position cannot be had any more: ${what}.`)
}
