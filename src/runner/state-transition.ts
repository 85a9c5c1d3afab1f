import {
  SyncError,
  type Checkpoint,
  type Clock,
  type PartitionChange,
  type StateText,
  type Store,
  type SyncRef,
} from '../contract/index.ts'
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
  /** Replaces the partitions of the sync, which belong to the state before; by default with none. */
  readonly partitions?: readonly PartitionChange[] | undefined
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
    return {
      nextCycle: `runs after ${backfill}, which starts with the next run, takes a new anchor and reads everything again`,
      needsBackfill: { sync: backfill, reason: `The state was reset: ${reason}` },
    }
  }
  if (plan?.mode === 'replace')
    return { nextCycle: 'reads everything from the start; unchanged rows are not written again' }
  return {
    nextCycle:
      plan?.execute.startsAtEnd === true
        ? 'starts at the end of the changes: changes and deletions since the last complete cycle are not read. Declare the sync with `worker.track` to read them again'
        : 'starts without state, like the first one. Rows deleted meanwhile remain if the source no longer reports their deletion',
  }
}

/**
 * Sets the state of a checkpoint on behalf of an operator, through the same commit as every page: under the lease, so
 * that no runner is active, and with the expected version, so that nothing newer is overwritten. The commit writes the
 * audit log.
 */
export async function applyStateTransition(
  store: Store,
  ref: SyncRef,
  transition: StateTransition,
  context: TransitionContext,
): Promise<{ version: number; before: Checkpoint }> {
  const { lease, checkpoint } = await acquireLease(store, ref, context)
  try {
    if (checkpoint.version !== transition.version) throw versionConflict(ref, transition.version, checkpoint.version)
    const outcome = await store.commit({
      lease,
      version: transition.version,
      at: context.clock.now(),
      owner: transition.owner,
      transition: {
        kind: 'set',
        state: transition.state,
        actor: context.actor,
        reason: maskSecrets(transition.reason),
        ...(transition.needsBackfill !== undefined && {
          backfillRequest: { ...transition.needsBackfill, reason: maskSecrets(transition.needsBackfill.reason) },
        }),
      },
      landings: [],
      quarantined: [],
      columns: {},
      ...(transition.partitions !== undefined && { partitions: transition.partitions }),
      readAtSequence: await store.headSequence(),
      upstreamToleranceMs: 0,
    })
    if (outcome.kind === 'conflict') throw versionConflict(ref, transition.version, outcome.checkpoint.version)
    if (outcome.kind !== 'landed')
      throw new SyncError('LEASE_LOST', `${ref.sync}: another runner took the lease. The state was not changed.`)
    return { version: outcome.version, before: checkpoint }
  } finally {
    await store.release(lease)
  }
}

async function acquireLease(
  store: Store,
  ref: SyncRef,
  { clock, holder, isDead }: TransitionContext,
): Promise<Extract<Awaited<ReturnType<Store['acquire']>>, { kind: 'acquired' }>> {
  const request = { holder, ttlMs: LEASE_MS, at: clock.now(), forRepair: true }
  let result = await store.acquire(ref, request)
  if (result.kind === 'held' && isDead(result.holder))
    result = await store.acquire(ref, { ...request, evictHolder: result.holder })
  if (result.kind === 'acquired') return result
  throw new SyncError(
    'LEASE_HELD',
    `${ref.sync} is run by ${result.holder}; its lease lasts until at least ${new Date(result.expiresAt).toISOString()}. The state was not changed.`,
  )
}

function versionConflict({ sync }: SyncRef, expected: number, found: number): SyncError {
  return new SyncError(
    'VERSION_CONFLICT',
    `${sync} is at version ${found}, not ${expected}. The state was not changed.`,
  )
}
