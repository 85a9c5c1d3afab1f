import { isSyncError, SyncError, type ErrorCode, type JsonObject, type JsonValue, type SyncContext } from '../../contract/index.ts'
import { failover, pagedProvider, type Failover, type FetchRequest, type ProviderOperation, type ProviderPage } from '../../strategies/index.ts'
import { resolveSecret, type SecretSource } from '../kit/auth.ts'
import { createHttpClient, type HttpResponse, type HttpClient } from '../kit/http-client.ts'
import { isObject, type ResponseClassifier, type ResponseClass } from '../kit/classify-response.ts'
import { CallCounter, TIERS, type KrakenTier } from './call-counter.ts'
import { signRequest } from './sign-request.ts'

export interface KrakenOptions {
  /** The names of the secrets, or the secrets themselves. */
  readonly apiKey: SecretSource
  readonly apiSecret: SecretSource
  readonly baseUrl?: string
  /** The tier of the account, which decides how fast it may be asked. `starter` when absent: the slowest. */
  readonly tier?: KrakenTier
  /** An entry may be found this long after its time. */
  readonly lagMs?: number
  /** Every cycle reads so much again of what the one before has read. */
  readonly overlapMs?: number
}

export interface KrakenStream {
  readonly mode: 'incremental'
  readonly execute: Failover<KrakenEntry>
}

export interface KrakenEntry {
  readonly id: string
  /** Milliseconds. */
  readonly timeMs: number
  readonly entry: JsonObject
}

const STREAMS = {
  ledgers: { operation: 'ledger', path: '/0/private/Ledgers', member: 'ledger' },
  trades: { operation: 'trades', path: '/0/private/TradesHistory', member: 'trades' },
} as const

type StreamDefinition = (typeof STREAMS)[keyof typeof STREAMS]

/** The ledger and the trades of an account: `worker.sync('ledgers', { database, ...kraken({ apiKey: 'KRAKEN_KEY', apiSecret: 'KRAKEN_SECRET' }).ledgers })`. */
export function kraken(options: KrakenOptions): { readonly [Name in keyof typeof STREAMS]: KrakenStream } {
  const account = new KrakenAccount(options)
  const stream = (of: StreamDefinition): KrakenStream => ({
    mode: 'incremental',
    execute: failover<KrakenEntry>({
      operations: { [of.operation]: OPERATION },
      providers: [pagedProvider<KrakenEntry>({ name: 'kraken', supports: ['timestamp'], prefers: 'timestamp', fetchPage: (request, context) => account.readPage(of, request, context) })],
    }),
  })
  return { ledgers: stream(STREAMS.ledgers), trades: stream(STREAMS.trades) }
}

const OPERATION: ProviderOperation<KrakenEntry> = {
  id: ({ id }) => id,
  cursors: ({ timeMs: at }) => [{ type: 'timestamp', value: at }],
  // Entries are never changed, so no two tell different things of one.
  toChange: ({ id, timeMs: at, entry }) => ({ type: 'upsert', key: id, record: { id, ...entry }, cursor: new Date(at).toISOString(), upstreamUpdatedAt: new Date(at).toISOString() }),
}

/**
 * What is listed newest first and counted from the newest is read within bounds that stay: an offset counts the entries between
 * `start` and `end`, so a start that moved with the pages would pass over as many as it left behind.
 */
interface ListingPass {
  readonly startS: number | null
  readonly endS: number
  /** How many entries lie between; another number means that one came late, and has moved the others. */
  readonly count: number | null
  readonly number: number
}

const PASSES_MAX = 10

class KrakenAccount {
  readonly #client: HttpClient
  readonly #options: KrakenOptions
  /** One for both streams: the counter belongs to the key. */
  readonly #counter: CallCounter
  #nonce = 0

  constructor(options: KrakenOptions) {
    const { baseUrl = 'https://api.kraken.com', tier = 'starter' } = options
    if (!Object.hasOwn(TIERS, tier)) throw new SyncError('SYNC_INVALID', `kraken: there is no tier ${JSON.stringify(tier)}. The tiers are ${Object.keys(TIERS).join(', ')}.`)
    this.#options = options
    this.#counter = new CallCounter(tier)
    this.#client = createHttpClient({ baseUrl, classifyResponse: createResponseClassifier(this.#counter.drainMs) })
  }

