import {
  SyncError,
  type Destination,
  type DestinationBatch,
  type DestinationChange,
  type DestinationPosition,
  type DestinationSchema,
  type DestinationSession,
  type TokenStep,
} from '../../contract/index.ts'
import { registerSecret } from '../../redaction/known-secrets.ts'
import { HttpClient, type HttpClientOptions } from './client.ts'
import { cutBatch, type BatchPart } from './split-batch.ts'
import { serializeChange, serializeMessage, type HttpMessage, type HttpPosition } from './wire.ts'

/** Options of `http`. */
export interface HttpDestinationOptions {
  /** The URL of your receiver: https, or http on this machine. */
  readonly url: string
  /** `whsec_` and 24 to 64 bytes in base64, as in Standard Webhooks. Two during a rotation, the new one first. */
  readonly secret: string | readonly string[]
  /** Sent with every request, such as `authorization`. */
  readonly headers?: Readonly<Record<string, string>>
  /** Permits http to other machines: rows are then sent unencrypted. Default: false. */
  readonly allowHttp?: boolean
  /** The size of a request body. Halved when the receiver answers 413. Default: 1,000,000. */
  readonly bodyBytesMax?: number
  /** The time for one request. Default: 60,000. */
  readonly timeoutMs?: number
}

const BODY_BYTES_MAX = 1_000_000
const TIMEOUT_MS = 60_000

/**
 * A URL of yours. Ordered batches are sent to it as signed requests, and the receiver stores each with its token in one
 * transaction. `createReceiver` of tidemark/destinations/http/receiver is the other side.
 *
 * @example
 * ```ts
 * import { Worker } from 'tidemark'
 * import { http } from 'tidemark/destinations/http'
 *
 * const worker = new Worker({ name: 'billing' })
 * worker.database('customers')
 * worker.destination('search', http({ url: 'https://search.example.com/tidemark', secret: process.env['SEARCH_SECRET']! }))
 * ```
 */
export function http({
  url: text,
  secret,
  headers = {},
  allowHttp = false,
  bodyBytesMax = BODY_BYTES_MAX,
  timeoutMs = TIMEOUT_MS,
}: HttpDestinationOptions): Destination {
  const url = checkUrl(text, allowHttp)
  const secrets = [secret].flat()
  for (const one of secrets) checkSecret(one)
  for (const [name, value] of Object.entries(headers)) checkHeader(name, value)
  for (const value of [...secrets, ...Object.values(headers)]) registerSecret(value)
  const limit = { bytesMax: bodyBytesMax }
  return {
    kind: 'http',
    // The path or the query may be the receiver's secret.
    location: `the receiver at ${url.origin}`,
    supports: {
      modes: ['mirror', 'append'],
      commit: 'acknowledgement',
      mergeByKey: true,
      addColumn: true,
      swap: true,
      types: ['bigint', 'boolean', 'double', 'json', 'numeric', 'text'],
    },
    async open({ tenant, signal }) {
      const options: HttpClientOptions = { url, secrets, headers, timeoutMs }
      return new HttpSession(await HttpClient.open(options, signal), tenant, limit)
    },
  }
}

class HttpSession implements DestinationSession {
  readonly #client: HttpClient
  readonly #tenant: string
  /** Shared by the sessions of a destination: a receiver that once refused a size refuses it again. */
  readonly #limit: { bytesMax: number }

  constructor(client: HttpClient, tenant: string, limit: { bytesMax: number }) {
    this.#client = client
    this.#tenant = tenant
    this.#limit = limit
  }

  async position(database: string): Promise<DestinationPosition> {
    const { live, loading } = await this.#read(database)
    return { live, loading }
  }

  async prepare({ database, mode }: DestinationSchema): Promise<void> {
    const stored = await this.#read(database)
    if (stored.live === null || stored.mode === mode) return
    throw new SyncError(
      'DESTINATION_INVALID',
      `The receiver has ${database} in mode ${stored.mode}, and not ${mode}. Use another URL, or remove the rows with \`tidemark destinations remove --drop\`.`,
    )
  }

