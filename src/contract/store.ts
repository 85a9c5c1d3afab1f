import type { Checkpoint, Inflight, Lease, Outline, StateText, SyncRef } from './checkpoint.ts'
import type { Consumer, ConsumerName } from './consumers.ts'
import type { ErrorCode } from './errors.ts'
import type { ApiKey, Compacted, CompactRequest, CursorSecret, CursorSecretOffer, FeedPage, FeedQuery } from './feed.ts'
import type { AsOf, Mode } from './page.ts'
import type { Delivery, DeliveryNote, InboundClaim, InboundMessage, KeptMessage, Webhook, WebhookClaim, WebhookEdit, WebhookPlace, WebhookSettings } from './webhooks.ts'

/**
 * What a store promises. Bound to one tenant: no method takes a tenant, so none can take a wrong one (invariant 10).
 * `describeStore` in tidemark/testing is the same promise as a test suite.
 *
 * Every `at` is the caller's clock in milliseconds. A store with a clock of its own (PostgreSQL) judges leases by that
 * one; no promise depends on either, only on epochs.
 */
export interface Store {
  readonly tenant: string
  /** Set when the database is a copy that follows another, perhaps a little behind: it can be read, and what would write is refused (STORE_READONLY). */
  readonly isReplica?: boolean
  /** The same database, for another tenant. Shares connections; close only the store that was opened. */
  forTenant(tenant: string): Store
  /** The names of all that this database knows, sorted: the one look beyond its own. */
  tenants(): Promise<string[]>
  /**
   * Erases everything of this tenant for good, with the keys of its states: what a copy elsewhere still holds of them opens
   * no more. Its name and its sequence stay, so that nobody takes what comes later for what was, and a new trail begins
   * with the record of the erasure. Refused while a lease runs. What ran out before is worth nothing for ever: epochs go on
   * from where they were. The tenant is back with the first signal, key or run that somebody asks for.
   */
  erase(by: { actor: string; at: number }): Promise<Erased | Occupied>
  close(): Promise<void>

  // ── the cycle ──────────────────────────────────────────────────────────────────────────────────────────────────────
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

  // ── the registry ───────────────────────────────────────────────────────────────────────────────────────────────────
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
  /** Every sync this tenant has ever run, by worker and name. */
  syncs(): Promise<SyncRef[]>
  /** Pausing and asking for a run; neither touches state. */
  signal(ref: SyncRef, signal: Signal): Promise<void>
  /** Newest first. */
  audit(ref: SyncRef, options?: { limit?: number }): Promise<AuditEntry[]>
  /** The whole trail of the tenant, with the hashes that chain it; see registry/trail.ts. Oldest first, and newest first below `before`. */
  trail(query: TrailQuery): Promise<Trail>
  /** The ids of the keys that wrap a data key of any tenant, sorted: beside `tenants`, the only look beyond its own. */
  wrappingKeys(): Promise<string[]>
  /** The tenant's data keys, wrapped, oldest first. The newest seals; the others still open what they sealed. */
  dataKeys(): Promise<WrappedKey[]>
  /** False when a key of that id is there already, or is no longer wrapped by the one named in `replaces`. Audited. */
  putDataKey(key: WrappedKey, by: { actor: string; at: number; replaces?: string }): Promise<boolean>
  /** Sealed texts at rest that another data key than `except` sealed. Those of the audit log are not among them: it is never rewritten. */
  sealedTexts(query: { except: string; limit: number }): Promise<SealedText[]>
  /** Replaces one with the same text under the newest key; false when it is no longer what was read. */
  reseal(text: SealedText, sealed: string): Promise<boolean>
  /** Audited. False while anything, the audit log included, is sealed with it, for the newest, and for one that is not there. */
  removeDataKey(id: string, by: { actor: string; at: number }): Promise<boolean>
  /** Newest first; without a ref, of every sync. */
  cycles(ref: SyncRef | null, options?: { limit?: number }): Promise<CycleRecord[]>
  /**
   * Gives the next slots of a pacer to the caller alone, evenly spaced after the last one given to anybody, and none in the
   * past. What is never used is lost.
   */
  takeSlots(request: SlotRequest): Promise<Slots>
  /** Where each pacer of a worker stands: pacer → ms of the last slot given. */
  pacers(worker: string): Promise<Record<string, number>>
  /** Keeps a pause that a source has announced. Of two pauses of the same account the one that ends later stays. */
  notePause(request: PauseRequest): Promise<void>
  /** The pauses of a worker's accounts that are not over. */
  pauses(query: { worker: string; at: number }): Promise<Pauses>

