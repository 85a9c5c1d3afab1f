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
export function startLeaseHeartbeat({
  store,
  clock,
  lease,
  ttlMs,
  requestedAt,
  cycleAbort,
}: LeaseHeartbeatOptions): LeaseHeartbeat {
  const stopController = new AbortController()
  let renewedAt = requestedAt
  const isExpired = (): boolean => clock.now() - renewedAt >= ttlMs
  const abortCycle = (message: string): void => cycleAbort.abort(new SyncError('LEASE_LOST', message))
  /** False if the lease is lost. */
  const renew = async (): Promise<boolean> => {
    const at = clock.now()
    const renewed = await store.renew(lease, { ttlMs, at }).catch(() => null)
    if (renewed === true) renewedAt = at
    if (stopController.signal.aborted) return false
    if (renewed === false) abortCycle(`${lease.ref.sync}: another runner took over.`)
    else if (renewed === null && isExpired()) abortCycle(`${lease.ref.sync}: the lease could not be renewed in time.`)
    return !cycleAbort.signal.aborted
  }
  const renewPeriodically = async (): Promise<void> => {
    do await clock.sleep(ttlMs / 3, stopController.signal)
    while (await renew())
  }
  renewPeriodically().catch(() => {})
  return { isExpired, renew, stop: () => stopController.abort(new Error('the cycle is over')) }
}
