import type { Random } from '../contract/index.ts'
import type { ClientError } from './client-error.ts'

const FIRST_DELAY_MS = 500
const DELAY_MAX_MS = 30_000
/** Limits bogus values (negative, NaN, ten years). */
const RETRY_AFTER_MAX_MS = 15 * 60_000

/** Delay before the next attempt: as requested by the server, otherwise exponential; with jitter. */
export function computeDelayMs(error: ClientError, attempt: number, random: Random): number {
  if (error.retryAfterMs !== null)
    return Math.min(error.retryAfterMs, RETRY_AFTER_MAX_MS) + Math.round(1_000 * random.next())
  return Math.round(Math.min(DELAY_MAX_MS, FIRST_DELAY_MS * 2 ** (attempt - 1)) * (0.5 + 0.5 * random.next()))
}

/**
 * Delay requested by the response: `Retry-After`, or `X-RateLimit-Reset` if the quota is used up (A24). The latter is
 * a server time and is compared with the server's `Date`.
 */
export function parseRetryAfterMs(headers: Headers, now: number): number | undefined {
  const serverNow = Date.parse(headers.get('date') ?? '') || now
  const waits = [
    parseRetryAfterHeader(headers.get('retry-after'), serverNow),
    headers.get('x-ratelimit-remaining') === '0'
      ? parseRateLimitReset(headers.get('x-ratelimit-reset'), serverNow)
      : Number.NaN,
  ]
  return waits.find((ms) => ms >= 0)
}

function parseRetryAfterHeader(value: string | null, serverNow: number): number {
  if (value === null || value.trim() === '') return Number.NaN
  const seconds = Number(value)
  return Number.isNaN(seconds) ? Date.parse(value) - serverNow : seconds * 1_000
}

function parseRateLimitReset(value: string | null, serverNow: number): number {
  return value === null || value.trim() === '' ? Number.NaN : Number(value) * 1_000 - serverNow
}
