import { isSyncError, SyncError, type JsonValue, type SyncContext } from '../../contract/index.ts'
import { stringifyJson } from '../../values/json.ts'
import { anonymous, type Auth, type Credentials } from './auth.ts'
import type { BodyLimits } from './read-body.ts'
import { sendRequest, readJson, readText } from './send-request.ts'
import type { ResponseClassifier, ResponseClass } from './classify-response.ts'
import { Origin } from './origin.ts'
import { rateLimitWaitMs, retryAfterMs, readServerTime, waitUntilMs } from '../../values/retry-after.ts'
import type { Secret } from '../../redaction/secret.ts'
import { classifyStatus } from './http-status.ts'
import { extractVendorMessage } from './vendor-message.ts'

export interface HttpClientOptions {
  /** Everything of the source lies below it. A function where a tenant's settings say where that is. */
  readonly baseUrl: string | ((context: SyncContext) => string)
  readonly auth?: Auth
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>
  readonly limits?: Partial<HttpLimits>
  readonly classifyResponse?: ResponseClassifier
}

export interface HttpLimits extends BodyLimits {
  /** The longest wait a source can ask for. */
  readonly retryAfterMaxMs: number
}

export interface HttpClient {
  /** A path below the base URL, or a full URL below it, such as one of `link`. */
  get(target: string, query: Query, context: SyncContext, options?: RequestOptions): Promise<HttpResponse>
  /** JSON, or a form. */
  post(target: string, body: JsonValue | URLSearchParams, context: SyncContext, options?: RequestOptions): Promise<HttpResponse>
  /** A link found in an answer, as a full URL. Throws SOURCE_INVALID when it leads away from the source. */
  resolveLink(link: string, foundIn: HttpResponse, context: SyncContext): string
}

/** Null and undefined are left out; a list is sent once per item. */
export type Query = Readonly<Record<string, QueryValue | readonly QueryValue[]>>
type QueryValue = string | number | bigint | boolean | null | undefined

export interface RequestOptions {
  readonly query?: Query
  readonly headers?: Readonly<Record<string, string>>
  /** Statuses that are an answer and no failure: 404 where one item may be gone. Not a rate limit. Their body is null unless it is JSON. */
  readonly answers?: readonly number[]
  /** Statuses by which the source refuses the position it was asked from, usually 400 and 410: CURSOR_REJECTED. */
  readonly cursorRefusals?: readonly number[]
  /** Types such as `application/xml`, where the answer is text instead of JSON: its body is then one string. */
  readonly text?: readonly string[]
}

export interface HttpResponse {
  readonly status: number
  readonly headers: Headers
  /** Numbers are exact: an integer that a double cannot hold is a bigint. */
  readonly body: JsonValue
  /** The source's clock when it answered; null when it does not say. */
  readonly serverTime: number | null
  readonly url: string
}

const DEFAULT_LIMITS: HttpLimits = {
  bodyBytesMax: 32 * 1024 * 1024,
  depthMax: 512,
  bodyDeadlineMs: 60_000,
  retryAfterMaxMs: 24 * 60 * 60_000,
}

/** Of an answer that failed; only a judge looks at it. */
const FAILED_BODY_BYTES_MAX = 64 * 1024

/** Asks a source over HTTP, through the context alone. A failure is a SyncError with method, path, status and the vendor's explanation. */
export function createHttpClient(options: HttpClientOptions): HttpClient {
  const client = new DefaultHttpClient(options)
  return {
    get: (target, query, context, options = {}) => client.request({ method: 'GET', target, query: { ...options.query, ...query }, body: null }, context, options),
    post: (target, body, context, options = {}) => client.request({ method: 'POST', target, query: options.query ?? {}, body }, context, options),
    resolveLink: (link, foundIn, context) => client.getOrigin(context).resolveLink(link, new URL(foundIn.url)).href,
  }
}

interface HttpRequest {
  readonly method: 'GET' | 'POST'
  readonly target: string
  readonly query: Query
  readonly body: JsonValue | URLSearchParams
}

class DefaultHttpClient {
  readonly #options: HttpClientOptions
  readonly #auth: Auth
  readonly #limits: HttpLimits
  #origin: { readonly baseUrl: string; readonly origin: Origin } | null = null

  constructor(options: HttpClientOptions) {
    this.#options = options
    this.#auth = options.auth ?? anonymous
    this.#limits = { ...DEFAULT_LIMITS, ...options.limits }
    if (typeof options.baseUrl === 'string') this.#origin = { baseUrl: options.baseUrl, origin: new Origin(options.baseUrl) }
  }

