import type { LookupFunction } from 'node:net'
import type { Dispatcher } from 'undici'
import { SyncError } from '../contract/index.ts'
import { decodeBody, type ResponseLimits } from '../http/decode-body.ts'
import { toRequestError, stripQuery } from './request-error.ts'
import { followRedirects } from '../http/follow-redirects.ts'
import { createCheckedLookup } from './checked-lookup.ts'
import { isPublicAddress, isPublicHost } from './public-address.ts'
import { resolveRedirect, type Hop } from './redirect.ts'
import { encodeRequestBody } from './request-body.ts'
import { systemResolveHost, type ResolveHost } from './resolve-host.ts'

export type Fetch = (input: string | URL, init?: RequestInit) => Promise<Response>

export interface FetchOptions extends Partial<ResponseLimits> {
  connectTimeoutMs?: number
  /** From the request to the response headers. */
  headersTimeoutMs?: number
  /** Between two chunks of the body. The caller's signal limits the total time. */
  bodyIdleMs?: number
  redirectsMax?: number
  /** Refuses addresses that are not public: for hosts that a user of the program names. */
  publicOnly?: boolean
  /** Resolves host names whose addresses are checked: of redirects, and of every request with `publicOnly`. */
  resolve?: ResolveHost
}

const DEFAULT_FETCH_OPTIONS: Required<FetchOptions> = {
  bodyBytesMax: 64 * 1024 * 1024,
  wireBytesMax: 64 * 1024 * 1024,
  connectTimeoutMs: 10_000,
  headersTimeoutMs: 60_000,
  bodyIdleMs: 60_000,
  redirectsMax: 10,
  publicOnly: false,
  resolve: systemResolveHost,
}

type SendRequest = (hop: Hop, signal: AbortSignal | null) => Promise<Dispatcher.ResponseData>

/**
 * Sends HTTP requests with limits on size and time, and protects credentials. Pacing and retries are added on top.
 *
 * One request at a time per connection. A connection with a protocol error or an unfinished response is closed, so that
 * a request never reads the response to another one.
 */
export function createFetch(options: FetchOptions = {}): Fetch {
  const limits = { ...DEFAULT_FETCH_OPTIONS, ...options }
  // Imported with the first request, so that commands without requests start faster.
  let client: Promise<SendRequest> | undefined
  return async (input, init = {}) => {
    const ask = await (client ??= createHttpClient(limits))
    const signal = init.signal ?? null
    const send = (hop: Hop): Promise<Response> => sendHop(hop, signal, ask, limits)
    const first = createFirstHop(input, init)
    return init.redirect === 'manual'
      ? send(first)
      : followRedirects(first, send, {
          max: limits.redirectsMax,
          resolve: init.redirect === 'error' ? refuseRedirect : resolveRedirect,
          tooMany: ({ url }) => new SyncError('SOURCE_INVALID', `${stripQuery(url)} redirects too many times.`),
        })
  }
}

function refuseRedirect(response: Response, hop: Hop): null {
  if (resolveRedirect(response, hop) === null) return null
  throw new SyncError(
    'SOURCE_INVALID',
    `${stripQuery(hop.url)} responded with a redirect, which this request does not allow.`,
  )
}

/** One instance per process, so that cycles share connections. */
export const systemFetch: Fetch = createFetch()

/** Not undici's fetch: it decodes any chain of encodings without a limit, and is slower. */
async function createHttpClient(limits: Required<FetchOptions>): Promise<SendRequest> {
  const undici = await import('undici')
  const agent = (connect: { lookup?: LookupFunction }): Dispatcher =>
    new undici.Agent({
      connect: { timeout: limits.connectTimeoutMs, ...connect },
      headersTimeout: limits.headersTimeoutMs,
      bodyTimeout: limits.bodyIdleMs,
      pipelining: 1,
      maxResponseSize: limits.wireBytesMax,
    })
  const own = agent({})
  const foreign = agent({
    lookup: createCheckedLookup(limits.resolve, isPublicAddress, createNotPublicError),
  })
  return async ({ url, method, headers, body, isCrossOrigin }, signal) => {
    // An address in the URL is not looked up.
    if (limits.publicOnly && !isPublicHost(url.hostname)) throw createNotPublicError()
    const dispatcher = isCrossOrigin || limits.publicOnly ? foreign : own
    const sent = encodeRequestBody(body)
    for (const [name, value] of [...STANDARD_HEADERS, ...sent.headers]) if (!headers.has(name)) headers.set(name, value)
    return undici.request(url, {
      dispatcher,
      method: method as Dispatcher.HttpMethod,
      headers: [...headers].flat(),
      body: sent.body,
      signal,
    })
  }
}

