import { randomText } from '../kit/ids.ts'
import { jsonResponse } from '../kit/json-response.ts'
import type { Fields, SimulatorPorts } from '../kit/simulator.ts'
import type { RecordVersion } from '../kit/versioned-records.ts'
import { VendorSimulator, type ApiCall, type VendorOptions } from '../kit/vendor-simulator.ts'
import { CallCounter } from './call-counter.ts'
import { KrakenError } from './kraken-error.ts'
import { findAsset, renderAssetPairs, renderAssets, findMarket } from './markets.ts'
import { NonceWindow } from './nonces.ts'
import { krakenSignature } from './signature.ts'
import { required } from '../kit/required.ts'

/** Options of `KrakenSimulator`. */
export interface KrakenOptions extends Omit<VendorOptions, 'token'> {
  /** The API key and its secret in base64. */
  readonly credentials?: { readonly key: string; readonly secret: string }
  /** The permissions of the key. */
  readonly permissions?: ReadonlyArray<'ledgers' | 'trades'>
  /** How far below the highest a nonce may be, a setting of the key. */
  readonly nonceWindow?: number
  /** The tier whose call limits apply. Enforced only when given. */
  readonly tier?: keyof typeof TIERS
}

/** The default key and secret of `KrakenSimulator`. */
export const KRAKEN_CREDENTIALS = {
  key: 'simulated/key',
  secret: Buffer.from('the secret of the simulated account').toString('base64'),
}

const LEDGER = 'ledger'
const TRADE = 'trade'
const PUBLIC_TRADE = 'public-trade'
const PAGE_SIZE = 50
const PUBLIC_PAGE_SIZE = 1_000
/** Maximum of the counter, and its decay per second. */
const TIERS = { starter: [15, 0.33], intermediate: [20, 0.5], pro: [20, 1] } as const
const ID_ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
const LEDGER_TYPES = [
  'all',
  'trade',
  'deposit',
  'withdrawal',
  'transfer',
  'margin',
  'adjustment',
  'rollover',
  'credit',
  'settled',
  'staking',
  'dividend',
  'sale',
  'nft_rebate',
]
const TRADE_TYPES = ['all', 'any position', 'closed position', 'closing position', 'no position']

type Params = Readonly<Record<string, string>>

/**
 * One account, read with signed requests, newest first and fifty at a time. An offset counts from the newest within the
 * range of `start` and `end`: concurrent writes push everything further down. Entries of one trade share their
 * timestamp, and `start` is exclusive.
 */
export class KrakenSimulator extends VendorSimulator {
  readonly #credentials: { readonly key: string; readonly secret: string }
  readonly #permissions: ReadonlyArray<'ledgers' | 'trades'>
  readonly #nonces: NonceWindow
  readonly #counter: CallCounter | undefined
  #serial = 0

  constructor(ports: SimulatorPorts, options: KrakenOptions = {}) {
    super(ports, options)
    this.#credentials = options.credentials ?? KRAKEN_CREDENTIALS
    this.#permissions = options.permissions ?? ['ledgers', 'trades']
    this.#nonces = new NonceWindow(options.nonceWindow ?? 0)
    if (options.tier !== undefined) {
      const [most, perSecond] = TIERS[options.tier]
      this.#counter = new CallCounter(ports.clock, most, perSecond)
    }
  }

