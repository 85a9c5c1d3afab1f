import { SyncError, type JsonObject, type JsonValue, type SyncContext } from '../../contract/index.ts'
import { pagedProvider, type FetchRequest, type ProviderPage } from '../../strategies/index.ts'
import { apiKey as inQuery, type SecretSource } from '../kit/auth.ts'
import { createHttpClient, type HttpResponse, type Query } from '../kit/http-client.ts'
import { isObject, type ResponseClassifier } from '../kit/classify-response.ts'
import {
  createReorgError,
  readConsistently,
  toBlockCursor,
  serializeHashes,
  type ChainProviderFactory,
  type ChainProviderOptions,
} from './chain-provider.ts'
import { limitToTimes } from './block-times.ts'
import { parseBlockHeader, type BlockHeader } from './json-rpc.ts'
import {
  parseAddress,
  parseAmount,
  parseHash,
  toHex,
  sortTransfers,
  getTransferKey,
  createMalformedError,
  parseNumber,
  toTopic,
  parseTransferLog,
  TRANSFER_TOPIC,
  type EvmOperation,
  type Transfer,
} from './transfer.ts'

/** Options of a provider with the Etherscan API. */
export interface EtherscanOptions {
  readonly name: string
  readonly apiKey: SecretSource
  readonly baseUrl?: string
  readonly chainId?: number
  readonly confirmations?: number
  /** Rows per page, at most 1,000. */
  readonly offset?: number
  /** The supported operations. Some compatible explorers have no logs, and so no token transfers. */
  readonly operations?: readonly EvmOperation[]
}

/** The API of an explorer: lists of an account by block, in pages. */
export function etherscan(options: EtherscanOptions): ChainProviderFactory {
  return (reader) => {
    const {
      name,
      confirmations: own = reader.confirmations,
      offset = 1_000,
      apiKey,
      baseUrl = 'https://api.etherscan.io/v2/api',
      chainId = reader.chainId ?? 1,
      operations,
    } = options
    const confirmations = Math.max(own, reader.confirmationsMin)
    // The API has a single URL without a trailing slash.
    const [, base = '', endpoint = ''] = /^(.*)\/([^/]+)\/?$/.exec(baseUrl) ?? []
    const client = createHttpClient({
      baseUrl: base,
      auth: inQuery({ query: 'apikey', key: apiKey }),
      classifyResponse,
    })
    const explorer = new ExplorerApi(
      (query, context) => client.get(endpoint, { chainid: chainId, ...query }, context),
      { ...reader, name, confirmations },
      offset,
    )
    return {
      ...pagedProvider<Transfer>({
        name,
        supports: ['blockNumber'],
        prefers: 'blockNumber',
        ...(operations !== undefined && { operations }),
        fetchPage: limitToTimes((request, context) => explorer.readPage(request, context), explorer, reader),
      }),
      getBlockHash: async (block, context) => (await explorer.readBlock(block, context))?.hash ?? null,
    }
  }
}

class ExplorerApi {
  readonly #request: (query: Query, context: SyncContext) => Promise<HttpResponse>
  readonly #options: ChainProviderOptions
  readonly #offset: number

  constructor(
    request: (query: Query, context: SyncContext) => Promise<HttpResponse>,
    options: ChainProviderOptions,
    offset: number,
  ) {
    this.#request = request
    this.#options = options
    this.#offset = offset
  }

  async readPage({ operation, cursor }: FetchRequest, context: SyncContext): Promise<ProviderPage<Transfer>> {
    const { startBlock, confirmations, reorgDepth: depth } = this.#options
    const head = (await this.readHeadBlock(context)) - confirmations
    // The overlap window of another provider may start before `startBlock`.
    const from = Math.max(startBlock, cursor === undefined ? 0 : Number(cursor.value))
    if (from > head) return { items: [], through: toBlockCursor(Math.max(0, head + 1)), end: true }
    const { value: rows, hashes } = await readConsistently(
      { from, to: head, head, reorgDepth: depth },
      async (block) => (await this.readBlock(block, context))?.hash ?? null,
      () => this.#readTransfers(operation, from, head, context),
    )
    const known = new Map(hashes)
    // The lists and the chain come from different servers: the lists may still contain replaced blocks.
    if (rows.blockHashes.some(([block, hash]) => known.has(block) && known.get(block) !== hash))
      throw createReorgError()
    return {
      items: sortTransfers(rows.items),
      through: toBlockCursor(rows.toBlock + 1),
      end: rows.toBlock === head,
      custom: serializeHashes(
        from,
        hashes.filter(([block]) => block <= rows.toBlock),
      ),
    }
  }

