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
}

/** A request to pause, resume or trigger a sync. */
export type SyncSignal =
  | { readonly kind: 'pause'; readonly actor: string; readonly at: number }
  | { readonly kind: 'resume'; readonly actor: string; readonly at: number }
  | { readonly kind: 'trigger'; readonly actor: string; readonly at: number }