  async readPage(stream: StreamDefinition, { cursor, own }: FetchRequest, context: SyncContext): Promise<ProviderPage<KrakenEntry>> {
    const { lagMs = 10_000, overlapMs = 60_000 } = this.#options
    const boundaryMs = cursor === undefined ? 0 : Number(cursor.value)
    const kept = own?.metadata?.isComplete === true ? null : restorePass(own?.metadata?.custom, context)
    const pass = kept ?? {
      startS: boundaryMs === 0 ? null : Math.max(0, Math.floor((boundaryMs - overlapMs) / 1_000) - 1),
      endS: Math.max(0, Math.floor((context.cycle.startedAt - lagMs) / 1_000)), count: null, number: 1,
    }
    const offset = kept === null ? 0 : restoreOffset(own?.metadata?.offset)
    const askedAt = context.clock.now()
    const answer = await this.#request(stream, { ofs: String(offset), end: String(pass.endS), ...(pass.startS !== null && { start: String(pass.startS) }) }, context)
    const { entries, count } = parseEntries(answer, stream)
    const stay = { through: { type: 'timestamp', value: boundaryMs }, end: false } as const

    const safeS = kept === null && answer.serverTime !== null ? Math.floor((answer.serverTime - Math.max(0, context.clock.now() - askedAt) - lagMs) / 1_000) : pass.endS
    // Our clock is ahead of Kraken's: begin again with an end that nothing new can come before.
    if (safeS < pass.endS) return { ...stay, items: [], metadata: { offset: 0 }, custom: serializePass({ ...pass, endS: Math.max(0, safeS) }, context) }
    if (pass.count !== null && count !== pass.count) {
      if (pass.number >= PASSES_MAX) throw new SyncError('SOURCE_INVALID', `Kraken's list was read ${PASSES_MAX} times, and each time had another length.`)
      return { ...stay, items: [], metadata: { offset: 0 }, custom: serializePass({ ...pass, count, number: pass.number + 1 }, context) }
    }
    if (entries.length > 0) return { ...stay, items: entries, metadata: { offset: offset + entries.length }, custom: serializePass({ ...pass, count }, context) }
    if (offset < count) throw new SyncError('SOURCE_INVALID', `Kraken sent an empty page, though ${count - offset} entries are still to come.`)
    // The end is a batch of its own: only now is everything up to it told. A list without entries proves nothing, so the
    // next cycle begins at the same boundary; asking for a longer time without entries is still one request.
    const throughMs = offset === 0 ? boundaryMs : Math.max(boundaryMs, pass.endS * 1_000)
    return { items: [], through: { type: 'timestamp', value: throughMs }, end: true, metadata: { offset: 0 } }
  }

  async #request({ path }: StreamDefinition, fields: Record<string, string>, context: SyncContext): Promise<HttpResponse> {
    const waitMs = this.#counter.reserveCall(context.clock.now())
    if (waitMs > 0) await context.clock.sleep(waitMs, context.signal)
    // Every nonce must be above the one before, also of calls within one millisecond.
    this.#nonce = Math.max(this.#nonce + 1, context.clock.now() * 1_000)
    const form = new URLSearchParams({ nonce: String(this.#nonce), ...fields })
    const headers = { 'api-key': resolveSecret(this.#options.apiKey, context).reveal(), 'api-sign': signRequest(path, form, resolveSecret(this.#options.apiSecret, context)) }
    return this.#client.post(path, form, context, { headers }).catch((error: unknown) => {
      if (isSyncError(error) && error.code === 'RATE_LIMITED') this.#counter.recordRefusal(context.clock.now())
      throw error
    })
  }
}

function parseEntries({ body }: HttpResponse, { member }: StreamDefinition): { entries: KrakenEntry[]; count: number } {
  const result = isObject(body) ? body.result : undefined
  const list = isObject(result) ? result[member] : undefined
  if (!isObject(result) || !isObject(list) || typeof result.count !== 'number') throw new SyncError('SOURCE_INVALID', 'Kraken answered with something that is no list.')
  const entries = Object.entries(list).map(([id, entry]) => {
    if (!isObject(entry) || typeof entry.time !== 'number' || id === '') throw new SyncError('SOURCE_INVALID', 'An entry of Kraken has no time.')
    return { id, timeMs: Math.floor(entry.time * 1_000), entry }
  })
  return { entries, count: result.count }
}

/** The bounds belong to one cycle. */
function serializePass(pass: ListingPass, { cycle }: SyncContext): JsonValue {
  return { ...pass, cycle: cycle.id }
}

function restorePass(custom: JsonValue | undefined, { cycle }: SyncContext): ListingPass | null {
  return isObject(custom) && custom.cycle === cycle.id && typeof custom.endS === 'number' ? (custom as unknown as ListingPass) : null
}

function restoreOffset(value: unknown): number {
  return Number.isSafeInteger(value) ? (value as number) : 0
}

/** Every answer has status 200; failures are texts in `error`: a severity, a category, and words. */
function createResponseClassifier(emptyMs: number): ResponseClassifier {
  return ({ body }) => {
    const errors = isObject(body) && Array.isArray(body.error) ? body.error.filter((error) => typeof error === 'string' && !error.startsWith('W')) : []
    if (errors.length === 0) return null
    const words = errors.join(' ')
    const [, code, reason] = ERROR_PATTERNS.find(([pattern]) => pattern.test(words)) ?? [null, 'SOURCE_UNAVAILABLE', 'a failure'] as const
    return { code, reason, ...(code === 'RATE_LIMITED' && parseWait(words, emptyMs)) }
  }
}

const ERROR_PATTERNS: ReadonlyArray<readonly [RegExp, ErrorCode, string]> = [
  [/Rate limit|Too many requests|Throttled|Temporary lockout/i, 'RATE_LIMITED', 'a rate limit'],
  [/Invalid (?:key|signature)|Permission denied/i, 'AUTH_REJECTED', 'a refusal of the key'],
  [/Invalid arguments|Unknown method/i, 'CONNECTOR_FAILED', 'a refusal of the question'],
]

/** Kraken locks a key out for a quarter of an hour. */
const LOCKOUT_MS = 15 * 60_000

/** Only a throttled request is told when to come back, in seconds of Unix time. */
function parseWait(words: string, emptyMs: number): Pick<ResponseClass, 'retryAfterMs' | 'retryAt'> {
  const throttledUntil = /Throttled:\s*(\d{9,11})\b/i.exec(words)
  if (throttledUntil !== null) return { retryAt: Number(throttledUntil[1]) * 1_000 }
  return { retryAfterMs: /lockout/i.test(words) ? LOCKOUT_MS : emptyMs }
}
