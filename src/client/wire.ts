import type { Clock, JsonObject, Random } from '../contract/index.ts'
import { Following } from '../values/following.ts'
import { parseJson, stringifyJson } from '../values/json.ts'
import { CLIENT_ERRORS, ClientError, type ClientErrorCode } from './client-error.ts'
import { clock as machineClock, random as machineRandom } from './clock.ts'
import { delayMs, retryAfterMs } from './retry.ts'

export interface WireOptions {
  /** Where the server is, such as https://feed.example. What stands before `/agents/v1` on the way there belongs to it. */
  readonly url: string
  /** Asked for with every request when it is a function, so that it may be renewed. */
  readonly key: string | (() => string | Promise<string>)
  readonly fetch?: typeof fetch
  /** Told before every wait for another try. */
  readonly onRetry?: (retry: Retry) => void
  /** For tests. */
  readonly clock?: Clock
  readonly random?: Random
}

export interface Retry {
  readonly error: ClientError
  /** The first one is 1. */
  readonly attempt: number
  readonly delayMs: number
}

export type Query = Readonly<Record<string, string | number | undefined>>

interface Ask {
  readonly path: string
  readonly query?: Query
  readonly accept?: string
  /** Sent as JSON, with POST. */
  readonly body?: JsonObject
  readonly signal: AbortSignal
}

const BODY_SHOWN = 200

/** Requests, one try at a time, and the waits between them. */
export class Wire {
  readonly clock: Clock
  readonly #options: WireOptions
  readonly #random: Random

  constructor(options: WireOptions) {
    this.#options = options
    this.clock = options.clock ?? machineClock
    this.#random = options.random ?? machineRandom
  }

  /** One try, answered with JSON. */
  async json({ timeoutMs, signal, ...ask }: Ask & { readonly timeoutMs: number }): Promise<JsonObject> {
    const asking = new Following(signal)
    const timer = setTimeout(() => asking.abort(new Error('no answer in time')), timeoutMs)
    try {
      const response = await this.open({ ...ask, signal: asking.signal })
      return objectOf(await response.text(), response)
    } catch (error) {
      throw translated(error, signal, asking.signal)
    } finally {
      clearTimeout(timer)
      asking.letGo()
    }
  }

  /** One try; the body is the caller's. */
  async open({ path, query = {}, accept = 'application/json', body, signal }: Ask): Promise<Response> {
    const { url, key } = this.#options
    const given = Object.entries(query).filter((entry): entry is [string, string | number] => entry[1] !== undefined)
    const search = new URLSearchParams(Object.fromEntries(given.map(([name, value]) => [name, String(value)]))).toString()
    const address = `${url.replace(/\/+$/, '')}${path}${search === '' ? '' : `?${search}`}`
    const authorization = `Bearer ${typeof key === 'function' ? await key() : key}`
    let response: Response
    try {
      response = await (this.#options.fetch ?? fetch)(address, { headers: { authorization, accept, ...(body !== undefined && { 'content-type': 'application/json' }) }, signal, ...(body !== undefined && { method: 'POST', body: stringifyJson(body) }) })
    } catch (cause) {
      signal.throwIfAborted()
      throw new ClientError('NETWORK_FAILED', `${originOf(url)} cannot be reached: ${causeOf(cause)}.`, { cause })
    }
    if (!response.ok) throw errorOf(await response.text(), response, this.clock.now())
    return response
  }

  /** The act until it succeeds, fails for good, or has been tried often enough. */
  async retrying<T>(retriesMax: number, signal: AbortSignal, act: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await act()
      } catch (error) {
        await this.pause(error, attempt, retriesMax, signal)
      }
    }
  }

  /** Waits before the next try; throws what cannot be tried again. */
  async pause(error: unknown, attempt: number, retriesMax: number, signal: AbortSignal): Promise<void> {
    if (!(error instanceof ClientError) || !error.isTransient) throw error
    await this.backOff(error, attempt, retriesMax, signal)
  }

  async backOff(error: ClientError, attempt: number, retriesMax: number, signal: AbortSignal): Promise<void> {
    if (attempt > retriesMax) throw error
    const delay = delayMs(error, attempt, this.#random)
    this.#options.onRetry?.({ error, attempt, delayMs: delay })
    await this.clock.sleep(delay, signal)
  }
}

/** What went wrong while a body was read, once the answer had begun. */
export function translated(error: unknown, signal: AbortSignal, asking: AbortSignal): unknown {
  if (signal.aborted) return signal.reason
  if (error instanceof ClientError) return error
  if (asking.aborted) return new ClientError('TIMEOUT', 'The server did not answer in time.', { cause: error })
  return new ClientError('NETWORK_FAILED', `The answer broke off: ${causeOf(error)}.`, { cause: error })
}

/** The error that an answer tells of. */
export function errorOf(text: string, { status, headers }: Pick<Response, 'status' | 'headers'>, now: number): ClientError {
  const body = parsed(text)
  const details = (body?.['details'] ?? {}) as JsonObject
  const code = body?.['error']
  const requestId = String(body?.['requestId'] ?? headers.get('x-request-id') ?? '') || undefined
  const known = typeof code === 'string' && Object.hasOwn(CLIENT_ERRORS, code) ? (code as ClientErrorCode) : codeOf(status)
  const message = typeof body?.['message'] === 'string' ? body['message'] : `The answer is ${status}: ${text.slice(0, BODY_SHOWN)}`
  return new ClientError(known, message, {
    status, requestId, reason: textOf(details['reason']), retryAfterMs: retryAfterMs(headers, now),
    restart: details['restart'] === 'updatedSince' || details['restart'] === 'backfill' ? details['restart'] : undefined,
  })
}

/** Whatever stands in between, a proxy or a balancer, answers in words of its own. */
function codeOf(status: number): ClientErrorCode {
  if (status === 401) return 'UNAUTHORIZED'
  if (status === 403) return 'FORBIDDEN'
  if (status === 404) return 'NOT_FOUND'
  if (status === 429) return 'RATE_LIMIT_EXCEEDED'
  if (status === 408 || status >= 500) return 'SERVICE_UNAVAILABLE'
  return status >= 400 ? 'INVALID_REQUEST' : 'ANSWER_INVALID'
}

function objectOf(text: string, { status, headers }: Response): JsonObject {
  const body = parsed(text)
  if (body === null) throw new ClientError('ANSWER_INVALID', `The answer is not what the feed sends: ${JSON.stringify(text.slice(0, BODY_SHOWN))}`, { status, requestId: headers.get('x-request-id') ?? undefined })
  return body
}

function parsed(text: string): JsonObject | null {
  try {
    const body = parseJson(text)
    return typeof body === 'object' && body !== null && !Array.isArray(body) ? body : null
  } catch {
    return null
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function originOf(url: string): string {
  try {
    return new URL(url).origin
  } catch {
    throw new ClientError('ARGUMENT_INVALID', '`url` is not an address such as https://feed.example.')
  }
}

/** The reason lies below in Node ("fetch failed" says nothing). */
function causeOf(error: unknown): string {
  const { message, cause } = Object(error) as { message?: unknown; cause?: { code?: unknown; message?: unknown } }
  return String(cause?.code ?? cause?.message ?? message ?? error)
}