  // ── what has landed ────────────────────────────────────────────────────────────────────────────────────────────────
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
  /** Their names alone, in order: what a request can afford to ask. */
  databaseNames(): Promise<string[]>
  quarantined(query?: { ref?: SyncRef; limit?: number }): Promise<QuarantineEntry[]>

  // ── the served side ────────────────────────────────────────────────────────────────────────────────────────────────
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
  /** Newest first, never empty; the offer is taken when one is needed. A replica takes none, and refuses when it has nothing to tell. */
  cursorSecrets(offer: CursorSecretOffer): Promise<CursorSecret[]>
  /** By its id alone, of whichever tenant: a caller says who it is before anybody knows whose data it may see. */
  apiKey(id: string): Promise<ApiKey | null>
  /** This tenant's, oldest first. */
  apiKeys(): Promise<ApiKey[]>
  /** Belongs to this tenant, whatever it says. Audited; `by` defaults to `program`. */
  addApiKey(key: Omit<ApiKey, 'tenant'>, by?: string): Promise<void>
  /** Audited. False when this tenant has no such key, or it ends earlier. */
  endApiKey(id: string, endsAt: number, by: { actor: string; at: number; reason?: string }): Promise<boolean>

  /** In the order of their names. */
  consumers(): Promise<Consumer[]>
  /** False, and nothing written, when its owner has so many others already. */
  putConsumer(consumer: Consumer, bounds: { ownedMax: number }): Promise<boolean>
  removeConsumer(name: ConsumerName): Promise<boolean>
  /** Adds requests to a window of time that all processes share, and tells how many there are now, in the same order. Older windows than the one before it are forgotten. */
  countRequests(window: number, counts: ReadonlyArray<readonly [who: string, count: number]>): Promise<number[]>

  // ── webhooks ───────────────────────────────────────────────────────────────────────────────────────────────────────
  /** Oldest first. */
  webhooks(): Promise<Webhook[]>
  /** Adds it at this place; of one that is there the settings are changed, and where it stands is left alone. Audited; `by` defaults to `program`. */
  putWebhook(settings: WebhookSettings, place: WebhookPlace, by?: string): Promise<void>
  /**
   * Changes what is given of its settings. Its place and what waits stay, so that everything after its place is judged by the
   * new ones and nothing before it: whoever delivers has to claim anew. At a new URL earlier failures no longer count. Audited.
   * False when there is none.
   */
  editWebhook(id: string, edit: WebhookEdit, by: { actor: string; at: number }): Promise<boolean>
  /** Replaces its secrets and nothing else, if they still are `replaces`; false when they are not, or there is none. Audited. */
  rotateWebhook(id: string, secrets: string, by: { actor: string; at: number; replaces: string }): Promise<boolean>
  /** With all its deliveries. Audited. False when there is none. */
  removeWebhook(id: string, by: { actor: string; at: number }): Promise<boolean>
  /** Enables it, makes every delivery due, and goes back or on to a place. How many dead ones are tried again; null without such a webhook. Whoever delivers has to claim anew. Audited. */
  restartWebhook(id: string, request: { actor: string; at: number; place?: WebhookPlace }): Promise<number | null>
  /** Stops it for a reason, or lets it go on (null); what waits and what was given up stay as they are. False when there is none. Whoever delivers has to claim anew. Audited. */
  switchWebhook(id: string, disabled: string | null, by: { actor: string; at: number }): Promise<boolean>
  /** As `acquire` does for a sync; null when somebody else has it, or it is disabled or gone. */
  claimWebhook(id: string, request: AcquireRequest): Promise<(WebhookClaim & { readonly webhook: Webhook }) | null>
  renewWebhook(claim: WebhookClaim, request: { ttlMs: number; at: number }): Promise<boolean>
  releaseWebhook(claim: WebhookClaim): Promise<void>
  /**
   * The secrets to sign the next message with; null when the claim is no longer ours. Read before every message, so that a
   * rotation, an edit, a pause or a removal holds for every message sent after it was acknowledged.
   */
  webhookSecrets(claim: WebhookClaim): Promise<string | null>
  /** False, and nothing written, when the claim is no longer ours. */
  noteDeliveries(claim: WebhookClaim, note: DeliveryNote): Promise<boolean>
  /** In the order of the log. */
  deliveries(query: { webhook: string; dead: boolean; limit: number }): Promise<Delivery[]>
  /** Takes a message before anything is done about it: `new` for one alone, for all others it is `busy` or `done`. Of an erased tenant it throws TENANT_ERASED. */
  claimInbound(message: InboundMessage, claim: InboundClaim): Promise<'new' | 'busy' | 'done'>
  /** Of one source, those that nobody has claimed since a time. */
  keptInbound(query: { source: string; before: number; limit: number }): Promise<KeptMessage[]>
  /** Done, or to be sent again: then it is as if it had never come. */
  settleInbound(message: InboundMessage, settled: { done: boolean; at: number }): Promise<void>
}

