import type { Checkpoint, Inflight, Lease, CheckpointSummary, StateText, SyncRef } from './checkpoint.ts'
import type { ErrorCode } from './errors.ts'
import type { JsonValue } from './json.ts'
import type { AsOf, Mode } from './page.ts'
import type { Kernel } from './store/kernel.ts'
import type { LeaseStore } from './store/leases.ts'
import type { SequenceStore } from './store/sequences.ts'
import type { SyncDirectory } from './store/syncs.ts'
import type { TenantDirectory } from './store/tenants.ts'
import type { AuditLog } from './store/audit.ts'
import type { DataKeyStore } from './store/data-keys.ts'
import type { PacingStore } from './store/pacing.ts'
import type { PartitionStore } from './store/partitions.ts'
import type { QuarantineStore, QuarantinedRecord } from './store/quarantine.ts'
import type { ApiKeyStore } from './store/api-keys.ts'
import type { ColumnStore } from './store/columns.ts'
import type { CursorSecretStore } from './store/cursor-secrets.ts'
import type { ConnectSessionStore } from './store/connect-sessions.ts'
import type { ConnectionStore } from './store/connections.ts'
import type { ConsumerStore } from './store/consumers.ts'
import type { WebhookStore } from './store/webhooks.ts'
import type { InboundStore } from './store/inbound.ts'
import type { DestinationStore } from './store/destinations.ts'
import type { DeleteMode } from './delete-mode.ts'
import type { SchemaMode } from './schema.ts'
import type { RowSearchStore } from './store/row-search.ts'
import type { SchemaStore } from './store/schemas.ts'
import type { VerificationStore } from './store/verifications.ts'
import type { CommitShape } from './table-shape.ts'

/**
 * The contract of a store. A store is bound to one tenant: no method takes a tenant, so none can take a wrong one
 * (invariant 10). `describeStore` in tidemark/testing is the same contract as a test suite.
 *
 * Every `at` is the caller's clock in milliseconds. A store with its own clock (PostgreSQL) uses that clock for leases.
 * No guarantee depends on either clock, only on epochs.
 */
export interface Store
  extends
    Kernel,
    LeaseStore,
    SequenceStore,
    SyncDirectory,
    TenantDirectory,
    AuditLog,
    DataKeyStore,
    PacingStore,
    PartitionStore,
    QuarantineStore,
    ApiKeyStore,
    ColumnStore,
    CursorSecretStore,
    ConnectSessionStore,
    ConnectionStore,
    ConsumerStore,
    WebhookStore,
    InboundStore,
    DestinationStore,
    RowSearchStore,
    SchemaStore,
    VerificationStore {}

/** Selects the syncs whose status is read. */
export interface SyncStatusQuery {
  readonly at: number
  /** Cycles to return per sync, newest first. */
  readonly recent: number
  /** Return only this sync. */
  readonly ref?: SyncRef
  /** A change token from an earlier result of this store: syncs unchanged since then may be omitted. */
  readonly changedSince?: string
}

/** The status of syncs, with a token to read only later changes. */
export interface SyncStatusList {
  /** The clock that leases are compared with: the store's own, or else the `at` of the query. */
  readonly now: number
  readonly changeToken: string
  /** Syncs that never ran and were never signalled are absent. */
  readonly syncs: readonly SyncStatusRow[]
}

/** The checkpoint of a sync and its most recent cycles. */
export interface SyncStatusRow extends SyncRef {
  readonly checkpoint: CheckpointSummary
  readonly recent: readonly CycleRecord[]
}

/** Receives notifications of changes that other processes commit. */
export interface Listener {
  /** The tenants to report changes of. */
  readonly tenants: readonly string[]
  onChange(tenant: string): void
  /** Connections of any tenant changed; see ConnectionStore.connectionChanges. */
  onConnectionsChange?(): void
  /**
   * Reports whether notifications arrive, each time that changes. Changes before it became true may have been missed.
   */
  onConnected(connected: boolean): void
}

/** A listener that is registered with a store, until it is closed. */
export interface Subscription {
  /** Adds a tenant to report changes of. */
  addTenant(tenant: string): void
  close(): Promise<void>
}

