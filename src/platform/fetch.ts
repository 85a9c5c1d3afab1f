import type { LookupFunction } from 'node:net'
import type { Dispatcher } from 'undici'
import { SyncError } from '../contract/index.ts'
import { decodeBody, type BodyLimits } from './response-body.ts'
import { toRequestError, stripQuery } from './request-error.ts'
import { createCheckedLookup } from './checked-lookup.ts'
import { isPublicAddress } from './public-address.ts'
import { resolveRedirect, type Hop } from './redirect.ts'
import { encodeRequestBody } from './request-body.ts'
import { systemResolveHost, type ResolveHost } from './resolve-host.ts'

export type Fetch = (input: string | URL, init?: RequestInit) => Promise<Response>

export interface FetchOptions extends Partial<BodyLimits> {
  connectTimeoutMs?: number
  /** From the request to the answer's headers. */
  headersTimeoutMs?: number
  /** Between two pieces of the body; its whole length is bounded by the caller's signal. */
  bodyIdleMs?: number
  redirectsMax?: number
  /** Of the names that a redirect leads to. */
  resolve?: ResolveHost
}

const DEFAULT_FETCH_OPTIONS: Required<FetchOptions> = {
  bodyBytesMax: 64 * 1024 * 1024,
  wireBytesMax: 64 * 1024 * 1024,
  connectTimeoutMs: 10_000,
  headersTimeoutMs: 60_000,
  bodyIdleMs: 60_000,
  redirectsMax: 10,
  resolve: systemResolveHost,
}

type SendRequest = (hop: Hop, signal: AbortSignal | null) => Promise<Dispatcher.ResponseData>

/**
 * The bare way out: bounded in size and time, and careful with credentials. Pacing and retries come on top of it.
 *
 * One request at a time per connection, and a connection that ever broke the protocol, was cut off or was left in the
 * middle of an answer is closed: the next request never reads what was meant for another.
 */
export function createFetch(options: FetchOptions = {}): Fetch {
  const limits = { ...DEFAULT_FETCH_OPTIONS, ...options }
  // Loaded with the first request: a command that asks nobody starts without it.
  let client: Promise<SendRequest> | undefined
  return async (input, init = {}) => {
    const ask = await (client ??= createHttpClient(limits))
    const signal = init.signal ?? null
    let hop = createFirstHop(input, init)
    for (let redirects = 0; ; redirects++) {
      const response = await sendHop(hop, signal, ask, limits)
      const next = init.redirect === 'manual' ? null : resolveRedirect(response, hop)
      if (next === null) return response
      await response.body?.cancel()
      if (init.redirect === 'error') throw new SyncError('SOURCE_INVALID', `${stripQuery(hop.url)} answered with a redirect.`)
      if (redirects === limits.redirectsMax) throw new SyncError('SOURCE_INVALID', `${stripQuery(hop.url)} redirects without end.`)
      hop = next
    }
  }
}

/** One for the process, so that cycles share its connections. */
export const systemFetch: Fetch = createFetch()

/** Not fetch of the same package: that one unfolds any chain of encodings by itself, up to the end, and is slower for a page. */
async function createHttpClient(limits: Required<FetchOptions>): Promise<SendRequest> {
  const undici = await import('undici')
  const agent = (connect: { lookup?: LookupFunction }): Dispatcher => new undici.Agent({
    connect: { timeout: limits.connectTimeoutMs, ...connect },
    headersTimeout: limits.headersTimeoutMs,
    bodyTimeout: limits.bodyIdleMs,
    pipelining: 1,
    maxResponseSize: limits.wireBytesMax,
  })
  const own = agent({})
  const foreign = agent({ lookup: createCheckedLookup(limits.resolve, isPublicAddress, () => Object.assign(new Error('not a public address'), { code: NOT_PUBLIC })) })
  return async ({ url, method, headers, body, isCrossOrigin: isForeign }, signal) => {
    const dispatcher = isForeign ? foreign : own
    const sent = encodeRequestBody(body)
    for (const [name, value] of [...STANDARD_HEADERS, ...sent.headers]) if (!headers.has(name)) headers.set(name, value)
    return undici.request(url, { dispatcher, method: method as Dispatcher.HttpMethod, headers: [...headers].flat(), body: sent.body, signal })
  }
}

const NOT_PUBLIC = 'ADDRESS_NOT_PUBLIC'

const STANDARD_HEADERS = [['accept', '*/*'], ['accept-encoding', 'gzip, br'], ['user-agent', 'tidemark']] as const

function createFirstHop(input: string | URL, init: RequestInit): Hop {
  const url = URL.canParse(String(input)) ? new URL(input) : null
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new SyncError('CONNECTOR_FAILED', 'A request was made to something that is not an http or https URL.')
  }
  // Refused and not sent on: URLs end up in logs, and a header does the same without.
  if (url.username !== '' || url.password !== '') {
    throw new SyncError('CONNECTOR_FAILED', `The URL of a request to ${stripQuery(url)} contains credentials. Send them in a header.`)
  }
  try {
    return { url, method: init.method?.toUpperCase() ?? 'GET', headers: new Headers(init.headers), body: init.body ?? null, isCrossOrigin: false }
  } catch {
    // Without the cause: it quotes the value it refuses, and that may be a token.
    throw new SyncError('CONNECTOR_FAILED', `A header of the request to ${stripQuery(url)} is not valid: check for line breaks and characters beyond Latin-1.`)
  }
}

async function sendHop(hop: Hop, signal: AbortSignal | null, ask: SendRequest, limits: BodyLimits): Promise<Response> {
  let data: Dispatcher.ResponseData
  try {
    data = await ask(hop, signal)
  } catch (error) {
    if (hop.isCrossOrigin && (error as { code?: unknown } | null)?.code === NOT_PUBLIC) {
      throw new SyncError('SOURCE_INVALID', `A redirect leads to ${hop.url.origin}, whose address is not public. It was not followed.`)
    }
    throw toRequestError(error, hop.url, signal, 'head')
  }
  const { statusCode: status, statusText, body } = data
  // A connection whose answer nobody reads would stay taken.
  const refuse = (message: string): SyncError => {
    body.on('error', () => {}).destroy()
    return new SyncError('SOURCE_INVALID', `${stripQuery(hop.url)} ${message}.`)
  }
  if (status < 200 || status > 599) throw refuse(`answered with status ${status}, which does not exist`)
  const headers = toHeaders(data)
  if (headers === null) throw refuse('answered with headers that are not valid')
  const stream = decodeBody({ body, headers, isEmpty: hop.method === 'HEAD' || EMPTY_STATUSES.has(status) }, limits, refuse, (error) => toRequestError(error, hop.url, signal, 'body'))
  const response = new Response(stream, { status, statusText, headers })
  if (stream !== null) unreadResponses.register(response, new WeakRef(stream))
  // The constructor has no way to say where the answer came from.
  return Object.defineProperty(response, 'url', { value: hop.url.href })
}

function toHeaders({ headers }: Dispatcher.ResponseData): Headers | null {
  try {
    return new Headers(Object.entries(headers).flatMap(([name, value]) => [value ?? []].flat().map((text): [string, string] => [name, text])))
  } catch {
    return null
  }
}

const EMPTY_STATUSES = new Set([204, 205, 304])

/** An answer of which only the status was looked at gives its connection back once it is collected. */
const unreadResponses = new FinalizationRegistry<WeakRef<ReadableStream>>((weak) => {
  const stream = weak.deref()
  if (stream !== undefined && !stream.locked) stream.cancel().catch(() => {})
})
