import type { TimeRange } from '../contract/index.ts'
import { toRangePlan } from '../engine/range-plan.ts'
import type { SyncPlan } from '../engine/sync-plan.ts'
import { required } from '../values/required.ts'
import type { WorkerLike } from './worker.ts'

/** The plan of a range read. Of a pair, the half whose source can read ranges; first the backfill. */
export function planRange(worker: Pick<WorkerLike, 'plan'>, sync: string, range: TimeRange): SyncPlan {
  const halves = listHalves(worker, sync)
  const plan = halves.find(({ execute }) => execute.range !== undefined) ?? halves[0]
  return toRangePlan(required(plan, `sync ${sync}`), range)
}

/** The sync, or both halves of its pair, first the backfill. */
export function listHalves(worker: Pick<WorkerLike, 'plan'>, sync: string): SyncPlan[] {
  const plan = worker.plan(sync)
  if (plan.pair === undefined) return [plan]
  return plan.pair.role === 'delta' ? [worker.plan(plan.pair.backfill), plan] : [plan, worker.plan(plan.pair.delta)]
}
