import type { ApiCall } from '../kit/api-simulator.ts'
import { randomUuid } from '../kit/ids.ts'
import { jsonResponse } from '../kit/json-response.ts'
import type { Fields, SimulatorPorts } from '../kit/simulator.ts'
import { comparePositions, type Movement, type MovementKind, type ChainPosition } from './chain-view.ts'
import type { FakeChain } from './fake-chain.ts'
import { toHex, IndexerSimulator, type IndexerOptions } from './indexer-simulator.ts'

/** Options of `AlchemySimulator`. */
export interface AlchemyOptions extends IndexerOptions {
  /** An unused page key expires after this long. */
  readonly pageKeyTtlMs?: number
}

interface RpcRequest {
  readonly id?: number | string | null
  readonly method?: string
  readonly params?: readonly unknown[]
}

interface TransfersQuery {
  readonly fromBlock?: string | number
  readonly toBlock?: string | number
  readonly fromAddress?: string
  readonly toAddress?: string
  readonly contractAddresses?: readonly string[]
  readonly category?: readonly string[]
  readonly order?: string
  readonly withMetadata?: boolean
  readonly excludeZeroValue?: boolean
  readonly maxCount?: string | number
  readonly pageKey?: string
}

interface PageKey {
  /** The query it belongs to; another query cannot use it. */
  readonly queryText: string
  readonly after: ChainPosition
  readonly issuedAtMs: number
}

const MAX_COUNT = 1_000
const PAGE_KEY_TTL_MS = 10 * 60_000
const INVALID_PARAMS = -32_602
const CATEGORIES: Readonly<Record<string, MovementKind | undefined>> = {
  external: 'external',
  internal: 'internal',
  erc20: 'token',
  erc721: undefined,
  erc1155: undefined,
  specialnft: undefined,
}

/** A JSON-RPC error. */
class RpcError extends Error {
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

/**
 * `alchemy_getAssetTransfers`, beside the standard methods of a node. Senders and receivers are queried separately,
 * since `fromAddress` and `toAddress` are combined with AND; a page key continues a query and expires after ten
 * minutes.
 */
export class AlchemySimulator extends IndexerSimulator {
  readonly #pageKeyTtlMs: number
  readonly #pageKeys = new Map<string, PageKey>()

  constructor(ports: SimulatorPorts, chain: FakeChain, options: AlchemyOptions = {}) {
    super(ports, chain, options)
    this.#pageKeyTtlMs = options.pageKeyTtlMs ?? PAGE_KEY_TTL_MS
  }