/** A request for the lease of a sync. */
export interface AcquireRequest {
  readonly holder: string
  readonly ttlMs: number
  readonly at: number
  /**
   * A holder known to have exited: its lease is taken before it expires. If it still runs, its old epoch fences it off.
   */
  readonly evictHolder?: string
  /**
   * An operator resets the state: a row that contradicts the audit log is set to the audit log's version, without a
   * state.
   */
  readonly forRepair?: boolean
  /** The run was not requested by a person: it throws TENANT_ERASED if the tenant was erased and not revived. */
  readonly automatic?: boolean
}

/** The lease was acquired. Its epoch fences off all earlier holders. */
export interface LeaseAcquired {
  readonly kind: 'acquired'
  readonly lease: Lease
  readonly checkpoint: Checkpoint
}

/** Another holder has the lease until it expires. */
export interface LeaseHeld {
  readonly kind: 'held'
  readonly holder: string
  readonly expiresAt: number
}

/** The effect of erasing a tenant. */
export interface EraseResult {
  readonly kind: 'erased'
  readonly syncs: number
  /** Deleted entries of the log and of every other table. */
  readonly entries: number
  /** Where deleted bytes may remain until they are overwritten; null if nowhere in this database. */
  readonly remains: string | null
}

/** A lease of the tenant is held. Nothing was erased. */
export interface TenantBusy extends LeaseHeld {
  readonly ref: SyncRef
}

/** A request to start or resume a cycle under a lease. */
export interface BeginRequest {
  readonly at: number
  readonly mode: Mode
  readonly trigger: string
  /** Discard the unfinished cycle and start over from `committed`. */
  readonly fresh: boolean
  /** The databases the sync writes. Each gets its view at once, even while it is empty. */
  readonly databases: readonly string[]
  /** The column rules in force. See ColumnRulesInForce. */
  readonly rules?: ColumnRulesInForce
}

/** The fingerprints of the column rules of a sync's databases; '' for a database without rules. */
export interface ColumnRulesInForce {
  /** The sync that reads every record: this one, or the backfill of a delta. */
  readonly sync: string
  readonly fingerprints: Readonly<Record<string, string>>
}

/** The cycle that was started or resumed. */
export interface BeginResult {
  readonly inflight: Inflight
  readonly resumed: boolean
  /** The tenant's newest sequence. */
  readonly headSequence: number
  /** By database, the fields of all records committed so far. */
  readonly columns: Readonly<Record<string, readonly Column[]>>
  /** The databases whose rows may follow other column rules than those in force. */
  readonly changedRules?: readonly string[]
}

// ── the commit ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** One page with its state transition: everything that `Store.commit` writes in one transaction. */
export interface Commit {
  readonly lease: Lease
  /** The registry version this commit is based on; any other version is a conflict. */
  readonly version: number
  readonly at: number
  readonly transition: StateTransition
  /**
   * The name under which a sync owns rows for its sweep. Syncs that maintain one database together (a backfill and its
   * delta) share it.
   */
  readonly owner: string
  /** Overrides `owner` by database: a delta that feeds several databases shares each with the backfill of that one. */
  readonly owners?: Readonly<Record<string, string>>
  /** At most one per database and key. */
  readonly landings: readonly Landing[]
  readonly quarantined: readonly QuarantinedRecord[]
  /** Top-level fields of the records in this commit, by database; the store adds new ones to its view. */
  readonly columns: Readonly<Record<string, readonly Column[]>>
  /**
   * Declared types and keys, or those known from the source: on the first page of a cycle and whenever they change.
   */
  readonly shapes?: readonly CommitShape[]
  /**
   * The minimum retention of replaced versions and deletions by database, in days, regardless of the log's retention;
   * null for the log's retention.
   */
  readonly historyDays?: Readonly<Record<string, number | null>>
  /** The delete mode by database from this commit on; unchanged if absent. See Kernel.supportsSoftDeletes. */
  readonly deletes?: Readonly<Record<string, DeleteMode>>
  /**
   * The tenant's head sequence before this page was requested. A row that another sync wrote later was written while
   * the page was being read, so the two cannot be ordered by reading time.
   */
  readonly readAtSequence: number
  /**
   * A log that is read again (Page.isLog): `readAtSequence` is the start of the cycle, and rows written later are
   * newer.
   */
  readonly isHistoricalLog?: boolean
  /**
   * The start sequence of a listing that runs concurrently and writes the same databases. Changes without effect are
   * logged too, or the listing would treat its earlier read as newer: with times, if only the time advances or two
   * times are equal; without, unless this sync has already written the row since.
   */
  readonly forceLogSince?: number
  /** Two source times this close count as equal, for a source whose clock may step back. */
  readonly upstreamToleranceMs: number
  /** Set for every page of a replace cycle: the rules for its contested landings. */
  readonly listing?: ListingContext
  /** A description of how the records differ from earlier ones; logged with them. */
  readonly drift?: string
  /** The fingerprints of the column rules that the records follow, by database; absent without rules. */
  readonly columnRules?: Readonly<Record<string, string>>
  /** The schema mode by database, if not `evolve`. */
  readonly schemaModes?: Readonly<Record<string, SchemaMode>>
  /**
   * New states of partitions of this sync, at most one per key; null removes one. The transition `set` first removes all
   * partitions of the sync: they belong to the state that it replaces.
   */
  readonly partitions?: readonly PartitionChange[]
}

