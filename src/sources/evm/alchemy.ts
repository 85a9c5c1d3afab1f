import { SyncError, type JsonValue, type SyncContext } from '../../contract/index.ts'
import { canonicalizeInstant, instantToMs } from '../../values/instant.ts'
import { pagedProvider, type FetchRequest, type ProviderPage } from '../../strategies/index.ts'
import type { Auth } from '../kit/auth.ts'
import { isObject } from '../kit/classify-response.ts'
import {
  readConsistently,
  toBlockCursor,
  serializeHashes,
  type ChainProviderFactory,
  type ChainProviderOptions,
} from './chain-provider.ts'
import { limitToTimes } from './block-times.ts'
import { JsonRpcClient, type NodeUrl } from './json-rpc.ts'
import {
  parseAddress,
  parseAmount,
  parseHash,
  toHex,
  sortTransfers,
  createMalformedError,
  parseNumber,
  type Transfer,
} from './transfer.ts'

/** Options of the Alchemy provider. */
export interface AlchemyOptions {
  readonly name: string
  readonly url: NodeUrl
  readonly auth?: Auth
  readonly confirmations?: number
  /** Transfers per page, at most 1,000. */
  readonly countMax?: number
}

/** Reads from a node with an account index: `alchemy_getAssetTransfers`, paged by page key. */
export function alchemy(options: AlchemyOptions): ChainProviderFactory {
  return (reader) => {
    const { name, url, auth, confirmations: own = reader.confirmations, countMax = 1_000 } = options
    const confirmations = Math.max(own, reader.confirmationsMin)
    const index = new TransferIndex(new JsonRpcClient(url, auth), { ...reader, name, confirmations }, countMax)
    return {
      ...pagedProvider<Transfer>({
        name,
        supports: ['pageToken', 'blockNumber'],
        prefers: 'blockNumber',
        fetchPage: limitToTimes((request, context) => index.readPage(request, context), index.rpc, reader),
      }),
      getBlockHash: async (block, context) => (await index.rpc.readBlock(block, context))?.hash ?? null,
    }
  }
}

/**
 * The index filters by sender or by recipient, so a range is read on two sides. The side that is behind is read next. Everything
 * before the block that both sides reached is complete, and another provider can continue from there.
 */
interface TransferRangeCursor {
  readonly from: number
  readonly to: number
  readonly sides: readonly SideCursor[]
}

interface SideCursor {
  readonly side: TransferSide
  /** This side is complete before this block. */
  readonly at: number
  readonly key?: string
}

interface SideQuery {
  readonly from: number
  readonly to: number
  readonly side: TransferSide
  readonly key?: string | undefined
}

const SIDES = ['fromAddress', 'toAddress'] as const
type TransferSide = (typeof SIDES)[number]

class TransferIndex {
  readonly rpc: JsonRpcClient
  readonly #options: ChainProviderOptions
  readonly #countMax: number

  constructor(rpc: JsonRpcClient, options: ChainProviderOptions, countMax: number) {
    this.rpc = rpc
    this.#options = options
    this.#countMax = countMax
  }