  protected respondToQuery(call: ApiCall): Response {
    const match = /^\/v2\/([^/]+)$/.exec(call.url.pathname)
    if (match === null || call.request.method !== 'POST') return new Response('Not Found', { status: 404 })
    if (this.token !== undefined && match[1] !== this.token) return this.unauthorized()
    let asked: RpcRequest | RpcRequest[]
    try {
      asked = JSON.parse(call.body) as RpcRequest | RpcRequest[]
    } catch {
      return jsonResponse({ jsonrpc: '2.0', id: null, error: { code: -32_700, message: 'Parse error' } }, 400)
    }
    if (Array.isArray(asked)) return jsonResponse(asked.map((one) => this.#one(one, call)))
    const answer = this.#one(asked, call)
    return jsonResponse(answer, 'error' in answer ? 400 : 200)
  }

  /** Refused as a whole, or with status 200 and the refusal in the body, as single parts of a batch are. */
  protected rateLimited(retryAfter: string | undefined, secondary: boolean): Response {
    const error = {
      code: 429,
      message:
        'Your app has exceeded its compute units per second capacity. If you have retries enabled, you can safely ignore this message.',
    }
    return jsonResponse(
      { jsonrpc: '2.0', id: null, error },
      secondary ? 200 : 429,
      retryAfter === undefined ? {} : { 'retry-after': retryAfter },
    )
  }

  protected unauthorized(): Response {
    return jsonResponse({ jsonrpc: '2.0', id: null, error: { code: -32_600, message: 'Must be authenticated!' } }, 401)
  }

  protected serverError(status: number): Response {
    return jsonResponse(
      { jsonrpc: '2.0', id: null, error: { code: -32_000, message: 'Service temporarily unavailable' } },
      status,
    )
  }

  #one({ id = null, method = '', params = [] }: RpcRequest, call: ApiCall): Fields {
    try {
      const result =
        method === 'alchemy_getAssetTransfers'
          ? this.#transfers((params[0] ?? {}) as TransfersQuery, call)
          : this.rpc(method, params)
      if (result === undefined) throw new RpcError(-32_601, `Unsupported method: ${method}`)
      return { jsonrpc: '2.0', id, result }
    } catch (error) {
      if (error instanceof RpcError) return { jsonrpc: '2.0', id, error: { code: error.code, message: error.message } }
      throw error
    }
  }

  #transfers(asked: TransfersQuery, { endFlagOverride: lie, shortPage, expiredToken }: ApiCall): Fields {
    const { category = [], order = 'asc', excludeZeroValue = true } = asked
    if (category.length === 0) throw new RpcError(INVALID_PARAMS, 'category is required')
    const unknown = category.find((name) => !(name in CATEGORIES))
    if (unknown !== undefined) throw new RpcError(INVALID_PARAMS, `Invalid category: ${unknown}`)
    if (order !== 'asc' && order !== 'desc') throw new RpcError(INVALID_PARAMS, `Invalid order: ${String(order)}`)
    const maxCount = asked.maxCount === undefined ? MAX_COUNT : Number(asked.maxCount)
    if (!Number.isInteger(maxCount) || maxCount < 1 || maxCount > MAX_COUNT)
      throw new RpcError(INVALID_PARAMS, `maxCount must be between 0x1 and ${toHex(MAX_COUNT)}`)
    const from = this.#number(asked.fromBlock ?? '0x0')
    const to = this.#number(asked.toBlock ?? 'latest')
    const contracts = asked.contractAddresses?.map((address) => address.toLowerCase())
    const { pageKey: _pageKey, maxCount: _maxCount, ...rest } = asked
    const question = JSON.stringify(rest, Object.keys(rest).toSorted())
    const after = asked.pageKey === undefined ? undefined : this.#after(asked.pageKey, question, expiredToken)

    const sign = order === 'asc' ? 1 : -1
    const kinds = category.flatMap((name) => CATEGORIES[name] ?? [])
    const found = this.view
      .movements(kinds)
      .filter(
        (movement) =>
          !movement.transaction.failed &&
          movement.block.number >= from &&
          movement.block.number <= to &&
          (asked.fromAddress === undefined || movement.from === asked.fromAddress.toLowerCase()) &&
          (asked.toAddress === undefined || movement.to === asked.toAddress.toLowerCase()) &&
          (contracts === undefined || movement.kind !== 'token' || contracts.includes(movement.token.contract)) &&
          (!excludeZeroValue || movement.value > 0n),
      )
    const ordered = found.toSorted((a, b) => sign * comparePositions(a.position, b.position))
    const left =
      after === undefined
        ? ordered
        : ordered.filter((movement) => sign * comparePositions(movement.position, after) > 0)
    const page = left.slice(0, shortPage ? Math.ceil(maxCount / 2) : maxCount)
    const more = lie === undefined ? left.length > page.length : lie === 'more'
    const transfers = page.map((movement) => renderTransfer(movement, asked.withMetadata === true))
    return more
      ? { transfers, pageKey: this.#pageKey(question, page.at(-1)?.position ?? after ?? [to, Infinity, 0, 0]) }
      : { transfers }
  }

  #number(tag: string | number): number {
    if (tag === 'latest' || tag === 'indexed') return this.view.head.number
    if (typeof tag === 'number') return tag
    if (!/^0x[0-9a-f]+$/i.test(tag)) throw new RpcError(INVALID_PARAMS, `Invalid block: ${tag}`)
    return Number(tag)
  }

  #pageKey(question: string, after: ChainPosition): string {
    const key = randomUuid(this.random)
    this.#pageKeys.set(key, { queryText: question, after, issuedAtMs: this.clock.now() })
    return key
  }

  #after(key: string, question: string, expired: boolean): ChainPosition {
    const known = this.#pageKeys.get(key)
    if (
      known === undefined ||
      known.queryText !== question ||
      expired ||
      this.clock.now() - known.issuedAtMs > this.#pageKeyTtlMs
    )
      throw new RpcError(INVALID_PARAMS, 'Page key is not found or expired, please try again with a valid page key')
    return known.after
  }
}

/** `value` is a floating-point number and loses digits; `rawContract.value` does not. */
function renderTransfer(movement: Movement, withMetadata: boolean): Fields {
  const { block, transaction, from, to, value } = movement
  const token = movement.kind === 'token' ? movement.token : undefined
  const decimals = token?.decimals ?? 18
  const part =
    movement.kind === 'token'
      ? `log:${toHex(movement.token.logIndex)}`
      : movement.kind === 'internal'
        ? `internal:${movement.internal.traceId}`
        : 'external'
  return {
    blockNum: toHex(block.number),
    uniqueId: `${transaction.hash}:${part}`,
    hash: transaction.hash,
    from,
    to,
    value: Number(value) / 10 ** decimals,
    erc721TokenId: null,
    erc1155Metadata: null,
    tokenId: null,
    asset: token?.symbol ?? 'ETH',
    category: movement.kind === 'token' ? 'erc20' : movement.kind,
    rawContract: { value: toHex(value), address: token?.contract ?? null, decimal: toHex(decimals) },
    ...(withMetadata && { metadata: { blockTimestamp: new Date(block.timestamp * 1_000).toISOString() } }),
  }
}
