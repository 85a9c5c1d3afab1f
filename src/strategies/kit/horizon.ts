import type { CycleFacts, SyncContext } from '../../contract/index.ts'
import { stateRejectedError } from './strategy-errors.ts'

/** What an answer may say of the source's own clock. */
export interface ServerClock {
  /** The source's time when it answered: an HTTP `Date` header as it came, or milliseconds. It can only lower the horizon. */
  readonly serverTime?: string | number | null
}

/**
 * Up to where everything is visible and nothing new can appear: fixed before the cycle's first request, carried in the
 * state from then on, and never raised, also not in a cycle that another process takes up.
 */
export function pinHorizon(strategy: string, cycle: CycleFacts, lagMs: number, pinnedMs: number | undefined): number {
  if (pinnedMs !== undefined && !Number.isSafeInteger(pinnedMs)) throw stateRejectedError(strategy, '`untilMs` is not a number of milliseconds')
  return Math.min(cycle.startedAt - lagMs, pinnedMs ?? Number.POSITIVE_INFINITY)
}

/** Asks, and notes how long it took: the source may have looked at its rows that much earlier than its answer says. */
export async function measureRequest<Answer>(context: SyncContext, ask: () => Promise<Answer>): Promise<{ answer: Answer; tookMs: number }> {
  const askedAt = context.clock.now()
  const answer = await ask()
  return { answer, tookMs: Math.max(0, context.clock.now() - askedAt) }
}

/** Our own clock may be ahead; the source's can only say that less is safe. A header that is no date says nothing. */
export function lowerHorizon(untilMs: number, lagMs: number, { serverTime }: ServerClock, tookMs: number): number {
  const serverMs = typeof serverTime === 'string' ? Date.parse(serverTime) : (serverTime ?? Number.NaN)
  return Number.isFinite(serverMs) ? Math.min(untilMs, Math.floor(serverMs) - tookMs - lagMs) : untilMs
}
