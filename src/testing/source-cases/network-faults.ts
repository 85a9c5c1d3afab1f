import type { ErrorCode } from '../../contract/index.ts'
import type { Fetch } from './source-fixture.ts'

/** A generic failure of one response, possible with every API. */
export interface NetworkFault {
  readonly name: string
  /** The expected error code of a source that cannot continue; absent where several are acceptable. */
  readonly code?: ErrorCode
  apply(ask: () => Promise<Response>): Promise<Response>
}

const JSON_HEADERS = { 'content-type': 'application/json' }

export const networkFaults: readonly NetworkFault[] = [
  {
    name: 'an authentication failure',
    code: 'AUTH_REJECTED',
    apply: async () => new Response('{}', { status: 401, headers: JSON_HEADERS }),
  },
  {
    name: 'a rate limit',
    code: 'RATE_LIMITED',
    apply: async () => new Response('{}', { status: 429, headers: { ...JSON_HEADERS, 'retry-after': '1' } }),
  },
  { name: 'a server error', code: 'SOURCE_UNAVAILABLE', apply: async () => new Response('', { status: 503 }) },
  { name: 'a response that breaks off', apply: async (ask) => truncateBody(await ask()) },
  { name: 'an empty body', apply: async () => new Response('', { status: 200, headers: JSON_HEADERS }) },
  {
    name: 'an HTML page from a proxy',
    apply: async () =>
      new Response('<html><body>Please log in</body></html>', {
        status: 200,
        headers: { 'content-type': 'text/html' },
      }),
  },
]

/** A fetch that fails the request with this number; `hit` returns whether it was reached. */
export function injectFaultAt(fault: NetworkFault, at: number): { line: (ask: Fetch) => Fetch; hit: () => boolean } {
  let requests = 0
  return {
    line: (ask) => (input, init) => (++requests === at ? fault.apply(() => ask(input, init)) : ask(input, init)),
    hit: () => requests >= at,
  }
}

/** A fetch that fails from this request on. */
export function disconnectFrom(from: number): (ask: Fetch) => Fetch {
  let requests = 0
  return (ask) => (input, init) =>
    ++requests >= from ? Promise.reject(new TypeError('the connection is cut')) : ask(input, init)
}

async function truncateBody(response: Response): Promise<Response> {
  const text = await response.text()
  return new Response(text.slice(0, text.length >> 1), { status: response.status, headers: response.headers })
}
