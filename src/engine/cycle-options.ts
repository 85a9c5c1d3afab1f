import type { ErrorCode, LandingCounts, Ports, Secrets, SpanIds, StopReason, Store, SyncRef } from '../contract/index.ts'
import type { PauseStore } from './account-pauses.ts'

export interface CycleOptions {
  readonly store: Store
  readonly ports: Ports
  /** The bare way out; the engine adds the pacer and the cycle's signal. */
  readonly fetch: (input: string | URL, init?: RequestInit) => Promise<Response>
  readonly secrets: Secrets
  /** Where the pauses of the account are kept; the store unless given. */
  readonly pauses?: PauseStore
  /** Who is running: shown to others as the holder of the sync. Different for every process, and for every cycle inside one. */
  readonly holder: string
  /** Why it runs: manual, schedule, trigger, library … */
  readonly trigger: string
  readonly signal?: AbortSignal
  /** Whether a holder is known to have died, so that its lease need not run out first. */
  readonly isHolderGone?: (holder: string) => boolean
  /** Give up the unfinished cycle, if there is one. */
  readonly fresh?: boolean
  /** Confirms a sweep that the brake or a changed scope stopped. */
  readonly allowDeletes?: boolean
  /** Who asked for this run, for the audit log; the trigger when absent. */
  readonly actor?: string
  readonly onProgress?: (progress: CycleProgress) => void
}

export type CycleProgress =
  | { readonly kind: 'begun'; readonly cycle: number; readonly resumed: boolean; readonly page: number }
  | { readonly kind: 'landed'; readonly cycle: number; readonly page: number; readonly counts: LandingCounts; readonly tidemark: string | null; readonly headSequence: number; readonly left?: number }
  | { readonly kind: 'waiting'; readonly cycle: number; readonly ms: number; readonly code: ErrorCode }

/** Sums of this run; the cycle's record in the store also counts what was landed before a crash. */
export interface CycleResult extends SyncRef {
  readonly cycle: number | null
  /** `held`: somebody else is at work on it, and nothing was asked of the source. */
  readonly stopReason: StopReason | 'held'
  /** Of a complete cycle: why the source ended it; see Page.endReason. */
  readonly endReason: string | null
  readonly resumed: boolean
  readonly pages: number
  readonly counts: LandingCounts
  readonly retries: number
  readonly waitedMs: number
  readonly startedAt: number
  readonly endedAt: number
  readonly version: number
  readonly headSequence: number
  readonly tidemark: string | null
  /** How the records differ from those before, in words such as `new orders.note (string)`. */
  readonly drift: readonly string[]
  readonly error: { readonly code: ErrorCode; readonly message: string; readonly advice: string } | null
  readonly retryAt: number | null
  /** Where it can be seen, when somebody watches. */
  readonly trace?: SpanIds
}
