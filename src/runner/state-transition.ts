import { SyncError, type Checkpoint, type Clock, type StateText, type Store, type SyncRef } from '../contract/index.ts'
import type { SyncPlan } from '../engine/sync-plan.ts'
import { maskSecrets } from '../redaction/known-secrets.ts'

export interface StateTransition {
  readonly state: StateText
  readonly reason: string
  readonly owner: string
  /** The version that the decision was based on. */
  readonly version: number
  /** Requests the backfill of the pair in the same transaction. */
  readonly needsBackfill?: ResetPlan['needsBackfill'] | undefined
}

export interface TransitionContext {
  readonly clock: Clock
  /** Recorded in the audit log. */
  readonly actor: string
  readonly holder: string
  isDead(holder: string): boolean
}

const LEASE_MS = 10_000

/** A reset to no state. `nextCycle` completes the sentence "The next cycle …". */
export interface ResetPlan {
  readonly nextCycle: string
  readonly needsBackfill?: { readonly sync: string; readonly reason: string }
}

/**
 * A delta cannot read the changes it missed, so its backfill is requested with the reset. `plan` is null for a sync
 * that no worker declares.
 */
export function planReset(plan: Pick<SyncPlan, 'mode' | 'pair' | 'execute'> | null, reason: string): ResetPlan {
  if (plan?.pair?.role === 'delta') {
    const { backfill } = plan.pair
    return { nextCycle: `comes after ${backfill}, which the next run starts: it takes a new anchor, then reads everything again`, needsBackfill: { sync: backfill, reason: `The state was reset: ${reason}` } }
  }
  if (plan?.mode === 'replace') return { nextCycle: 'reads everything from the start; rows that did not change are not written again' }
  return {
    nextCycle: plan?.execute.startsAtEnd === true
      ? 'begins at the end of the changes: what changed or was deleted since the last complete cycle is not read. Declare the sync with `worker.track` to have it read again'
      : 'begins without a state, as the first one did. Rows that were deleted meanwhile stay if the source no longer tells of them',
  }
}

/**
 * Sets the state of a checkpoint on behalf of an operator, through the same commit as every page: under the lease, so
 * that no runner is active, and with the expected version, so that nothing newer is overwritten. The commit writes the
 * audit log.
 */
export async function applyStateTransition(store: Store, ref: SyncRef, move: StateTransition, mover: TransitionContext): Promise<{ version: number; before: Checkpoint }> {
  const { lease, checkpoint } = await acquireLease(store, ref, mover)
  try {
    if (checkpoint.version !== move.version) throw versionConflict(ref, move.version, checkpoint.version)
    const outcome = await store.commit({
      lease, version: move.version, at: mover.clock.now(), owner: move.owner,
      transition: {
        kind: 'set', state: move.state, actor: mover.actor, reason: maskSecrets(move.reason),
        ...(move.needsBackfill !== undefined && { backfillRequest: { ...move.needsBackfill, reason: maskSecrets(move.needsBackfill.reason) } }),
      },
      landings: [], quarantined: [], columns: {}, readAtSequence: await store.headSequence(), upstreamToleranceMs: 0,
    })
    if (outcome.kind === 'conflict') throw versionConflict(ref, move.version, outcome.checkpoint.version)
    if (outcome.kind !== 'landed') throw new SyncError('LEASE_LOST', `${ref.sync}: another runner took over. Its state was not changed.`)
    return { version: outcome.version, before: checkpoint }
  } finally {
    await store.release(lease)
  }
}

async function acquireLease(store: Store, ref: SyncRef, { clock, holder, isDead }: TransitionContext): Promise<Extract<Awaited<ReturnType<Store['acquire']>>, { kind: 'acquired' }>> {
  const request = { holder, ttlMs: LEASE_MS, at: clock.now(), forRepair: true }
  let taken = await store.acquire(ref, request)
  if (taken.kind === 'held' && isDead(taken.holder)) taken = await store.acquire(ref, { ...request, evictHolder: taken.holder })
  if (taken.kind === 'acquired') return taken
  throw new SyncError('LEASE_HELD', `${ref.sync} is being run by ${taken.holder}, until ${new Date(taken.expiresAt).toISOString()} at least. Its state was not changed.`)
}

function versionConflict({ sync }: SyncRef, expected: number, found: number): SyncError {
  return new SyncError('VERSION_CONFLICT', `${sync} is at version ${found}, not ${expected}. Its state was not changed.`)
}
