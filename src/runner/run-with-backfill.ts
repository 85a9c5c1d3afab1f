import type { Store } from '../contract/index.ts'
import type { CycleResult } from '../engine/cycle-options.ts'
import type { SyncPlan } from '../engine/sync-plan.ts'
import type { WorkerLike } from '../worker/worker.ts'
import { isBackfillNeeded } from './pair-backfill.ts'

/**
 * Runs a sync now. The backfill of its pair runs before the delta if one is needed, and when the delta reports that it
 * lost changes. Returns the results in the order of the runs.
 */
export async function runWithBackfill(
  worker: WorkerLike,
  sync: string,
  store: Store,
  run: (plan: SyncPlan) => Promise<CycleResult>,
): Promise<CycleResult[]> {
  const plan = worker.plan(sync)
  if (plan.pair?.role !== 'delta') return [await run(plan)]
  const backfill = worker.plan(plan.pair.backfill)
  const checkpoint = await store.readCheckpoint({ worker: plan.worker, sync: backfill.sync })
  if (isBackfillNeeded(checkpoint)) return [await run(backfill), await run(plan)]
  const result = await run(plan)
  if (result.error?.code !== 'HISTORY_LOST') return [result]
  const repair = await run(backfill)
  return repair.error === null ? [repair, await run(plan)] : [repair, result]
}
