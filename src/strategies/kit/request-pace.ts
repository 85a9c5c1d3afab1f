import { SyncError, type SyncContext } from '../../contract/index.ts'
import { canonicalizeInstant, instantToMs } from '../../values/instant.ts'

/** What a source says of its rate limit, as GraphQL's `rateLimit` does. */
export interface RateBudget {
  /** Points in an interval; what one request costs is `cost`. */
  readonly limit: number
  readonly cost?: number | null | undefined
  readonly remaining?: number | null | undefined
  /** When `remaining` becomes `limit` again, RFC 3339. */
  readonly resetAt?: string | null | undefined
  /** An hour unless said otherwise. */
  readonly intervalMs?: number | null | undefined
}

/** A budget as the state keeps it: how far apart the next requests must be, and since when. */
export interface RequestPace {
  readonly limit: number
  readonly paceMs: number
  readonly askedAt: number
}

/** Longer than this is not waited for inside a page: the engine waits instead, without holding a request up. */
const WAIT_MAX_MS = 30_000

/** Spreads what is left evenly until more is given; without knowing what is left, the whole budget over its interval. */
export function computePace(budget: RateBudget | null | undefined, previous: RequestPace | undefined, askedAt: number): RequestPace | undefined {
  if (budget === null || budget === undefined || !(budget.limit > 0)) return previous === undefined ? undefined : { ...previous, askedAt }
  const { limit, cost, remaining, resetAt, intervalMs } = budget
  const points = Math.max(1, cost ?? 1)
  const reset = typeof resetAt === 'string' ? canonicalizeInstant(resetAt) : null
  const untilResetMs = reset === null ? null : Math.max(0, instantToMs(reset) - askedAt)
  const paceMs = untilResetMs === null || typeof remaining !== 'number'
    ? ((intervalMs ?? 3_600_000) / limit) * points
    : untilResetMs / Math.max(1, Math.floor(remaining / points))
  return { limit, paceMs: Math.ceil(paceMs), askedAt }
}

/** Before a request; at once when nothing is known of a budget. */
export async function waitForPace(pace: RequestPace | undefined, { clock, signal }: SyncContext): Promise<void> {
  if (pace === undefined) return
  // A clock that was set back must not make it wait longer than the pace is.
  const waitMs = Math.min(pace.paceMs, pace.askedAt + pace.paceMs - clock.now())
  if (waitMs <= 0) return
  if (waitMs > WAIT_MAX_MS) throw new SyncError('RATE_LIMITED', 'The budget that the source grants is used up.', { retryAfterMs: waitMs })
  await clock.sleep(waitMs, signal)
}
