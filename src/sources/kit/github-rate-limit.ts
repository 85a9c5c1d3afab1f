import { isObject, type ResponseClassifier } from './classify-response.ts'

/** GitHub asks for at least a minute where no header says how long, and blocks accounts that go on asking. */
const RATE_LIMIT_WAIT_MS = 60_000

/** A secondary rate limit is a 403 without Retry-After as often as with it, and then looks like a refusal of the token. */
export const classifyGithubRateLimit: ResponseClassifier = ({ status, headers, body }) => {
  if ((status !== 403 && status !== 429) || headers.has('retry-after') || headers.get('x-ratelimit-remaining') === '0' || !isObject(body)) return null
  const words = `${String(body.documentation_url)} ${String(body.message)}`
  return /rate.limit|abuse/i.test(words) ? { code: 'RATE_LIMITED', reason: 'a secondary rate limit', retryAfterMs: RATE_LIMIT_WAIT_MS } : null
}
