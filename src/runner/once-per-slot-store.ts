import type { Store, SyncRef } from '../contract/index.ts'
import { fingerprintCheckpoint } from './due.ts'

/**
 * Wraps the store and releases a lease at once if the checkpoint has changed since the due time was computed: another
 * process saw the same slot and has already run it. Without this, every process that saw the slot would run it.
 */
export function createOncePerSlotStore(store: Store, judged: SyncRef, mark: string, onMoved: () => void): Store {
  const acquire: Store['acquire'] = async (ref, request) => {
    const taken = await store.acquire(ref, request)
    // A backfill also takes its delta's lease briefly; the fingerprint does not cover that sync.
    const isJudged = ref.worker === judged.worker && ref.sync === judged.sync
    if (taken.kind === 'held' || !isJudged || fingerprintCheckpoint(taken.checkpoint) === mark) return taken
    onMoved()
    await store.release(taken.lease)
    return { kind: 'held', holder: request.holder, expiresAt: request.at }
  }
  return new Proxy(store, {
    get(target, name) {
      if (name === 'acquire') return acquire
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}
