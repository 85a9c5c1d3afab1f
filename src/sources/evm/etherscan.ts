import { SyncError, type JsonObject, type JsonValue, type SyncContext } from '../../contract/index.ts'
import { pagedProvider, type FetchRequest, type ProviderPage } from '../../strategies/index.ts'
import { apiKey as inQuery, type SecretSource } from '../kit/auth.ts'
import { createHttpClient, type HttpAnswer, type Query } from '../kit/http-client.ts'
import { isObject, type Judge } from '../kit/judge.ts'
import { moved, steady, through, withHashes, type ChainReader, type ReaderOptions } from './chain.ts'
import { headerOf } from './json-rpc.ts'
import { addressOf, amountOf, hashOf, hexOf, inOrder, keyOf, malformed, numberOf, topicOf, transferInLog, TRANSFER_TOPIC, type EvmOperation, type Transfer } from './transfer.ts'

export interface EtherscanOptions {
  readonly name: string
  readonly apiKey: SecretSource
  readonly baseUrl?: string
  readonly chainId?: number
  readonly confirmations?: number
  /** Rows of a page, at most 1,000. */
  readonly offset?: number
  /** Token transfers are read from its logs; some who answer as it does have none. */
  readonly operations?: readonly EvmOperation[]
}

/** An explorer's API: lists of an account by block, a page at a time. */
export function etherscan(options: EtherscanOptions): ChainReader {
  return (reader) => {
    const { name, confirmations = reader.confirmations, offset = 1_000, apiKey, baseUrl = 'https://api.etherscan.io/v2/api', chainId = reader.chainId ?? 1, operations } = options
    // All of it lies at one address, without a slash behind it.
    const [, base, place] = /^(.*)\/([^/]+)\/?$/.exec(baseUrl)!
    const client = createHttpClient({ baseUrl: base!, auth: inQuery({ query: 'apikey', key: apiKey }), judge })
    const explorer = new Explorer((query, context) => client.get(place!, { chainid: chainId, ...query }, context), { ...reader, name, confirmations }, offset)
    return {
      ...pagedProvider<Transfer>({ name, supports: ['blockNumber'], prefers: 'blockNumber', ...(operations !== undefined && { operations }), fetchPage: (request, context) => explorer.page(request, context) }),
      hashAt: (block, context) => explorer.hashAt(block, context),
    }
  }
}

class Explorer {
  readonly #ask: (query: Query, context: SyncContext) => Promise<HttpAnswer>
  readonly #options: ReaderOptions
  readonly #offset: number

  constructor(ask: (query: Query, context: SyncContext) => Promise<HttpAnswer>, options: ReaderOptions, offset: number) {
    this.#ask = ask
    this.#options = options
    this.#offset = offset
  }

  async page({ operation, cursor }: FetchRequest, context: SyncContext): Promise<ProviderPage<Transfer>> {
    const { startBlock, confirmations, depth } = this.#options
    const head = numberOf(await this.#proxy({ action: 'eth_blockNumber' }, context), 'block number') - confirmations
    // The window of another provider may reach before the beginning.
    const from = Math.max(startBlock, cursor === undefined ? 0 : Number(cursor.value))
    if (from > head) return { items: [], through: through(Math.max(0, head + 1)), end: true }
    const { value: rows, hashes } = await steady({ from, to: head, head, depth }, (block) => this.hashAt(block, context), () => this.#transfers(operation, from, head, context))
    const known = new Map(hashes)
    // The lists and the chain are not kept by one machine: the lists may still be of blocks that are gone.
    if (rows.blockHashes.some(([block, hash]) => known.has(block) && known.get(block) !== hash)) throw moved()
    return { items: inOrder(rows.items), through: through(rows.to + 1), end: rows.to === head, custom: withHashes(from, hashes.filter(([block]) => block <= rows.to)) }
  }

  async hashAt(block: number, context: SyncContext): Promise<string | null> {
    const found = await this.#proxy({ action: 'eth_getBlockByNumber', tag: hexOf(block), boolean: 'false' }, context)
    return found === null ? null : headerOf(found, block).hash
  }

  /** Token transfers are listed by sender and by recipient apart; what is told is what both have reached. */
  async #transfers(operation: string, from: number, head: number, context: SyncContext): Promise<Rows> {
    const { address } = this.#options
    const isOfAccount = ({ from: sender, to: recipient }: JsonObject): boolean => [sender, recipient].some((given) => typeof given === 'string' && given.toLowerCase() === address.toLowerCase())
    const transactions: Listed = {
      query: (start, end) => ({ module: 'account', action: 'txlist', address, startblock: start, endblock: end, sort: 'asc' }),
      isAsked: isOfAccount,
    }
    if (operation === 'native') return this.#rows(transactions, operation, from, head, context)
    const logs = (topic: 1 | 2): Listed => ({
      query: (start, end) => ({ module: 'logs', action: 'getLogs', fromBlock: start, toBlock: end, topic0: TRANSFER_TOPIC, [`topic0_${topic}_opr`]: 'and', [`topic${topic}`]: topicOf(address) }),
      isAsked: ({ topics }) => Array.isArray(topics) && typeof topics[topic] === 'string' && topics[topic].toLowerCase() === topicOf(address).toLowerCase(),
    })
    const sent = await this.#rows(logs(1), operation, from, head, context)
    const received = await this.#rows(logs(2), operation, from, sent.to, context)
    const both = [...sent.items, ...received.items].filter(({ block }) => block <= received.to)
    return { items: [...new Map(both.map((transfer) => [keyOf(transfer), transfer])).values()], to: received.to, blockHashes: [...sent.blockHashes, ...received.blockHashes] }
  }

  /**
   * Whole blocks. A page may end inside one, and may be shorter than asked without being the last; so the last block of a page is left
   * for the next question, which begins with it: the start moves and the page does not. Only a block that a page begins and ends in is
   * paged through, with its bounds held still. That nothing follows, an empty page says, asked twice.
   */
  async #rows(listed: Listed, operation: string, from: number, to: number, context: SyncContext): Promise<Rows> {
    let first = await this.#list(listed, [from, to], 1, context)
    if (first.length === 0) first = await this.#list(listed, [from, to], 1, context)
    if (first.length === 0) return rowsOf(first, operation, to)
    const last = blockOf(first.at(-1)!)
    if (last > from) return rowsOf(first.filter((row) => blockOf(row) < last), operation, last - 1)
    const all: JsonObject[] = []
    for (let page = 1; ; page++) {
      if (page * this.#offset > WINDOW_MAX) throw new SyncError('SOURCE_INVALID', `${this.#options.name}: one block holds more than the ${WINDOW_MAX} rows that can be paged through.`)
      const rows = await this.#list(listed, [from, from], page, context)
      if (rows.length === 0) return rowsOf(all, operation, from)
      const known = new Set(all.map(identityOf))
      if (rows.some((row) => known.has(identityOf(row)))) throw new SyncError('SOURCE_INVALID', `${this.#options.name} sent rows of an earlier page again.`)
      all.push(...rows)
    }
  }

  /** An answer carries nothing that names its request, so its rows have to fit what was asked. */
  async #list({ query, isAsked }: Listed, [from, to]: readonly [number, number], page: number, context: SyncContext): Promise<JsonObject[]> {
    const { body } = await this.#ask({ ...query(from, to), page, offset: this.#offset }, context)
    const rows = isObject(body) ? body.result : undefined
    if (!Array.isArray(rows) || !rows.every(isObject)) throw malformed('list')
    if (!rows.every((row) => isAsked(row) && blockOf(row) >= from && blockOf(row) <= to)) {
      throw new SyncError('SOURCE_INVALID', `${this.#options.name} sent rows that were not asked for: the answer to another request.`)
    }
    return rows
  }

