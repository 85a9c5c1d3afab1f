import { isSyncError, SyncError, type JsonValue, type SyncContext } from '../../contract/index.ts'
import { stringifyJson } from '../../values/json.ts'
import { anonymous, type Auth, type Credentials } from './auth.ts'
import type { BodyLimits } from '../../http/read-body.ts'
import { sendRequest, readFormat, readFailedText, readJson, readText } from './send-request.ts'
import type { ResponseClassifier, ResponseClass, ResponseFacts } from './classify-response.ts'
import { Origin } from './origin.ts'
import { rateLimitWaitMs, retryAfterMs, readServerTime, waitUntilMs } from '../../values/retry-after.ts'
import type { Secret } from '../../redaction/secret.ts'
import { classifyStatus } from './http-status.ts'
import { extractVendorMessage } from './vendor-message.ts'

/** The base URL, authentication and limits of an HTTP client. */
export interface HttpClientOptions {
  /** All requests stay below this URL. A function if it depends on the tenant's settings. */
  readonly baseUrl: string | ((context: SyncContext) => string)
  readonly auth?: Auth
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>
  readonly limits?: Partial<HttpLimits>
  readonly classifyResponse?: ResponseClassifier
}

/** Limits of responses and of the waits that a source can request. */
export interface HttpLimits extends BodyLimits {
  /** The longest wait that a source can request. */
  readonly retryAfterMaxMs: number
}

/** Sends requests below one base URL. Responses are bounded, parsed without loss and classified as result or error. */
export interface HttpClient {
  /** The target is a path below the base URL, or a full URL below it, such as a result of `resolveLink`. */
  get(target: string, query: Query, context: SyncContext, options?: RequestOptions): Promise<HttpResponse>
  /** Sends JSON, a form or a text. */
  post(target: string, body: RequestBody, context: SyncContext, options?: RequestOptions): Promise<HttpResponse>
  /** Sends no body. */
  delete(target: string, context: SyncContext, options?: RequestOptions): Promise<HttpResponse>
  /** Resolves a link found in a response to a full URL. Throws SOURCE_INVALID if it leaves the base URL. */
  resolveLink(link: string, foundIn: HttpResponse, context: SyncContext): string
}

/** Null and undefined are omitted; a list is sent as one parameter per item. */
export type Query = Readonly<Record<string, QueryValue | readonly QueryValue[]>>
type QueryValue = string | number | bigint | boolean | null | undefined

/** A text that is sent as it is, such as XML. */
export class TextBody {
  readonly text: string
  readonly type: string

  constructor(text: string, type = 'text/plain; charset=utf-8') {
    this.text = text
    this.type = type
  }
}

export type RequestBody = JsonValue | URLSearchParams | TextBody

/** Options of one HTTP request. */
export interface RequestOptions {
  readonly query?: Query
  readonly headers?: Readonly<Record<string, string>>
  /** Statuses that are valid responses: 404 where an item may be deleted. Never a rate limit. The body is null unless it is JSON. */
  readonly answers?: readonly number[]
  /** Statuses with which the source rejects a cursor, usually 400 and 410: CURSOR_REJECTED. */
  readonly cursorRefusals?: readonly number[]
  /** Content types such as `application/xml` of a text response. The body is then one string. */
  readonly text?: readonly string[]
  /** How the body of a successful response becomes a value. The default is JSON. */
  readonly format?: ResponseFormat
  /** Recognises failures of this request, before the classifier of the client. */
  readonly classifyResponse?: ResponseClassifier
  /** Whether a response is valid, whatever its status. Its body is null unless it is JSON. */
  readonly accepts?: (response: ResponseFacts) => boolean
}

/** Turns the bytes of a response into a value. */
export interface ResponseFormat {
  /** For the `Accept` header. */
  readonly accept: string
  /** Throws if the bytes are not in the format. The error must not quote them. */
  parse(bytes: Uint8Array): JsonValue
}

/** A response whose body is parsed. */
export interface HttpResponse {
  readonly status: number
  readonly headers: Headers
  /** Integers that a double cannot represent are bigints. */
  readonly body: JsonValue
  /** The time in the `Date` header; null without one. */
  readonly serverTime: number | null
  readonly url: string
}

