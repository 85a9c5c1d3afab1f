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

/** The index filters by sender or by recipient, so a range is read twice; only then is it told. */
interface Place {
  readonly from: number
  readonly to: number
  readonly side: Side
  readonly key?: string
}

type Side = 'fromAddress' | 'toAddress'

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
    if (from <= settled) return this.#part(operation, { from, to: settled, side: 'fromAddress' }, context)
    const { value, hashes } = await steady({ from, to: head, head, depth }, async (block) => (await this.rpc.block(block, context))?.hash ?? null, async () => {
      const items: Transfer[] = []
      for (const side of ['fromAddress', 'toAddress'] as const) {
        for (let key: string | undefined, pages = 0; ; pages++) {
          if (pages > PAGES_MAX) throw new SyncError('SOURCE_INVALID', `${this.#options.name}: the newest blocks take more than ${PAGES_MAX} pages.`)
          const answer = await this.#ask(operation, { from, to: head, side, ...(key !== undefined && { key }) }, context)
          items.push(...answer.items)
          if (answer.key === undefined) break
          key = answer.key
        }
      }
      return items
    })
    return { items: inOrder(unique(value)), through: through(head + 1), end: true, custom: withHashes(from, hashes) }
  }

  /** Until both sides are read, nothing is known to be told beyond the place before the range. */
  async #part(operation: string, place: Place, context: SyncContext): Promise<ProviderPage<Transfer>> {
    const { items, key } = await this.#ask(operation, place, context)
    const next = nextPlace(place, key)
    if (next === null) return { items, through: through(place.to + 1), end: false }
    return { items, through: through(place.from), next: JSON.stringify(next), end: false }
  }

  async #ask(operation: string, { from, to, side, key }: Place, context: SyncContext): Promise<{ items: Transfer[]; key: string | undefined }> {
    const filter = {
      fromBlock: hexOf(from), toBlock: hexOf(to), [side]: this.#options.address, category: [operation === 'native' ? 'external' : 'erc20'],
      order: 'asc', withMetadata: true, excludeZeroValue: operation === 'native', maxCount: hexOf(this.#countMax), ...(key !== undefined && { pageKey: key }),
    }
    const answer = await this.rpc.call('alchemy_getAssetTransfers', [filter], context)
    if (!isObject(answer) || !Array.isArray(answer.transfers)) throw malformed('list of transfers')
    const { pageKey } = answer
    if (pageKey !== undefined && pageKey !== null && typeof pageKey !== 'string') throw malformed('page key')
    return { items: answer.transfers.flatMap((transfer) => transferOf(transfer, operation) ?? []), key: pageKey === null || pageKey === '' ? undefined : pageKey }
  }
}

const PAGES_MAX = 100

function nextPlace(place: Place, key: string | undefined): Place | null {
  const { from, to, side } = place
  if (key !== undefined) return { from, to, side, key }
  return side === 'fromAddress' ? { from, to, side: 'toAddress' } : null
}

function placeIn(text: string): Place {
  try {
    const place = JSON.parse(text) as Place
    if (Number.isSafeInteger(place.from) && Number.isSafeInteger(place.to) && (place.side === 'fromAddress' || place.side === 'toAddress')) return place
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
