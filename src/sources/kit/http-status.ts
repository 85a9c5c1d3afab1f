import type { ErrorCode } from '../../contract/index.ts'
import { isBudgetExhausted } from '../../values/retry-after.ts'

/**
 * Maps an HTTP status to an error code. One table for every source:
 *
 *   2xx           success
 *   401, 402      AUTH_REJECTED, after one renewal of the credentials
 *   403           AUTH_REJECTED likewise; RATE_LIMITED when a header reports an exhausted budget
 *   408, 409, 423, 425, 5xx
 *                 SOURCE_UNAVAILABLE: retried after the requested delay
 *   429           RATE_LIMITED
 *   3xx           SOURCE_INVALID: allowed redirects were already followed
 *   404, 410 and every other 4xx
 *                 CONNECTOR_FAILED: the request itself is wrong, so a retry does not help. The cycle of a missing
 *                 stream ends at once and runs again on schedule
 *
 * A source overrides the table with options: `answers` for statuses that are valid responses (404 for one item of many),
 * `cursorRefusals` for statuses that reject a cursor, and `classifyResponse` where the body decides.
 */
export function classifyStatus(status: number, headers: Headers): ErrorCode | null {
  if (status >= 200 && status < 300) return null
  if (status === 429) return 'RATE_LIMITED'
  if (status === 401 || status === 402) return 'AUTH_REJECTED'
  if (status === 403) return headers.has('retry-after') || isBudgetExhausted(headers) ? 'RATE_LIMITED' : 'AUTH_REJECTED'
  if (status >= 500 || TEMPORARY_STATUSES.has(status)) return 'SOURCE_UNAVAILABLE'
  return status < 400 ? 'SOURCE_INVALID' : 'CONNECTOR_FAILED'
}

const TEMPORARY_STATUSES = new Set([408, 409, 423, 425])
