import type { Store, SyncRef } from '../contract/index.ts'
import { fingerprintCheckpoint } from './due.ts'

/**
 * Wraps the store and releases a lease at once if the checkpoint has changed since the due time was computed: another
 * process saw the same slot and has already run it. Without this, every process that saw the slot would run it.
 */
export function createOncePerSlotStore(
  store: Store,
  syncRef: SyncRef,
  fingerprint: string,
  onSlotTaken: () => void,
): Store {
  const acquire: Store['acquire'] = async (ref, request) => {
    const result = await store.acquire(ref, request)
    // A backfill also takes its delta's lease briefly; the fingerprint does not cover that sync.
    const isSameSync = ref.worker === syncRef.worker && ref.sync === syncRef.sync
    if (result.kind === 'held' || !isSameSync || fingerprintCheckpoint(result.checkpoint) === fingerprint) return result
    onSlotTaken()
    await store.release(result.lease)
    return { kind: 'held', holder: request.holder, expiresAt: request.at }
  }
  return new Proxy(store, {
    get(target, name) {
      if (name === 'acquire') return acquire
      const property: unknown = Reflect.get(target, name)
      return typeof property === 'function' ? property.bind(target) : property
    },
  })
}
