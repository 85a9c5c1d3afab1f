import { SyncError, type JsonValue, type SyncContext } from '../../contract/index.ts'
import { isObject } from '../kit/classify-response.ts'
import type { ComparableCursor, Provider } from '../../strategies/index.ts'
import type { BlockTimes } from './block-times.ts'
import type { Transfer } from './transfer.ts'

/** A provider that also returns block hashes. */
export interface ChainProvider extends Provider<Transfer> {
  /** The hash of a block; null if the provider does not have it yet. */
  getBlockHash(block: number, context: SyncContext): Promise<string | null>
}

export interface ChainProviderOptions {
  readonly name: string
  /** The account whose transfers are read. */
  readonly address: string
  /** The first block of the first cycle. */
  readonly startBlock: number
  /** The number of newest blocks that are not read. */
  readonly confirmations: number
  /** A lower bound for `confirmations`, also if the provider declares its own. */
  readonly confirmationsMin: number
  /** The number of newest blocks that a reorganisation may replace. */
  readonly reorgDepth: number
  /** The id of the chain. Without it any chain is accepted. */
  readonly chainId?: number
  readonly times: BlockTimes
}

/** Creates a provider for an account. */
export type ChainProviderFactory = (options: Omit<ChainProviderOptions, 'name'>) => ChainProvider

/** Hashes of blocks that may still be replaced, at the time their page was read. */
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

/** Compares the newest block hashes of a range before and after the read. If they are equal, the chain did not change meanwhile. */
export async function readConsistently<Value>(
  { from, to, head, reorgDepth: depth }: BlockRange,
  hashAt: (block: number) => Promise<string | null>,
  read: () => Promise<Value>,
): Promise<{ value: Value; hashes: BlockHashes }> {
  const hashes: Array<[number, string]> = []
  for (let block = Math.max(0, from - 1, head - depth + 1); block <= to; block++) {
    const hash = await hashAt(block)
    if (hash === null) throw createReorgError()
    hashes.push([block, hash])
  }
  const value = await read()
  const last = hashes.at(-1)
  // The hash of a block covers all blocks before it.
  if (last !== undefined && (await hashAt(last[0])) !== last[1]) throw createReorgError()
  return { value, hashes }
}

/** A reorganisation is temporary, so the page is retried. */
export function createReorgError(): SyncError {
  return new SyncError('SOURCE_UNAVAILABLE', 'The chain was reorganised during the read. The page is read again.')
}

/** Stored in the cursor until the page is committed. The first hash is of the block before `from`, to link the page to the previous one. */
export function serializeHashes(from: number, hashes: BlockHashes, more: Record<string, JsonValue> = {}): JsonValue {
  return { ...more, from, hashes: hashes.map(([block, hash]) => [block, hash]) }
}

export function parseHashes(custom: JsonValue | undefined): { readonly from: number; readonly hashes: BlockHashes } {
  const { from, hashes } = isObject(custom) ? custom : {}
  return typeof from === 'number' && Array.isArray(hashes) && hashes.every(isBlockHash)
    ? { from, hashes }
    : { from: 0, hashes: [] }
}

function isBlockHash(value: JsonValue): value is [number, string] {
  return Array.isArray(value) && typeof value[0] === 'number' && typeof value[1] === 'string'
}
