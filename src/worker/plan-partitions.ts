import { toPartitionPlan } from '../engine/partition-plan.ts'
import type { SyncPlan } from '../engine/sync-plan.ts'
import { required } from '../values/required.ts'
import { listHalves } from './plan-range.ts'
import type { WorkerLike } from './worker.ts'

/** The plan of a read of single partitions. Of a pair, the half whose source has partitions; first the backfill. */
export function planPartitions(worker: Pick<WorkerLike, 'plan'>, sync: string, keys: readonly string[]): SyncPlan {
  const halves = listHalves(worker, sync)
  const plan = halves.find(({ execute }) => execute.selectPartitions !== undefined) ?? halves[0]
  return toPartitionPlan(required(plan, `sync ${sync}`), keys)
}
