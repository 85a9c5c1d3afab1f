import type { CycleFacts, SyncContext } from '../../contract/index.ts'
import { stateRejectedError } from './strategy-errors.ts'

/** An answer that may include the source's clock. */
export interface ServerClock {
  /**
   * The source's time when it answered: the HTTP `Date` header as received, or milliseconds. It can only lower the
   * horizon.
   */
  readonly serverTime?: string | number | null
}

/**
 * The horizon is the time below which every row is visible and no new row can appear. It is fixed before the cycle's
 * first request and stored in the state; it never rises, even if another process resumes the cycle.
 */
export function pinHorizon(strategy: string, cycle: CycleFacts, lagMs: number, pinnedMs: number | undefined): number {
  if (pinnedMs !== undefined && !Number.isSafeInteger(pinnedMs))
    throw stateRejectedError(strategy, '`untilMs` is not a number of milliseconds')
  return Math.min(cycle.startedAt - lagMs, pinnedMs ?? Number.POSITIVE_INFINITY)
}

/** Sends a request and measures it: the source may have read its rows that much earlier than its answer's time. */
export async function measureRequest<Answer>(
  context: SyncContext,
  request: () => Promise<Answer>,
): Promise<{ answer: Answer; tookMs: number }> {
  const startedAt = context.clock.now()
  const answer = await request()
  return { answer, tookMs: Math.max(0, context.clock.now() - startedAt) }
}

/** Our clock may be ahead, so the source's clock can only lower the horizon. An unparsable date is ignored. */
export function lowerHorizon(untilMs: number, lagMs: number, { serverTime }: ServerClock, tookMs: number): number {
  const serverMs = typeof serverTime === 'string' ? Date.parse(serverTime) : (serverTime ?? Number.NaN)
  return Number.isFinite(serverMs) ? Math.min(untilMs, Math.floor(serverMs) - tookMs - lagMs) : untilMs
}