export interface StandingsQuery {
  readonly at: number
  /** Cycles to tell of each, newest first. */
  readonly recent: number
  /** Only this one. */
  readonly ref?: SyncRef
  /** A mark from an earlier answer of this store: those that have not moved since may be left out. */
  readonly since?: string
}

export interface Standings {
  /** By the clock that judges leases: the store's own, or else the `at` of the question. */
  readonly now: number
  readonly mark: string
  /** Those that never ran nor were signalled are missing. */
  readonly syncs: readonly Standing[]
}

export interface Standing extends SyncRef {
  readonly checkpoint: Outline
  readonly recent: readonly CycleRecord[]
}

export interface SlotRequest {
  readonly worker: string
  readonly pacer: string
  readonly count: number
  readonly paceMs: number
  readonly at: number
}

/** By the clock that says `now`: the store's own, or else the `at` of the request. */
export interface Slots {
  readonly now: number
  readonly first: number
}

/** A source asked not to be asked for a while. */
export interface PauseRequest {
  readonly worker: string
  /** The pacers that the refused request was paced by; empty for a sync without one. */
  readonly pacers: readonly string[]
  /** The origin of the refused request; empty when it is not known, and then every origin is meant. */
  readonly origin: string
  readonly ms: number
  readonly at: number
}

export interface Pause {
  /** Empty for a sync without a pacer. */
  readonly pacer: string
  readonly origin: string
  readonly until: number
}

/** By the clock that says `now`: the store's own, or else the `at` of the query. */
export interface Pauses {
  readonly now: number
  readonly pauses: readonly Pause[]
}

export interface Ear {
  /** Whose news to tell. */
  readonly tenants: readonly string[]
  heard(tenant: string): void
  /** Whether news arrive. Said when it changes; what happened before it became true may have gone unheard. */
  live(is: boolean): void
}

export interface Listening {
  /** Whose news to tell from now on, too. */
  add(tenant: string): void
  close(): Promise<void>
}

export interface AcquireRequest {
  readonly holder: string
  readonly ttlMs: number
  readonly at: number
  /** A holder known to be dead: its lease need not run out first. Were it alive after all, its epoch is old. */
  readonly evict?: string
  /** An operator sets the state anew: a row that contradicts the audit log is brought to its version, without a state. */
  readonly forRepair?: boolean
  /** Nobody asked for it by hand: of a tenant that was erased since, and that nobody has brought back, it throws TENANT_ERASED. */
  readonly byItself?: boolean
}

export interface Acquired {
  readonly kind: 'acquired'
  readonly lease: Lease
  readonly checkpoint: Checkpoint
}

export interface Held {
  readonly kind: 'held'
  readonly by: string
  readonly until: number
}

