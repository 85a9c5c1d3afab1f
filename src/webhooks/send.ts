import type { LookupFunction } from 'node:net'
import type { Dispatcher } from 'undici'
import type { WebhookAllowance } from '../contract/index.ts'
import { createCheckedLookup } from '../platform/checked-lookup.ts'
import { isPublicAddress } from '../platform/public-address.ts'
import { systemResolveHost, type ResolveHost } from '../platform/resolve-host.ts'
import { maskSecrets } from '../redaction/known-secrets.ts'
import { LinkedAbortController } from '../values/linked-abort-controller.ts'
import { checkWebhookUrl } from './check-url.ts'

export interface WebhookRequest {
  readonly url: string
  readonly allow: readonly WebhookAllowance[]
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly signal?: AbortSignal
}

export interface DeliveryOutcome {
  /** gone: the receiver wants no further messages. */
  readonly kind: 'delivered' | 'failed' | 'gone'
  /** Null without a response. */
  readonly status: number | null
  /** Excerpt of the response, or the error; safe to display. */
  readonly response: string | null
  /** Delay requested by the receiver. */
  readonly retryAfterMs: number | null
}

export type WebhookSender = (request: WebhookRequest) => Promise<DeliveryOutcome>

export interface SenderOptions {
  readonly deadlineMs?: number
  readonly resolve?: ResolveHost
  readonly now?: () => number
  /** Trusted instead of Node's certificate authorities. */
  readonly ca?: string
}

const DEADLINE_MS = 20_000
const ANSWER_BYTES_MAX = 65_536
const EXCERPT_MAX = 256

/** Sends one message and returns the outcome; never throws. Does not follow redirects or use a proxy. */
export function createSender({
  deadlineMs = DEADLINE_MS,
  resolve = systemResolveHost,
  now = () => Date.now(),
  ca,
}: SenderOptions = {}): WebhookSender & { close(): Promise<void> } {
  const agents = new Map<boolean, Promise<Dispatcher>>()
  const agentFor = (allowPrivate: boolean): Promise<Dispatcher> => {
    let agent = agents.get(allowPrivate)
    if (agent === undefined)
      agents.set(
        allowPrivate,
        (agent = createAgent(
          createCheckedLookup(
            resolve,
            (address) => allowPrivate || isPublicAddress(address),
            () => new AddressRefusedError(),
          ),
          deadlineMs,
          ca,
        )),
      )
    return agent
  }
  const send: WebhookSender = async ({ url, allow, headers, body, signal }) => {
    const sending = new LinkedAbortController(signal)
    const timeout = new Error(`no response within ${deadlineMs / 1_000} s`)
    const timer = setTimeout(() => sending.abort(timeout), deadlineMs)
    try {
      // Also checked at registration, but allowances may have changed since, and literal addresses are not resolved.
      const checked = checkWebhookUrl(url, allow)
      const { request } = await import('undici')
      const response = await request(checked, {
        dispatcher: await agentFor(allow.includes('private')),
        method: 'POST',
        headers: { 'content-type': 'application/json', 'user-agent': 'tidemark', ...headers },
        body,
        signal: sending.signal,
      })
      return classifyResponse(response, await readExcerpt(response.body, checked), now())
    } catch (error) {
      return {
        kind: 'failed',
        status: null,
        response: sending.signal.reason === timeout ? timeout.message : describeFailure(error),
        retryAfterMs: null,
      }
    } finally {
      clearTimeout(timer)
      sending.unlink()
    }
  }
  return Object.assign(send, {
    async close() {
      for (const agent of agents.values()) await (await agent).destroy()
    },
  })
}

async function createAgent(lookup: LookupFunction, deadlineMs: number, ca: string | undefined): Promise<Dispatcher> {
  const { Agent } = await import('undici')
  // The deadline of the whole request aborts it; timeouts of the client with the same length would race with it for the reported
  // reason. The connect timeout only ends a connection attempt that no request waits for any more.
  const timeouts = { headersTimeout: 0, bodyTimeout: 0 }
  // `connections` keeps one receiver from taking all of them.
  return new Agent({
    connect: { lookup, timeout: deadlineMs + 5_000, ...(ca !== undefined && { ca }) },
    ...timeouts,
    connections: 32,
    pipelining: 1,
  })
}

class AddressRefusedError extends Error {
  override readonly message = 'the host resolves to an address that is not public'
  readonly code = 'WEBHOOK_URL_REFUSED'
}

function classifyResponse(
  { statusCode: status, headers }: Dispatcher.ResponseData,
  response: string | null,
  now: number,
): DeliveryOutcome {
  const outcome = { status, response, retryAfterMs: parseRetryAfter(headers['retry-after'], now) }
  if (status >= 200 && status < 300) return { kind: 'delivered', ...outcome, retryAfterMs: null }
  return { kind: status === 410 ? 'gone' : 'failed', ...outcome }
}

/** The status decides; errors while reading the rest are ignored. */
async function readExcerpt(body: Dispatcher.ResponseData['body'], url: URL): Promise<string | null> {
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      if (bytes < EXCERPT_MAX * 4) chunks.push(chunk)
      bytes += chunk.byteLength
      if (bytes > ANSWER_BYTES_MAX) break
    }
  } catch {
    // The body ended early or was too slow.
  }
  body.on('error', () => {}).destroy()
  return chunks.length === 0
    ? null
    : toPrintable(
        maskSecrets(
          redactQuery(
            Buffer.concat(chunks)
              .subarray(0, EXCERPT_MAX * 4)
              .toString('utf8'),
            url,
          ),
        ),
      )
}

/** The query often contains a token, and a receiver may echo the request. */
function redactQuery(text: string, { search, searchParams }: URL): string {
  const rawValues = search
    .slice(1)
    .split('&')
    .map((part) => part.slice(part.indexOf('=') + 1))
  const parts = [search, ...rawValues, ...searchParams.values()].filter((part) => part.length > 3)
  return parts.reduce((rest, part) => rest.replaceAll(part, '…'), text)
}

/**
 * Keeps letters, digits, punctuation and symbols; drops control characters that a terminal or a page would interpret.
 */
export function toPrintable(text: string): string {
  return text
    .replaceAll(/[^\p{L}\p{N}\p{P}\p{S}]+/gu, ' ')
    .trim()
    .slice(0, EXCERPT_MAX)
}

function describeFailure(error: unknown): string {
  const { code, message } = Object(error) as { code?: unknown; message?: unknown }
  if (code === 'WEBHOOK_URL_REFUSED') return String(message)
  // Only network error codes: messages contain internal addresses.
  return typeof code === 'string' ? `the connection failed (${toPrintable(code)})` : 'the connection failed'
}

/** Seconds or an HTTP date. */
function parseRetryAfter(header: string | string[] | undefined, now: number): number | null {
  const text = [header].flat()[0]
  if (text === undefined) return null
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - now
  return Number.isFinite(ms) ? Math.max(0, ms) : null
}