/** The new state of a partition in a commit; null removes it. */
export interface PartitionChange {
  readonly key: string
  readonly state: StateText
}

/**
 * A landing of a replace cycle is contested if it contradicts a stored version that has a later source time but was
 * committed before the page was requested. Either the page comes from a lagging replica, or the source's time went
 * back. The lookup decides; without its answer, the landing wins if an earlier cycle contested the same version too.
 */
export interface ListingContext {
  /**
   * Versions up to this sequence were committed at least the source's lag before the cycle began. A later version may
   * not be visible in the cycle's pages yet, so a second sighting does not decide against it.
   */
  readonly settledSequence: number
  /** The database whose contested keys can be looked up. If there are any, the outcome is `contested`. */
  readonly lookupDatabase?: string
  /** The lookup results for contested keys of its database. */
  readonly lookupAnswers?: {
    readonly database: string
    readonly confirmed: readonly string[]
    readonly refuted: readonly string[]
  }
}

/** The effect of a commit on the checkpoint. */
export type StateTransition =
  /** A page inside the cycle. `page` must be one more than the page of `inflight`. */
  | {
      readonly kind: 'continue'
      readonly cycle: number
      readonly page: number
      readonly state: StateText
      readonly tidemark: string | null
      readonly scope: string | null
      readonly guardState: string | null
    }
  /**
   * The last page: `committed` changes, `inflight` is cleared, the sweep runs, and the cycle is recorded as complete
   * even if the process exits before it releases the lease.
   */
  | {
      readonly kind: 'complete'
      readonly cycle: number
      readonly page: number
      readonly state: StateText
      readonly tidemark: string | null
      readonly scope: string | null
      readonly sweep: Sweep | null
      /** See Page.endReason. */
      readonly endReason?: string | null
    }
  /**
   * The last page of a cycle that must not count: its rows are committed, `inflight` is cleared, `committed` stays.
   */
  | { readonly kind: 'abandon'; readonly cycle: number; readonly page: number; readonly reason: string }
  /** Stores another state: an anchor, or an operator's choice. `inflight`, failures and the tidemark are cleared. */
  | {
      readonly kind: 'set'
      readonly state: StateText
      readonly actor: string
      readonly reason: string
      /** The copy contains everything up to this time; see Checkpoint.completeSince. Unchanged if absent. */
      readonly completeSince?: number
      /** Requests a backfill in the same transaction: `sync`, of the same worker, gets Checkpoint.backfillNeeded. */
      readonly backfillRequest?: { readonly sync: string; readonly reason: string }
    }
  /**
   * Replays quarantined records, as of `readAtSequence`: records that now pass are committed and removed from
   * quarantine, others stay with the new reason and their original time, and `superseded` entries are removed without a
   * commit. The checkpoint and an unfinished cycle do not change.
   */
  | { readonly kind: 'replay'; readonly actor: string; readonly reason: string; readonly superseded: readonly number[] }
  /**
   * Repairs rows that a verification found to differ. Its records were read from the source after `readAtSequence`, and
   * a second read confirmed them, so they win over every version committed before. The checkpoint and an unfinished
   * cycle do not change. The log entries have cycle 0 and the verification as their page.
   */
  | { readonly kind: 'repair'; readonly actor: string; readonly reason: string; readonly verification: number }
  /**
   * Rewrites stored rows by changed column rules. Its records were made from the rows as of `readAtSequence`, so they win
   * over every version committed before. Quarantined records of the same keys stay. The checkpoint and an unfinished
   * cycle do not change. The log entries have cycle 0 and page -1.
   */
  | { readonly kind: 'columns'; readonly actor: string; readonly reason: string }

