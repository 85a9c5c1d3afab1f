import { SyncError, type JsonValue, type SyncContext } from '../../contract/index.ts'
import { canonicalInstant, instantMs } from '../../values/instant.ts'
import { pagedProvider, type FetchRequest, type ProviderPage } from '../../strategies/index.ts'
import type { Auth } from '../kit/auth.ts'
import { isObject } from '../kit/judge.ts'
import { steady, through, withHashes, type ChainReader, type ReaderOptions } from './chain.ts'
import { JsonRpc, type NodeUrl } from './json-rpc.ts'
import { addressOf, amountOf, hashOf, hexOf, inOrder, malformed, numberOf, type Transfer } from './transfer.ts'

export interface AlchemyOptions {
  readonly name: string
  readonly url: NodeUrl
  readonly auth?: Auth
  readonly confirmations?: number
  /** Transfers of a page, at most 1,000. */
  readonly countMax?: number
}

/** A node whose index is asked by account: `alchemy_getAssetTransfers`, page key after page key. */
export function alchemy(options: AlchemyOptions): ChainReader {
  return (reader) => {
    const { name, url, auth, confirmations = reader.confirmations, countMax = 1_000 } = options
    const index = new Index(new JsonRpc(url, auth), { ...reader, name, confirmations }, countMax)
    return {
      ...pagedProvider<Transfer>({ name, supports: ['pageToken', 'blockNumber'], prefers: 'blockNumber', fetchPage: (request, context) => index.page(request, context) }),
      hashAt: async (block, context) => (await index.rpc.block(block, context))?.hash ?? null,
    }
  }
}

/**
 * The index filters by sender or by recipient, so a range is read on two sides. The side that is behind is asked next: everything
 * before the place that both have reached is known, and another provider can go on from there.
 */
interface Place {
  readonly from: number
  readonly to: number
  readonly sides: readonly SidePlace[]
}

interface SidePlace {
  readonly side: Side
  /** Everything of this side before this block was read. */
  readonly at: number
  readonly key?: string
}

interface SideQuery {
  readonly from: number
  readonly to: number
  readonly side: Side
  readonly key?: string | undefined
}

const SIDES = ['fromAddress', 'toAddress'] as const
type Side = (typeof SIDES)[number]

class Index {
  readonly rpc: JsonRpc
  readonly #options: ReaderOptions
  readonly #countMax: number

  constructor(json: JsonRpc, options: ReaderOptions, countMax: number) {
    this.rpc = json
    this.#options = options
    this.#countMax = countMax
  }

  async page({ operation, cursor, own }: FetchRequest, context: SyncContext): Promise<ProviderPage<Transfer>> {
    const { startBlock, confirmations, depth, chainId } = this.#options
    if (cursor?.type === 'pageToken') return this.#part(operation, placeIn(cursor.value), context)
    const head = await this.rpc.head(context, own === undefined ? chainId : undefined) - confirmations
    // The window of another provider may reach before the beginning.
    const from = Math.max(startBlock, cursor === undefined ? 0 : Number(cursor.value))
    if (from > head) return { items: [], through: through(Math.max(0, head + 1)), end: true }
    const settled = head - depth
    // What can no longer be replaced is read page by page; the newest blocks at once, so that it is known which of them it was.
    if (from <= settled) return this.#part(operation, { from, to: settled, sides: SIDES.map((side) => ({ side, at: from })) }, context)
    const { value, hashes } = await steady({ from, to: head, head, depth }, async (block) => (await this.rpc.block(block, context))?.hash ?? null, async () => {
      const items: Transfer[] = []
      for (const side of SIDES) {
        for (let key: string | undefined, pages = 0; ; pages++) {
          if (pages > PAGES_MAX) throw new SyncError('SOURCE_INVALID', `${this.#options.name}: the newest blocks take more than ${PAGES_MAX} pages.`)
          const answer = await this.#ask(operation, { from, to: head, side, key }, context)
          items.push(...answer.items)
          if (answer.key === undefined) break
          key = answer.key
        }
      }
      return items
    })
    return { items: inOrder(unique(value)), through: through(head + 1), end: true, custom: withHashes(from, hashes) }
  }

