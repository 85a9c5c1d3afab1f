import { SyncError, type Checkpoint, type StateText, type Store, type SyncRef } from '../contract/index.ts'
import { systemClock } from '../platform/clock.ts'
import { holderName, isDeadHolder } from '../platform/holder.ts'
import { actorName } from './actor.ts'

export interface StateMove {
  readonly state: StateText
  readonly reason: string
  readonly owner: string
  /** The version the decision was made on. */
  readonly version: number
}

const LEASE_MS = 10_000

/**
 * An operator's hand on a checkpoint, through the door every page goes through: with the lease, so that no runner is in
 * the middle of something, and on the version that was seen, so that nothing newer is overwritten. It is audited there.
 */
export async function moveState(store: Store, ref: SyncRef, move: StateMove): Promise<{ version: number; before: Checkpoint }> {
  const { lease, checkpoint } = await take(store, ref)
  try {
    if (checkpoint.version !== move.version) throw moved(ref, move.version, checkpoint.version)
    const at = systemClock.now()
    const outcome = await store.commit({
      lease, version: move.version, at, owner: move.owner,
      move: { kind: 'set', state: move.state, actor: actorName(), reason: move.reason },
      landings: [], quarantined: [], columns: {}, readFrom: await store.position(), upstreamToleranceMs: 0, pacers: {},
    })
    if (outcome.kind === 'conflict') throw moved(ref, move.version, outcome.checkpoint.version)
    if (outcome.kind !== 'landed') throw new SyncError('LEASE_LOST', `${ref.sync}: another runner took over. Its state was not changed.`)
    return { version: outcome.version, before: checkpoint }
  } finally {
    await store.release(lease)
  }
}

async function take(store: Store, ref: SyncRef): Promise<Extract<Awaited<ReturnType<Store['acquire']>>, { kind: 'acquired' }>> {
  const request = { holder: `cli:${holderName()}`, ttlMs: LEASE_MS, at: systemClock.now() }
  let taken = await store.acquire(ref, request)
  if (taken.kind === 'held' && isDeadHolder(taken.by)) taken = await store.acquire(ref, { ...request, evict: taken.by })
  if (taken.kind === 'acquired') return taken
  throw new SyncError('LEASE_HELD', `${ref.sync} is being run by ${taken.by}, until ${new Date(taken.until).toISOString()} at least. Its state was not changed.`)
}

function moved({ sync }: SyncRef, expected: number, found: number): SyncError {
  return new SyncError('VERSION_CONFLICT', `${sync} is at version ${found}, not ${expected}. Its state was not changed.`)
}
