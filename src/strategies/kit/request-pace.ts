import { SyncError, type SyncContext } from '../../contract/index.ts'
import { canonicalizeInstant, instantToMs } from '../../values/instant.ts'

/** A source's rate limit, in the shape of GraphQL's `rateLimit`. */
export interface RateBudget {
  /** Points per interval; one request costs `cost` points. */
  readonly limit: number
  readonly cost?: number | null | undefined
  readonly remaining?: number | null | undefined
  /** When `remaining` resets to `limit`, RFC 3339. */
  readonly resetAt?: string | null | undefined
  /** One hour by default. */
  readonly intervalMs?: number | null | undefined
}

/** A budget as kept in the state: the minimum interval between requests, and the time of the last one. */
export interface RequestPace {
  readonly limit: number
  readonly paceMs: number
  readonly askedAt: number
}

/** Longer waits are left to the engine, which does not hold the page open. */
const WAIT_MAX_MS = 30_000

/** Spreads the remaining points evenly until the reset; without `remaining`, the whole limit over its interval. */
export function computePace(
  budget: RateBudget | null | undefined,
  previous: RequestPace | undefined,
  askedAt: number,
): RequestPace | undefined {
  if (budget === null || budget === undefined || !(budget.limit > 0))
    return previous === undefined ? undefined : { ...previous, askedAt }
  const { limit, cost, remaining, resetAt, intervalMs } = budget
  const points = Math.max(1, cost ?? 1)
  const reset = typeof resetAt === 'string' ? canonicalizeInstant(resetAt) : null
  const untilResetMs = reset === null ? null : Math.max(0, instantToMs(reset) - askedAt)
  const paceMs =
    untilResetMs === null || typeof remaining !== 'number'
      ? ((intervalMs ?? 3_600_000) / limit) * points
      : untilResetMs / Math.max(1, Math.floor(remaining / points))
  return { limit, paceMs: Math.ceil(paceMs), askedAt }
}

/** Waits before a request; returns at once when no budget is known. */
export async function waitForPace(pace: RequestPace | undefined, { clock, signal }: SyncContext): Promise<void> {
  if (pace === undefined) return
  // A clock that was set back must not extend the wait beyond the pace.
  const waitMs = Math.min(pace.paceMs, pace.askedAt + pace.paceMs - clock.now())
  if (waitMs <= 0) return
  if (waitMs > WAIT_MAX_MS)
    throw new SyncError('RATE_LIMITED', "The source's rate limit is used up. Requests resume after it resets.", {
      retryAfterMs: waitMs,
    })
  await clock.sleep(waitMs, signal)
}
