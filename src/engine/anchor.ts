import { SyncError, type Checkpoint, type CycleFacts, type Lease, type Store, type SyncRef } from '../contract/index.ts'
import { stateText } from './check-page.ts'
import type { CycleOptions } from './cycle-options.ts'
import type { PageReader } from './page-reader.ts'
import type { StoreDoor } from './store-door.ts'
import type { SyncPlan } from './sync-plan.ts'

/**
 * Before a backfill reads its first page, its delta must know where to start: were the place taken later, what changed in
 * between would be in neither. A delta that already stands somewhere stays there; a feed without a place yet leaves it
 * undefined, and the next backfill asks again.
 */
export async function settleAnchor(plan: SyncPlan, options: CycleOptions, reader: PageReader, door: StoreDoor, cycle: CycleFacts): Promise<void> {
  if (plan.pair?.role !== 'backfill' || plan.pair.anchor === null) return
  const { delta, anchor } = plan.pair
  const ref = { worker: plan.worker, sync: delta }
  if (!(await isUnset(ref, door))) return
  const place = await reader.ask(cycle, anchor)
  if (place === undefined) return
  const state = stateText(delta, place, plan.limits.stateBytesMax)

  const { clock } = options.ports
  for (let attempt = 1; ; attempt++) {
    const taken = await door.call((store) => store.acquire(ref, { holder: options.holder, ttlMs: plan.limits.leaseTtlMs, at: clock.now() }))
    if (taken.kind === 'acquired') {
      const { lease, checkpoint } = taken
      try {
        if (standsSomewhere(checkpoint)) return
        await door.commit({
          lease, version: checkpoint.version, at: clock.now(), owner: plan.owner, landings: [], quarantined: [], columns: {}, readFrom: 0,
          upstreamToleranceMs: 0, move: { kind: 'set', state, actor: 'engine', reason: `anchor taken before ${plan.sync} began` },
        })
        return
      } finally {
        await door.call((store: Store) => store.release(lease))
      }
    }
    // The delta is at work, perhaps on its own first place; only when it has one may the backfill begin.
    if (!(await isUnset(ref, door))) return
    if (attempt >= ATTEMPTS_MAX) throw new SyncError('LEASE_HELD', `${plan.sync} cannot begin: ${delta} is being run by ${taken.by} and has no position yet.`)
    await clock.sleep(WAIT_MS)
  }
}

/** The source no longer tells what changed since the delta's position: give it up, on record, and ask for the backfill that makes up for it. */
export async function orderBackfill(plan: SyncPlan, options: CycleOptions, door: StoreDoor, lease: Lease, version: number): Promise<void> {
  if (plan.pair?.role !== 'delta') return
  const { backfill } = plan.pair
  const at = options.ports.clock.now()
  await door.commit({
    lease, version, at, owner: plan.owner, landings: [], quarantined: [], columns: {}, readFrom: 0, upstreamToleranceMs: 0,
    move: { kind: 'set', state: null, actor: 'engine', reason: `history lost; ${backfill} was asked to run` },
  })
  await door.call((store) => store.signal({ worker: plan.worker, sync: backfill }, { kind: 'trigger', actor: 'engine', at }))
}

const ATTEMPTS_MAX = 60
const WAIT_MS = 1_000

async function isUnset(ref: SyncRef, door: StoreDoor): Promise<boolean> {
  return !standsSomewhere(await door.call((store) => store.read(ref)))
}

/** A cycle that has begun and landed nothing yet has no place either: left so, it would find one when the backfill is over. */
function standsSomewhere({ committed, inflight }: Pick<Checkpoint, 'committed' | 'inflight'>): boolean {
  return committed !== null || (inflight !== null && inflight.state !== null)
}
