import type { Checkpoint, Inflight, Lease, CheckpointSummary, StateText, SyncRef } from './checkpoint.ts'
import type { ErrorCode } from './errors.ts'
import type { AsOf, Mode } from './page.ts'
import type { Kernel } from './store/kernel.ts'
import type { LeaseStore } from './store/leases.ts'
import type { SequenceStore } from './store/sequences.ts'
import type { SyncDirectory } from './store/syncs.ts'
import type { TenantDirectory } from './store/tenants.ts'
import type { AuditLog } from './store/audit.ts'
import type { DataKeyStore } from './store/data-keys.ts'
import type { PacingStore } from './store/pacing.ts'
import type { QuarantineStore, QuarantinedRecord } from './store/quarantine.ts'
import type { ApiKeyStore } from './store/api-keys.ts'
import type { CursorSecretStore } from './store/cursor-secrets.ts'
import type { ConsumerStore } from './store/consumers.ts'
import type { WebhookStore } from './store/webhooks.ts'
import type { InboundStore } from './store/inbound.ts'
import type { DeleteMode } from './delete-mode.ts'
import type { SchemaMode } from './schema.ts'
import type { SchemaStore } from './store/schemas.ts'
import type { CommitShape } from './table-shape.ts'

/**
 * What a store promises. Bound to one tenant: no method takes a tenant, so none can take a wrong one (invariant 10).
 * `describeStore` in tidemark/testing is the same promise as a test suite.
 *
 * Every `at` is the caller's clock in milliseconds. A store with a clock of its own (PostgreSQL) judges leases by that
 * one; no promise depends on either, only on epochs.
 */
export interface Store extends
  Kernel, LeaseStore, SequenceStore, SyncDirectory, TenantDirectory, AuditLog, DataKeyStore, PacingStore,
  QuarantineStore, ApiKeyStore, CursorSecretStore, ConsumerStore, WebhookStore, InboundStore, SchemaStore {}

export interface SyncStatusQuery {
  readonly at: number
  /** Cycles to tell of each, newest first. */
  readonly recent: number
  /** Only this one. */
  readonly ref?: SyncRef
  /** A mark from an earlier answer of this store: those that have not moved since may be left out. */
  readonly changedSince?: string
}

export interface SyncStatusList {
  /** By the clock that judges leases: the store's own, or else the `at` of the question. */
  readonly now: number
  readonly changeToken: string
  /** Those that never ran nor were signalled are missing. */
  readonly syncs: readonly SyncStatusRow[]
}

export interface SyncStatusRow extends SyncRef {
  readonly checkpoint: CheckpointSummary
  readonly recent: readonly CycleRecord[]
}

export interface Listener {
  /** Whose news to tell. */
  readonly tenants: readonly string[]
  onChange(tenant: string): void
  /** Whether news arrive. Said when it changes; what happened before it became true may have gone unheard. */
  onConnected(is: boolean): void
}

export interface Subscription {
  /** Whose news to tell from now on, too. */
  addTenant(tenant: string): void
  close(): Promise<void>
}

export interface AcquireRequest {
  readonly holder: string
  readonly ttlMs: number
  readonly at: number
  /** A holder known to be dead: its lease need not run out first. Were it alive after all, its epoch is old. */
  readonly evictHolder?: string
  /** An operator sets the state anew: a row that contradicts the audit log is brought to its version, without a state. */
  readonly forRepair?: boolean
  /** Nobody asked for it by hand: of a tenant that was erased since, and that nobody has brought back, it throws TENANT_ERASED. */
  readonly automatic?: boolean
}

export interface LeaseAcquired {
  readonly kind: 'acquired'
  readonly lease: Lease
  readonly checkpoint: Checkpoint
}

export interface LeaseHeld {
  readonly kind: 'held'
  readonly holder: string
  readonly expiresAt: number
}

