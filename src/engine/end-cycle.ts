import type { StopReason, SyncError } from '../contract/index.ts'
import { PauseError } from './account-pauses.ts'
import { classifyError } from './classify-error.ts'
import type { CycleContext } from './cycle-context.ts'
import { noCounts } from './cycle-counters.ts'
import type { CycleOptions, CycleResult } from './cycle-options.ts'
import { CycleTidemark } from './cycle-tidemark.ts'
import type { OpenCycle } from './open-cycle.ts'
import { cycleDelayMs, waitHintMs } from './retry.ts'
import type { SyncPlan } from './sync-plan.ts'

/** Why a run ended. */
export interface CycleEnd {
  readonly stopReason: StopReason
  /** Null if nothing failed. */
  readonly error: SyncError | null
}

/** Releases the lease with the report of the run. `open` is null if the cycle could not begin. */
export async function endCycle(
  context: CycleContext,
  open: OpenCycle | null,
  { stopReason, error: thrown }: CycleEnd,
): Promise<CycleResult> {
  const { options, counters, trace, lease, startedAt } = context
  const { store, ports } = options
  const { inflight = null, log = ports.log, checkpoint = context.checkpoint } = open ?? {}
  const tidemark = open?.tidemark ?? CycleTidemark.create(checkpoint.tidemark, null)
  const endedAt = ports.clock.now()
  const failure = thrown === null || thrown.code === 'CANCELLED' ? null : thrown
  const error = failure === null ? null : { code: failure.code, message: failure.message }
  const isBlockedByPause = failure instanceof PauseError
  // The end of a pause is known; an additional backoff would only delay the copy.
  const delayMs =
    failure === null
      ? 0
      : isBlockedByPause
        ? waitHintMs(failure)
        : cycleDelayMs(failure, checkpoint.failures + 1, ports.random)
  const retryAt = failure === null ? null : endedAt + delayMs
  const totals = counters.totals()
  // All pages are committed; a lease that cannot be released expires.
  await store
    .release(lease, {
      cycle: inflight?.cycle ?? 0,
      stopReason,
      endedAt,
      ...totals,
      error,
      retryAt,
      isBlockedByPause,
    })
    .catch((problem: unknown) => {
      log.warn('could not release the lease', { code: classifyError(problem).code })
    })
  const completeSince =
    tidemark.completeSince ?? (stopReason === 'complete' ? (inflight?.startedAt ?? null) : checkpoint.lastSuccessAt)
  return trace.endCycle(
    {
      ...lease.ref,
      cycle: inflight?.cycle ?? null,
      stopReason,
      endReason: stopReason === 'complete' ? (open?.endReason ?? null) : null,
      resumed: open?.resumed ?? false,
      ...totals,
      startedAt,
      endedAt,
      version: checkpoint.version,
      headSequence: open?.headSequence ?? 0,
      tidemark: tidemark.current,
      drift: [...(open?.driftDetector.messages ?? [])],
      error: failure === null ? null : { code: failure.code, message: failure.message, advice: failure.advice },
      retryAt,
    },
    completeSince,
  )
}

export function toStopReason(error: SyncError): StopReason {
  switch (error.code) {
    case 'CANCELLED':
      return 'cancelled'
    case 'LEASE_LOST':
      return 'lease_lost'
    case 'COMMIT_UNKNOWN':
      return 'unknown'
    case 'MASS_DELETE':
    case 'SCOPE_CHANGED':
    case 'LISTING_INCOMPLETE':
      return 'blocked'
    default:
      return 'error'
  }
}

/** The result of a run that called no source: another runner holds the lease, or the sync is paused. */
export function buildSkippedResult(
  { worker, sync }: SyncPlan,
  { ports }: CycleOptions,
  { stopReason, startedAt, error: { code, message, advice } }: SkippedRun,
): CycleResult {
  return {
    worker,
    sync,
    cycle: null,
    stopReason,
    endReason: null,
    resumed: false,
    pages: 0,
    counts: noCounts(),
    retries: 0,
    waitedMs: 0,
    startedAt,
    endedAt: ports.clock.now(),
    version: 0,
    headSequence: 0,
    tidemark: null,
    drift: [],
    error: { code, message, advice },
    retryAt: null,
  }
}

export interface SkippedRun {
  readonly stopReason: 'held' | 'paused'
  readonly startedAt: number
  readonly error: SyncError
}