  async apply(batch: DestinationBatch, step: TokenStep): Promise<'applied' | 'refused'> {
    // A change is serialized once, for its size and for the request.
    const lines = new Map<DestinationChange, string>()
    const serialize = (change: DestinationChange): string => {
      const line = lines.get(change) ?? serializeChange(change)
      lines.set(change, line)
      return line
    }
    const sizeOf = (change: DestinationChange): number => Buffer.byteLength(serialize(change)) + 1
    for (let rest: BatchPart | null = { batch, step }; rest !== null;) {
      const cut: ReturnType<typeof cutBatch> = cutBatch(rest, sizeOf, this.#limit.bytesMax)
      const outcome = await this.#send(cut.part, serialize)
      if (outcome === 'refused') return 'refused'
      // After a request that was too large, the same changes are cut into smaller parts.
      if (outcome === 'applied') rest = cut.rest
    }
    return 'applied'
  }

  async remove(database: string): Promise<void> {
    // With the tokens that it removes, so that a request which arrives late or again deletes nothing newer.
    const position = await this.position(database)
    const answer = await this.#post({ kind: 'remove', ...this.#copy(database), position })
    if (answer.kind !== 'accepted')
      throw new SyncError('DESTINATION_UNAVAILABLE', `${database}: the receiver got a batch in the meantime.`)
  }

  close(): Promise<void> {
    return this.#client.close()
  }

  async #send(
    { batch, step }: BatchPart,
    serialize: typeof serializeChange,
  ): Promise<'applied' | 'refused' | 'too-large'> {
    const { database } = batch.schema
    const body = serializeMessage({ kind: 'batch', ...this.#copy(database), batch, step }, serialize)
    const answer = await this.#client.post(body)
    if (answer.kind === 'refused') return 'refused'
    if (answer.kind === 'too-large') {
      if (batch.changes.length < 2)
        throw new SyncError(
          'DESTINATION_REFUSED',
          `${database}: the receiver responded with status 413 to ${batch.changes.length} change. Raise the limit of its request bodies.`,
        )
      this.#limit.bytesMax = Math.ceil(Math.min(this.#limit.bytesMax, Buffer.byteLength(body)) / 2)
      return 'too-large'
    }
    if (!isAcknowledged(answer.position, batch, step))
      throw new SyncError(
        'DESTINATION_FAILED',
        `${database}: the receiver accepted a batch up to sequence ${step.next.sequence}, but did not respond with its token.`,
      )
    return 'applied'
  }

  async #read(database: string): Promise<HttpPosition> {
    return (await this.#post({ kind: 'position', ...this.#copy(database) })).position
  }

  async #post(message: HttpMessage): Promise<{ kind: 'accepted' | 'refused'; position: HttpPosition }> {
    const answer = await this.#client.post(serializeMessage(message))
    if (answer.kind !== 'too-large') return answer
    throw new SyncError('DESTINATION_REFUSED', 'The receiver responded with status 413 to a request without changes.')
  }

  #copy(database: string): { tenant: string; database: string } {
    return { tenant: this.#tenant, database }
  }
}

/** The receiver shows the token that it stored. Without it, a batch is not applied, whatever the status. */
function isAcknowledged(
  position: DestinationPosition,
  { target, isLast }: DestinationBatch,
  { next }: TokenStep,
): boolean {
  const stored = isLast ? position.live : position[target]
  if (stored === null || (isLast && position.loading !== null)) return false
  return (
    stored.storeId === next.storeId &&
    stored.epoch === next.epoch &&
    stored.sequence === next.sequence &&
    stored.after === next.after
  )
}

function checkUrl(text: string, allowHttp: boolean): URL {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw invalidError('The URL of the destination is not an http or https URL.')
  if (url.username !== '' || url.password !== '')
    throw invalidError('The URL of the destination contains credentials. Set `headers: { authorization: … }` instead.')
  if (url.protocol === 'http:' && !allowHttp && !LOOPBACK_PATTERN.test(url.hostname))
    throw invalidError(
      'The URL of the destination is http, so rows would be sent unencrypted. Use https, or set `allowHttp: true`.',
    )
  return url
}

const LOOPBACK_PATTERN = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/

/** Other texts would decode to a short or empty key without an error. */
function checkSecret(secret: string): void {
  const key = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1]
  const bytes = key === undefined ? 0 : Buffer.from(key, 'base64').length
  if (bytes < 24 || bytes > 64)
    throw invalidError(
      'The secret of the destination is not `whsec_` with 24 to 64 bytes in base64. Create one: echo "whsec_$(openssl rand -base64 32)"',
    )
}

function checkHeader(name: string, value: string): void {
  const isReserved = /^(?:webhook-.*|content-.*|user-agent|host|connection|transfer-encoding)$/i.test(name)
  if (isReserved || !/^[!#$%&'*+.^_`|~\w-]+$/.test(name) || /[\r\n\0]/.test(value))
    throw invalidError(`The header ${JSON.stringify(name)} cannot be set, or has an invalid value.`)
}

function invalidError(message: string): SyncError {
  return new SyncError('DESTINATION_INVALID', message)
}