const NOT_PUBLIC = 'ADDRESS_NOT_PUBLIC'

function createNotPublicError(): Error {
  return Object.assign(new Error('not a public address'), { code: NOT_PUBLIC })
}

const STANDARD_HEADERS = [
  ['accept', '*/*'],
  ['accept-encoding', 'gzip, br'],
  ['user-agent', 'tidemark'],
] as const

function createFirstHop(input: string | URL, init: RequestInit): Hop {
  const url = URL.canParse(String(input)) ? new URL(input) : null
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new SyncError('CONNECTOR_FAILED', 'The connector requested a URL that is not http or https.')
  }
  // Refused, because URLs end up in logs; a header does not.
  if (url.username !== '' || url.password !== '') {
    throw new SyncError(
      'CONNECTOR_FAILED',
      `The URL of a request to ${stripQuery(url)} contains credentials. Send them in a header.`,
    )
  }
  try {
    return {
      url,
      method: init.method?.toUpperCase() ?? 'GET',
      headers: new Headers(init.headers),
      body: init.body ?? null,
      isCrossOrigin: false,
    }
  } catch {
    // The cause is left out because it quotes the value, which may be a token.
    throw new SyncError(
      'CONNECTOR_FAILED',
      `A header of the request to ${stripQuery(url)} is invalid. Check for line breaks and characters outside Latin-1.`,
    )
  }
}

async function sendHop(
  hop: Hop,
  signal: AbortSignal | null,
  ask: SendRequest,
  limits: ResponseLimits,
): Promise<Response> {
  let data: Dispatcher.ResponseData
  try {
    data = await ask(hop, signal)
  } catch (error) {
    if ((error as { code?: unknown } | null)?.code === NOT_PUBLIC) {
      throw new SyncError(
        'SOURCE_INVALID',
        hop.isCrossOrigin
          ? `A redirect to ${hop.url.origin} was not followed because its address is not public.`
          : `No request was sent to ${hop.url.origin} because its address is not public.`,
      )
    }
    throw toRequestError(error, hop.url, signal, 'head')
  }
  const { statusCode: status, statusText, body } = data
  // Destroys the body: a connection with an unread response would stay occupied.
  const refuse = (message: string): SyncError => {
    body.on('error', () => {}).destroy()
    return new SyncError('SOURCE_INVALID', `${stripQuery(hop.url)} ${message}.`)
  }
  if (status < 200 || status > 599) throw refuse(`responded with the invalid status ${status}`)
  const headers = toHeaders(data)
  if (headers === null) throw refuse('responded with invalid headers')
  const stream = decodeBody(
    { body, headers, isEmpty: hop.method === 'HEAD' || EMPTY_STATUSES.has(status) },
    limits,
    refuse,
    (error) => toRequestError(error, hop.url, signal, 'body'),
  )
  const response = new Response(stream, { status, statusText, headers })
  if (stream !== null) unreadResponses.register(response, new WeakRef(stream))
  // The Response constructor cannot set the URL.
  return Object.defineProperty(response, 'url', { value: hop.url.href })
}

function toHeaders({ headers }: Dispatcher.ResponseData): Headers | null {
  try {
    return new Headers(
      Object.entries(headers).flatMap(([name, value]) =>
        [value ?? []].flat().map((text): [string, string] => [name, text]),
      ),
    )
  } catch {
    return null
  }
}

const EMPTY_STATUSES = new Set([204, 205, 304])

/** Releases the connection of a response whose body was never read, when it is garbage-collected. */
const unreadResponses = new FinalizationRegistry<WeakRef<ReadableStream>>((weak) => {
  const stream = weak.deref()
  if (stream !== undefined && !stream.locked) stream.cancel().catch(() => {})
})
