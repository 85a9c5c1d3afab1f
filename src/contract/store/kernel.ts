import type { CompactResult, CompactRequest, FeedPage, FeedQuery } from '../feed.ts'
import type {
  Store,
  EraseResult,
  TenantBusy,
  Commit,
  CommitOutcome,
  SyncStatusQuery,
  SyncStatusList,
  Listener,
  Subscription,
  ChangesQuery,
  LogEntry,
  Row,
  RowValues,
  DatabaseInfo,
} from '../store.ts'

/**
 * Commits and reads of the copy, tuned for every database. All other roles are written once, over the SQL port in
 * stores/kit/sql.
 */
export interface Kernel {
  readonly tenant: string
  /** Set if the database is a read replica, which may lag: reads work, writes are refused (STORE_READONLY). */
  readonly isReplica?: boolean
  /**
   * The store can keep deleted rows in their tables, with `_deleted_at`: it follows Commit.deletes. A sync that needs
   * this does not run on a store without it. Only the tables themselves show such rows.
   */
  readonly supportsSoftDeletes?: true
  /**
   * The store follows Sweep.within. Without it, a read of single partitions deletes nothing.
   */
  readonly supportsScopedSweeps?: true
  /** The same database for another tenant. Shares connections; close only the store that was opened. */
  forTenant(tenant: string): Store
  close(): Promise<void>
  /** The only write path: rows, log, sweep and checkpoint are committed atomically. */
  commit(commit: Commit): Promise<CommitOutcome>
  /** The status of all syncs, or of those that changed since; one query for any number of syncs. */
  listSyncStatus(query: SyncStatusQuery): Promise<SyncStatusList>
  /**
   * Notifies idle processes of signals and released leases, across processes. Best effort: a listener must also poll,
   * and a store without notifications never reports itself connected.
   */
  subscribe(listener: Listener): Subscription
  /** Log entries with a sequence above `after`, ascending. */
  changes(query: ChangesQuery): Promise<LogEntry[]>
  /**
   * Live rows in key order (by UTF-8 bytes), above `after`. With `bytesMax` a page ends once its records reach that
   * many bytes, so a short page need not be the last.
   */
  rows(query: RowsQuery): Promise<Row[]>
  /**
   * The same rows as values, which is faster for a reader that needs no text. Null if the table cannot be read so at the
   * moment, and absent if the store cannot: `rows` always can.
   */
  rowValues?(query: RowsQuery): Promise<RowValues | null>
  row(database: string, key: string): Promise<Row | null>
  /** Every log entry of one key, ascending. */
  history(database: string, key: string): Promise<LogEntry[]>
  databases(): Promise<DatabaseInfo[]>
  /** The log as the feed serves it; see FeedQuery. */
  feed(query: FeedQuery): Promise<FeedPage>
  /**
   * Deletes log entries, oldest first, except the current version of each row, and raises the floor; then deletes cycle
   * records that no remaining entry refers to. Entries that a running cycle may still need stay, as do the newest
   * cycles of every sync, its last complete one, and the one its checkpoint comes from.
   */
  compact(request: CompactRequest): Promise<CompactResult>
  /**
   * Erases all data of this tenant permanently, including the keys of its states, so that backups of them cannot be
   * decrypted. Its name, sequence and epochs continue, so that later data is not mistaken for erased data and expired
   * leases stay fenced off. A new audit log begins with the record of the erasure. Refused while a lease is held. The
   * first signal, API key or manual run revives the tenant.
   */
  eraseTenant(by: { actor: string; at: number }): Promise<EraseResult | TenantBusy>
}

/** A page of the rows of a database. */
export interface RowsQuery {
  readonly database: string
  /** The key that the page follows; absent for the first page. */
  readonly after?: string
  readonly limit: number
  readonly bytesMax?: number
}