export interface Erased {
  readonly kind: 'erased'
  readonly syncs: number
  /** Entries of the log, and of every other table, that are gone. */
  readonly entries: number
  /** Where bytes of it may still be until they are written over; null when nowhere in this database. */
  readonly remains: string | null
}

/** Somebody works on the tenant. Nothing was erased. */
export interface Occupied extends Held {
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

export interface Begun {
  readonly inflight: Inflight
  readonly resumed: boolean
  /** The tenant's newest sequence. */
  readonly position: number
  /** By database, the members that landed records have had so far. */
  readonly columns: Readonly<Record<string, readonly Column[]>>
}

export type Signal =
  | { readonly kind: 'pause'; readonly actor: string; readonly at: number }
  | { readonly kind: 'resume'; readonly actor: string; readonly at: number }
  | { readonly kind: 'trigger'; readonly actor: string; readonly at: number }

// ── the commit ───────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Commit {
  readonly lease: Lease
  /** The registry version this commit builds on; another one there means conflict. */
  readonly version: number
  readonly at: number
  readonly move: Move
  /**
   * Whose rows these become: the name under which a sync owns rows for its sweep. Syncs that maintain one database
   * together (a backfill and its delta) share it.
   */
  readonly owner: string
  /** Another owner, by database: a delta that feeds several keeps each together with the backfill of that one. */
  readonly owners?: Readonly<Record<string, string>>
  /** At most one per database and key. */
  readonly landings: readonly Landing[]
  readonly quarantined: readonly Quarantined[]
  /** Top-level members seen in the landings' records, by database; the store adds what is new to its view. */
  readonly columns: Readonly<Record<string, readonly Column[]>>
  /**
   * The tenant's sequence known before this page was asked for. A row another sync wrote later than that was written
   * while the page was being read, so the two cannot be ordered by reading time.
   */
  readonly readFrom: number
  /** A log read again (Page.isLog): `readFrom` is where the cycle began, and what was written later is not to be ordered but newer. */
  readonly isHistory?: boolean
  /**
   * A listing that writes the same databases runs beside this sync, and began at this sequence. What changes nothing is put
   * on record too, or the listing would take what it read before for the newer: with times, where only the time moves on
   * or two times are equal; without, unless this sync has written it since.
   */
  readonly restateSince?: number
  /** Two source times this close count as equal (a source whose clock may step back). */
  readonly upstreamToleranceMs: number
  /** Set for every page of a replace cycle: how its contested landings are resolved. */
  readonly listing?: Listing
  /** How the records differ from those before, in words: put on record with them. */
  readonly drift?: string
}

/**
 * A landing of a replace cycle is contested when it contradicts a stored version that has a later source time but was
 * committed before the page was asked for. Either the page comes from a copy that lags, or the source's time went back.
 * The lookup decides; without its answer, the landing wins when an earlier cycle contested the same version too.
 */
export interface Listing {
  /**
   * Versions up to this sequence were committed at least the source's lag before the cycle began. A later one may not
   * show in the cycle's pages yet, so a second sighting does not decide against it.
   */
  readonly settledSequence: number
  /** The database whose contested keys the source can be asked for. If there are any, the outcome is `contested`. */
  readonly asks?: string
  /** What the source's lookup said of contested keys of its database. */
  readonly answers?: { readonly database: string; readonly confirmed: readonly string[]; readonly refuted: readonly string[] }
}

export type Move =
  /** A page inside the cycle. `page` must be one more than what `inflight` says. */
  | {
      readonly kind: 'continue'
      readonly cycle: number
      readonly page: number
      readonly state: StateText
      readonly tidemark: string | null
      readonly scope: string | null
      readonly guard: string | null
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
      /** See Page.stopWord. */
      readonly stopWord?: string | null
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
      readonly needsBackfill?: { readonly sync: string; readonly reason: string }
    }
  /**
   * Records out of quarantine, as of `readFrom`: those that pass now land and leave it, those that do not stay with the new
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
  readonly asks?: { readonly database: string; readonly limit: number }
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

export interface Quarantined {
  readonly database: string
  /** Null when there is no usable one. */
  readonly key: string | null
  readonly code: ErrorCode
  readonly message: string
  /** As much of the record as can be kept, as text without NUL and lone surrogates. */
  readonly text: string
}

