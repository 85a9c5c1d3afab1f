import { SyncError, type Checkpoint, type CycleFacts, type Lease, type Store, type SyncRef } from '../contract/index.ts'
import { serializeState } from './check-page.ts'
import type { CycleOptions } from './cycle-options.ts'
import type { PageReader } from './page-reader.ts'
import type { RetryingStore } from './retrying-store.ts'
import type { SyncPlan } from './sync-plan.ts'

/**
 * Before a backfill reads its first page, its delta must know where to start: were the place taken later, what changed in
 * between would be in neither. A delta that already stands somewhere stays there. An anchor that is undefined means that
 * the delta reads from the source's beginning.
 */
export async function ensureAnchor(plan: SyncPlan, options: CycleOptions, reader: PageReader, door: RetryingStore, cycle: CycleFacts): Promise<void> {
  if (plan.pair?.role !== 'backfill' || plan.pair.anchor === null) return
  const { delta, anchor } = plan.pair
  const ref = { worker: plan.worker, sync: delta }
  if (!(await lacksState(ref, door))) return
  const { clock } = options.ports
  const completeSince = clock.now()
  const place = await reader.callSource(cycle, anchor)
  if (place === undefined) return
  const state = serializeState(delta, place, plan.limits.stateBytesMax)

  for (let attempt = 1; ; attempt++) {
    const taken = await door.call((store) => store.acquire(ref, { holder: options.holder, ttlMs: plan.limits.leaseTtlMs, at: clock.now() }))
    if (taken.kind === 'acquired') {
      const { lease, checkpoint } = taken
      try {
        if (hasState(checkpoint)) return
        await door.commit({
          lease, version: checkpoint.version, at: clock.now(), owner: plan.owner, landings: [], quarantined: [], columns: {}, readAtSequence: 0,
          upstreamToleranceMs: 0, transition: { kind: 'set', state, actor: 'engine', reason: `anchor taken before ${plan.sync} began`, completeSince },
        })
        return
      } finally {
        await door.call((store: Store) => store.release(lease))
      }
    }
    // The delta is at work, perhaps on its own first place; only when it has one may the backfill begin.
    if (!(await lacksState(ref, door))) return
    if (attempt >= ATTEMPTS_MAX) throw new SyncError('LEASE_HELD', `${plan.sync} cannot begin: ${delta} is being run by ${taken.holder} and has no position yet.`)
    await clock.sleep(WAIT_MS)
  }
}

/**
 * The source no longer has the changes since the delta's state. One transaction gives the state up and orders the backfill,
 * which takes a new anchor before it begins. Returns the error that says so.
 */
export async function requestBackfill(plan: SyncPlan, options: CycleOptions, door: RetryingStore, { lease, version, error: lost }: HistoryLoss): Promise<SyncError> {
  if (plan.pair?.role !== 'delta') {
    return new SyncError(lost.code, `${lost.message} ${plan.sync} has no backfill that could read it again: declare it with \`worker.track\`.`, { cause: lost })
  }
  const { backfill } = plan.pair
  await door.commit({
    lease, version, at: options.ports.clock.now(), owner: plan.owner, landings: [], quarantined: [], columns: {}, readAtSequence: 0, upstreamToleranceMs: 0,
    transition: { kind: 'set', state: null, actor: 'engine', reason: `history lost; ${backfill} was ordered`, backfillRequest: { sync: backfill, reason: lost.message } },
  })
  return new SyncError('HISTORY_LOST', `${lost.message} ${backfill} was ordered and reads everything again.`, { cause: lost })
}

export interface HistoryLoss {
  readonly lease: Lease
  readonly version: number
  readonly error: SyncError
}

const ATTEMPTS_MAX = 60
const WAIT_MS = 1_000

async function lacksState(ref: SyncRef, door: RetryingStore): Promise<boolean> {
  return !hasState(await door.call((store) => store.readCheckpoint(ref)))
}

/** A cycle that has begun and landed nothing yet has no place either: left so, it would find one when the backfill is over. */
function hasState({ committed, inflight }: Pick<Checkpoint, 'committed' | 'inflight'>): boolean {
  return committed !== null || (inflight !== null && inflight.state !== null)
}