  getOrigin(context: SyncContext): Origin {
    const { baseUrl: given } = this.#options
    const baseUrl = typeof given === 'string' ? given : given(context)
    if (this.#origin?.baseUrl !== baseUrl) this.#origin = { baseUrl, origin: new Origin(baseUrl) }
    return this.#origin.origin
  }

  async request(request: HttpRequest, context: SyncContext, options: RequestOptions): Promise<HttpResponse> {
    let credentials = await this.#auth.credentials(context)
    for (let renewed = false; ; renewed = true) {
      const outcome = await this.#send(request, credentials, context, options)
      if (!(outcome instanceof SyncError)) return outcome
      // Once: credentials that are refused when they are new will be refused for ever.
      const fresh = outcome.code === 'AUTH_REJECTED' && !renewed ? await this.#auth.renew(credentials, context) : null
      if (fresh === null) throw outcome
      credentials = fresh
    }
  }

  /** The answer, or what it says is wrong. What is not even that is thrown. */
  async #send(request: HttpRequest, credentials: Credentials, context: SyncContext, options: RequestOptions): Promise<HttpResponse | SyncError> {
    const { method, target, body } = request
    const origin = this.getOrigin(context)
    const isLink = /^https?:/i.test(target)
    const url = isLink ? origin.resolveLink(target) : origin.resolvePath(target)
    // A link may be a position, all of it, and positions are not for messages.
    const shown = isLink ? `${origin.base.pathname.replace(/\/$/, '')}/…` : url.pathname
    const place = `${method} ${shown}`
    url.search = appendQuery(url.search, { ...request.query, ...revealSecrets(credentials.query) })
    const headers = { accept: options.text?.join(', ') ?? 'application/json', ...createContentTypeHeader(body), ...lowercaseNames(this.#options.headers), ...lowercaseNames(options.headers), ...lowercaseNames(revealSecrets(credentials.headers)) }
    try {
      const response = await sendRequest({ method, url, label: place, headers, body: serializeBody(body) }, origin, context)
      return await this.#classify(response, `${place} answered ${response.status}`, url, context, options, listSentValues(url, body))
    } catch (error) {
      // The transport names what it could not reach by its whole path.
      if (!isLink || !isSyncError(error) || !error.message.includes(url.pathname)) throw error
      throw new SyncError(error.code, error.message.replaceAll(url.pathname, shown), { cause: error.cause })
    }
  }

  async #classify(
    response: Response, place: string, url: URL, context: SyncContext, options: RequestOptions, sent: readonly string[],
  ): Promise<HttpResponse | SyncError> {
    const { status, headers } = response
    const code = classifyStatus(status, headers)
    // A budget that is used up says nothing about what was asked for.
    const failure = code !== 'RATE_LIMITED' && options.answers?.includes(status) === true ? null : code
    const body = failure === null && status < 300 ? await this.#readBody(response, place, context, options) : await this.#readFailedBody(response, place, context)
    const verdict = this.#options.classifyResponse?.({ status, headers, body }) ?? null
    const explanation = extractVendorMessage(body, sent)
    if (verdict !== null) return this.#createError(place, verdict, headers, context, explanation)
    if (failure === null) return { status, headers, body: body ?? null, serverTime: readServerTime(headers), url: url.href }
    const isCursorRefused = failure === 'CONNECTOR_FAILED' && options.cursorRefusals?.includes(status) === true
    return this.#createError(place, { code: isCursorRefused ? 'CURSOR_REJECTED' : failure, reason: '' }, headers, context, explanation)
  }

  async #readBody(response: Response, place: string, context: SyncContext, { text }: RequestOptions): Promise<JsonValue> {
    if (response.status === 204 || response.status === 205) return null
    return text === undefined ? readJson(response, place, this.#limits, context) : readText(response, place, text, this.#limits, context)
  }

  async #readFailedBody(response: Response, place: string, context: SyncContext): Promise<JsonValue | undefined> {
    try {
      return await readJson(response, place, { ...this.#limits, bodyBytesMax: Math.min(FAILED_BODY_BYTES_MAX, this.#limits.bodyBytesMax) }, context)
    } catch {
      // The status has said it already; a body that cannot be read adds nothing.
      context.signal.throwIfAborted()
      return undefined
    }
  }

  #createError(
    place: string, { code, reason, retryAfterMs: spanMs, retryAt }: ResponseClass, headers: Headers, context: SyncContext, explanation: string | null,
  ): SyncError {
    const { retryAfterMaxMs } = this.#limits
    const waitOf = code === 'RATE_LIMITED' ? rateLimitWaitMs : retryAfterMs
    const askedMs = waitOf(headers, context.clock.now(), retryAfterMaxMs)
    const judgedMs = retryAt === undefined ? spanMs : waitUntilMs(retryAt, headers, context.clock.now())
    const waitMs = judgedMs !== undefined && judgedMs > 0 ? Math.max(askedMs ?? 0, Math.min(judgedMs, retryAfterMaxMs)) : askedMs
    const what = reason === '' ? place : `${place} with ${reason}`
    return new SyncError(code, explanation === null ? `${what}.` : `${what}: ${explanation}`, waitMs === undefined ? {} : { retryAfterMs: waitMs })
  }
}

/** Spaces as %20: a plus is a plus to many a server. */
function appendQuery(search: string, query: Query): string {
  const pairs = Object.entries(query).flatMap(([name, value]) => [value].flat().filter((item) => item !== null && item !== undefined).map((item) => `${encodeURIComponent(name)}=${encodeURIComponent(String(item))}`))
  const taken = search.replace(/^\?/, '')
  return [...(taken === '' ? [] : [taken]), ...pairs].join('&')
}

function revealSecrets(secrets: Readonly<Record<string, Secret>>): Record<string, string> {
  return Object.fromEntries(Object.entries(secrets).map(([name, secret]) => [name, secret.reveal()]))
}

function lowercaseNames(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

/** The values of a request, as an answer may quote them. */
function listSentValues(url: URL, body: JsonValue | URLSearchParams): string[] {
  const segments = url.pathname.split('/').map((segment) => decodeURIComponent(segment))
  return [...segments, ...url.searchParams.values(), ...(body instanceof URLSearchParams ? body.values() : listLeaves(body))]
}

function listLeaves(value: JsonValue | undefined): string[] {
  if (typeof value === 'object' && value !== null) return Object.values(value).flatMap(listLeaves)
  return value === null || value === undefined ? [] : [String(value)]
}

function serializeBody(body: JsonValue | URLSearchParams): string | null {
  if (body === null) return null
  return body instanceof URLSearchParams ? body.toString() : stringifyJson(body)
}

function createContentTypeHeader(body: JsonValue | URLSearchParams): Record<string, string> {
  if (body === null) return {}
  return { 'content-type': body instanceof URLSearchParams ? 'application/x-www-form-urlencoded' : 'application/json' }
}
