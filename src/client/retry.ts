import type { Random } from '../contract/index.ts'
import type { ClientError } from './client-error.ts'

const FIRST_DELAY_MS = 500
const DELAY_MAX_MS = 30_000
/** Garbage from a server (negative, NaN, ten years) must not stop the world. */
const RETRY_AFTER_MAX_MS = 15 * 60_000

/** How long to stay away after a failed try: as long as the server asks, else a while that doubles; different for everybody who waits. */
export function computeDelayMs(error: ClientError, attempt: number, random: Random): number {
  if (error.retryAfterMs !== null) return Math.min(error.retryAfterMs, RETRY_AFTER_MAX_MS) + Math.round(1_000 * random.next())
  return Math.round(Math.min(DELAY_MAX_MS, FIRST_DELAY_MS * 2 ** (attempt - 1)) * (0.5 + 0.5 * random.next()))
}

/**
 * How long the answer asks to be left alone: by `Retry-After`, which needs no clock; else by `X-RateLimit-Reset` where there
 * is no quota left (A24), which is a time of the server's, and so counted from the server's own `Date`.
 */
export function parseRetryAfterMs(headers: Headers, now: number): number | undefined {
  const serverNow = Date.parse(headers.get('date') ?? '') || now
  const waits = [parseRetryAfterHeader(headers.get('retry-after'), serverNow), headers.get('x-ratelimit-remaining') === '0' ? parseRateLimitReset(headers.get('x-ratelimit-reset'), serverNow) : Number.NaN]
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
