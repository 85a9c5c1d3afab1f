import type { Checkpoint, Lease } from '../contract/index.ts'
import type { CycleCounters } from './cycle-counters.ts'
import type { CycleOptions } from './cycle-options.ts'
import type { CycleTrace } from './cycle-trace.ts'
import type { RetryingStore } from './retrying-store.ts'
import type { SyncPlan } from './sync-plan.ts'

/** The values of one run that do not change while it runs. */
export interface CycleContext {
  readonly plan: SyncPlan
  readonly options: CycleOptions
  readonly retryingStore: RetryingStore
  readonly counters: CycleCounters
  readonly trace: CycleTrace
  readonly lease: Lease
  /** As it was when the lease was acquired. */
  readonly checkpoint: Checkpoint
  readonly startedAt: number
}