export interface EraseResult {
  readonly kind: 'erased'
  readonly syncs: number
  /** Entries of the log, and of every other table, that are gone. */
  readonly entries: number
  /** Where bytes of it may still be until they are written over; null when nowhere in this database. */
  readonly remains: string | null
}

/** Somebody works on the tenant. Nothing was erased. */
export interface TenantBusy extends LeaseHeld {
  readonly ref: SyncRef
}

export interface BeginRequest {
  readonly at: number
  readonly mode: Mode
  readonly trigger: string
  /** Give the unfinished cycle up and start over from `committed`. */
  readonly fresh: boolean
  /** The databases the sync writes; each gets its view at once, also while it is empty. */
  readonly databases: readonly string[]
}

export interface BeginResult {
  readonly inflight: Inflight
  readonly resumed: boolean
  /** The tenant's newest sequence. */
  readonly headSequence: number
  /** By database, the members that landed records have had so far. */
  readonly columns: Readonly<Record<string, readonly Column[]>>
}

// ── the commit ───────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Commit {
  readonly lease: Lease
  /** The registry version this commit builds on; another one there means conflict. */
  readonly version: number
  readonly at: number
  readonly transition: StateTransition
  /**
   * Whose rows these become: the name under which a sync owns rows for its sweep. Syncs that maintain one database
   * together (a backfill and its delta) share it.
   */
  readonly owner: string
  /** Another owner, by database: a delta that feeds several keeps each together with the backfill of that one. */
  readonly owners?: Readonly<Record<string, string>>
  /** At most one per database and key. */
  readonly landings: readonly Landing[]
  readonly quarantined: readonly QuarantinedRecord[]
  /** Top-level members seen in the landings' records, by database; the store adds what is new to its view. */
  readonly columns: Readonly<Record<string, readonly Column[]>>
  /** Types and keys that are declared, or known from the source: on the first page of a cycle and where they change. */
  readonly shapes?: readonly CommitShape[]
  /** Days by database for which replaced versions and deletions are kept at least, however short the log is; null for as long as the log. */
  readonly historyDays?: Readonly<Record<string, number | null>>
  /** By database, what a delete does to its row from this commit on; as before where it is not given. See Kernel.supportsSoftDeletes. */
  readonly deletes?: Readonly<Record<string, DeleteMode>>
  /**
   * The tenant's sequence known before this page was asked for. A row another sync wrote later than that was written
   * while the page was being read, so the two cannot be ordered by reading time.
   */
  readonly readAtSequence: number
  /** A log read again (Page.isLog): `readAtSequence` is where the cycle began, and what was written later is not to be ordered but newer. */
  readonly isHistoricalLog?: boolean
  /**
   * A listing that writes the same databases runs beside this sync, and began at this sequence. What changes nothing is put
   * on record too, or the listing would take what it read before for the newer: with times, where only the time moves on
   * or two times are equal; without, unless this sync has written it since.
   */
  readonly forceLogSince?: number
  /** Two source times this close count as equal (a source whose clock may step back). */
  readonly upstreamToleranceMs: number
  /** Set for every page of a replace cycle: how its contested landings are resolved. */
  readonly listing?: ListingContext
  /** How the records differ from those before, in words: put on record with them. */
  readonly drift?: string
  /** By database, where not `evolve`. */
  readonly schemaModes?: Readonly<Record<string, SchemaMode>>
}

/**
 * A landing of a replace cycle is contested when it contradicts a stored version that has a later source time but was
 * committed before the page was asked for. Either the page comes from a copy that lags, or the source's time went back.
 * The lookup decides; without its answer, the landing wins when an earlier cycle contested the same version too.
 */
export interface ListingContext {
  /**
   * Versions up to this sequence were committed at least the source's lag before the cycle began. A later one may not
   * show in the cycle's pages yet, so a second sighting does not decide against it.
   */
  readonly settledSequence: number
  /** The database whose contested keys the source can be asked for. If there are any, the outcome is `contested`. */
  readonly lookupDatabase?: string
  /** What the source's lookup said of contested keys of its database. */
  readonly lookupAnswers?: { readonly database: string; readonly confirmed: readonly string[]; readonly refuted: readonly string[] }
}

