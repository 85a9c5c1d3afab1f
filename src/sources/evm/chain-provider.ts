import { SyncError, type JsonValue, type SyncContext } from '../../contract/index.ts'
import type { ComparableCursor, Provider } from '../../strategies/index.ts'
import type { Transfer } from './transfer.ts'

/** A provider that can also say which block stands where. */
export interface ChainProvider extends Provider<Transfer> {
  /** The hash of a block; null when the provider does not have it yet. */
  getBlockHash(block: number, context: SyncContext): Promise<string | null>
}

export interface ChainProviderOptions {
  readonly name: string
  /** The account whose transfers are read. */
  readonly address: string
  /** From where the first cycle reads. */
  readonly startBlock: number
  /** So many of the newest blocks are left alone. */
  readonly confirmations: number
  /** So many of the newest blocks may still be replaced. */
  readonly reorgDepth: number
  /** Of which chain; any, when absent. */
  readonly chainId?: number
}

/** A provider before it is told what to read. */
export type ChainProviderFactory = (options: Omit<ChainProviderOptions, 'name'>) => ChainProvider

/** Hashes of blocks that may still be replaced, as they were when the page that covers them was read. */
export type BlockHashes = ReadonlyArray<readonly [block: number, hash: string]>

export function toBlockCursor(block: number): ComparableCursor {
  return { type: 'blockNumber', value: block }
}

export interface BlockRange {
  readonly from: number
  readonly to: number
  readonly head: number
  readonly reorgDepth: number
}

/** Reads between two looks at the newest blocks of a range: where they are the same, nothing moved meanwhile. */
export async function readConsistently<Value>({ from, to, head, reorgDepth: depth }: BlockRange, hashAt: (block: number) => Promise<string | null>, read: () => Promise<Value>): Promise<{ value: Value; hashes: BlockHashes }> {
  const hashes: Array<[number, string]> = []
  for (let block = Math.max(0, from - 1, head - depth + 1); block <= to; block++) {
    const hash = await hashAt(block)
    if (hash === null) throw createReorgError()
    hashes.push([block, hash])
  }
  const value = await read()
  const last = hashes.at(-1)
  // A block stands for all before it.
  if (last !== undefined && (await hashAt(last[0])) !== last[1]) throw createReorgError()
  return { value, hashes }
}

/** Something is being put into another order; in a moment it can be read. */
export function createReorgError(): SyncError {
  return new SyncError('SOURCE_UNAVAILABLE', 'The chain was reorganised while it was read.')
}

/** Kept in the cursor until the page has landed. The hashes begin with that of the block before `from`: it ties the page to what was read before. */
export function serializeHashes(from: number, hashes: BlockHashes, more: Record<string, JsonValue> = {}): JsonValue {
  return { ...more, from, hashes: hashes.map(([block, hash]) => [block, hash]) }
}

export function parseHashes(custom: JsonValue | undefined): { readonly from: number; readonly hashes: BlockHashes } {
  const isTold = typeof custom === 'object' && custom !== null && !Array.isArray(custom) && Array.isArray(custom.hashes)
  return isTold ? (custom as unknown as { from: number; hashes: BlockHashes }) : { from: 0, hashes: [] }
}
