import { didYouMean } from '../../values/did-you-mean.ts'
import { describeValue } from '../../config/names.ts'
import { SyncError, type Store, type SyncRef } from '../../contract/index.ts'
import type { WorkerTarget } from './target.ts'

/** Finds a sync that the worker declares, or that it declared earlier and the store still has. */
export async function findSync(target: WorkerTarget, store: Store | null, sync: string): Promise<SyncRef> {
  const names = new Set(target.worker.manifest.syncs.map(({ name }) => name))
  if (store !== null) for (const ref of await store.syncs()) if (ref.worker === target.name) names.add(ref.sync)
  if (names.has(sync)) return { worker: target.name, sync }
  const near = didYouMean(sync, names)
  const known = near === '' ? ` It has ${[...names].slice(0, 10).join(', ') || 'none'}.` : near
  throw new SyncError('SYNC_UNKNOWN', `Worker "${target.name}" has no sync ${describeValue(sync)}.${known}`)
}
