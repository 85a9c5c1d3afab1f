import { readsPart } from './sync-plan.ts'
import type { CycleContext } from './cycle-context.ts'
import type { OpenCycle } from './open-cycle.ts'
import type { FetchedPage } from './page-reader.ts'

/**
 * The drift of the last page. Includes fields that are gone from a listing that ends with this page. Those are reported
 * once, not with every listing.
 */
export async function describeFinalDrift(
  { plan, retryingStore, lease }: CycleContext,
  { driftDetector, resumed }: OpenCycle,
  { prepared: { columns } }: FetchedPage,
): Promise<string[]> {
  const messages = driftDetector.detect(columns)
  const isComplete = plan.mode === 'replace' && !readsPart(plan) && !resumed
  const removed = isComplete ? driftDetector.detectRemoved(columns) : []
  if (removed.length === 0) return messages
  const audit = await retryingStore.call((store) => store.audit(lease.ref, { limit: AUDIT_LOOKBACK_MAX }))
  const reported = audit.filter(({ action }) => action === 'drift').flatMap(({ reason }) => reason.split('; '))
  return [...messages, ...removed.filter((message) => !reported.includes(message))]
}

/** Audit log entries to search for drift that was already reported. */
const AUDIT_LOOKBACK_MAX = 1_000
