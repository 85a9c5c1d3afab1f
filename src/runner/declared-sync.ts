import type { Manifest, PlanDefaults, WorkerLike } from '../worker/worker.ts'
import { toBackfillName, type SyncPlan } from '../engine/sync-plan.ts'
import type { ParentSync } from './parents.ts'
import type { SyncDeclaration } from './due.ts'

/** A sync with its plan and its schedule. */
export interface DeclaredSync extends SyncDeclaration {
  readonly plan: SyncPlan
}

export function listDeclaredSyncs(worker: WorkerLike, defaults: PlanDefaults = {}): DeclaredSync[] {
  const { syncs } = worker.manifest
  return syncs.map(({ name, mode, schedule, priority, pair, retentionMs, after }) => ({
    plan: worker.plan(name, defaults),
    mode,
    schedule,
    priority,
    pair,
    ...(retentionMs !== undefined && { retentionMs }),
    ...(after !== undefined && { after: toParents(after, syncs) }),
  }))
}

/** A delta is complete only together with the backfill of its pair. */
export function toParents(after: readonly string[], syncs: Manifest['syncs']): readonly ParentSync[] {
  return after.map((sync) => ({
    sync,
    backfill: syncs.some(({ name, pair }) => name === sync && pair === 'delta') ? toBackfillName(sync) : null,
  }))
}
