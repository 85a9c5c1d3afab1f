import {
  isSyncError,
  SyncError,
  type ErrorCode,
  type JsonObject,
  type JsonValue,
  type SyncContext,
  type Execute,
  type TimeRange,
} from '../../contract/index.ts'
import {
  failover,
  pagedProvider,
  type Failover,
  type FetchRequest,
  type ProviderOperation,
  type ProviderPage,
} from '../../strategies/index.ts'
import { resolveSecret, type SecretSource } from '../kit/auth.ts'
import { createHttpClient, type HttpResponse, type HttpClient } from '../kit/http-client.ts'
import { isObject, type ResponseClassifier, type ResponseClass } from '../kit/classify-response.ts'
import { instantToMs } from '../../values/instant.ts'
import { asIncremental } from '../../strategies/kit/as-incremental.ts'
import { limitRange, parseSince } from '../kit/since.ts'
import { CallCounter, TIERS, type KrakenTier } from './call-counter.ts'
import { signRequest } from './sign-request.ts'

/** Options of `kraken`. */
export interface KrakenOptions {
  /** The names of the secrets, or the secrets themselves. */
  readonly apiKey: SecretSource
  readonly apiSecret: SecretSource
  readonly baseUrl?: string
  /** The tier of the account, which determines its rate limit. The default is `starter`, the slowest. */
  readonly tier?: KrakenTier
  /** The start date: entries from before it are not read. */
  readonly since?: string
  /** The visibility delay of an entry. */
  readonly lagMs?: number
  /** The time span that every cycle re-reads. */
  readonly overlapMs?: number
}

/** One kind of entry of a Kraken account. Pass it to `worker.sync`. */
export interface KrakenStream {
  readonly mode: 'incremental'
  readonly execute: Failover<KrakenEntry> & Pick<Execute, 'range'>
}

/** An entry of a Kraken ledger or trade history. */
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

/** Reads the ledger and the trades of an account: `worker.sync('ledgers', { database, ...kraken({ apiKey: 'KRAKEN_KEY', apiSecret: 'KRAKEN_SECRET' }).ledgers })`. */
export function kraken(options: KrakenOptions): { readonly [Name in keyof typeof STREAMS]: KrakenStream } {
  const account = new KrakenAccount(options)
  const since = parseSince(options.since)
  const read = (definition: StreamDefinition, range: TimeRange): Failover<KrakenEntry> =>
    failover<KrakenEntry>({
      operations: { [definition.operation]: OPERATION },
      providers: [
        pagedProvider<KrakenEntry>({
          name: 'kraken',
          supports: ['timestamp'],
          prefers: 'timestamp',
          fetchPage: (request, context) => account.readPage(definition, toTimes(range), request, context),
        }),
      ],
    })
  const stream = (definition: StreamDefinition): KrakenStream => ({
    mode: 'incremental',
    execute: Object.assign(read(definition, since === undefined ? {} : { from: since }), {
      range: (range: TimeRange) => asIncremental(read(definition, limitRange(range, since))),
    }),
  })
  return { ledgers: stream(STREAMS.ledgers), trades: stream(STREAMS.trades) }
}

const OPERATION: ProviderOperation<KrakenEntry> = {
  id: ({ id }) => id,
  cursors: ({ timeMs: at }) => [{ type: 'timestamp', value: at }],
  // Entries never change, so two versions of one cannot conflict.
  toChange: ({ id, timeMs: at, entry }) => ({
    type: 'upsert',
    key: id,
    record: { id, ...entry },
    cursor: new Date(at).toISOString(),
    upstreamUpdatedAt: new Date(at).toISOString(),
  }),
}

/**
 * The bounds of one listing, which stay fixed while the offset advances. The offset counts entries between `start` and `end`, newest
 * first, so a `start` that moved with the pages would skip entries.
 */
interface ListingPass {
  readonly startS: number | null
  readonly endS: number
  /** The number of entries between the bounds. A different number means that a late entry shifted the others. */
  readonly count: number | null
  readonly number: number
}

const PASSES_MAX = 10

/** The times of the entries to read, in milliseconds. */
interface EntryTimes {
  readonly fromMs: number
  readonly toMs: number
}

