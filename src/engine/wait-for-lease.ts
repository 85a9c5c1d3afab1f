import { SyncError, type Lease, type Ports } from '../contract/index.ts'
import type { RetryingStore } from './retrying-store.ts'
import type { SyncPlan } from './sync-plan.ts'

export interface LeaseWait {
  readonly ports: Ports
  readonly holder: string
  readonly isHolderGone?: ((holder: string) => boolean) | undefined
  readonly signal: AbortSignal
  /** How long to wait for the lease of a running cycle; one minute by default. */
  readonly leaseWaitMs?: number
}

const LEASE_POLL_MS = 500

/** Acquires the lease of a sync outside a cycle, once a running one has ended. */
export async function waitForLease(
  { worker, sync, limits }: SyncPlan,
  retryingStore: RetryingStore,
  { ports, holder, isHolderGone, signal, leaseWaitMs = 60_000 }: LeaseWait,
): Promise<{ lease: Lease; version: number }> {
  const end = ports.clock.now() + leaseWaitMs
  for (let evictHolder: string | undefined; ;) {
    const request = { holder, ttlMs: limits.leaseTtlMs, at: ports.clock.now() }
    const evicting = evictHolder
    const result = await retryingStore.call((store) =>
      store.acquire({ worker, sync }, { ...request, ...(evicting !== undefined && { evictHolder: evicting }) }),
    )
    if (result.kind === 'acquired') return { lease: result.lease, version: result.checkpoint.version }
    evictHolder = isHolderGone?.(result.holder) === true ? result.holder : undefined
    if (evictHolder !== undefined) continue
    if (ports.clock.now() >= end)
      throw new SyncError('LEASE_HELD', `${sync} is being run by ${result.holder}; nothing was written.`)
    await ports.clock.sleep(LEASE_POLL_MS, signal)
  }
}
