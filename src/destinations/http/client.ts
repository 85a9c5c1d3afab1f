import { randomUUID } from 'node:crypto'
import type { Agent, Dispatcher } from 'undici'
import { isSyncError, SyncError, type ErrorCode } from '../../contract/index.ts'
import { maskSecrets } from '../../redaction/known-secrets.ts'
import { LinkedAbortController } from '../../values/linked-abort-controller.ts'
import { retryAfterMs } from '../../values/retry-after.ts'
import { createSignatureHeaders } from '../../webhooks/sign.ts'
import { toPrintable } from '../../webhooks/send.ts'
import { CONTENT_TYPE, parseHttpPosition, type HttpPosition } from './wire.ts'

export interface HttpClientOptions {
  readonly url: URL
  readonly secrets: readonly string[]
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
}

/** `too-large`: the receiver accepts only smaller bodies. */
export type HttpAnswer =
  | { readonly kind: 'accepted' | 'refused'; readonly position: HttpPosition }
  | { readonly kind: 'too-large' }

const ANSWER_BYTES_MAX = 65_536

/** Statuses with another code than their class. */
const STATUS_CODES: Readonly<Record<number, ErrorCode>> = {
  400: 'DESTINATION_FAILED',
  408: 'DESTINATION_UNAVAILABLE',
  422: 'DESTINATION_FAILED',
  425: 'DESTINATION_UNAVAILABLE',
  429: 'DESTINATION_UNAVAILABLE',
  507: 'DESTINATION_FULL',
}

/** Sends signed requests over one connection, one at a time. Follows no redirect. Errors leave it as SyncErrors. */
export class HttpClient {
  readonly #options: HttpClientOptions
  readonly #agent: Agent
  readonly #where: string
  readonly #signal: AbortSignal

  private constructor(options: HttpClientOptions, agent: Agent, signal: AbortSignal) {
    this.#options = options
    this.#agent = agent
    this.#signal = signal
    this.#where = `The receiver at ${options.url.origin}`
  }

  static async open(options: HttpClientOptions, signal: AbortSignal): Promise<HttpClient> {
    const { Agent } = await import('undici')
    // The deadline of the whole request ends it, so the client needs no timeouts of its own.
    const agent = new Agent({ connections: 1, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 })
    return new HttpClient(options, agent, signal)
  }

  async post(body: string): Promise<HttpAnswer> {
    const { url, secrets, headers, timeoutMs } = this.#options
    const sending = new LinkedAbortController(this.#signal)
    const timer = setTimeout(() => sending.abort(new Error(`no response within ${timeoutMs / 1_000} s`)), timeoutMs)
    try {
      const { request } = await import('undici')
      const response = await request(url, {
        dispatcher: this.#agent,
        method: 'POST',
        headers: {
          ...headers,
          'content-type': CONTENT_TYPE,
          'user-agent': 'tidemark',
          ...createSignatureHeaders(secrets, `batch_${randomUUID()}`, Date.now(), body),
        },
        body,
        signal: sending.signal,
      })
      return this.#toAnswer(response, await readText(response.body))
    } catch (error) {
      this.#signal.throwIfAborted()
      if (isSyncError(error)) throw error
      const reason: unknown = sending.signal.aborted ? sending.signal.reason : error
      throw new SyncError('DESTINATION_UNAVAILABLE', `${this.#where} did not respond (${describeFailure(reason)}).`, {
        cause: reason,
      })
    } finally {
      clearTimeout(timer)
      sending.unlink()
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy()
  }

  #toAnswer({ statusCode: status, headers }: Dispatcher.ResponseData, text: string): HttpAnswer {
    if (status === 413) return { kind: 'too-large' }
    if ((status >= 200 && status < 300) || status === 409)
      return { kind: status === 409 ? 'refused' : 'accepted', position: this.#toPosition(status, text) }
    const code = STATUS_CODES[status] ?? (status >= 500 ? 'DESTINATION_UNAVAILABLE' : 'DESTINATION_REFUSED')
    const hint = status >= 300 && status < 400 ? ' Redirects are not followed: use the URL of the receiver itself.' : ''
    const excerpt = toPrintable(maskSecrets(text))
    const wait = retryAfterMs(toHeaders(headers), Date.now())
    throw new SyncError(
      code,
      `${this.#where} responded with status ${status}${excerpt === '' ? '' : `: ${excerpt}`}.${hint}`,
      wait === undefined ? {} : { retryAfterMs: wait },
    )
  }

  /** A server that answers every request with 200 is not a receiver. */
  #toPosition(status: number, text: string): HttpPosition {
    try {
      return parseHttpPosition(text)
    } catch (cause) {
      throw new SyncError(
        'DESTINATION_FAILED',
        `${this.#where} responded with status ${status}, but not with its tokens. Check that the URL is that of the receiver.`,
        { cause },
      )
    }
  }
}

async function readText(body: Dispatcher.ResponseData['body']): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength
    if (bytes > ANSWER_BYTES_MAX) break
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function toHeaders(headers: Dispatcher.ResponseData['headers']): Headers {
  return new Headers(
    Object.entries(headers).flatMap(([name, value]) =>
      [value ?? []].flat().map((one): [string, string] => [name, one]),
    ),
  )
}

/** Codes and our own reasons only: other messages may contain addresses or bytes of the body. */
function describeFailure(error: unknown): string {
  const { code, message } = Object(error) as { code?: unknown; message?: unknown }
  return typeof code === 'string' ? code : String(message)
}
