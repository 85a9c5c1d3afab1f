import type { Checkpoint, Lease, SyncRef } from '../checkpoint.ts'
import type { Compacted, CompactRequest, FeedPage, FeedQuery } from '../feed.ts'
import type { Store, AcquireRequest, Acquired, Held, Erased, Occupied, CycleReport, BeginRequest, Begun, Commit, CommitOutcome, StandingsQuery, Standings, Ear, Listening, ChangesQuery, LogEntry, Row, DatabaseInfo } from '../store.ts'

/**
 * Leases, cycles, commits and the copy itself: tuned by hand for every database. All other roles are written once, over the
 * SQL port in stores/kit/sql.
 */
export interface Kernel {
  readonly tenant: string
  /** Set when the database is a copy that follows another, perhaps a little behind: it can be read, and what would write is refused (STORE_READONLY). */
  readonly isReplica?: boolean
  /**
   * The store can keep deleted rows in their tables, with `_deleted_at`: it follows Commit.deletes. A sync whose databases ask for
   * that does not run on a store without it. Nothing but the tables themselves shows such rows.
   */
  readonly keepsDeleted?: true
  /** The same database, for another tenant. Shares connections; close only the store that was opened. */
  forTenant(tenant: string): Store
  close(): Promise<void>
  /**
   * Takes the sync if nobody holds it, or its holder's time is over. The epoch grows with every acquire. Throws
   * STATE_ROLLED_BACK as `read` does, and so does `begin`.
   */
  acquire(ref: SyncRef, request: AcquireRequest): Promise<Acquired | Held>
  /** False when the lease is no longer ours. */
  renew(lease: Lease, request: { ttlMs: number; at: number }): Promise<boolean>
  /**
   * Ends the lease and, with a report, closes the cycle's record: pages and counts were added up by the commits, so that
   * a crash loses none; retries and waiting are added here. Does nothing for a stale lease.
   */
  release(lease: Lease, report?: CycleReport): Promise<void>
  /** Starts a cycle, or takes up the unfinished one. Legal only with a valid lease; null when it is not. */
  begin(lease: Lease, request: BeginRequest): Promise<Begun | null>
  /** The one door: rows, log, sweep and checkpoint move together or not at all. */
  commit(commit: Commit): Promise<CommitOutcome>
  /**
   * Of a sync that never ran: version 0 and nothing else. Throws STATE_ROLLED_BACK when the row contradicts the audit log or
   * the record of cycles; with `forRepair` it is then shown at the version of the audit log, and without a state.
   */
  read(ref: SyncRef, options?: { forRepair?: boolean }): Promise<Checkpoint>
  /** Where all of them stand, or those that moved since; one question for any number of syncs. */
  standings(query: StandingsQuery): Promise<Standings>
  /**
   * Tells at once, across processes, of what somebody idle may be waiting for: a signal, or a lease given back. A help and
   * no promise: whoever listens also asks now and then, and a store that has no way to tell is never live.
   */
  listen(ear: Ear): Listening
  /** The newest sequence; 0 when nothing has landed. */
  position(): Promise<number>
  /** Log entries with a sequence above `after`, ascending. */
  changes(query: ChangesQuery): Promise<LogEntry[]>
  /** Live rows in key order (by UTF-8 bytes), above `after`. */
  /** With `bytesMax` a page ends once its records have that many bytes, so a short page need not be the last. */
  rows(query: { database: string; after?: string; limit: number; bytesMax?: number }): Promise<Row[]>
  row(database: string, key: string): Promise<Row | null>
  /** Every log entry of one key, ascending: why the row is as it is. */
  history(database: string, key: string): Promise<LogEntry[]>
  databases(): Promise<DatabaseInfo[]>
  /** The log as the feed serves it; see FeedQuery. */
  feed(query: FeedQuery): Promise<FeedPage>
  /** The newest sequence committed before this time, in ms: whoever reads on from it misses nothing of that time and later. */
  sequenceBefore(time: number): Promise<number>
  /**
   * Forgets entries that no row stands on, from the oldest on, and moves the floor with them; and records of cycles that none
   * of what is left came with. What a cycle under way may still count stays, and so do the newest cycles of every sync, the
   * last complete one, and the one its checkpoint comes from.
   */
  compact(request: CompactRequest): Promise<Compacted>
  /**
   * Erases everything of this tenant for good, with the keys of its states: what a copy elsewhere still holds of them opens
   * no more. Its name and its sequence stay, so that nobody takes what comes later for what was, and a new trail begins
   * with the record of the erasure. Refused while a lease runs. What ran out before is worth nothing for ever: epochs go on
   * from where they were. The tenant is back with the first signal, key or run that somebody asks for.
   */
  erase(by: { actor: string; at: number }): Promise<Erased | Occupied>
}
