import { isObject, type ResponseClassifier } from './classify-response.ts'

/** GitHub requires a wait of at least a minute if no header specifies one, and blocks accounts that do not wait. */
const RATE_LIMIT_WAIT_MS = 60_000

/** A secondary rate limit may be a 403 without Retry-After, which looks like a rejected token. */
export const classifyGithubRateLimit: ResponseClassifier = ({ status, headers, body }) => {
  if (
    (status !== 403 && status !== 429) ||
    headers.has('retry-after') ||
    headers.get('x-ratelimit-remaining') === '0' ||
    !isObject(body)
  )
    return null
  const text = `${String(body.documentation_url)} ${String(body.message)}`
  return /rate.limit|abuse/i.test(text)
    ? { code: 'RATE_LIMITED', reason: 'a secondary rate limit', retryAfterMs: RATE_LIMIT_WAIT_MS }
    : null
}
