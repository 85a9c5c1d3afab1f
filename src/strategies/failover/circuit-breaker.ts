import type { ErrorCode, SyncError } from '../../contract/index.ts'

/** A provider's success and failure history; kept in the state, so it survives a restart. */
export interface ProviderHealth {
  /** Consecutive failures. */
  readonly failures: number
  readonly requests: number
  readonly failed: number
  readonly averageMs: number
  /** When the circuit opened; kept until the next success. */
  readonly openedAt?: number
  /** End of the provider's rate limit. */
  readonly waitUntil?: number
  /** Consecutive rate limits without a retry time. */
  readonly refusals?: number
  readonly lastError?: { readonly code: ErrorCode; readonly at: number }
}

/**
 *   closed ──third failure in a row──▶ open ──five minutes──▶ half-open ──success──▶ closed
 *                                       ▲                         │
 *                                       └─────────failure─────────┘
 */
export type CircuitState = 'closed' | 'open' | 'half-open'

export const INITIAL_HEALTH: ProviderHealth = { failures: 0, requests: 0, failed: 0, averageMs: 0 }

const FAILURES_TO_OPEN = 3
export const CIRCUIT_OPEN_MS = 5 * 60_000
/**
 * First wait after a rate limit without a retry time. It doubles each time, because some providers count rejected
 * requests too.
 */
const RETRY_WAIT_MS = 1_000
const UNSPECIFIED_WAIT_MAX_MS = 15 * 60_000
const WAIT_MAX_MS = 24 * 60 * 60_000
/** Older requests count less and less. */
const HEALTH_WINDOW_REQUESTS = 100

export function getCircuitState({ openedAt }: ProviderHealth, now: number): CircuitState {
  if (openedAt === undefined) return 'closed'
  // A clock that was set back must not keep the circuit open.
  return now >= openedAt && now - openedAt < CIRCUIT_OPEN_MS ? 'open' : 'half-open'
}

export function isRateLimited({ waitUntil }: ProviderHealth, now: number): boolean {
  return waitUntil !== undefined && now < waitUntil && waitUntil - now <= WAIT_MAX_MS
}

export function recordSuccess({ requests, failed, averageMs }: ProviderHealth, tookMs: number): ProviderHealth {
  const share = Math.min(requests, 9)
  return {
    failures: 0,
    ...decayCounts(requests + 1, failed),
    averageMs: Math.round((averageMs * share + tookMs) / (share + 1)),
  }
}

/** A rate limit is not a failure; a timeout is. */
export function recordFailure(health: ProviderHealth, { code, retryAfterMs }: SyncError, now: number): ProviderHealth {
  const lastError = { code, at: now }
  if (code === 'RATE_LIMITED') {
    if (retryAfterMs !== undefined && retryAfterMs > 0)
      return { ...health, waitUntil: now + Math.ceil(Math.min(retryAfterMs, WAIT_MAX_MS)), lastError }
    const { refusals = 0 } = health
    const waitMs = Math.min(RETRY_WAIT_MS * 2 ** Math.min(refusals, 20), UNSPECIFIED_WAIT_MAX_MS)
    return { ...health, waitUntil: now + waitMs, refusals: refusals + 1, lastError }
  }
  const failures = health.failures + 1
  const { openedAt: _, ...rest } = health
  return {
    ...rest,
    failures,
    ...decayCounts(health.requests + 1, health.failed + 1),
    lastError,
    ...(failures >= FAILURES_TO_OPEN && { openedAt: now }),
  }
}

/** The provider with the highest score is asked first. */
export function scoreHealth(health: ProviderHealth, now: number): number {
  const { failures, requests, failed, averageMs } = health
  const circuit = { closed: 0, 'half-open': -25, open: -100 }[getCircuitState(health, now)]
  const speed = requests === failed || averageMs > 5_000 ? (requests === failed ? 0 : -30) : averageMs < 1_000 ? 20 : 0
  const rate = requests === 0 ? 0 : failed / requests
  return Math.max(0, 100 + circuit + (failures > 0 ? -50 : 0) + speed - rate * 50 - failures * 10)
}

function decayCounts(requests: number, failed: number): Pick<ProviderHealth, 'requests' | 'failed'> {
  return requests > HEALTH_WINDOW_REQUESTS ? { requests: requests / 2, failed: failed / 2 } : { requests, failed }
}
