import { SyncError } from '../contract/index.ts'
import { allowedRedirect, type Hop } from './redirect.ts'

export type Fetch = (input: string | URL, init?: RequestInit) => Promise<Response>

export interface FetchOptions {
  /** Of one body, after decompression: a small answer may unfold into a large one. */
  bodyBytesMax?: number
  connectTimeoutMs?: number
  /** From the request to the answer's headers. */
  headersTimeoutMs?: number
  /** Between two pieces of the body; its whole length is bounded by the caller's signal. */
  bodyIdleMs?: number
  redirectsMax?: number
}

const DEFAULTS: Required<FetchOptions> = {
  bodyBytesMax: 64 * 1024 * 1024,
  connectTimeoutMs: 10_000,
  headersTimeoutMs: 60_000,
  bodyIdleMs: 60_000,
  redirectsMax: 10,
}

/** The bare way out: bounded in size and time, and careful with credentials. Pacing and retries come on top of it. */
export function createFetch(options: FetchOptions = {}): Fetch {
  const limits = { ...DEFAULTS, ...options }
  // Loaded with the first request: a command that asks nobody starts without it.
  let client: Promise<(hop: Hop, init: RequestInit) => Promise<Response>> | undefined
  return async (input, init = {}) => {
    const request = await (client ??= connect(limits))
    let hop = firstHop(input, init)
    for (let redirects = 0; ; redirects++) {
      const response = await answer(hop, init, request)
      const next = init.redirect === 'manual' ? null : allowedRedirect(response, hop)
      if (next === null) return bounded(response, hop.url, limits.bodyBytesMax, init.signal ?? undefined)
      await response.body?.cancel()
      if (init.redirect === 'error') throw new SyncError('SOURCE_INVALID', `${place(hop.url)} answered with a redirect.`)
      if (redirects === limits.redirectsMax) throw new SyncError('SOURCE_INVALID', `${place(hop.url)} redirects without end.`)
      hop = next
    }
  }
}

/** One for the process, so that cycles share its connections. */
export const systemFetch: Fetch = createFetch()

async function connect(limits: Required<FetchOptions>): Promise<(hop: Hop, init: RequestInit) => Promise<Response>> {
  const undici = await import('undici')
  const dispatcher = new undici.Agent({
    connect: { timeout: limits.connectTimeoutMs },
    headersTimeout: limits.headersTimeoutMs,
    bodyTimeout: limits.bodyIdleMs,
  })
  return async (hop, init) => {
    const { url, method, headers, body } = hop
    const request = { ...init, method, headers: [...headers], body, redirect: 'manual', dispatcher, duplex: 'half' }
    return (await undici.fetch(url, request as Parameters<typeof undici.fetch>[1])) as unknown as Response
  }
}

function firstHop(input: string | URL, init: RequestInit): Hop {
  const url = URL.canParse(String(input)) ? new URL(input) : null
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new SyncError('CONNECTOR_FAILED', 'A request was made to something that is not an http or https URL.')
  }
  // Refused and not sent on: URLs end up in logs, and a header does the same without.
  if (url.username !== '' || url.password !== '') {
    throw new SyncError('CONNECTOR_FAILED', `The URL of a request to ${place(url)} contains credentials. Send them in a header.`)
  }
  try {
    return { url, method: init.method?.toUpperCase() ?? 'GET', headers: new Headers(init.headers), body: init.body ?? null }
  } catch {
    // Without the cause: it quotes the value it refuses, and that may be a token.
    throw new SyncError('CONNECTOR_FAILED', `A header of the request to ${place(url)} is not valid: check for line breaks and characters beyond Latin-1.`)
  }
}

async function answer(hop: Hop, init: RequestInit, request: (hop: Hop, init: RequestInit) => Promise<Response>): Promise<Response> {
  try {
    return await request(hop, init)
  } catch (error) {
    throw classified(error, hop.url, init.signal ?? undefined)
  }
}

/** The same answer, with a body that breaks off at the limit. */
function bounded(response: Response, url: URL, bytesMax: number, signal: AbortSignal | undefined): Response {
  const tooLarge = new SyncError('SOURCE_INVALID', `${place(url)} answered with more than ${bytesMax} bytes.`)
  const { status, statusText, headers } = response
  const declared = headers.has('content-encoding') ? 0 : Number(headers.get('content-length') ?? 0)
  const source = response.body?.getReader()
  if (source !== undefined && declared > bytesMax) {
    source.cancel().catch(() => {})
    throw tooLarge
  }
  const body = source === undefined ? null : countedBody(source, bytesMax, tooLarge, (error) => classified(error, url, signal))
  const copy = new Response(body, { status, statusText, headers: [...headers] })
  // The constructor has no way to say where the answer came from.
  return Object.defineProperty(copy, 'url', { value: url.href })
}

function countedBody(
  source: ReadableStreamDefaultReader<Uint8Array>,
  bytesMax: number,
  tooLarge: SyncError,
  classify: (error: unknown) => unknown,
): ReadableStream<Uint8Array> {
  let bytes = 0
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const piece = await source.read().catch((error: unknown) => {
        throw classify(error)
      })
      bytes += piece.value?.byteLength ?? 0
      if (bytes > bytesMax) {
        source.cancel().catch(() => {})
        throw tooLarge
      }
      if (piece.done) controller.close()
      else controller.enqueue(piece.value)
    },
    cancel: (reason) => source.cancel(reason),
  })
}

/** By code, never by text. The cause stays attached, but its text stays out of the message. */
function classified(error: unknown, url: URL, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted) return signal.reason
  const code = codeOf(error) ?? codeOf(error instanceof Error ? error.cause : undefined)
  if (code?.endsWith('_TIMEOUT') || code === 'ETIMEDOUT') return new SyncError('SOURCE_TIMEOUT', `${place(url)} did not answer in time (${code}).`, { cause: error })
  return new SyncError('SOURCE_UNAVAILABLE', `${place(url)} could not be reached (${code ?? 'connection failed'}).`, { cause: error })
}

function codeOf(error: unknown): string | undefined {
  return typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** Without the query, which may carry a key. */
function place(url: URL): string {
  return `${url.origin}${url.pathname}`
}