const DEFAULT_LIMITS: HttpLimits = {
  bodyBytesMax: 32 * 1024 * 1024,
  depthMax: 512,
  bodyDeadlineMs: 60_000,
  retryAfterMaxMs: 24 * 60 * 60_000,
}

/** The body of a failed response is only classified and quoted in the error. */
const FAILED_BODY_BYTES_MAX = 64 * 1024

/** An HTTP client on `context.fetch`. A failure is a SyncError with method, path, status and the vendor's explanation. */
export function createHttpClient(options: HttpClientOptions): HttpClient {
  const client = new DefaultHttpClient(options)
  return {
    get: (target, query, context, options = {}) =>
      client.request({ method: 'GET', target, query: { ...options.query, ...query }, body: null }, context, options),
    post: (target, body, context, options = {}) =>
      client.request({ method: 'POST', target, query: options.query ?? {}, body }, context, options),
    delete: (target, context, options = {}) =>
      client.request({ method: 'DELETE', target, query: options.query ?? {}, body: null }, context, options),
    resolveLink: (link, foundIn, context) => client.getOrigin(context).resolveLink(link, new URL(foundIn.url)).href,
  }
}

interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly target: string
  readonly query: Query
  readonly body: RequestBody
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
    if (typeof options.baseUrl === 'string')
      this.#origin = { baseUrl: options.baseUrl, origin: new Origin(options.baseUrl) }
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
      // Renew once only: credentials that are rejected when new stay rejected.
      const fresh = outcome.code === 'AUTH_REJECTED' && !renewed ? await this.#auth.renew(credentials, context) : null
      if (fresh === null) throw outcome
      credentials = fresh
    }
  }

  /** Returns the response or the error it reports. Throws transport errors. */
  async #send(
    request: HttpRequest,
    credentials: Credentials,
    context: SyncContext,
    options: RequestOptions,
  ): Promise<HttpResponse | SyncError> {
    const { method, target, body } = request
    const origin = this.getOrigin(context)
    const isLink = /^https?:/i.test(target)
    const url = isLink ? origin.resolveLink(target) : origin.resolvePath(target)
    // A link may contain a cursor, and cursors must not appear in messages.
    const shown = isLink ? `${origin.base.pathname.replace(/\/$/, '')}/…` : url.pathname
    const label = `${method} ${shown}`
    url.search = appendQuery(url.search, { ...request.query, ...revealSecrets(credentials.query) })
    const headers = {
      accept: options.format?.accept ?? options.text?.join(', ') ?? 'application/json',
      ...createContentTypeHeader(body),
      ...lowercaseNames(this.#options.headers),
      ...lowercaseNames(options.headers),
      ...lowercaseNames(revealSecrets(credentials.headers)),
    }
    try {
      const response = await sendRequest({ method, url, label, headers, body: serializeBody(body) }, origin, context)
      return await this.#classify(
        response,
        `${label} answered ${response.status}`,
        url,
        context,
        options,
        listSentValues(url, body),
      )
    } catch (error) {
      // Transport errors contain the full path.
      if (!isLink || !isSyncError(error) || !error.message.includes(url.pathname)) throw error
      throw new SyncError(error.code, error.message.replaceAll(url.pathname, shown), { cause: error.cause })
    }
  }

  async #classify(
    response: Response,
    label: string,
    url: URL,
    context: SyncContext,
    options: RequestOptions,
    sent: readonly string[],
  ): Promise<HttpResponse | SyncError> {
    const { status, headers } = response
    const code = classifyStatus(status, headers)
    // A rate limit is a failure even if its status is a valid response.
    const isAnswer = code !== 'RATE_LIMITED' && options.answers?.includes(status) === true
    const { body, text } =
      status < 300
        ? { body: await this.#readBody(response, label, context, options) }
        : await this.#readFailedBody(response, label, context, options)
    const facts = { status, headers, body, ...(text !== undefined && { text }) }
    const failure = isAnswer || options.accepts?.(facts) === true ? null : code
    const failureInBody = options.classifyResponse?.(facts) ?? this.#options.classifyResponse?.(facts) ?? null
    const explanation = extractVendorMessage(body, sent)
    if (failureInBody !== null) return this.#createError(label, failureInBody, headers, context, explanation)
    if (failure === null)
      return { status, headers, body: body ?? null, serverTime: readServerTime(headers), url: url.href }
    const isCursorRefused = failure === 'CONNECTOR_FAILED' && options.cursorRefusals?.includes(status) === true
    return this.#createError(
      label,
      { code: isCursorRefused ? 'CURSOR_REJECTED' : failure, reason: '' },
      headers,
      context,
      explanation,
    )
  }

  async #readBody(
    response: Response,
    label: string,
    context: SyncContext,
    { text, format }: RequestOptions,
  ): Promise<JsonValue> {
    if (response.status === 204 || response.status === 205) return null
    if (format !== undefined) return readFormat(response, label, format, this.#limits, context)
    return text === undefined
      ? readJson(response, label, this.#limits, context)
      : readText(response, label, text, this.#limits, context)
  }

  async #readFailedBody(
    response: Response,
    label: string,
    context: SyncContext,
    { accepts, classifyResponse }: RequestOptions,
  ): Promise<{ body: JsonValue | undefined; text?: string }> {
    try {
      const limits = { ...this.#limits, bodyBytesMax: Math.min(FAILED_BODY_BYTES_MAX, this.#limits.bodyBytesMax) }
      const needsText = accepts !== undefined || classifyResponse !== undefined
      return await readFailedText(response, label, needsText, limits, context)
    } catch {
      // The status already is the failure; an unreadable body adds nothing.
      context.signal.throwIfAborted()
      return { body: undefined }
    }
  }

  #createError(
    label: string,
    { code, reason, retryAfterMs: classifiedMs, retryAt }: ResponseClass,
    headers: Headers,
    context: SyncContext,
    explanation: string | null,
  ): SyncError {
    const { retryAfterMaxMs } = this.#limits
    const parseWait = code === 'RATE_LIMITED' ? rateLimitWaitMs : retryAfterMs
    const headerWaitMs = parseWait(headers, context.clock.now(), retryAfterMaxMs)
    const bodyWaitMs = retryAt === undefined ? classifiedMs : waitUntilMs(retryAt, headers, context.clock.now())
    const waitMs =
      bodyWaitMs !== undefined && bodyWaitMs > 0
        ? Math.max(headerWaitMs ?? 0, Math.min(bodyWaitMs, retryAfterMaxMs))
        : headerWaitMs
    const summary = reason === '' ? label : `${label} with ${reason}`
    return new SyncError(
      code,
      explanation === null ? `${summary}.` : `${summary}: ${explanation}`,
      waitMs === undefined ? {} : { retryAfterMs: waitMs },
    )
  }
}

/** Encodes spaces as %20, because many servers read a plus as a plus. */
function appendQuery(search: string, query: Query): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    [value]
      .flat()
      .filter((item) => item !== null && item !== undefined)
      .map((item) => `${encodeURIComponent(name)}=${encodeURIComponent(String(item))}`),
  )
  const existing = search.replace(/^\?/, '')
  return [...(existing === '' ? [] : [existing]), ...pairs].join('&')
}

