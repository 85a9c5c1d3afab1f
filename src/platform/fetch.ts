import type { LookupFunction } from 'node:net'
import type { Dispatcher } from 'undici'
import { SyncError } from '../contract/index.ts'
import { answerBody, type BodyLimits } from './answer-body.ts'
import { answerFailure, placeOf } from './answer-failure.ts'
import { checkedLookup } from './checked-lookup.ts'
import { isPublicAddress } from './public-address.ts'
import { allowedRedirect, type Hop } from './redirect.ts'
import { requestBody } from './request-body.ts'
import { resolveBySystem, type Resolve } from './resolve.ts'

export type Fetch = (input: string | URL, init?: RequestInit) => Promise<Response>

export interface FetchOptions extends Partial<BodyLimits> {
  connectTimeoutMs?: number
  /** From the request to the answer's headers. */
  headersTimeoutMs?: number
  /** Between two pieces of the body; its whole length is bounded by the caller's signal. */
  bodyIdleMs?: number
  redirectsMax?: number
  /** Of the names that a redirect leads to. */
  resolve?: Resolve
}

const DEFAULTS: Required<FetchOptions> = {
  bodyBytesMax: 64 * 1024 * 1024,
  wireBytesMax: 64 * 1024 * 1024,
  connectTimeoutMs: 10_000,
  headersTimeoutMs: 60_000,
  bodyIdleMs: 60_000,
  redirectsMax: 10,
  resolve: resolveBySystem,
}

type Ask = (hop: Hop, signal: AbortSignal | null) => Promise<Dispatcher.ResponseData>

/**
 * The bare way out: bounded in size and time, and careful with credentials. Pacing and retries come on top of it.
 *
 * One request at a time per connection, and a connection that ever broke the protocol, was cut off or was left in the
 * middle of an answer is closed: the next request never reads what was meant for another.
 */
export function createFetch(options: FetchOptions = {}): Fetch {
  const limits = { ...DEFAULTS, ...options }
  // Loaded with the first request: a command that asks nobody starts without it.
  let client: Promise<Ask> | undefined
  return async (input, init = {}) => {
    const ask = await (client ??= connect(limits))
    const signal = init.signal ?? null
    let hop = firstHop(input, init)
    for (let redirects = 0; ; redirects++) {
      const response = await answer(hop, signal, ask, limits)
      const next = init.redirect === 'manual' ? null : allowedRedirect(response, hop)
      if (next === null) return response
      await response.body?.cancel()
      if (init.redirect === 'error') throw new SyncError('SOURCE_INVALID', `${placeOf(hop.url)} answered with a redirect.`)
      if (redirects === limits.redirectsMax) throw new SyncError('SOURCE_INVALID', `${placeOf(hop.url)} redirects without end.`)
      hop = next
    }
  }
}

/** One for the process, so that cycles share its connections. */
export const systemFetch: Fetch = createFetch()

/** Not fetch of the same package: that one unfolds any chain of encodings by itself, up to the end, and is slower for a page. */
async function connect(limits: Required<FetchOptions>): Promise<Ask> {
  const undici = await import('undici')
  const agent = (connect: { lookup?: LookupFunction }): Dispatcher => new undici.Agent({
    connect: { timeout: limits.connectTimeoutMs, ...connect },
    headersTimeout: limits.headersTimeoutMs,
    bodyTimeout: limits.bodyIdleMs,
    pipelining: 1,
    maxResponseSize: limits.wireBytesMax,
  })
  const own = agent({})
  const foreign = agent({ lookup: checkedLookup(limits.resolve, isPublicAddress, () => Object.assign(new Error('not a public address'), { code: NOT_PUBLIC })) })
  return async ({ url, method, headers, body, isForeign }, signal) => {
    const dispatcher = isForeign ? foreign : own
    const sent = requestBody(body)
    for (const [name, value] of [...STANDARD_HEADERS, ...sent.headers]) if (!headers.has(name)) headers.set(name, value)
    return undici.request(url, { dispatcher, method: method as Dispatcher.HttpMethod, headers: [...headers].flat(), body: sent.body, signal })
  }
}

const NOT_PUBLIC = 'ADDRESS_NOT_PUBLIC'

const STANDARD_HEADERS = [['accept', '*/*'], ['accept-encoding', 'gzip, br'], ['user-agent', 'tidemark']] as const

function firstHop(input: string | URL, init: RequestInit): Hop {
  const url = URL.canParse(String(input)) ? new URL(input) : null
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new SyncError('CONNECTOR_FAILED', 'A request was made to something that is not an http or https URL.')
  }
  // Refused and not sent on: URLs end up in logs, and a header does the same without.
  if (url.username !== '' || url.password !== '') {
    throw new SyncError('CONNECTOR_FAILED', `The URL of a request to ${placeOf(url)} contains credentials. Send them in a header.`)
  }
  try {
    return { url, method: init.method?.toUpperCase() ?? 'GET', headers: new Headers(init.headers), body: init.body ?? null, isForeign: false }
  } catch {
    // Without the cause: it quotes the value it refuses, and that may be a token.
    throw new SyncError('CONNECTOR_FAILED', `A header of the request to ${placeOf(url)} is not valid: check for line breaks and characters beyond Latin-1.`)
  }
}

async function answer(hop: Hop, signal: AbortSignal | null, ask: Ask, limits: BodyLimits): Promise<Response> {
  let data: Dispatcher.ResponseData
  try {
    data = await ask(hop, signal)
  } catch (error) {
    if (hop.isForeign && (error as { code?: unknown } | null)?.code === NOT_PUBLIC) {
      throw new SyncError('SOURCE_INVALID', `A redirect leads to ${hop.url.origin}, whose address is not public. It was not followed.`)
    }
    throw answerFailure(error, hop.url, signal, 'head')
  }
  const { statusCode: status, statusText, body } = data
  // A connection whose answer nobody reads would stay taken.
  const refuse = (message: string): SyncError => {
    body.on('error', () => {}).destroy()
    return new SyncError('SOURCE_INVALID', `${placeOf(hop.url)} ${message}.`)
  }
  if (status < 200 || status > 599) throw refuse(`answered with status ${status}, which does not exist`)
  const headers = headersOf(data)
  if (headers === null) throw refuse('answered with headers that are not valid')
  const stream = answerBody({ body, headers, isEmpty: hop.method === 'HEAD' || EMPTY_STATUSES.has(status) }, limits, refuse, (error) => answerFailure(error, hop.url, signal, 'body'))
  const response = new Response(stream, { status, statusText, headers })
  if (stream !== null) forgotten.register(response, new WeakRef(stream))
  // The constructor has no way to say where the answer came from.
  return Object.defineProperty(response, 'url', { value: hop.url.href })
}

function headersOf({ headers }: Dispatcher.ResponseData): Headers | null {
  try {
    return new Headers(Object.entries(headers).flatMap(([name, value]) => [value ?? []].flat().map((text): [string, string] => [name, text])))
  } catch {
    return null
  }
}

const EMPTY_STATUSES = new Set([204, 205, 304])

/** An answer of which only the status was looked at gives its connection back once it is collected. */
const forgotten = new FinalizationRegistry<WeakRef<ReadableStream>>((weak) => {
  const stream = weak.deref()
  if (stream !== undefined && !stream.locked) stream.cancel().catch(() => {})
})
