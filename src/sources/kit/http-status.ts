import type { ErrorCode } from '../../contract/index.ts'
import { isBudgetExhausted } from '../../values/retry-after.ts'

/**
 * What a status means. One table for every source:
 *
 *   2xx           an answer
 *   401, 402      AUTH_REJECTED, after one renewal of the credentials
 *   403           AUTH_REJECTED likewise; RATE_LIMITED when the answer says that a budget is used up
 *   408, 409, 423, 425, 5xx
 *                 SOURCE_UNAVAILABLE: asked again, after as long as it says
 *   429           RATE_LIMITED
 *   3xx           SOURCE_INVALID: redirects were followed before, where they may be
 *   404, 410 and every other 4xx
 *                 CONNECTOR_FAILED: the request itself is wrong, and the same request would be tomorrow. So a stream that
 *                 is not there stops its cycle at once; it is tried again on schedule, should it come back
 *
 * What a source says otherwise, it says with options: `answers` for statuses that are one (404 for one item of many),
 * `cursorRefusals` for those that refuse a position, and a judge for what only the body tells.
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