  async readPage({ operation, cursor, own }: FetchRequest, context: SyncContext): Promise<ProviderPage<Transfer>> {
    const { startBlock, confirmations, reorgDepth: depth, chainId } = this.#options
    if (cursor?.type === 'pageToken') return this.#readRange(operation, parseCursor(cursor.value), context)
    const head = (await this.rpc.readHeadBlock(context, own === undefined ? chainId : undefined)) - confirmations
    // The overlap window of another provider may start before `startBlock`.
    const from = Math.max(startBlock, cursor === undefined ? 0 : Number(cursor.value))
    if (from > head) return { items: [], through: toBlockCursor(Math.max(0, head + 1)), end: true }
    const settled = head - depth
    // Final blocks are read page by page. The newest blocks are read in one batch, together with their hashes.
    if (from <= settled)
      return this.#readRange(
        operation,
        { from, to: settled, sides: SIDES.map((side) => ({ side, at: from })) },
        context,
      )
    const { value, hashes } = await readConsistently(
      { from, to: head, head, reorgDepth: depth },
      async (block) => (await this.rpc.readBlock(block, context))?.hash ?? null,
      async () => {
        const items: Transfer[] = []
        for (const side of SIDES) {
          for (let key: string | undefined, pages = 0; ; pages++) {
            if (pages > PAGES_MAX)
              throw new SyncError(
                'SOURCE_INVALID',
                `${this.#options.name}: the newest blocks need more than ${PAGES_MAX} pages.`,
              )
            const answer = await this.#readSide(operation, { from, to: head, side, key }, context)
            items.push(...answer.items)
            if (answer.pageKey === undefined) break
            key = answer.pageKey
          }
        }
        return items
      },
    )
    return {
      items: sortTransfers(removeDuplicates(value)),
      through: toBlockCursor(head + 1),
      end: true,
      custom: serializeHashes(from, hashes),
    }
  }

  async #readRange(
    operation: string,
    { from, to, sides }: TransferRangeCursor,
    context: SyncContext,
  ): Promise<ProviderPage<Transfer>> {
    const behind = sides.reduce((a, b) => (b.at < a.at ? b : a))
    const {
      items,
      pageKey: key,
      reachedBlock: reached,
    } = await this.#readSide(operation, { from, to, side: behind.side, key: behind.key }, context)
    const moved: SideCursor =
      key === undefined
        ? { side: behind.side, at: to + 1 }
        : { side: behind.side, at: Math.max(behind.at, reached), key }
    const next: TransferRangeCursor = { from, to, sides: sides.map((cursor) => (cursor === behind ? moved : cursor)) }
    const at = Math.min(...next.sides.map((cursor) => cursor.at))
    return at > to
      ? { items, through: toBlockCursor(at), end: false }
      : { items, through: toBlockCursor(at), next: JSON.stringify(next), end: false }
  }

  async #readSide(operation: string, { from, to, side, key }: SideQuery, context: SyncContext): Promise<TransfersPage> {
    const filter = {
      fromBlock: toHex(from),
      toBlock: toHex(to),
      [side]: this.#options.address,
      category: [operation === 'native' ? 'external' : 'erc20'],
      order: 'asc',
      withMetadata: true,
      excludeZeroValue: operation === 'native',
      maxCount: toHex(this.#countMax),
      ...(key !== undefined && { pageKey: key }),
    }
    const answer = await this.rpc.call('alchemy_getAssetTransfers', [filter], context)
    if (!isObject(answer) || !Array.isArray(answer.transfers)) throw createMalformedError('list of transfers')
    const { pageKey } = answer
    if (pageKey !== undefined && pageKey !== null && typeof pageKey !== 'string') throw createMalformedError('page key')
    const blocks = answer.transfers.map((transfer) =>
      parseNumber(isObject(transfer) ? transfer.blockNum : undefined, 'block number'),
    )
    // A page out of order does not prove which blocks are complete.
    const isInOrder = blocks.every((block, index) => (blocks[index - 1] ?? 0) <= block)
    return {
      items: answer.transfers.flatMap((transfer) => parseTransfer(transfer, operation) ?? []),
      pageKey: pageKey === null || pageKey === '' ? undefined : pageKey,
      reachedBlock: isInOrder ? (blocks.at(-1) ?? 0) : 0,
    }
  }
}

const PAGES_MAX = 100

interface TransfersPage {
  readonly items: Transfer[]
  readonly pageKey: string | undefined
  /** The block of the last transfer; the side is complete before it. */
  readonly reachedBlock: number
}

function parseCursor(text: string): TransferRangeCursor {
  try {
    const cursor = JSON.parse(text) as TransferRangeCursor
    const isSide = ({ side, at }: SideCursor): boolean => SIDES.includes(side) && Number.isSafeInteger(at)
    if (
      Number.isSafeInteger(cursor.from) &&
      Number.isSafeInteger(cursor.to) &&
      cursor.sides.length === SIDES.length &&
      cursor.sides.every(isSide)
    )
      return cursor
  } catch {
    // Rejected below.
  }
  throw new SyncError('CURSOR_REJECTED', 'The stored page token is invalid.')
}

/** Null for a native transfer with a zero amount. */
function parseTransfer(value: JsonValue, operation: string): Transfer | null {
  if (!isObject(value) || !isObject(value.rawContract) || !isObject(value.metadata))
    throw createMalformedError('transfer')
  const at =
    typeof value.metadata.blockTimestamp === 'string' ? canonicalizeInstant(value.metadata.blockTimestamp) : null
  if (at === null) throw createMalformedError('timestamp')
  const amount = parseAmount(value.rawContract.value, 'amount')
  if (operation === 'native' && amount === '0') return null
  return {
    kind: operation === 'native' ? 'native' : 'token',
    hash: parseHash(value.hash, 'transaction hash'),
    logIndex: operation === 'native' ? null : parseLogIndex(value.uniqueId),
    block: parseNumber(value.blockNum, 'block number'),
    timeMs: instantToMs(at),
    from: parseAddress(value.from, 'sender'),
    to: value.to === null || value.to === undefined ? null : parseAddress(value.to, 'recipient'),
    value: amount,
    contract: operation === 'native' ? null : parseAddress(value.rawContract.address, 'contract'),
  }
}

/** `<transaction hash>:log:<index>` */
function parseLogIndex(value: JsonValue | undefined): number {
  return parseNumber(typeof value === 'string' ? value.split(':').at(-1) : undefined, 'log index')
}

/** A transfer from an account to itself is on both sides. */
function removeDuplicates(transfers: readonly Transfer[]): Transfer[] {
  return [...new Map(transfers.map((transfer) => [`${transfer.hash}:${transfer.logIndex ?? ''}`, transfer])).values()]
}
