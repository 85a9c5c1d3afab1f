import type { IncomingMessage, ServerResponse } from 'node:http'
import { isSyncError, type DestinationBatch, type TokenStep } from '../../contract/index.ts'
import { verifyStandardWebhook } from '../../webhooks/verify/standard.ts'
import { WebhookRefused } from '../../webhooks/verify/verify.ts'
import { isNextStep } from '../kit/is-next-step.ts'
import { tableNameOf } from '../kit/table-names.ts'
import { parseHttpPosition, parseMessage, serializePosition, type HttpMessage, type HttpPosition } from './wire.ts'

/** The storage of a receiver. `Transaction` is a transaction of your database. */
export interface ReceiverOptions<Transaction> {
  /** The secret of the destination. Several during a rotation. */
  readonly secret: string | readonly string[]
  /**
   * Runs the work in one transaction, and commits it. If several processes receive, the transaction must also keep them
   * from running at once: `begin immediate` in SQLite, an advisory lock in PostgreSQL.
   */
  transaction<Result>(work: (transaction: Transaction) => Promise<Result>): Promise<Result>
  /** The text that `writeTokens` stored under this name; null if there is none. */
  readTokens(transaction: Transaction, name: string): string | null | Promise<string | null>
  /** Stores the text in the transaction of the rows. Null deletes it. */
  writeTokens(transaction: Transaction, name: string, tokens: string | null): void | Promise<void>
  /** Writes the changes of a batch. It is called once for each batch, in order. */
  apply(transaction: Transaction, batch: ReceivedBatch): void | Promise<void>
  /** Deletes the rows of a copy, the live ones and those of an unfinished load. */
  remove(transaction: Transaction, name: string): void | Promise<void>
  /**
   * Called with an error of these functions. The response is 500, or the `status` of the error, such as 507 for a full
   * disk; the batch is sent again.
   */
  onError?(error: unknown): void
  /** Larger request bodies are answered with 413, and sent again in smaller parts. Default: 16,000,000. */
  readonly bodyBytesMax?: number
  readonly now?: () => number
}

/** A batch whose signature is valid and that follows the stored token. */
export interface ReceivedBatch extends DestinationBatch {
  readonly tenant: string
  /** The name of the copy: the database, after the name of a tenant other than `default`. Letters, digits, `_`, `-`, `.` */
  readonly name: string
  readonly step: TokenStep
}

const BODY_BYTES_MAX = 16_000_000

/**
 * The other side of the destination `http`: verifies, checks the order, and calls `apply` in a transaction that also
 * stores the token. A batch that was already applied, or is not the next one, is answered with 409 and changes nothing.
 *
 * @example
 * ```ts
 * import { createReceiver, type ReceiverOptions } from 'tidemark/destinations/http/receiver'
 *
 * declare const storage: Omit<ReceiverOptions<object>, 'secret'>
 *
 * export const POST = createReceiver({ secret: process.env['SEARCH_SECRET']!, ...storage })
 * ```
 */
export function createReceiver<Transaction>(
  options: ReceiverOptions<Transaction>,
): (request: Request) => Promise<Response> {
  const { bodyBytesMax = BODY_BYTES_MAX, now = () => Date.now() } = options
  const secrets = [options.secret].flat()
  const queue = createQueue()
  return async (request) => {
    if (request.method !== 'POST') return respond(405)
    const rawBody = await readBytes(request, bodyBytesMax)
    if (rawBody === null) return respond(413)
    let message: HttpMessage
    try {
      verifyStandardWebhook({ headers: Object.fromEntries(request.headers), rawBody }, { secrets, now: now() })
      message = parseMessage(rawBody.toString('utf8'))
    } catch (error) {
      if (error instanceof WebhookRefused) return respond(401)
      if (error instanceof SyntaxError || isSyncError(error)) return respond(400)
      throw error
    }
    try {
      return await queue(() => receive(options, message))
    } catch (error) {
      options.onError?.(error)
      return respond(readStatus(error))
    }
  }
}

/** One at a time: a transaction of a single connection cannot be shared. */
function createQueue(): <Result>(work: () => Promise<Result>) => Promise<Result> {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const result = last.then(work)
    last = result.catch(() => {})
    return result
  }
}

function receive<Transaction>(options: ReceiverOptions<Transaction>, message: HttpMessage): Promise<Response> {
  const name = tableNameOf(message.tenant, message.database)
  return options.transaction(async (transaction) => {
    const tokens = await options.readTokens(transaction, name)
    const stored: HttpPosition = tokens === null ? { mode: null, live: null, loading: null } : parseHttpPosition(tokens)
    if (message.kind === 'position') return respond(200, stored)
    if (message.kind === 'remove') {
      if (serializePosition({ ...stored, ...message.position }) !== serializePosition(stored))
        return respond(409, stored)
      await options.remove(transaction, name)
      await options.writeTokens(transaction, name, null)
      return respond(200, { mode: null, live: null, loading: null })
    }
    const { batch, step, tenant } = message
    if (!isNextStep(stored, batch, step)) return respond(409, stored)
    await options.apply(transaction, { ...batch, tenant, name, step })
    const applied: HttpPosition = {
      mode: batch.schema.mode,
      ...(batch.isLast
        ? { live: step.next, loading: null }
        : { live: stored.live, loading: stored.loading, [batch.target]: step.next }),
    }
    await options.writeTokens(transaction, name, serializePosition(applied))
    return respond(200, applied)
  })
}

/** A receiver for the HTTP server of Node.js: `createServer(toNodeListener(receiver)).listen(8080)`. */
export function toNodeListener(
  receiver: (request: Request) => Promise<Response>,
): (request: IncomingMessage, response: ServerResponse) => void {
  return (incoming, outgoing) => {
    const headers = new Headers()
    for (const [name, value] of Object.entries(incoming.headers))
      for (const one of [value ?? []].flat()) headers.append(name, one)
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        incoming.on('data', (chunk: Buffer) => controller.enqueue(chunk))
        incoming.on('end', () => controller.close())
        incoming.on('error', (error) => controller.error(error))
      },
    })
    const method = incoming.method ?? 'GET'
    const isBodiless = method === 'GET' || method === 'HEAD'
    const request = new Request(new URL(incoming.url ?? '/', 'http://receiver'), {
      method,
      headers,
      ...(!isBodiless && { body, duplex: 'half' }),
    })
    receiver(request).then(
      async (response) => {
        outgoing.writeHead(response.status, Object.fromEntries(response.headers))
        outgoing.end(await response.text())
      },
      () => outgoing.destroy(),
    )
  }
}

/** Null if the body is too large. */
async function readBytes(request: Request, bytesMax: number): Promise<Buffer | null> {
  if (request.body === null) return Buffer.alloc(0)
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of request.body as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength
    // The rest is read all the same: a client that still sends would not see the response.
    if (bytes <= bytesMax) chunks.push(chunk)
  }
  return bytes > bytesMax ? null : Buffer.concat(chunks)
}

function readStatus(error: unknown): number {
  const { status } = Object(error) as { status?: unknown }
  return Number.isInteger(status) && Number(status) >= 400 && Number(status) <= 599 ? Number(status) : 500
}

/** Without a reason: it would help an attacker. */
function respond(status: number, position?: HttpPosition): Response {
  return position === undefined
    ? new Response(null, { status })
    : new Response(serializePosition(position), { status, headers: { 'content-type': 'application/json' } })
}
