import type { Store, SyncRef } from '../contract/index.ts'
import { fingerprintCheckpoint } from './due.ts'

/**
 * The same store, but a lease on a sync that has moved since it was judged is given back at once: another process saw
 * the same slot, took it first and has already ended. Without this, one slot could be run once by everybody who saw it.
 */
export function createOncePerSlotStore(store: Store, judged: SyncRef, mark: string, onMoved: () => void): Store {
  const acquire: Store['acquire'] = async (ref, request) => {
    const taken = await store.acquire(ref, request)
    // A backfill also takes its delta for a moment, of which nothing was judged.
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