  async #part(operation: string, { from, to, sides }: Place, context: SyncContext): Promise<ProviderPage<Transfer>> {
    const behind = sides.reduce((a, b) => (b.at < a.at ? b : a))
    const { items, key, reached } = await this.#ask(operation, { from, to, side: behind.side, key: behind.key }, context)
    const moved: SidePlace = key === undefined ? { side: behind.side, at: to + 1 } : { side: behind.side, at: Math.max(behind.at, reached), key }
    const next: Place = { from, to, sides: sides.map((place) => (place === behind ? moved : place)) }
    const at = Math.min(...next.sides.map((place) => place.at))
    return at > to ? { items, through: through(at), end: false } : { items, through: through(at), next: JSON.stringify(next), end: false }
  }

  async #ask(operation: string, { from, to, side, key }: SideQuery, context: SyncContext): Promise<Answer> {
    const filter = {
      fromBlock: hexOf(from), toBlock: hexOf(to), [side]: this.#options.address, category: [operation === 'native' ? 'external' : 'erc20'],
      order: 'asc', withMetadata: true, excludeZeroValue: operation === 'native', maxCount: hexOf(this.#countMax), ...(key !== undefined && { pageKey: key }),
    }
    const answer = await this.rpc.call('alchemy_getAssetTransfers', [filter], context)
    if (!isObject(answer) || !Array.isArray(answer.transfers)) throw malformed('list of transfers')
    const { pageKey } = answer
    if (pageKey !== undefined && pageKey !== null && typeof pageKey !== 'string') throw malformed('page key')
    const blocks = answer.transfers.map((transfer) => numberOf(isObject(transfer) ? transfer.blockNum : undefined, 'block number'))
    // A page out of order does not show how far it reaches.
    const isInOrder = blocks.every((block, at) => at === 0 || blocks[at - 1]! <= block)
    return {
      items: answer.transfers.flatMap((transfer) => transferOf(transfer, operation) ?? []),
      key: pageKey === null || pageKey === '' ? undefined : pageKey,
      reached: isInOrder ? blocks.at(-1) ?? 0 : 0,
    }
  }
}

const PAGES_MAX = 100

interface Answer {
  readonly items: Transfer[]
  readonly key: string | undefined
  /** The block of the last transfer; everything of the side before it was read. */
  readonly reached: number
}

function placeIn(text: string): Place {
  try {
    const place = JSON.parse(text) as Place
    const isSide = ({ side, at }: SidePlace): boolean => SIDES.includes(side) && Number.isSafeInteger(at)
    if (Number.isSafeInteger(place.from) && Number.isSafeInteger(place.to) && place.sides.length === SIDES.length && place.sides.every(isSide)) return place
  } catch {
    // Refused below.
  }
  throw new SyncError('CURSOR_REJECTED', 'The page token is not one that was made here.')
}

/** Null for a token transfer of something else than an amount, and for nothing. */
function transferOf(value: JsonValue, operation: string): Transfer | null {
  if (!isObject(value) || !isObject(value.rawContract) || !isObject(value.metadata)) throw malformed('transfer')
  const at = typeof value.metadata.blockTimestamp === 'string' ? canonicalInstant(value.metadata.blockTimestamp) : null
  if (at === null) throw malformed('timestamp')
  const amount = amountOf(value.rawContract.value, 'amount')
  if (operation === 'native' && amount === '0') return null
  return {
    kind: operation === 'native' ? 'native' : 'token',
    hash: hashOf(value.hash, 'transaction hash'),
    logIndex: operation === 'native' ? null : logIndexOf(value.uniqueId),
    block: numberOf(value.blockNum, 'block number'), at: instantMs(at),
    from: addressOf(value.from, 'sender'), to: value.to === null || value.to === undefined ? null : addressOf(value.to, 'recipient'),
    value: amount, contract: operation === 'native' ? null : addressOf(value.rawContract.address, 'contract'),
  }
}

/** `<transaction hash>:log:<index>` */
function logIndexOf(value: JsonValue | undefined): number {
  return numberOf(typeof value === 'string' ? value.split(':').at(-1) : undefined, 'log index')
}

/** A transfer to oneself is on both sides. */
function unique(transfers: readonly Transfer[]): Transfer[] {
  return [...new Map(transfers.map((transfer) => [`${transfer.hash}:${transfer.logIndex ?? ''}`, transfer])).values()]
}
