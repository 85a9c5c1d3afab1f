import { SyncError, type Checkpoint, type CycleFacts, type SyncRef } from '../contract/index.ts'
import { serializeState } from './check-page.ts'
import type { CycleContext } from './cycle-context.ts'
import type { PageReader } from './page-reader.ts'
import type { RetryingStore } from './retrying-store.ts'

/**
 * Stores the start of the delta before the backfill reads its first page. If the anchor were taken later, changes in
 * between would be in neither. A delta that already has a state keeps it. An undefined anchor means that the delta
 * reads from the beginning of the source.
 */
export async function ensureAnchor(
  { plan, options, retryingStore }: CycleContext,
  reader: PageReader,
  cycle: CycleFacts,
): Promise<void> {
  if (plan.pair?.role !== 'backfill' || plan.pair.anchor === null) return
  const { delta, anchor } = plan.pair
  const ref = { worker: plan.worker, sync: delta }
  if (!(await lacksState(ref, retryingStore))) return
  const { clock } = options.ports
  const completeSince = clock.now()
  const anchorState = await reader.callSource(cycle, anchor)
  if (anchorState === undefined) return
  const state = serializeState(delta, anchorState, plan.limits.stateBytesMax)

  for (let attempt = 1; ; attempt++) {
    const result = await retryingStore.call((store) =>
      store.acquire(ref, { holder: options.holder, ttlMs: plan.limits.leaseTtlMs, at: clock.now() }),
    )
    if (result.kind === 'acquired') {
      const { lease, checkpoint } = result
      try {
        if (hasState(checkpoint)) return
        await retryingStore.commit({
          lease,
          version: checkpoint.version,
          at: clock.now(),
          owner: plan.owner,
          landings: [],
          quarantined: [],
          columns: {},
          readAtSequence: 0,
          upstreamToleranceMs: 0,
          transition: {
            kind: 'set',
            state,
            actor: 'engine',
            reason: `anchor taken before ${plan.sync} began`,
            completeSince,
          },
        })
        return
      } finally {
        await retryingStore.call((store) => store.release(lease))
      }
    }
    // The delta is running and may be storing its own first state; the backfill may begin only once it has one.
    if (!(await lacksState(ref, retryingStore))) return
    if (attempt >= ATTEMPTS_MAX)
      throw new SyncError(
        'LEASE_HELD',
        `${plan.sync} cannot start: ${delta} is being run by ${result.holder} and has no state yet.`,
      )
    await clock.sleep(WAIT_MS)
  }
}

/**
 * Handles the loss of the changes since the delta's state. One transaction clears the state and requests the backfill,
 * which takes a new anchor before it begins. Returns the error to report.
 */
export async function requestBackfill(
  { plan, options, retryingStore, lease }: CycleContext,
  version: number,
  lost: SyncError,
): Promise<SyncError> {
  if (plan.pair?.role !== 'delta') {
    return new SyncError(
      lost.code,
      `${lost.message} ${plan.sync} has no backfill to read everything again: declare it with \`worker.track\`.`,
      { cause: lost },
    )
  }
  const { backfill } = plan.pair
  await retryingStore.commit({
    lease,
    version,
    at: options.ports.clock.now(),
    owner: plan.owner,
    landings: [],
    quarantined: [],
    columns: {},
    readAtSequence: 0,
    upstreamToleranceMs: 0,
    transition: {
      kind: 'set',
      state: null,
      actor: 'engine',
      reason: `history lost; ${backfill} was requested`,
      backfillRequest: { sync: backfill, reason: lost.message },
    },
  })
  return new SyncError('HISTORY_LOST', `${lost.message} ${backfill} was requested and reads everything again.`, {
    cause: lost,
  })
}

const ATTEMPTS_MAX = 60
const WAIT_MS = 1_000

async function lacksState(ref: SyncRef, retryingStore: RetryingStore): Promise<boolean> {
  return !hasState(await retryingStore.call((store) => store.readCheckpoint(ref)))
}

/** A cycle that has begun but committed nothing has no state either: it would take one only after the backfill. */
function hasState({ committed, inflight }: Pick<Checkpoint, 'committed' | 'inflight'>): boolean {
  return committed !== null || (inflight !== null && inflight.state !== null)
}
