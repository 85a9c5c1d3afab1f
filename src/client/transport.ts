import type { Clock, JsonObject, Random } from '../contract/index.ts'
import { LinkedAbortController } from '../values/linked-abort-controller.ts'
import { parseJson, stringifyJson } from '../values/json.ts'
import { CLIENT_ERRORS, ClientError, type ClientErrorCode } from './client-error.ts'
import { systemClock, systemRandom } from './clock.ts'
import { computeDelayMs, parseRetryAfterMs } from './retry.ts'

/** The connection to a served feed: its address, API key and retry hooks. */
export interface TransportOptions {
  /** Base URL such as https://feed.example, including any path prefix before `/agents/v1`. */
  readonly url: string
  /** A function is called for every request, so that the key can be rotated. */
  readonly key: string | (() => string | Promise<string>)
  readonly fetch?: typeof fetch
  /** Called before every retry delay. */
  readonly onRetry?: (retry: Retry) => void
  /** For tests. */
  readonly clock?: Clock
  readonly random?: Random
}

/** A retry that is about to wait, as passed to `onRetry`. */
export interface Retry {
  readonly error: ClientError
  /** Starts at 1. */
  readonly attempt: number
  readonly delayMs: number
}

export type Query = Readonly<Record<string, string | number | undefined>>

interface TransportRequest {
  readonly path: string
  readonly query?: Query
  readonly accept?: string
  /** Sent as JSON with POST. */
  readonly body?: JsonObject
  readonly signal: AbortSignal
}

const BODY_EXCERPT_MAX = 200

/** Sends single requests and waits between retries. */
export class Transport {
  readonly clock: Clock
  readonly #options: TransportOptions
  readonly #random: Random

  constructor(options: TransportOptions) {
    this.#options = options
    this.clock = options.clock ?? systemClock
    this.#random = options.random ?? systemRandom
  }

  /** Sends one request and parses the JSON response. */
  async requestJson({
    timeoutMs,
    signal,
    ...request
  }: TransportRequest & { readonly timeoutMs: number }): Promise<JsonObject> {
    const attempt = new LinkedAbortController(signal)
    const timer = setTimeout(() => attempt.abort(new Error('request timed out')), timeoutMs)
    try {
      const response = await this.openResponse({ ...request, signal: attempt.signal })
      return parseResponseObject(await response.text(), response)
    } catch (error) {
      throw translateError(error, signal, attempt.signal)
    } finally {
      clearTimeout(timer)
      attempt.unlink()
    }
  }

  /** Sends one request; the caller reads the body. */
  async openResponse({
    path,
    query = {},
    accept = 'application/json',
    body,
    signal,
  }: TransportRequest): Promise<Response> {
    const { url, key } = this.#options
    const parameters = Object.entries(query).filter(
      (entry): entry is [string, string | number] => entry[1] !== undefined,
    )
    const search = new URLSearchParams(
      Object.fromEntries(parameters.map(([name, value]) => [name, String(value)])),
    ).toString()
    const address = `${url.replace(/\/+$/, '')}${path}${search === '' ? '' : `?${search}`}`
    const authorization = `Bearer ${typeof key === 'function' ? await key() : key}`
    let response: Response
    try {
      response = await (this.#options.fetch ?? fetch)(address, {
        headers: { authorization, accept, ...(body !== undefined && { 'content-type': 'application/json' }) },
        signal,
        ...(body !== undefined && { method: 'POST', body: stringifyJson(body) }),
      })
    } catch (cause) {
      signal.throwIfAborted()
      throw new ClientError('NETWORK_FAILED', `${originOf(url)} is unreachable: ${describeCause(cause)}.`, { cause })
    }
    if (!response.ok) throw parseErrorResponse(await response.text(), response, this.clock.now())
    return response
  }

  /** Retries until success, a permanent error or the retry limit. */
  async withRetries<T>(retriesMax: number, signal: AbortSignal, send: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await send()
      } catch (error) {
        await this.waitForRetry(error, attempt, retriesMax, signal)
      }
    }
  }

  /** Waits before the next attempt; throws errors that cannot be retried. */
  async waitForRetry(error: unknown, attempt: number, retriesMax: number, signal: AbortSignal): Promise<void> {
    if (!(error instanceof ClientError) || !error.isTransient) throw error
    await this.backOff(error, attempt, retriesMax, signal)
  }

  async backOff(error: ClientError, attempt: number, retriesMax: number, signal: AbortSignal): Promise<void> {
    if (attempt > retriesMax) throw error
    const delay = computeDelayMs(error, attempt, this.#random)
    this.#options.onRetry?.({ error, attempt, delayMs: delay })
    await this.clock.sleep(delay, signal)
  }
}

