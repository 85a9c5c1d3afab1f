import type { SyncRef } from '../checkpoint.ts'
import type { CycleRecord } from '../store.ts'

/** The syncs of a tenant and their cycles. */
export interface SyncDirectory {
  /** Every sync this tenant has ever run, by worker and name. */
  syncs(): Promise<SyncRef[]>
  /** Pauses or resumes a sync, or requests a run; none of them changes state. */
  signalSync(ref: SyncRef, signal: SyncSignal): Promise<void>
  /** Newest first; without a ref, the cycles of every sync. */
  cycles(ref: SyncRef | null, options?: { limit?: number }): Promise<CycleRecord[]>
  /**
   * Totals of the cycles of a sync, or of every sync, in equal steps of time. Rows and waits of a cycle are divided evenly
   * among the steps that it runs in; the rest counts where it ends. Steps without a cycle are absent.
   */
  cycleTotals(query: CycleTotalsQuery): Promise<CycleTotals[]>
}

/** Steps of equal length, from a time on. */
export interface CycleTotalsQuery {
  /** Null for every sync. */
  readonly ref: SyncRef | null
  readonly from: number
  readonly stepMs: number
  readonly steps: number
  /** The end of a cycle that runs. */
  readonly at: number
}

/** The cycles of one step of time. */
export interface CycleTotals {
  /** From 0. */
  readonly step: number
  /** Cycles that ended in it, and those of them with an error. */
  readonly cycles: number
  readonly failed: number
  /** Rows that were created, updated and deleted in it. */
  readonly rows: number
  readonly waitedMs: number
  readonly retries: number
  /** The latest start of a complete cycle that ended in it; null if none did. */
  readonly completeSince: number | null
}

/** A request to pause, resume or trigger a sync. */
export type SyncSignal =
  | { readonly kind: 'pause'; readonly actor: string; readonly at: number }
  | { readonly kind: 'resume'; readonly actor: string; readonly at: number }
  | { readonly kind: 'trigger'; readonly actor: string; readonly at: number }
