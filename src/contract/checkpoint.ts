import type { Mode } from './page.ts'
import type { ErrorCode } from './errors.ts'

/** Which sync of which worker, inside one tenant. In the registry: connector_id and stream_id. */
export interface SyncRef {
  readonly worker: string
  readonly sync: string
}

/** State as the store keeps it: JSON text, or null for "no state yet". */
export type StateText = string | null

/**
 * Where a sync stands, durably.
 *
 *   (none) ──begin──▶ inflight page 0 ──continue──▶ page 1 ──▶ … ──complete──▶ committed, version + 1, inflight cleared
 *                          ▲                                  │
 *                          └──────── crash, error ────────────┘   committed untouched, inflight kept
 */
export interface Checkpoint {
  /** Grows by one with every move of `committed`; 0 before the first. */
  readonly version: number
  /** Moves only when a cycle succeeds (invariant 2), or when an operator sets it. */
  readonly committed: StateText
  /** The cycle that moved `committed` last; null when none has, or an operator did. */
  readonly committedBy: number | null
  /** Moves with every page, in the page's own transaction (invariant 1). */
  readonly inflight: Inflight | null
  /** What the last complete replace cycle could see; see Page.scope. */
  readonly scope: string | null
  /**
   * The time up to which the copy is complete (invariant 12): see Page.tidemark. The last cursor of a source without times.
   * Moves only when a cycle completes. Null for the delta of a pair until its backfill has completed once.
   */
  readonly tidemark: string | null
  readonly paused: boolean
  /** When a run was asked for and has not begun yet. */
  readonly triggeredAt: number | null
  /** Cycles failed in a row. */
  readonly failures: number
  readonly lastError: LastError | null
  /** Earliest next try, as the failure asked. */
  readonly retryAt: number | null
  readonly lastSuccessAt: number | null
  /** When the last complete cycle began, or the anchor of a delta was taken. Changes after this may be missing. */
  readonly completeSince: number | null
  /** Set on a backfill while everything has to be read again, because its delta lost changes. */
  readonly backfillNeeded: BackfillRequest | null
  /** Who holds the sync, since when and until when; null when nobody does. */
  readonly heldBy: string | null
  readonly heldSince: number | null
  readonly heldUntil: number | null
}

/** Without states and scopes: what everybody may see, and what thousands of syncs can be asked for at once. */
export interface CheckpointSummary extends Omit<Checkpoint, 'committed' | 'committedBy' | 'scope' | 'inflight'> {
  readonly inflight: Pick<Inflight, 'cycle' | 'page' | 'startedAt'> | null
}

/** Of a sync that no store knows yet. */
export const EMPTY_CHECKPOINT: Checkpoint = {
  version: 0, committed: null, committedBy: null, inflight: null, scope: null, tidemark: null, paused: false, triggeredAt: null,
  failures: 0, lastError: null, retryAt: null, lastSuccessAt: null, completeSince: null, backfillNeeded: null,
  heldBy: null, heldSince: null, heldUntil: null,
}

/** A durable order for a backfill. Only a complete backfill that began after the order ends it. */
export interface BackfillRequest {
  readonly since: number
  readonly reason: string
  /** The cycle that was unfinished when the order was given. It began too early to count. */
  readonly cycle: number | null
}

export interface LastError {
  readonly code: ErrorCode
  readonly message: string
  readonly at: number
}

/** The unfinished cycle. */
export interface Inflight {
  readonly cycle: number
  readonly mode: Mode
  /** Pages landed so far. */
  readonly page: number
  /** What the next page is asked with. */
  readonly state: StateText
  readonly startedAt: number
  /** What its pages told so far of Page.scope. */
  readonly scope: string | null
  /** The tidemark its incremental pages lead to, if the cycle completes; null in replace mode. */
  readonly tidemark: string | null
  /** What the engine remembers of them (invariants 9 and 12); null before the first page. */
  readonly guardState: string | null
  /** The tenant's sequence when the cycle began: rows written later are not this cycle's to sweep (invariant 5). */
  readonly startSequence: number
}

/** The right to write for one sync. A newer epoch makes it worthless (invariant 3). */
export interface Lease {
  readonly ref: SyncRef
  readonly holder: string
  readonly epoch: number
}