  /** `ledger`, `trade` or `public-trade`. `time`, in seconds, replaces the current time; `timeNs` for public trades. */
  override create(type: string, fields: Fields = {}): string {
    if (![LEDGER, TRADE, PUBLIC_TRADE].includes(type))
      throw new Error(`Only ${LEDGER}, ${TRADE} and ${PUBLIC_TRADE} are simulated, not ${type}.`)
    return super.create(type, { ...fields, serial: ++this.#serial })
  }

  /**
   * One fill as the account sees it: a trade, and a ledger entry for each of its two assets with the same timestamp.
   */
  addFill(
    fields: {
      readonly pair?: string
      readonly type?: 'buy' | 'sell'
      readonly price?: number
      readonly vol?: number
    } = {},
  ): { trade: string; ledgers: string[] } {
    const { pair = 'XXBTZUSD', type = 'buy', price = 100, vol = 1 } = fields
    const market = findMarket(pair)
    if (market === undefined) throw new Error(`${pair} is not a pair of the simulated exchange.`)
    const sign = type === 'buy' ? 1 : -1
    const trade = this.create(TRADE, {
      pair: market.id,
      type,
      price: price.toFixed(5),
      vol: vol.toFixed(8),
      cost: (price * vol).toFixed(5),
    })
    const amounts = [
      [market.base, sign * vol],
      [market.quote, -sign * price * vol],
    ] as const
    return {
      trade,
      ledgers: amounts.map(([asset, amount]) =>
        this.create(LEDGER, { type: 'trade', refid: trade, asset, amount: amount.toFixed(10) }),
      ),
    }
  }

  protected newId(type: string): string {
    const part = (length: number) => randomText(this.random, length, ID_ALPHABET)
    return `${type === LEDGER ? 'L' : 'T'}${part(5)}-${part(5)}-${part(6)}`
  }

  /** Includes the id, which a listing uses as the key instead. */
  protected render(version: RecordVersion): Fields {
    const { serial, time, timeNs: _timeNs, ...fields } = version.fields
    const common = { id: version.id, time: (time as number | undefined) ?? version.createdAtMs / 1_000 }
    if (version.type === LEDGER)
      return {
        ...common,
        refid: `T${version.id.slice(1)}`,
        type: 'deposit',
        subtype: '',
        aclass: 'currency',
        asset: 'ZUSD',
        amount: '0.0000',
        fee: '0.0000',
        balance: '0.0000',
        ...fields,
      }
    const trade = { pair: 'XXBTZUSD', type: 'buy', ordertype: 'limit', price: '0.00000', vol: '0.00000000' }
    if (version.type === PUBLIC_TRADE) return { ...common, ...trade, trade_id: serial, ...fields }
    return {
      ...common,
      ordertxid: `O${version.id.slice(1)}`,
      postxid: `TKH2SE-M7IF5-CFI7LT`,
      aclass: 'forex',
      ...trade,
      cost: '0.00000',
      fee: '0.00000',
      margin: '0.00000',
      leverage: '0',
      misc: '',
      trade_id: serial,
      maker: true,
      ...fields,
    }
  }

  protected respond(call: ApiCall): Response {
    try {
      const match = /^\/0\/(public|private)\/(\w+)$/.exec(call.url.pathname)
      if (match === null) throw new KrakenError('EGeneral:Unknown method')
      const result =
        match[1] === 'public'
          ? this.#public(required(match[2], 'match[2]'), Object.fromEntries(call.url.searchParams))
          : this.#private(required(match[2], 'match[2]'), call)
      return jsonResponse({ error: [], result })
    } catch (error) {
      if (error instanceof KrakenError) return errorResponse(error.code)
      throw error
    }
  }

  /** Two limiters: the call counter of the key, and one on concurrent requests, which returns when to retry. */
  protected rateLimited(retryAfter: string | undefined, secondary: boolean): Response {
    return errorResponse(
      secondary
        ? `EService:Throttled: ${retryAfter ?? Math.ceil(this.clock.now() / 1_000) + 5}`
        : 'EAPI:Rate limit exceeded',
    )
  }

  protected unauthorized(): Response {
    return errorResponse('EAPI:Invalid key')
  }

  protected serverError(status: number): Response {
    return errorResponse('EService:Unavailable', status)
  }

  #private(method: string, call: ApiCall): Fields {
    const { request, body, url } = call
    if (request.method !== 'POST') throw new KrakenError('EGeneral:Unknown method')
    const params = parseParams(body, request.headers.get('content-type') ?? '')
    if (request.headers.get('api-key') !== this.#credentials.key) throw new KrakenError('EAPI:Invalid key')
    const nonce = params['nonce'] ?? ''
    if (request.headers.get('api-sign') !== krakenSignature(url.pathname, nonce, body, this.#credentials.secret))
      throw new KrakenError('EAPI:Invalid signature')
    if (!/^\d+$/.test(nonce) || !this.#nonces.take(BigInt(nonce))) throw new KrakenError('EAPI:Invalid nonce')
    if (this.#counter?.count(2) === false) throw new KrakenError('EAPI:Rate limit exceeded')
    switch (method) {
      case 'Ledgers': {
        if (!this.#permissions.includes('ledgers')) throw new KrakenError('EGeneral:Permission denied')
        const type = requireOneOf(params, 'type', LEDGER_TYPES)
        const asked =
          params['asset'] === undefined || params['asset'] === 'all'
            ? undefined
            : params['asset'].split(',').map((name) => requireKnown('EQuery:Unknown asset', findAsset(name.trim())))
        return this.#page(
          LEDGER,
          params,
          call,
          'ledger',
          (row) =>
            (type === 'all' || row['type'] === type) && (asked === undefined || asked.includes(String(row['asset']))),
        )
      }
      case 'TradesHistory': {
        if (!this.#permissions.includes('trades')) throw new KrakenError('EGeneral:Permission denied')
        // No position is ever opened here: every trade belongs to the kinds `all` and `no position`.
        const type = requireOneOf(params, 'type', TRADE_TYPES)
        return this.#page(TRADE, params, call, 'trades', () => type === 'all' || type === 'no position')
      }
      default:
        throw new KrakenError('EGeneral:Unknown method')
    }
  }

  #page(
    type: string,
    params: Params,
    { endFlagOverride: lie, shortPage }: ApiCall,
    name: string,
    matches: (row: Fields) => boolean,
  ): Fields {
    const ofs = params['ofs'] ?? '0'
    if (!/^\d+$/.test(ofs)) throw new KrakenError('EGeneral:Invalid arguments:ofs')
    const start = this.#bound(type, params, 'start')
    const end = this.#bound(type, params, 'end')
    const rows = this.#newestFirst(type).filter(
      ({ row, place }) =>
        matches(row) && (start === undefined || isAfter(place, start)) && (end === undefined || !isAfter(place, end)),
    )
    const page = rows.slice(Number(ofs), Number(ofs) + (shortPage ? PAGE_SIZE / 2 : PAGE_SIZE))
    const seen = Number(ofs) + page.length
    const count = lie === undefined ? rows.length : lie === 'end' ? seen : Math.max(seen, rows.length) + PAGE_SIZE
    const shown = Object.fromEntries(page.map(({ row: { id, ...rest } }) => [String(id), rest]))
    return params['without_count'] === 'true' ? { [name]: shown } : { [name]: shown, count }
  }

  #newestFirst(type: string): Array<{ row: Fields; place: LedgerCursor }> {
    return this.records
      .indexed(type)
      .filter((version) => !version.deleted)
      .map((version) => ({ row: this.render(version), place: this.#cursorOf(version) }))
      .toSorted((a, b) => b.place.time - a.place.time || b.place.serial - a.place.serial)
  }

  /** A timestamp is after everything that happened at it; an id is at its own entry. */
  #bound(type: string, params: Params, name: string): LedgerCursor | undefined {
    const asked = params[name]
    if (asked === undefined || asked === '') return undefined
    if (/^\d+(\.\d+)?$/.test(asked)) return { time: Number(asked), serial: Infinity }
    const version = this.records.find(type, asked)
    if (version === undefined) throw new KrakenError(`EGeneral:Invalid arguments:${name}`)
    return this.#cursorOf(version)
  }

  #cursorOf(version: RecordVersion): LedgerCursor {
    return { time: this.render(version)['time'] as number, serial: version.fields['serial'] as number }
  }

  #public(method: string, params: Params): Fields {
    switch (method) {
      case 'Time':
        return { unixtime: Math.floor(this.clock.now() / 1_000), rfc1123: new Date(this.clock.now()).toUTCString() }
      case 'Assets':
        return renderAssets()
      case 'AssetPairs':
        return renderAssetPairs()
      case 'Trades':
        return this.#publicTrades(params)
      default:
        throw new KrakenError('EGeneral:Unknown method')
    }
  }

  /**
   * Oldest first after `since`; without it the newest, still oldest first. `last` is the `since` of the next request.
   */
  #publicTrades(params: Params): Fields {
    const { id: pair } = requireKnown('EQuery:Unknown asset pair', findMarket(params['pair'] ?? ''))
    const count = Number(params['count'] ?? PUBLIC_PAGE_SIZE)
    if (!Number.isInteger(count) || count < 1 || count > PUBLIC_PAGE_SIZE)
      throw new KrakenError('EGeneral:Invalid arguments:count')
    const { since } = params
    if (since !== undefined && !/^\d+(\.\d+)?$/.test(since)) throw new KrakenError('EGeneral:Invalid arguments:since')
    const sinceNs = since === undefined ? undefined : parseNanoseconds(since)
    const trades = this.records
      .indexed(PUBLIC_TRADE)
      .filter((version) => !version.deleted)
      .map((version) => ({ row: this.render(version), atNs: timestampNs(version) }))
      .filter(({ row, atNs }) => row['pair'] === pair && (sinceNs === undefined || atNs > sinceNs))
      .toSorted((a, b) =>
        a.atNs < b.atNs ? -1 : a.atNs > b.atNs ? 1 : Number(a.row['trade_id']) - Number(b.row['trade_id']),
      )
    const page = sinceNs === undefined ? trades.slice(-count) : trades.slice(0, count)
    const shown = page.map(({ row, atNs }) => [
      row['price'],
      row['vol'],
      Number(atNs) / 1e9,
      row['type'] === 'buy' ? 'b' : 's',
      row['ordertype'] === 'market' ? 'm' : 'l',
      '',
      row['trade_id'],
    ])
    return { [pair]: shown, last: String(page.at(-1)?.atNs ?? sinceNs ?? 0n) }
  }
}

interface LedgerCursor {
  readonly time: number
  readonly serial: number
}

function isAfter(place: LedgerCursor, bound: LedgerCursor): boolean {
  return place.time > bound.time || (place.time === bound.time && place.serial > bound.serial)
}

/** Timestamps of public trades are nearly unique: the digits below the millisecond encode the order of writing. */
function timestampNs(version: RecordVersion): bigint {
  const given = version.fields['timeNs']
  return given === undefined
    ? BigInt(version.createdAtMs) * 1_000_000n + BigInt((version.fields['serial'] as number) % 1_000_000)
    : BigInt(given as string | bigint)
}

/** Nanoseconds, but a value as short as a count of seconds is taken as seconds. */
function parseNanoseconds(since: string): bigint {
  return Number(since) < 1e11
    ? BigInt(Math.round(Number(since) * 1e6)) * 1_000n
    : BigInt(required(since.split('.')[0], 'the result of split[0]'))
}

/** A form, or JSON: both are documented. */
function parseParams(body: string, contentType: string): Params {
  if (!contentType.includes('json')) return Object.fromEntries(new URLSearchParams(body))
  try {
    return Object.fromEntries(
      Object.entries(JSON.parse(body) as Record<string, unknown>).map(([name, value]) => [name, String(value)]),
    )
  } catch {
    throw new KrakenError('EGeneral:Invalid arguments')
  }
}

function requireOneOf(params: Params, name: string, allowed: readonly string[]): string {
  const value = params[name] ?? 'all'
  if (!allowed.includes(value)) throw new KrakenError(`EGeneral:Invalid arguments:${name}`)
  return value
}

function requireKnown<T>(code: string, value: T | undefined): T {
  if (value === undefined) throw new KrakenError(code)
  return value
}

function errorResponse(code: string, status = 200): Response {
  return jsonResponse({ error: [code] }, status)
}
