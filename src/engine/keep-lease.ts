import { SyncError, type Clock, type Lease, type Store } from '../contract/index.ts'

interface KeepOptions {
  readonly store: Store
  readonly clock: Clock
  readonly lease: Lease
  readonly ttlMs: number
  /** Aborted when the lease is lost, so that nothing more is read. What may still be landed is decided by the epoch alone. */
  readonly stopping: AbortController
}

/** Renews the lease three times in its life, beside the cycle. */
export function keepLease({ store, clock, lease, ttlMs, stopping }: KeepOptions): { stop(): void } {
  const ending = new AbortController()
  const lose = (message: string): void => stopping.abort(new SyncError('LEASE_LOST', message))
  const keep = async (): Promise<void> => {
    let renewedAt = clock.now()
    for (;;) {
      await clock.sleep(ttlMs / 3, ending.signal)
      const at = clock.now()
      const kept = await store.renew(lease, { ttlMs, at }).catch(() => null)
      if (ending.signal.aborted) return
      if (kept === false) return lose(`${lease.ref.sync}: another runner took over.`)
      if (kept === true) renewedAt = at
      else if (clock.now() - renewedAt >= ttlMs) return lose(`${lease.ref.sync}: the lease could not be renewed in time.`)
    }
  }
  keep().catch(() => {})
  return { stop: () => ending.abort(new Error('the cycle is over')) }
}
