import type { PlanDefaults, WorkerLike } from '../config/worker.ts'
import type { SyncPlan } from '../engine/sync-plan.ts'
import type { Declared } from './due.ts'

/** A sync as the runner takes it: how it runs and when. */
export interface DeclaredSync extends Declared {
  readonly plan: SyncPlan
}

export function syncsOf(worker: WorkerLike, defaults: PlanDefaults = {}): DeclaredSync[] {
  return worker.manifest.syncs.map(({ name, mode, schedule, priority, pair, retentionMs }) => ({
    plan: worker.plan(name, defaults), mode, schedule, priority, pair, ...(retentionMs !== undefined && { retentionMs }),
  }))
}
