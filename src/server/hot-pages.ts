import type { IncomingMessage, ServerResponse } from 'node:http'
import { allows } from './api-key.ts'
import { encodingFor } from './encoding.ts'
import { noteAnswer, type Hall } from './route.ts'

const PATH = '/agents/v1/changes?'
/** What clients accept who want a page and no stream. */
const PLAIN: ReadonlySet<string | undefined> = new Set([undefined, '*/*', 'application/json'])

/**
 * A page that is in memory, for a key that was just seen, is sent before the framework is asked: routing, hooks and checks
 * would take longer than all the rest. Whatever is not as usual gets no answer here, and so goes the long way (false).
 */
export function sendHotPage(hall: Hall, request: IncomingMessage, response: ServerResponse, id: () => string): boolean {
  const { method, url = '', headers } = request
  if (method !== 'GET' || !url.startsWith(PATH) || !PLAIN.has(headers.accept) || headers.origin !== undefined) return false
  const key = hall.callers.recall(headers.authorization?.startsWith('Bearer ') === true ? headers.authorization.slice(7) : '')
  if (key === null || !allows(key.scopes, 'changes:read')) return false
  const started = performance.now()
  const page = hall.pages.get(key.tenant, url, hall.ports.clock.now())
  if (page === null) return false
  const encoding = encodingFor(headers['accept-encoding'], page.body.length)
  const body = encoding === null ? page.body : page.packed.get(encoding)
  if (body === undefined) return false
  const { limit, remaining, resetAt } = hall.callers.charge(key)
  if (remaining < 0) return false
  const requestId = id()
  response.writeHead(200, [
    'x-request-id', requestId, 'cache-control', 'no-store', 'x-content-type-options', 'nosniff',
    'x-ratelimit-limit', String(limit), 'x-ratelimit-remaining', String(remaining), 'x-ratelimit-reset', String(resetAt),
    'content-type', 'application/json; charset=utf-8', 'content-length', String(body.length), 'vary', 'accept-encoding', ...(encoding === null ? [] : ['content-encoding', encoding]),
  ])
  response.end(body)
  noteAnswer(hall, { requestId, tenant: key.tenant, method, route: '/agents/v1/changes', status: 200, ms: performance.now() - started })
  return true
}
