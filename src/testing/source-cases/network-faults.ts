import type { ErrorCode } from '../../contract/index.ts'
import type { Fetch } from './source-fixture.ts'

/** A way for one answer to go wrong that every API knows. */
export interface NetworkFault {
  readonly name: string
  /** What a source that cannot go on calls it; absent where there is more than one good name. */
  readonly code?: ErrorCode
  apply(ask: () => Promise<Response>): Promise<Response>
}

const JSON_HEADERS = { 'content-type': 'application/json' }

export const networkFaults: readonly NetworkFault[] = [
  { name: 'a refusal of the key', code: 'AUTH_REJECTED', apply: async () => new Response('{}', { status: 401, headers: JSON_HEADERS }) },
  { name: 'a refusal for too many requests', code: 'RATE_LIMITED', apply: async () => new Response('{}', { status: 429, headers: { ...JSON_HEADERS, 'retry-after': '1' } }) },
  { name: 'a failure of the server', code: 'SOURCE_UNAVAILABLE', apply: async () => new Response('', { status: 503 }) },
  { name: 'an answer that breaks off', apply: async (ask) => truncateBody(await ask()) },
  { name: 'an answer with nothing in it', apply: async () => new Response('', { status: 200, headers: JSON_HEADERS }) },
  { name: 'a page of HTML from something in between', apply: async () => new Response('<html><body>Please log in</body></html>', { status: 200, headers: { 'content-type': 'text/html' } }) },
]

/** A line that spoils the request with this number; `hit` says whether it came to it. */
export function injectFaultAt(fault: NetworkFault, at: number): { line: (ask: Fetch) => Fetch; hit: () => boolean } {
  let requests = 0
  return {
    line: (ask) => (input, init) => (++requests === at ? fault.apply(() => ask(input, init)) : ask(input, init)),
    hit: () => requests >= at,
  }
}

/** A line that is dead from this request on. */
export function disconnectFrom(from: number): (ask: Fetch) => Fetch {
  let requests = 0
  return (ask) => (input, init) => (++requests >= from ? Promise.reject(new TypeError('the line is cut')) : ask(input, init))
}

async function truncateBody(response: Response): Promise<Response> {
  const text = await response.text()
  return new Response(text.slice(0, text.length >> 1), { status: response.status, headers: response.headers })
}