/** `bigint`: an integer beyond 64 bits. */
export type ColumnKind = 'bigint' | 'boolean' | 'integer' | 'json' | 'number' | 'string'

/**
 * The type of a column of the copy.
 *
 *   bigint, double, numeric   a JSON number: an integer of 64 bits, a double, any other number with all its digits
 *   decimal                   a text of digits such as "1.50", as databases and APIs write exact numbers
 *   timestamp, datetime       a text: an instant with a zone (RFC 3339), or a date and time without one
 *   date, time                a text: `2026-01-31`, `12:00:00`
 *   uuid                      a text, in small letters
 *   bytes                     a text in base64
 *   json                      an object, a list, or any other value
 *   text[], bigint[], …       a list of values of that type and of nulls
 */
export type ColumnType = ScalarType | `${ScalarType}[]`

export type ScalarType =
  | 'bigint' | 'boolean' | 'bytes' | 'date' | 'datetime' | 'decimal' | 'double' | 'json' | 'numeric' | 'text' | 'time' | 'timestamp' | 'uuid'

export interface Column {
  readonly name: string
  /** Every kind seen so far, sorted; empty when only nulls were. */
  readonly kinds: readonly ColumnKind[]
}

export type CommitOutcome =
  | {
      readonly kind: 'landed'
      readonly version: number
      readonly position: number
      readonly counts: LandingCounts
      /** Somebody paused the sync: let this page be the last for now. */
      readonly paused: boolean
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
  | { readonly kind: 'braked'; readonly database: string; readonly owned: number; readonly doomed: number }

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

export type Action = 'created' | 'updated' | 'deleted'

export interface LogEntry {
  readonly sequence: number
  readonly database: string
  readonly key: string
  readonly action: Action
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
  readonly rows: number
}

export interface AuditEntry {
  readonly version: number
  readonly at: number
  readonly actor: string
  /** complete, set, abandon, replay, drift, conflict, pause, resume; of the tenant: new-key, rewrap-key, erase, and those of kit/audit-entries.ts for API keys and webhooks */
  readonly action: string
  readonly reason: string
  readonly cycle: number | null
  /** The state this entry left in `committed`; null when it did not move it to a value. */
  readonly state: StateText
}

/** An entry as it was chained: every field is in the hash. Those of the tenant as a whole name no sync. */
export interface TrailEntry extends AuditEntry {
  readonly id: number
  readonly worker: string | null
  readonly sync: string | null
  /** The lease under which it was written; 0 where none is needed. */
  readonly epoch: number
  readonly hash: string
}

export type TrailQuery = { readonly after: number; readonly limit: number } | { readonly before: number; readonly limit: number }

export interface Trail {
  readonly entries: readonly TrailEntry[]
  /** The hash of the newest entry, kept apart from it: an entry taken from the end is missed. '' before the first. */
  readonly head: string
  readonly count: number
}

/** A sealed text and where it is: a column of a sync, the secrets of the webhook `sync`, or the cursor secret of the time `column`. */
export interface SealedText extends SyncRef {
  readonly table: 'registry' | 'webhooks' | 'cursor_secrets'
  readonly column: string
  readonly text: string
}

/** A key for a tenant's states, itself encrypted with a key that is not in the store. */
export interface WrappedKey {
  readonly id: string
  /** The id of the key that wraps it. */
  readonly wrappedBy: string
  readonly wrapped: string
}

export interface QuarantineEntry extends Quarantined {
  readonly id: number
  readonly worker: string
  readonly sync: string
  readonly cycle: number
  readonly page: number
  readonly at: number
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
  readonly isHeldBack?: boolean
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
  /** Of a complete cycle: why the source ended it; see Page.stopWord. */
  readonly stopWord: string | null
  readonly pages: number
  readonly counts: LandingCounts
  readonly retries: number
  readonly waitedMs: number
  readonly error: { readonly code: ErrorCode; readonly message: string } | null
}
