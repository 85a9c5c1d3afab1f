import { SyncError, type Clock, type Lease, type Store } from '../contract/index.ts'

interface LeaseHeartbeatOptions {
  readonly store: Store
  readonly clock: Clock
  readonly lease: Lease
  readonly ttlMs: number
  /** When it was asked for: it may have been given at any time since. */
  readonly requestedAt: number
  /** Aborted when the lease is lost, so that nothing more is read. What may still be landed is decided by the epoch alone. */
  readonly cycleAbort: AbortController
}

export interface LeaseHeartbeat {
  /**
   * Whether its time has passed without a renewal. A process that was frozen for so long does not know yet that another has
   * taken over, and would ask the source beside it: so it renews first.
   */
  isExpired(): boolean
  renew(): Promise<unknown>
  stop(): void
}

/** Renews the lease three times in its life, beside the cycle. */
export function startLeaseHeartbeat({ store, clock, lease, ttlMs, requestedAt: askedAt, cycleAbort: stopping }: LeaseHeartbeatOptions): LeaseHeartbeat {
  const ending = new AbortController()
  let renewedAt = askedAt
  const isOver = (): boolean => clock.now() - renewedAt >= ttlMs
  const lose = (message: string): void => stopping.abort(new SyncError('LEASE_LOST', message))
  /** False when it is lost. */
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
