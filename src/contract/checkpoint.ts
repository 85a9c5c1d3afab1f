import type { Mode } from './page.ts'
import type { ErrorCode } from './errors.ts'

/** Identifies one sync of one worker, inside one tenant. In the registry: connector_id and stream_id. */
export interface SyncRef {
  readonly worker: string
  readonly sync: string
}

/** State as the store keeps it: JSON text, or null for "no state yet". */
export type StateText = string | null

/**
 * The durable state of a sync.
 *
 *   (none) ──begin──▶ inflight page 0 ──continue──▶ page 1 ──▶ … ──complete──▶ committed, version + 1, inflight cleared
 *                          ▲                                  │
 *                          └──────── crash, error ────────────┘   committed untouched, inflight kept
 */
export interface Checkpoint {
  /** Increases by one with every change of `committed`; 0 before the first. */
  readonly version: number
  /** Changes only when a cycle succeeds (invariant 2), or when an operator sets it. */
  readonly committed: StateText
  /** The cycle that last changed `committed`; null if none has, or if an operator set it. */
  readonly committedBy: number | null
  /** Changes with every page, in the page's own transaction (invariant 1). */
  readonly inflight: Inflight | null
  /** The scope of the last complete replace cycle; see Page.scope. */
  readonly scope: string | null
  /**
   * The time up to which the copy is complete (invariant 12): see Page.tidemark. For a source without times, its last
   * cursor. Changes only when a cycle completes. Null for the delta of a pair until its backfill has completed once.
   */
  readonly tidemark: string | null
  readonly paused: boolean
  /** When a run was requested that has not started yet. */
  readonly triggeredAt: number | null
  /** Consecutive failed cycles. */
  readonly failures: number
  readonly lastError: LastError | null
  /** The earliest time of the next attempt, as the failure requested. */
  readonly retryAt: number | null
  readonly lastSuccessAt: number | null
  /** When the last complete cycle began, or when the anchor of a delta was taken. Later changes may be missing. */
  readonly completeSince: number | null
  /** Set on a backfill while everything must be read again because its delta lost changes. */
  readonly backfillNeeded: BackfillRequest | null
  /** The current lease: holder, start and expiry; null while no lease is held. */
  readonly heldBy: string | null
  readonly heldSince: number | null
  readonly heldUntil: number | null
}

/** A checkpoint without states and scopes: safe to show, and cheap to list for thousands of syncs. */
export interface CheckpointSummary extends Omit<Checkpoint, 'committed' | 'committedBy' | 'scope' | 'inflight'> {
  readonly inflight: Pick<Inflight, 'cycle' | 'page' | 'startedAt'> | null
}

/** The checkpoint of a sync that the store has no row for. */
export const EMPTY_CHECKPOINT: Checkpoint = {
  version: 0,
  committed: null,
  committedBy: null,
  inflight: null,
  scope: null,
  tidemark: null,
  paused: false,
  triggeredAt: null,
  failures: 0,
  lastError: null,
  retryAt: null,
  lastSuccessAt: null,
  completeSince: null,
  backfillNeeded: null,
  heldBy: null,
  heldSince: null,
  heldUntil: null,
}

/** A durable request for a backfill. Only a complete backfill that began after the request clears it. */
export interface BackfillRequest {
  readonly since: number
  readonly reason: string
  /** The cycle that was unfinished at the time of the request. It began too early to count. */
  readonly cycle: number | null
}

/** The error that ended the last cycle of a sync, kept until a cycle succeeds. */
export interface LastError {
  readonly code: ErrorCode
  readonly message: string
  readonly at: number
}

/** The unfinished cycle. */
export interface Inflight {
  readonly cycle: number
  readonly mode: Mode
  /** Pages committed so far. */
  readonly page: number
  /** The state to request the next page with. */
  readonly state: StateText
  readonly startedAt: number
  /** The scope that its pages have returned so far; see Page.scope. */
  readonly scope: string | null
  /** The tidemark of its incremental pages, which takes effect if the cycle completes; null in replace mode. */
  readonly tidemark: string | null
  /** State of the engine's guards across pages (invariants 9 and 12); null before the first page. */
  readonly guardState: string | null
  /** The tenant's sequence when the cycle began. This cycle does not sweep rows written later (invariant 5). */
  readonly startSequence: number
}

/** The right to write for one sync. A lease with a newer epoch fences it off (invariant 3). */
export interface Lease {
  readonly ref: SyncRef
  readonly holder: string
  readonly epoch: number
}