  async readHeadBlock(context: SyncContext): Promise<number> {
    return parseNumber(await this.#callProxy({ action: 'eth_blockNumber' }, context), 'block number')
  }

  async readBlock(block: number, context: SyncContext): Promise<BlockHeader | null> {
    const found = await this.#callProxy(
      { action: 'eth_getBlockByNumber', tag: toHex(block), boolean: 'false' },
      context,
    )
    return found === null ? null : parseBlockHeader(found, block)
  }

  /** Token transfers are listed by sender and by recipient separately. The result ends where the shorter list ends. */
  async #readTransfers(operation: string, from: number, head: number, context: SyncContext): Promise<TransferRows> {
    const { address } = this.#options
    const isOfAccount = ({ from: sender, to: recipient }: JsonObject): boolean =>
      [sender, recipient].some((given) => typeof given === 'string' && given.toLowerCase() === address.toLowerCase())
    const transactions: AccountList = {
      query: (start, end) => ({
        module: 'account',
        action: 'txlist',
        address,
        startblock: start,
        endblock: end,
        sort: 'asc',
      }),
      isRequested: isOfAccount,
    }
    if (operation === 'native') return this.#readRows(transactions, operation, from, head, context)
    const logs = (topic: 1 | 2): AccountList => ({
      query: (start, end) => ({
        module: 'logs',
        action: 'getLogs',
        fromBlock: start,
        toBlock: end,
        topic0: TRANSFER_TOPIC,
        [`topic0_${topic}_opr`]: 'and',
        [`topic${topic}`]: toTopic(address),
      }),
      isRequested: ({ topics }) =>
        Array.isArray(topics) &&
        typeof topics[topic] === 'string' &&
        topics[topic].toLowerCase() === toTopic(address).toLowerCase(),
    })
    const sent = await this.#readRows(logs(1), operation, from, head, context)
    const received = await this.#readRows(logs(2), operation, from, sent.toBlock, context)
    const both = [...sent.items, ...received.items].filter(({ block }) => block <= received.toBlock)
    return {
      items: [...new Map(both.map((transfer) => [getTransferKey(transfer), transfer])).values()],
      toBlock: received.toBlock,
      blockHashes: [...sent.blockHashes, ...received.blockHashes],
    }
  }

  /**
   * Returns complete blocks. A page may end inside a block, and may be short without being the last. So the last block of a page is
   * left for the next request, which starts with it. Only a block that fills a whole page is paged, with fixed bounds. The end is an
   * empty page, requested twice.
   */
  async #readRows(
    listed: AccountList,
    operation: string,
    from: number,
    to: number,
    context: SyncContext,
  ): Promise<TransferRows> {
    let first = await this.#readList(listed, [from, to], 1, context)
    if (first.length === 0) first = await this.#readList(listed, [from, to], 1, context)
    const lastRow = first.at(-1)
    if (lastRow === undefined) return parseRows(first, operation, to)
    const last = getBlockNumber(lastRow)
    if (last > from)
      return parseRows(
        first.filter((row) => getBlockNumber(row) < last),
        operation,
        last - 1,
      )
    const all: JsonObject[] = []
    for (let page = 1; ; page++) {
      if (page * this.#offset > RESULT_ROWS_MAX)
        throw new SyncError(
          'SOURCE_INVALID',
          `${this.#options.name}: one block has more than the ${RESULT_ROWS_MAX} rows that the API can page.`,
        )
      const rows = await this.#readList(listed, [from, from], page, context)
      if (rows.length === 0) return parseRows(all, operation, from)
      const known = new Set(all.map(getRowIdentity))
      if (rows.some((row) => known.has(getRowIdentity(row))))
        throw new SyncError('SOURCE_INVALID', `${this.#options.name} returned rows of an earlier page again.`)
      all.push(...rows)
    }
  }

  /** A response does not identify its request, so its rows must match the requested range and account. */
  async #readList(
    { query, isRequested }: AccountList,
    [from, to]: readonly [number, number],
    page: number,
    context: SyncContext,
  ): Promise<JsonObject[]> {
    const { body } = await this.#request({ ...query(from, to), page, offset: this.#offset }, context)
    const rows = isObject(body) ? body.result : undefined
    if (!Array.isArray(rows) || !rows.every(isObject)) throw createMalformedError('list')
    if (!rows.every((row) => isRequested(row) && getBlockNumber(row) >= from && getBlockNumber(row) <= to)) {
      throw new SyncError(
        'SOURCE_INVALID',
        `${this.#options.name} returned rows outside the request: a response to another request.`,
      )
    }
    return rows
  }

  async #callProxy(query: Query, context: SyncContext): Promise<JsonValue> {
    const { body } = await this.#request({ module: 'proxy', ...query }, context)
    if (!isObject(body) || body.result === undefined) throw createMalformedError('response')
    return body.result
  }
}