function revealSecrets(secrets: Readonly<Record<string, Secret>>): Record<string, string> {
  return Object.fromEntries(Object.entries(secrets).map(([name, secret]) => [name, secret.reveal()]))
}

function lowercaseNames(headers: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

/** Lists the values of a request that a response may quote. */
function listSentValues(url: URL, body: RequestBody): string[] {
  const segments = url.pathname.split('/').map((segment) => decodeURIComponent(segment))
  return [...segments, ...url.searchParams.values(), ...listBodyValues(body)]
}

function listBodyValues(body: RequestBody): Iterable<string> {
  if (body instanceof URLSearchParams) return body.values()
  return body instanceof TextBody ? body.text.split(/[\s<>"'=(),]+/) : listLeaves(body)
}

function listLeaves(value: JsonValue | undefined): string[] {
  if (typeof value === 'object' && value !== null) return Object.values(value).flatMap(listLeaves)
  return value === null || value === undefined ? [] : [String(value)]
}

function serializeBody(body: RequestBody): string | null {
  if (body === null) return null
  if (body instanceof TextBody) return body.text
  return body instanceof URLSearchParams ? body.toString() : stringifyJson(body)
}

function createContentTypeHeader(body: RequestBody): Record<string, string> {
  if (body === null) return {}
  if (body instanceof TextBody) return { 'content-type': body.type }
  return { 'content-type': body instanceof URLSearchParams ? 'application/x-www-form-urlencoded' : 'application/json' }
}