/** Translates errors of the request and of reading its body. */
export function translateError(error: unknown, signal: AbortSignal, attempt: AbortSignal): unknown {
  if (signal.aborted) return signal.reason
  if (error instanceof ClientError) return error
  if (attempt.aborted) return new ClientError('TIMEOUT', 'The server did not respond in time.', { cause: error })
  return new ClientError('NETWORK_FAILED', `The response was interrupted: ${describeCause(error)}.`, { cause: error })
}

export function parseErrorResponse(
  text: string,
  { status, headers }: Pick<Response, 'status' | 'headers'>,
  now: number,
): ClientError {
  const body = tryParseObject(text)
  const details = (body?.['details'] ?? {}) as JsonObject
  const code = body?.['error']
  const requestId = String(body?.['requestId'] ?? headers.get('x-request-id') ?? '') || undefined
  const known =
    typeof code === 'string' && Object.hasOwn(CLIENT_ERRORS, code) ? (code as ClientErrorCode) : codeForStatus(status)
  const message =
    typeof body?.['message'] === 'string'
      ? body['message']
      : `The server responded with ${status}: ${text.slice(0, BODY_EXCERPT_MAX)}`
  return new ClientError(known, message, {
    status,
    requestId,
    reason: asString(details['reason']),
    retryAfterMs: parseRetryAfterMs(headers, now),
    restart:
      details['restart'] === 'updatedSince' || details['restart'] === 'backfill' ? details['restart'] : undefined,
  })
}

/** Proxies and load balancers respond with bodies of their own. */
function codeForStatus(status: number): ClientErrorCode {
  if (status === 401) return 'UNAUTHORIZED'
  if (status === 403) return 'FORBIDDEN'
  if (status === 404) return 'NOT_FOUND'
  if (status === 429) return 'RATE_LIMIT_EXCEEDED'
  if (status === 408 || status >= 500) return 'SERVICE_UNAVAILABLE'
  return status >= 400 ? 'INVALID_REQUEST' : 'ANSWER_INVALID'
}

function parseResponseObject(text: string, { status, headers }: Response): JsonObject {
  const body = tryParseObject(text)
  if (body === null)
    throw new ClientError(
      'ANSWER_INVALID',
      `The response is not a JSON object: ${JSON.stringify(text.slice(0, BODY_EXCERPT_MAX))}`,
      { status, requestId: headers.get('x-request-id') ?? undefined },
    )
  return body
}

function tryParseObject(text: string): JsonObject | null {
  try {
    const body = parseJson(text)
    return typeof body === 'object' && body !== null && !Array.isArray(body) ? body : null
  } catch {
    return null
  }
}

function asString(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function originOf(url: string): string {
  try {
    return new URL(url).origin
  } catch {
    throw new ClientError('ARGUMENT_INVALID', '`url` is not a valid URL such as https://feed.example.')
  }
}

/** Node's own message is only "fetch failed"; the reason is in `cause`. */
function describeCause(error: unknown): string {
  const { message, cause } = Object(error) as { message?: unknown; cause?: { code?: unknown; message?: unknown } }
  return String(cause?.code ?? cause?.message ?? message ?? error)
}