/** One list of the account: its query, and which rows belong to it. */
interface AccountList {
  readonly query: (from: number, to: number) => Query
  readonly isRequested: (row: JsonObject) => boolean
}

function getRowIdentity({ hash, transactionHash, logIndex }: JsonObject): string {
  return JSON.stringify([hash ?? transactionHash ?? null, logIndex ?? null])
}

interface TransferRows {
  readonly items: Transfer[]
  readonly toBlock: number
  readonly blockHashes: ReadonlyArray<readonly [block: number, hash: string]>
}

/** The API returns no rows beyond this number, in any page. */
const RESULT_ROWS_MAX = 10_000

function parseRows(rows: readonly JsonObject[], operation: string, to: number): TransferRows {
  const blockHashes = rows.flatMap((row) =>
    typeof row.blockHash === 'string' ? [[getBlockNumber(row), parseHash(row.blockHash, 'block hash')] as const] : [],
  )
  const items = rows.flatMap((row) => {
    if (operation === 'native') return parseNativeTransfer(row) ?? []
    const at = parseNumber(row.timeStamp, 'timestamp') * 1_000
    return parseTransferLog(row, () => at) ?? []
  })
  return { items, toBlock: to, blockHashes }
}

function getBlockNumber(row: JsonObject): number {
  return parseNumber(row.blockNumber, 'block number')
}

/** Null for a failed transaction or a zero amount. */
function parseNativeTransfer(row: JsonObject): Transfer | null {
  const value = parseAmount(row.value, 'amount')
  if (value === '0' || row.isError === '1' || row.txreceipt_status === '0') return null
  return {
    kind: 'native',
    hash: parseHash(row.hash, 'transaction hash'),
    logIndex: null,
    block: getBlockNumber(row),
    timeMs: parseNumber(row.timeStamp, 'timestamp') * 1_000,
    from: parseAddress(row.from, 'sender'),
    to: typeof row.to !== 'string' || row.to === '' ? null : parseAddress(row.to, 'recipient'),
    value,
    contract: null,
  }
}

/** Every response has HTTP status 200. The outcome is in `status` and `message`, and for failures in the text of `result`. */
const classifyResponse: ResponseClassifier = ({ body }) => {
  if (!isObject(body)) return null
  if (body.status === '2')
    return { code: 'SOURCE_UNAVAILABLE', reason: 'a partial result, because the rest is not processed yet' }
  if (body.status !== '0' || Array.isArray(body.result)) return null
  const text = typeof body.result === 'string' ? body.result : ''
  if (/rate limit|max calls/i.test(text)) return { code: 'RATE_LIMITED', reason: 'a rate limit' }
  if (/api key/i.test(text)) return { code: 'AUTH_REJECTED', reason: 'a rejected API key' }
  return { code: 'SOURCE_UNAVAILABLE', reason: 'a failure' }
}
