import type { IncomingMessage, ServerResponse } from 'node:http'
import { allowsScope } from './api-key.ts'
import { chooseEncoding } from './encoding.ts'
import { recordRequest, type ServerContext } from './route.ts'

const CHANGES_PREFIX = '/agents/v1/changes?'
/** Accept headers of clients that want a page, not a stream. */
const JSON_ACCEPT_VALUES: ReadonlySet<string | undefined> = new Set([undefined, '*/*', 'application/json'])

/**
 * Fast path: sends a cached page for a cached key before the framework runs, because routing, hooks and validation
 * would take longer than everything else. Returns false for every request that needs the normal path.
 */
export function sendCachedPage(
  context: ServerContext,
  request: IncomingMessage,
  response: ServerResponse,
  id: () => string,
): boolean {
  const { method, url = '', headers } = request
  if (
    method !== 'GET' ||
    !url.startsWith(CHANGES_PREFIX) ||
    !JSON_ACCEPT_VALUES.has(headers.accept) ||
    headers.origin !== undefined
  )
    return false
  const key = context.authenticator.findCachedKey(
    headers.authorization?.startsWith('Bearer ') === true ? headers.authorization.slice(7) : '',
  )
  if (key === null || !allowsScope(key.scopes, 'changes:read')) return false
  const started = performance.now()
  const page = context.pageCache.get(key.tenant, url, context.ports.clock.now())
  if (page === null) return false
  const encoding = chooseEncoding(headers['accept-encoding'], page.body.length)
  const body = encoding === null ? page.body : page.compressed.get(encoding)
  if (body === undefined) return false
  const { limit, remaining, resetAt } = context.authenticator.countRequest(key)
  if (remaining < 0) return false
  const requestId = id()
  response.writeHead(200, [
    'x-request-id',
    requestId,
    'cache-control',
    'no-store',
    'x-content-type-options',
    'nosniff',
    'x-ratelimit-limit',
    String(limit),
    'x-ratelimit-remaining',
    String(remaining),
    'x-ratelimit-reset',
    String(resetAt),
    'content-type',
    'application/json; charset=utf-8',
    'content-length',
    String(body.length),
    'vary',
    'accept-encoding',
    ...(encoding === null ? [] : ['content-encoding', encoding]),
  ])
  response.end(body)
  recordRequest(context, {
    requestId,
    tenant: key.tenant,
    method,
    route: '/agents/v1/changes',
    status: 200,
    ms: performance.now() - started,
  })
  return true
}
