import type { Attributes } from '../contract/index.ts'

/** The exportable attributes of a request: host and method. Never its path or query, which contain keys. */
export function buildRequestAttributes(input: string | URL, method = 'GET'): Attributes {
  const known = HTTP_METHODS.has(method.toUpperCase()) ? method.toUpperCase() : '_OTHER'
  if (!URL.canParse(String(input))) return { 'http.request.method': known }
  const { hostname, port, protocol } = new URL(input)
  return {
    'http.request.method': known,
    'server.address': hostname,
    'server.port': port === '' ? DEFAULT_PORTS[protocol] : Number(port),
  }
}

/** The vendor's id of the request, for its support. Only values in the form of an id are accepted. */
export function readRequestId({ headers }: Pick<Response, 'headers'>): string | undefined {
  for (const name of REQUEST_ID_HEADERS) {
    const id = headers.get(name)
    if (id !== null) return REQUEST_ID_PATTERN.test(id) ? id : undefined
  }
  return undefined
}

/** Never negative, because clocks may be set back meanwhile. */
export function computeElapsedSeconds(startMs: number, endMs: number): number {
  return Math.max(0, endMs - startMs) / 1_000
}

const HTTP_METHODS: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'CONNECT',
  'TRACE',
])
const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 }
const REQUEST_ID_HEADERS = [
  'x-request-id',
  'request-id',
  'x-github-request-id',
  'x-hubspot-correlation-id',
  'x-amzn-requestid',
]
const REQUEST_ID_PATTERN = /^[\w.:=+/-]{1,100}$/