export type StateTransition =
  /** A page inside the cycle. `page` must be one more than what `inflight` says. */
  | {
      readonly kind: 'continue'
      readonly cycle: number
      readonly page: number
      readonly state: StateText
      readonly tidemark: string | null
      readonly scope: string | null
      readonly guardState: string | null
    }
  /** The last page: `committed` moves, `inflight` is cleared, the sweep runs, and the cycle is on record as complete even if nobody lives to release it. */
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
  /** The last page of a cycle that must not count: its rows land, `inflight` is cleared, `committed` stays. */
  | { readonly kind: 'abandon'; readonly cycle: number; readonly page: number; readonly reason: string }
  /** Stores another state: an anchor, or an operator's choice. `inflight`, failures and the tidemark are cleared. */
  | {
      readonly kind: 'set'
      readonly state: StateText
      readonly actor: string
      readonly reason: string
      /** Everything up to this time is in the copy; see Checkpoint.completeSince. Unchanged when absent. */
      readonly completeSince?: number
      /** Orders a backfill in the same transaction: `sync`, of the same worker, gets Checkpoint.backfillNeeded. */
      readonly backfillRequest?: { readonly sync: string; readonly reason: string }
    }
  /**
   * Records out of quarantine, as of `readAtSequence`: those that pass now land and leave it, those that do not stay with the new
   * reason and their old time, and `superseded` entries leave it unlanded. The checkpoint and an unfinished cycle stay.
   */
  | { readonly kind: 'replay'; readonly actor: string; readonly reason: string; readonly superseded: readonly number[] }

export interface Sweep {
  /** Refuse to delete more than this share of the rows the sync owned in one database when the cycle began. */
  readonly maxShare: number
  /** Allow a sweep that deletes every one of them. */
  readonly allowEmpty: boolean
  /** Keep rows with a later sequence: they are younger than the source's lag (invariant 5). */
  readonly settledSequence?: number
  /** Do not delete rows of this database yet: the outcome `absent` reports up to `limit` of them, evenly spaced by key. */
  readonly confirmAbsent?: { readonly database: string; readonly limit: number }
  /** Who lifted the limit for this cycle: then the sweep is an entry of the audit log. */
  readonly allowedBy?: string
}

/** A change ready to be landed: checked, serialised and hashed once, the same for every store. */
export type Landing =
  | {
      readonly type: 'upsert'
      readonly database: string
      readonly key: string
      /** The record as JSON text. */
      readonly text: string
      /** Of `text`; equal hashes mean equal content. */
      readonly hash: string
      readonly cursor: string | null
      /** Canonical: UTC, six decimals, compares as text. */
      readonly upstreamAt: string | null
      readonly asOf?: AsOf
    }
  | { readonly type: 'delete'; readonly database: string; readonly key: string; readonly upstreamAt: string | null }

/** `bigint`: an integer beyond 64 bits. */
export type ColumnKind = 'bigint' | 'boolean' | 'integer' | 'json' | 'number' | 'string'

export interface Column {
  readonly name: string
  /** Every kind seen so far, sorted; empty when only nulls were. */
  readonly kinds: readonly ColumnKind[]
}

