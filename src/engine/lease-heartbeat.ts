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
   * True if at most a third of the TTL is left, because the process was suspended or the store is slow. Another may take
   * over while a request is pending, or has already: so the lease is renewed before the request.
   */
  isLate(): boolean
  /** Whether the store renewed the lease. If it is lost, the cycle is aborted. */
  renew(): Promise<boolean>
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
  const sinceRenewalMs = (): number => clock.now() - renewedAt
  const abortCycle = (message: string): void => cycleAbort.abort(new SyncError('LEASE_LOST', message))
  const renew = async (): Promise<boolean> => {
    const at = clock.now()
    const renewed = await store.renew(lease, { ttlMs, at }).catch(() => null)
    if (renewed === true) renewedAt = at
    if (stopController.signal.aborted) return false
    if (renewed === false) abortCycle(`${lease.ref.sync}: another runner took over.`)
    else if (renewed === null && sinceRenewalMs() >= ttlMs)
      abortCycle(`${lease.ref.sync}: the lease could not be renewed in time.`)
    return renewed === true
  }
  const renewPeriodically = async (): Promise<void> => {
    while (!cycleAbort.signal.aborted) {
      await clock.sleep(ttlMs / 3, stopController.signal)
      await renew()
    }
  }
  renewPeriodically().catch(() => {})
  return {
    isLate: () => sinceRenewalMs() * 3 >= ttlMs * 2,
    renew,
    stop: () => stopController.abort(new Error('the cycle is over')),
  }
}