/** The rules for deleting rows that a complete replace cycle did not return. */
export interface Sweep {
  /**
   * The delete limit: refuse to delete more than this share of the rows that the sync owned in one database at the
   * start of the cycle.
   */
  readonly maxShare: number
  /** Allow a sweep that deletes all of them. */
  readonly allowEmpty: boolean
  /** Keep rows with a later sequence: they are more recent than the source's lag (invariant 5). */
  readonly settledSequence?: number
  /**
   * Do not delete rows of this database yet: the outcome `absent` returns up to `limit` of their keys, evenly spaced.
   */
  readonly confirmAbsent?: { readonly database: string; readonly limit: number }
  /** Delete only rows of this scope, and count only them for the delete limit. See Kernel.supportsScopedSweeps. */
  readonly within?: SweepScope
  /** The actor that lifted the delete limit for this cycle. The sweep is then recorded in the audit log. */
  readonly allowedBy?: string
}

/** The rows whose column of this field has one of these values, compared as text. */
export interface SweepScope {
  readonly field: string
  readonly values: readonly string[]
}

/** A change ready to commit: checked, serialized and hashed once, identical for every store. */
export type Landing =
  | {
      readonly type: 'upsert'
      readonly database: string
      readonly key: string
      /** The record as JSON text. */
      readonly text: string
      /** The hash of `text`; equal hashes mean equal content. */
      readonly hash: string
      readonly cursor: string | null
      /** Canonical: UTC, six decimals, comparable as text. */
      readonly upstreamAt: string | null
      readonly asOf?: AsOf
    }
  | { readonly type: 'delete'; readonly database: string; readonly key: string; readonly upstreamAt: string | null }

/** `bigint`: an integer beyond 64 bits. */
export type ColumnKind = 'bigint' | 'boolean' | 'integer' | 'json' | 'number' | 'string'

/** A field of the records of a database, with the kinds of values seen in it. */
export interface Column {
  readonly name: string
  /** Every kind seen so far, sorted; empty if only nulls were seen. */
  readonly kinds: readonly ColumnKind[]
}

/** The result of a commit: landed, or the reason why nothing was written. */
export type CommitOutcome =
  | {
      readonly kind: 'landed'
      readonly version: number
      readonly headSequence: number
      readonly counts: LandingCounts
      /** The sync is paused: stop after this page. */
      readonly paused: boolean
      /** New drift of these records, as text. It is recorded, and open. */
      readonly drift?: readonly string[]
      /** Records that do not fit the columns of their database. They were quarantined. */
      readonly refused?: readonly QuarantinedRecord[]
    }
  /** Invariant 3: a lease with a newer epoch exists, and this commit is fenced off. Nothing was written. */
  | { readonly kind: 'fenced' }
  /** The registry does not have the expected version or page. Nothing was written. */
  | { readonly kind: 'conflict'; readonly checkpoint: Checkpoint }
  /**
   * Another sync wrote these rows while the page was read, and the source's times do not order the two. Nothing was
   * written; read the page again.
   */
  | { readonly kind: 'overlap'; readonly keys: readonly string[] }
  /** Landings of `listing.lookupDatabase` are contested. Nothing was written; commit again with the lookup answers. */
  | { readonly kind: 'contested'; readonly keys: readonly string[] }
  /**
   * The sweep would delete `count` rows of the database in `sweep.confirmAbsent`. Nothing was written; commit again
   * without `confirmAbsent`.
   */
  | { readonly kind: 'absent'; readonly keys: readonly string[]; readonly count: number }
  /** The sweep exceeds the delete limit. Nothing was written. */
  | { readonly kind: 'massDeleteBlocked'; readonly database: string; readonly owned: number; readonly toDelete: number }

