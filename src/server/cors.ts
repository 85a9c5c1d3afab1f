import type { IncomingHttpHeaders } from 'node:http'
import { SyncError } from '../contract/index.ts'

/** Response headers that other origins may read. Credentials are never allowed: a caller has to send a key. */
const EXPOSED_HEADERS = 'X-Request-Id, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Retry-After, ETag'
const PREFLIGHT_HEADERS = {
  'access-control-allow-methods': 'GET, HEAD, POST, PATCH, DELETE',
  'access-control-allow-headers': 'Authorization, X-Agents-Token, Content-Type, Last-Event-ID, If-None-Match',
  'access-control-max-age': '600',
}

/** Allowed origins; none by default. */
export class Cors {
  readonly #origins: ReadonlySet<string>

  constructor(origins: readonly string[]) {
    for (const origin of origins) {
      if (origin === '*' || (URL.canParse(origin) && new URL(origin).origin === origin)) continue
      throw new SyncError(
        'ARGUMENT_INVALID',
        `${JSON.stringify(origin.slice(0, 80))} is not an origin such as https://app.example.com.`,
      )
    }
    this.#origins = new Set(origins)
  }

  headersFor({ origin }: IncomingHttpHeaders): Record<string, string> {
    // The response depends on the origin even if the request has none, so caches must distinguish them.
    if (this.#origins.size === 0) return {}
    const allowed = this.#origins.has('*') ? '*' : origin !== undefined && this.#origins.has(origin) ? origin : null
    return {
      vary: 'Origin',
      ...(allowed !== null &&
        origin !== undefined && {
          'access-control-allow-origin': allowed,
          'access-control-expose-headers': EXPOSED_HEADERS,
        }),
    }
  }

  /** Null if the request is not a preflight. */
  preflightFor(method: string, headers: IncomingHttpHeaders): Record<string, string> | null {
    const own = this.headersFor(headers)
    return method === 'OPTIONS' &&
      headers['access-control-request-method'] !== undefined &&
      own['access-control-allow-origin'] !== undefined
      ? { ...own, ...PREFLIGHT_HEADERS }
      : null
  }
}
