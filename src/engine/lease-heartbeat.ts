import { SyncError, type Clock, type Lease, type Store } from '../contract/index.ts'

interface LeaseHeartbeatOptions {
  readonly store: Store
  readonly clock: Clock
  readonly lease: Lease
  readonly ttlMs: number
  /** When the lease was requested: it may have been granted at any time since. */
  readonly requestedAt: number
  /**
   * Aborted when the lease is lost, so that nothing more is read. Invariant 3: the epoch alone decides what may still
   * be committed.
   */
  readonly cycleAbort: AbortController
}

export interface LeaseHeartbeat {
  /**
   * True if the TTL has passed without a renewal. A process that was suspended for that long does not know yet that
   * another has taken over, and would call the source concurrently: so it renews first.
   */
  isExpired(): boolean
  renew(): Promise<unknown>
  stop(): void
}

/** Renews the lease in the background, three times per TTL. */
export function startLeaseHeartbeat({ store, clock, lease, ttlMs, requestedAt: askedAt, cycleAbort: stopping }: LeaseHeartbeatOptions): LeaseHeartbeat {
  const ending = new AbortController()
  let renewedAt = askedAt
  const isOver = (): boolean => clock.now() - renewedAt >= ttlMs
  const lose = (message: string): void => stopping.abort(new SyncError('LEASE_LOST', message))
  /** False if the lease is lost. */
  const renew = async (): Promise<boolean> => {
    const at = clock.now()
    const kept = await store.renew(lease, { ttlMs, at }).catch(() => null)
    if (kept === true) renewedAt = at
    if (ending.signal.aborted) return false
    if (kept === false) lose(`${lease.ref.sync}: another runner took over.`)
    else if (kept === null && isOver()) lose(`${lease.ref.sync}: the lease could not be renewed in time.`)
    return !stopping.signal.aborted
  }
  const keep = async (): Promise<void> => {
    do await clock.sleep(ttlMs / 3, ending.signal)
    while (await renew())
  }
  keep().catch(() => {})
  return { isExpired: isOver, renew, stop: () => ending.abort(new Error('the cycle is over')) }
}
