import type {
  ErrorCode,
  LandingCounts,
  Ports,
  Secrets,
  SpanIds,
  StopReason,
  Store,
  SyncRef,
} from '../contract/index.ts'
import type { PauseStore } from './account-pauses.ts'

export interface CycleOptions {
  readonly store: Store
  readonly ports: Ports
  /** The raw transport; the engine adds the pacer and the cycle's signal. */
  readonly fetch: (input: string | URL, init?: RequestInit) => Promise<Response>
  readonly secrets: Secrets
  /** The store of account pauses; defaults to `store`. */
  readonly pauses?: PauseStore
  /** The name of the lease holder, shown to others. Unique for every process, and for every cycle inside one. */
  readonly holder: string
  /** manual, schedule, trigger, library … */
  readonly trigger: string
  readonly signal?: AbortSignal
  /** Returns true if a holder is known to have exited, so that its lease can be taken before it expires. */
  readonly isHolderGone?: (holder: string) => boolean
  /** Discard the unfinished cycle, if there is one. */
  readonly fresh?: boolean
  /** Confirms a sweep that the delete limit or a changed scope blocked. */
  readonly allowDeletes?: boolean
  /** The actor for the audit log; defaults to the trigger. */
  readonly actor?: string
  readonly onProgress?: (progress: CycleProgress) => void
}

/** An event of a running cycle, as passed to `onProgress`. */
export type CycleProgress =
  | { readonly kind: 'begun'; readonly cycle: number; readonly resumed: boolean; readonly page: number }
  | {
      readonly kind: 'landed'
      readonly cycle: number
      readonly page: number
      readonly counts: LandingCounts
      readonly tidemark: string | null
      readonly headSequence: number
      readonly left?: number
    }
  | { readonly kind: 'waiting'; readonly cycle: number; readonly ms: number; readonly code: ErrorCode }

/** Totals of this run; the cycle's record in the store also counts pages committed before a crash. */
export interface CycleResult extends SyncRef {
  readonly cycle: number | null
  /** `held`: another runner holds the lease, and the source was not called. */
  readonly stopReason: StopReason | 'held'
  /** For a complete cycle, the source's reason for ending it; see Page.endReason. */
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
  /** Differences from earlier records, such as `new orders.note (string)`. */
  readonly drift: readonly string[]
  readonly error: { readonly code: ErrorCode; readonly message: string; readonly advice: string } | null
  readonly retryAt: number | null
  /** The trace of the cycle, if a tracer is configured. */
  readonly trace?: SpanIds
}
