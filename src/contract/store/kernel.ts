import type { CompactResult, CompactRequest, FeedPage, FeedQuery } from '../feed.ts'
import type { Store, EraseResult, TenantBusy, Commit, CommitOutcome, SyncStatusQuery, SyncStatusList, Listener, Subscription, ChangesQuery, LogEntry, Row, DatabaseInfo } from '../store.ts'

/**
 * Commits and the copy itself: tuned by hand for every database. All other roles are written once, over the SQL port in
 * stores/kit/sql.
 */
export interface Kernel {
  readonly tenant: string
  /** Set when the database is a copy that follows another, perhaps a little behind: it can be read, and what would write is refused (STORE_READONLY). */
  readonly isReplica?: boolean
  /**
   * The store can keep deleted rows in their tables, with `_deleted_at`: it follows Commit.deletes. A sync whose databases ask for
   * that does not run on a store without it. Nothing but the tables themselves shows such rows.
   */
  readonly supportsSoftDeletes?: true
  /** The same database, for another tenant. Shares connections; close only the store that was opened. */
  forTenant(tenant: string): Store
  close(): Promise<void>
  /** The one door: rows, log, sweep and checkpoint move together or not at all. */
  commit(commit: Commit): Promise<CommitOutcome>
  /** Where all of them stand, or those that moved since; one question for any number of syncs. */
  listSyncStatus(query: SyncStatusQuery): Promise<SyncStatusList>
  /**
   * Tells at once, across processes, of what somebody idle may be waiting for: a signal, or a lease given back. A help and
   * no promise: whoever listens also asks now and then, and a store that has no way to tell is never live.
   */
  subscribe(ear: Listener): Subscription
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
  /**
   * Forgets entries that no row stands on, from the oldest on, and moves the floor with them; and records of cycles that none
   * of what is left came with. What a cycle under way may still count stays, and so do the newest cycles of every sync, the
   * last complete one, and the one its checkpoint comes from.
   */
  compact(request: CompactRequest): Promise<CompactResult>
  /**
   * Erases everything of this tenant for good, with the keys of its states: what a copy elsewhere still holds of them opens
   * no more. Its name and its sequence stay, so that nobody takes what comes later for what was, and a new trail begins
   * with the record of the erasure. Refused while a lease runs. What ran out before is worth nothing for ever: epochs go on
   * from where they were. The tenant is back with the first signal, key or run that somebody asks for.
   */
  eraseTenant(by: { actor: string; at: number }): Promise<EraseResult | TenantBusy>
}