  async #proxy(query: Query, context: SyncContext): Promise<JsonValue> {
    const { body } = await this.#ask({ module: 'proxy', ...query }, context)
    if (!isObject(body) || body.result === undefined) throw malformed('answer')
    return body.result
  }
}

/** One list of the account: how it is asked for, and which rows belong to it. */
interface Listed {
  readonly query: (from: number, to: number) => Query
  readonly isAsked: (row: JsonObject) => boolean
}

function identityOf({ hash, transactionHash, logIndex }: JsonObject): string {
  return JSON.stringify([hash ?? transactionHash ?? null, logIndex ?? null])
}

interface Rows {
  readonly items: Transfer[]
  readonly to: number
  readonly blockHashes: ReadonlyArray<readonly [block: number, hash: string]>
}

/** More than this cannot be reached by pages, however many are asked for. */
const WINDOW_MAX = 10_000

function rowsOf(rows: readonly JsonObject[], operation: string, to: number): Rows {
  const blockHashes = rows.flatMap((row) => (typeof row.blockHash === 'string' ? [[blockOf(row), hashOf(row.blockHash, 'block hash')] as const] : []))
  const items = rows.flatMap((row) => {
    if (operation === 'native') return nativeOf(row) ?? []
    const at = numberOf(row.timeStamp, 'timestamp') * 1_000
    return transferInLog(row, () => at) ?? []
  })
  return { items, to, blockHashes }
}

function blockOf(row: JsonObject): number {
  return numberOf(row.blockNumber, 'block number')
}

/** Null where nothing of value was moved. */
function nativeOf(row: JsonObject): Transfer | null {
  const value = amountOf(row.value, 'amount')
  if (value === '0' || row.isError === '1' || row.txreceipt_status === '0') return null
  return {
    kind: 'native', hash: hashOf(row.hash, 'transaction hash'), logIndex: null, block: blockOf(row), at: numberOf(row.timeStamp, 'timestamp') * 1_000,
    from: addressOf(row.from, 'sender'), to: typeof row.to !== 'string' || row.to === '' ? null : addressOf(row.to, 'recipient'), value, contract: null,
  }
}

/** Every answer has status 200; what it means stands in `status`, `message` and, for failures, in the text of `result`. */
const judge: Judge = ({ body }) => {
  if (!isObject(body)) return null
  if (body.status === '2') return { code: 'SOURCE_UNAVAILABLE', reason: 'a part of what it has, the rest not being processed yet' }
  if (body.status !== '0' || Array.isArray(body.result)) return null
  const words = typeof body.result === 'string' ? body.result : ''
  if (/rate limit|max calls/i.test(words)) return { code: 'RATE_LIMITED', reason: 'a rate limit' }
  if (/api key/i.test(words)) return { code: 'AUTH_REJECTED', reason: 'a refusal of the API key' }
  return { code: 'SOURCE_UNAVAILABLE', reason: 'a failure' }
}
