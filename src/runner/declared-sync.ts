import type { PlanDefaults, WorkerLike } from '../worker/worker.ts'
import type { SyncPlan } from '../engine/sync-plan.ts'
import type { SyncDeclaration } from './due.ts'

/** A sync with its plan and its schedule. */
export interface DeclaredSync extends SyncDeclaration {
  readonly plan: SyncPlan
}

export function listDeclaredSyncs(worker: WorkerLike, defaults: PlanDefaults = {}): DeclaredSync[] {
  return worker.manifest.syncs.map(({ name, mode, schedule, priority, pair, retentionMs }) => ({
    plan: worker.plan(name, defaults),
    mode,
    schedule,
    priority,
    pair,
    ...(retentionMs !== undefined && { retentionMs }),
  }))
}