/** The number of landings by their resolution. */
export interface LandingCounts {
  created: number
  updated: number
  deleted: number
  /** Rows deleted by the sweep; not included in `deleted`. */
  swept: number
  unchanged: number
  /** Older than the stored version: ignored (invariant 6). */
  stale: number
  /** Deletes of keys that do not exist. */
  missing: number
  quarantined: number
}

// ── read model
// ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The effect of a change on its row. */
export type ChangeAction = 'created' | 'updated' | 'deleted'

/**
 * An entry of the change log. Outside a cycle `cycle` is 0, and `page` is the verification that repaired the row, or 0
 * for a replay from quarantine.
 */
export interface LogEntry {
  readonly sequence: number
  readonly database: string
  readonly key: string
  readonly action: ChangeAction
  /** JSON text; null for a delete. */
  readonly text: string | null
  /** The store's commit time, strictly increasing from commit to commit. */
  readonly committedAt: number
  readonly worker: string
  readonly sync: string
  readonly cycle: number
  readonly page: number
  readonly cursor: string | null
  readonly upstreamAt: string | null
}

/** Selects entries of the change log after a sequence. */
export interface ChangesQuery {
  readonly after: number
  readonly limit: number
  readonly databases?: readonly string[]
}

/** The current version of a row, as stored. */
export interface Row {
  readonly database: string
  readonly key: string
  readonly text: string
  readonly sequence: number
  readonly committedAt: number
  readonly upstreamAt: string | null
}

/**
 * A page of rows as values of their fields, by index. A row is computed when it is read, so that the rows of a page are not
 * in memory at once: read the members of a row together, and the rows in order.
 */
export interface RowValues {
  readonly length: number
  /** The bytes of the records, as `rows` counts them. */
  readonly bytes: number
  /** The fields, in the order of `values`. */
  readonly members: readonly string[]
  key(index: number): string
  sequence(index: number): number
  committedAt(index: number): number
  /** The text of a record that is long, or that has values which do not fit their columns; null for all others. */
  text(index: number): string | null
  /**
   * The value of each field, as parsing the text of the record returns it; undefined if the record lacks the field. Only
   * for a row whose `text` is null.
   */
  values(index: number): ReadonlyArray<JsonValue | undefined>
}

/** A database of a tenant with its table and columns. */
export interface DatabaseInfo {
  readonly name: string
  /**
   * The table that users can query, and the table of its replaced versions. PostgreSQL names them with their schema,
   * quoted.
   */
  readonly table: string
  readonly history: string
  readonly columns: readonly Column[]
  /** Live rows. */
  readonly rows: number
  /** The table may contain deleted rows: rows are live if `_deleted_at` is null. */
  readonly hasDeleted?: true
}

/** Why the run of a cycle stopped. The source gives the `endReason` of a cycle that is complete. */
export type StopReason =
  | 'complete'
  | 'max_pages'
  | 'timeout'
  | 'cancelled'
  | 'paused'
  | 'error'
  /** The sweep was refused and the cycle abandoned. */
  | 'blocked'
  | 'lease_lost'
  /** The outcome of the last commit could not be determined. */
  | 'unknown'

/** The result of a cycle, stored when its lease is released. */
export interface CycleReport {
  readonly cycle: number
  readonly stopReason: StopReason
  readonly endedAt: number
  readonly pages: number
  readonly counts: LandingCounts
  /** Retries inside the cycle, and the time spent waiting for them. */
  readonly retries: number
  readonly waitedMs: number
  readonly error: { readonly code: ErrorCode; readonly message: string } | null
  /** The earliest time of the next attempt; null if it may run on schedule. */
  readonly retryAt: number | null
  /** A pause of the account prevented the request: an earlier failure is not counted again. */
  readonly isBlockedByPause?: boolean
}

/** A cycle in the history of a sync. */
export interface CycleRecord extends SyncRef {
  readonly cycle: number
  readonly mode: Mode
  readonly trigger: string
  readonly startedAt: number
  readonly startSequence: number
  /** Null while the cycle runs, or if its process crashed. */
  readonly endedAt: number | null
  readonly stopReason: StopReason | null
  /** For a complete cycle, the source's reason for ending it; see Page.endReason. */
  readonly endReason: string | null
  readonly pages: number
  readonly counts: LandingCounts
  readonly retries: number
  readonly waitedMs: number
  readonly error: { readonly code: ErrorCode; readonly message: string } | null
}