function toTimes({ from, to }: TimeRange): EntryTimes {
  return { fromMs: from === undefined ? 0 : instantToMs(from), toMs: to === undefined ? Infinity : instantToMs(to) }
}

class KrakenAccount {
  readonly #client: HttpClient
  readonly #options: KrakenOptions
  /** Shared by both streams, because the counter belongs to the API key. */
  readonly #counter: CallCounter
  #nonce = 0

  constructor(options: KrakenOptions) {
    const { baseUrl = 'https://api.kraken.com', tier = 'starter' } = options
    if (!Object.hasOwn(TIERS, tier))
      throw new SyncError(
        'SYNC_INVALID',
        `kraken: unknown tier ${JSON.stringify(tier)}. The tiers are ${Object.keys(TIERS).join(', ')}.`,
      )
    this.#options = options
    this.#counter = new CallCounter(tier)
    this.#client = createHttpClient({ baseUrl, classifyResponse: createResponseClassifier(this.#counter.drainMs) })
  }

  async readPage(
    stream: StreamDefinition,
    { fromMs: sinceMs, toMs }: EntryTimes,
    { cursor, own }: FetchRequest,
    context: SyncContext,
  ): Promise<ProviderPage<KrakenEntry>> {
    const { lagMs = 10_000, overlapMs = 60_000 } = this.#options
    const boundaryMs = cursor === undefined ? 0 : Number(cursor.value)
    // The API returns entries after `start`, in whole seconds.
    const startMs = Math.max(boundaryMs - overlapMs, sinceMs)
    const kept = own?.metadata?.isComplete === true ? null : restorePass(own?.metadata?.custom, context)
    const pass = kept ?? {
      startS: boundaryMs === 0 && sinceMs === 0 ? null : Math.max(0, Math.floor(startMs / 1_000) - 1),
      endS: Math.max(0, Math.min(Math.floor((context.cycle.startedAt - lagMs) / 1_000), Math.ceil(toMs / 1_000))),
      count: null,
      number: 1,
    }
    const offset = kept === null ? 0 : restoreOffset(own?.metadata?.offset)
    const requestedAt = context.clock.now()
    const response = await this.#request(
      stream,
      { ofs: String(offset), end: String(pass.endS), ...(pass.startS !== null && { start: String(pass.startS) }) },
      context,
    )
    const { entries, count } = parseEntries(response, stream)
    const stay = { through: { type: 'timestamp', value: boundaryMs }, end: false } as const

