import type { ErrorCode } from '../../contract/index.ts'
import type { Fetch } from './trial.ts'

/** A way for one answer to go wrong that every API knows. */
export interface LineFault {
  readonly name: string
  /** What a source that cannot go on calls it; absent where there is more than one good name. */
  readonly code?: ErrorCode
  spoil(ask: () => Promise<Response>): Promise<Response>
}

const asJson = { 'content-type': 'application/json' }

export const lineFaults: readonly LineFault[] = [
  { name: 'a refusal of the key', code: 'AUTH_REJECTED', spoil: async () => new Response('{}', { status: 401, headers: asJson }) },
  { name: 'a refusal for too many requests', code: 'RATE_LIMITED', spoil: async () => new Response('{}', { status: 429, headers: { ...asJson, 'retry-after': '1' } }) },
  { name: 'a failure of the server', code: 'SOURCE_UNAVAILABLE', spoil: async () => new Response('', { status: 503 }) },
  { name: 'an answer that breaks off', spoil: async (ask) => cutShort(await ask()) },
  { name: 'an answer with nothing in it', spoil: async () => new Response('', { status: 200, headers: asJson }) },
  { name: 'a page of HTML from something in between', spoil: async () => new Response('<html><body>Please log in</body></html>', { status: 200, headers: { 'content-type': 'text/html' } }) },
]

/** A line that spoils the request with this number; `hit` says whether it came to it. */
export function badLine(fault: LineFault, at: number): { line: (ask: Fetch) => Fetch; hit: () => boolean } {
  let requests = 0
  return {
    line: (ask) => (input, init) => (++requests === at ? fault.spoil(() => ask(input, init)) : ask(input, init)),
    hit: () => requests >= at,
  }
}

/** A line that is dead from this request on. */
export function cutLine(from: number): (ask: Fetch) => Fetch {
  let requests = 0
  return (ask) => (input, init) => (++requests >= from ? Promise.reject(new TypeError('the line is cut')) : ask(input, init))
}

async function cutShort(response: Response): Promise<Response> {
  const text = await response.text()
  return new Response(text.slice(0, text.length >> 1), { status: response.status, headers: response.headers })
}
