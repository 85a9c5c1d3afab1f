import type { LeaseAcquired, LeaseHeld, SyncRef } from '../contract/index.ts'
import type { CycleOptions } from './cycle-options.ts'
import type { RetryingStore } from './retrying-store.ts'
import type { SyncPlan } from './sync-plan.ts'

/** Acquires the lease of a sync. The lease of a holder that is known to have exited is taken over. */
export async function acquireLease(
  plan: SyncPlan,
  { ports, holder, isHolderGone, trigger }: CycleOptions,
  retryingStore: RetryingStore,
): Promise<LeaseAcquired | LeaseHeld> {
  const ref: SyncRef = { worker: plan.worker, sync: plan.sync }
  const request = {
    holder,
    ttlMs: plan.limits.leaseTtlMs,
    at: ports.clock.now(),
    automatic: AUTOMATIC_TRIGGERS.includes(trigger),
  }
  const first = await retryingStore.call((store) => store.acquire(ref, request))
  // Our own name means that a response was lost: holder names are unique per cycle.
  if (first.kind === 'held' && (first.holder === holder || isHolderGone?.(first.holder) === true))
    return retryingStore.call((store) => store.acquire(ref, { ...request, evictHolder: first.holder }))
  return first
}

/** Triggers without a person behind them. */
const AUTOMATIC_TRIGGERS: readonly string[] = ['schedule', 'webhook']
