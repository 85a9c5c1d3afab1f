import { SyncError, type SyncContext } from '../../contract/index.ts'
import type { FetchRequest, ProviderPage } from '../../strategies/index.ts'
import { toBlockCursor } from './chain-provider.ts'
import type { Transfer } from './transfer.ts'

/** The times of the blocks to read, in milliseconds: `fromMs` is included, `toMs` is not. */
export interface BlockTimes {
  readonly fromMs: number
  readonly toMs: number
}

export const ALL_BLOCKS: BlockTimes = { fromMs: 0, toMs: Infinity }

/** The blocks of a chain, as a provider returns them. */
export interface BlockReader {
  readHeadBlock(context: SyncContext): Promise<number>
  /** Null if the provider does not have the block. */
  readBlock(block: number, context: SyncContext): Promise<{ readonly timeMs: number } | null>
}

type ReadPage = (request: FetchRequest, context: SyncContext) => Promise<ProviderPage<Transfer>>

/** Reads only transfers of these times: from the first block that is not earlier, up to a page that ends after them. */
export function limitToTimes(
  readPage: ReadPage,
  reader: BlockReader,
  { times: { fromMs, toMs }, startBlock }: { readonly times: BlockTimes; readonly startBlock: number },
): ReadPage {
  if (fromMs <= 0 && toMs === Infinity) return readPage
  return async (request, context) => {
    const isStart = request.cursor === undefined && fromMs > 0
    const cursor = isStart ? toBlockCursor(await findFirstBlock(reader, startBlock, fromMs, context)) : request.cursor
    const page = await readPage({ ...request, cursor }, context)
    const items = page.items.filter(({ timeMs }) => timeMs >= fromMs && timeMs < toMs)
    const last = page.through?.type === 'blockNumber' ? page.through.value - 1 : -1
    if (toMs === Infinity || page.end === true || last < 0) return { ...page, items }
    const { next: _, ...rest } = page
    return (await readTime(reader, last, context)) < toMs ? { ...page, items } : { ...rest, items, end: true }
  }
}

/** The first block at or after a time, by bisection: the times of blocks increase. One after the head if all are earlier. */
async function findFirstBlock(
  reader: BlockReader,
  startBlock: number,
  fromMs: number,
  context: SyncContext,
): Promise<number> {
  let low = startBlock
  let high = (await reader.readHeadBlock(context)) + 1
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if ((await readTime(reader, middle, context)) < fromMs) low = middle + 1
    else high = middle
  }
  return low
}

async function readTime(reader: BlockReader, block: number, context: SyncContext): Promise<number> {
  const found = await reader.readBlock(block, context)
  if (found === null)
    throw new SyncError('SOURCE_UNAVAILABLE', `The provider does not have block ${block}. It is requested again.`)
  return found.timeMs
}