    const safeS =
      kept === null && response.serverTime !== null
        ? Math.floor((response.serverTime - Math.max(0, context.clock.now() - requestedAt) - lagMs) / 1_000)
        : pass.endS
    // The local clock is ahead of Kraken's: restart with an end before which no new entry can appear.
    if (safeS < pass.endS)
      return {
        ...stay,
        items: [],
        metadata: { offset: 0 },
        custom: serializePass({ ...pass, endS: Math.max(0, safeS) }, context),
      }
    if (pass.count !== null && count !== pass.count) {
      if (pass.number >= PASSES_MAX)
        throw new SyncError('SOURCE_INVALID', `The Kraken list changed its length in each of ${PASSES_MAX} passes.`)
      return {
        ...stay,
        items: [],
        metadata: { offset: 0 },
        custom: serializePass({ ...pass, count, number: pass.number + 1 }, context),
      }
    }
    if (entries.length > 0)
      return {
        ...stay,
        items: entries.filter(({ timeMs }) => timeMs >= sinceMs && timeMs < toMs),
        metadata: { offset: offset + entries.length },
        custom: serializePass({ ...pass, count }, context),
      }
    if (offset < count)
      throw new SyncError('SOURCE_INVALID', `Kraken returned an empty page, although ${count - offset} entries remain.`)
    // The end is a separate batch: only now is everything before it complete. An empty list proves nothing, so the next cycle
    // starts at the same boundary, which is still one request.
    const throughMs = offset === 0 ? boundaryMs : Math.max(boundaryMs, pass.endS * 1_000)
    return { items: [], through: { type: 'timestamp', value: throughMs }, end: true, metadata: { offset: 0 } }
  }

  async #request(
    { path }: StreamDefinition,
    fields: Record<string, string>,
    context: SyncContext,
  ): Promise<HttpResponse> {
    const waitMs = this.#counter.reserveCall(context.clock.now())
    if (waitMs > 0) await context.clock.sleep(waitMs, context.signal)
    // Nonces must increase, also between calls within one millisecond.
    this.#nonce = Math.max(this.#nonce + 1, context.clock.now() * 1_000)
    const form = new URLSearchParams({ nonce: String(this.#nonce), ...fields })
    const headers = {
      'api-key': resolveSecret(this.#options.apiKey, context).reveal(),
      'api-sign': signRequest(path, form, resolveSecret(this.#options.apiSecret, context)),
    }
    return this.#client.post(path, form, context, { headers }).catch((error: unknown) => {
      if (isSyncError(error) && error.code === 'RATE_LIMITED') this.#counter.recordRefusal(context.clock.now())
      throw error
    })
  }
}

function parseEntries({ body }: HttpResponse, { member }: StreamDefinition): { entries: KrakenEntry[]; count: number } {
  const result = isObject(body) ? body.result : undefined
  const list = isObject(result) ? result[member] : undefined
  if (!isObject(result) || !isObject(list) || typeof result.count !== 'number')
    throw new SyncError('SOURCE_INVALID', 'Kraken returned a response that is not a list.')
  const entries = Object.entries(list).map(([id, entry]) => {
    if (!isObject(entry) || typeof entry.time !== 'number' || id === '')
      throw new SyncError('SOURCE_INVALID', 'A Kraken entry has no id or no time.')
    return { id, timeMs: Math.floor(entry.time * 1_000), entry }
  })
  return { entries, count: result.count }
}

/** The bounds are valid for one cycle only. */
function serializePass(pass: ListingPass, { cycle }: SyncContext): JsonValue {
  return { ...pass, cycle: cycle.id }
}

function restorePass(custom: JsonValue | undefined, { cycle }: SyncContext): ListingPass | null {
  if (!isObject(custom) || custom.cycle !== cycle.id) return null
  const { startS = null, endS, count = null, number } = custom
  if (typeof endS !== 'number' || typeof number !== 'number') return null
  return {
    startS: typeof startS === 'number' ? startS : null,
    endS,
    count: typeof count === 'number' ? count : null,
    number,
  }
}

function restoreOffset(value: unknown): number {
  return Number.isSafeInteger(value) ? (value as number) : 0
}

/** Every response has status 200. Failures are strings in `error`: a severity, a category and a message. */
function createResponseClassifier(drainMs: number): ResponseClassifier {
  return ({ body }) => {
    const errors =
      isObject(body) && Array.isArray(body.error)
        ? body.error.filter((error) => typeof error === 'string' && !error.startsWith('W'))
        : []
    if (errors.length === 0) return null
    const message = errors.join(' ')
    const [, code, reason] =
      ERROR_PATTERNS.find(([pattern]) => pattern.test(message)) ?? ([null, 'SOURCE_UNAVAILABLE', 'a failure'] as const)
    return { code, reason, ...(code === 'RATE_LIMITED' && parseWait(message, drainMs)) }
  }
}

const ERROR_PATTERNS: ReadonlyArray<readonly [RegExp, ErrorCode, string]> = [
  [/Rate limit|Too many requests|Throttled|Temporary lockout/i, 'RATE_LIMITED', 'a rate limit'],
  [/Invalid (?:key|signature)|Permission denied/i, 'AUTH_REJECTED', 'a rejected API key'],
  [/Invalid arguments|Unknown method/i, 'CONNECTOR_FAILED', 'a rejected request'],
]

/** Kraken locks a key for 15 minutes. */
const LOCKOUT_MS = 15 * 60_000

/** Only the error of a throttled request contains the retry time, as a Unix time in seconds. */
function parseWait(message: string, drainMs: number): Pick<ResponseClass, 'retryAfterMs' | 'retryAt'> {
  const throttledUntil = /Throttled:\s*(\d{9,11})\b/i.exec(message)
  if (throttledUntil !== null) return { retryAt: Number(throttledUntil[1]) * 1_000 }
  return { retryAfterMs: /lockout/i.test(message) ? LOCKOUT_MS : drainMs }
}