export type CommitOutcome =
  | {
      readonly kind: 'landed'
      readonly version: number
      readonly headSequence: number
      readonly counts: LandingCounts
      /** Somebody paused the sync: let this page be the last for now. */
      readonly paused: boolean
      /** What the tables do not show of these records and did not note before, in words: it is on record, and open. */
      readonly drift?: readonly string[]
      /** Records that the columns of their database refuse: they went to quarantine. */
      readonly refused?: readonly QuarantinedRecord[]
    }
  /** A newer lease exists. Nothing was written. */
  | { readonly kind: 'fenced' }
  /** The registry is not where the commit expects it. Nothing was written. */
  | { readonly kind: 'conflict'; readonly checkpoint: Checkpoint }
  /** Another sync wrote these rows while the page was read, and the source's times do not tell which is newer. Nothing was written; read again. */
  | { readonly kind: 'overlap'; readonly keys: readonly string[] }
  /** Landings of the database that `listing.asks` names are contested. Nothing was written; commit again with the answers. */
  | { readonly kind: 'contested'; readonly keys: readonly string[] }
  /** The sweep would delete `count` rows of the database that `sweep.asks` names. Nothing was written; commit again without `asks`. */
  | { readonly kind: 'absent'; readonly keys: readonly string[]; readonly count: number }
  /** The sweep would delete too much. Nothing was written. */
  | { readonly kind: 'massDeleteBlocked'; readonly database: string; readonly owned: number; readonly toDelete: number }

export interface LandingCounts {
  created: number
  updated: number
  deleted: number
  /** Rows the sweep deleted; not in `deleted`. */
  swept: number
  unchanged: number
  /** Older than what is there: ignored (invariant 6). */
  stale: number
  /** Deletes of keys that were not there. */
  missing: number
  quarantined: number
}

// ── what can be read back ────────────────────────────────────────────────────────────────────────────────────────────

export type ChangeAction = 'created' | 'updated' | 'deleted'

export interface LogEntry {
  readonly sequence: number
  readonly database: string
  readonly key: string
  readonly action: ChangeAction
  /** JSON text; null for a delete. */
  readonly text: string | null
  /** Our commit time, strictly increasing from commit to commit. */
  readonly committedAt: number
  readonly worker: string
  readonly sync: string
  readonly cycle: number
  readonly page: number
  readonly cursor: string | null
  readonly upstreamAt: string | null
}

export interface ChangesQuery {
  readonly after: number
  readonly limit: number
  readonly databases?: readonly string[]
}

export interface Row {
  readonly database: string
  readonly key: string
  readonly text: string
  readonly sequence: number
  readonly committedAt: number
  readonly upstreamAt: string | null
}

export interface DatabaseInfo {
  readonly name: string
  /** The table people can select from, and the one with the versions it replaced. PostgreSQL names them with their schema, quoted. */
  readonly table: string
  readonly history: string
  readonly columns: readonly Column[]
  /** Live rows. */
  readonly rows: number
  /** The table may also have rows that are deleted: live are those whose `_deleted_at` is null. */
  readonly hasDeleted?: true
}

export type StopReason =
  | 'complete'
  | 'max_pages'
  | 'timeout'
  | 'cancelled'
  | 'paused'
  | 'error'
  /** The sweep was refused and the cycle given up. */
  | 'blocked'
  | 'lease_lost'
  /** The outcome of the last commit could not be found out. */
  | 'unknown'

export interface CycleReport {
  readonly cycle: number
  readonly stopReason: StopReason
  readonly endedAt: number
  readonly pages: number
  readonly counts: LandingCounts
  /** Tries repeated inside the cycle, and the time spent waiting for them. */
  readonly retries: number
  readonly waitedMs: number
  readonly error: { readonly code: ErrorCode; readonly message: string } | null
  /** Earliest next try; null when it may run on schedule. */
  readonly retryAt: number | null
  /** A pause of the account kept the cycle from asking: the failure before it, if there was one, is not counted again. */
  readonly isBlockedByPause?: boolean
}

export interface CycleRecord extends SyncRef {
  readonly cycle: number
  readonly mode: Mode
  readonly trigger: string
  readonly startedAt: number
  readonly startSequence: number
  /** Null while it runs, or when its process died. */
  readonly endedAt: number | null
  readonly stopReason: StopReason | null
  /** Of a complete cycle: why the source ended it; see Page.endReason. */
  readonly endReason: string | null
  readonly pages: number
  readonly counts: LandingCounts
  readonly retries: number
  readonly waitedMs: number
  readonly error: { readonly code: ErrorCode; readonly message: string } | null
}
