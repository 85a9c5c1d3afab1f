import { SyncError, type CommitOutcome, type StateTransition, type Sweep } from '../contract/index.ts'
import type { CycleContext } from './cycle-context.ts'
import type { OpenCycle } from './open-cycle.ts'
import type { FetchedPage } from './page-reader.ts'
import { ABSENT_LOOKUPS_MAX, getLookupDatabase } from './sync-plan.ts'

export function buildSweep({ plan, options }: CycleContext, open: OpenCycle, scope: string | null): Sweep {
  const { settledSequence } = open
  const { allowDeletes, actor, trigger } = options
  if (allowDeletes === true) return { maxShare: 1, allowEmpty: true, settledSequence, allowedBy: actor ?? trigger }
  const { maxShare, allowEmpty, lookupsMax = ABSENT_LOOKUPS_MAX } = plan.sweep
  // With another account or filter, a missing row is not known to be deleted.
  const limits = open.isScopeChanged(scope) ? { maxShare: 0, allowEmpty: false } : { maxShare, allowEmpty }
  const database = getLookupDatabase(plan)
  return {
    ...limits,
    settledSequence,
    ...(database !== null && lookupsMax > 0 && { confirmAbsent: { database, limit: lookupsMax } }),
  }
}

/** The absences are confirmed, so the sweep may delete. */
export function withoutAbsenceCheck(transition: StateTransition): StateTransition {
  if (transition.kind !== 'complete' || transition.sweep === null) return transition
  const { confirmAbsent: _, ...sweep } = transition.sweep
  return { ...transition, sweep }
}

/** The delete limit blocks the sweep, or the source still has a row that it did not list. */
export type SweepRefusal =
  | Extract<CommitOutcome, { kind: 'massDeleteBlocked' }>
  | { readonly kind: 'incomplete'; readonly key: string; readonly absent: number }

export function toRefusalError(
  { plan: { sync, partitions } }: CycleContext,
  open: OpenCycle,
  { checked }: FetchedPage,
  refusal: SweepRefusal,
): SyncError {
  if (refusal.kind === 'incomplete') {
    const { key, absent } = refusal
    return new SyncError(
      'LISTING_INCOMPLETE',
      `${sync}: the source did not list ${absent} rows that it listed before, but still has ${JSON.stringify(key)}; none were deleted.`,
    )
  }
  const { database, owned, toDelete } = refusal
  return new SyncError(
    partitions === undefined && open.isScopeChanged(open.mergeScope(checked.scope)) ? 'SCOPE_CHANGED' : 'MASS_DELETE',
    `${sync}: the source no longer lists ${toDelete} of the ${owned} rows of ${database}; none were deleted.`,
  )
}
