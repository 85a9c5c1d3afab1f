import type { Change, JsonValue } from '../../contract/index.ts'
import type { HistoryRepair } from '../../strategies/index.ts'
import { parseHashes, type ChainProvider } from './chain-provider.ts'
import { getTransferKey, type Transfer } from './transfer.ts'

/** What is kept between pages: the newest blocks, and what became of those that were replaced. */
interface ReorgState {
  readonly blocks: readonly TrackedBlock[]
  readonly suspects?: SuspectKeys
}

/** A block that may still be replaced: its number, its hash, and the keys that were landed from it. */
type TrackedBlock = readonly [block: number, hash: string, ...keys: string[]]

/** Instead of a hash: no longer that of the chain. */
const REPLACED_HASH = ''

/** Keys of blocks that are gone. Those that have not come back when all up to `until` is read again are deleted. */
interface SuspectKeys {
  readonly until: number
  readonly keys: readonly string[]
}

/**
 * Blocks near the head may be replaced by others. The hashes of the last `depth` are kept, with what was landed from them; where a
 * provider has another hash, everything after the last common block is read again, and what is in no block any more is deleted.
 * A provider that lacks something of the same block only has a gap: then the row stays.
 */
export function createReorgRepair(providers: readonly ChainProvider[], depth: number): HistoryRepair<Transfer> {
  return {
    async check({ provider: name, kept }, context) {
      const provider = providers.find((other) => other.name === name)!
      const { blocks } = toReorgState(kept)
      let changed = blocks.find(([, hash]) => hash === REPLACED_HASH)?.[0] ?? null
      for (const [block, hash] of blocks.filter((entry) => changed === null || entry[0] < changed).toReversed()) {
        const found = await provider.getBlockHash(block, context)
        // A provider that does not have it says nothing of it.
        if (found === null) continue
        if (found === hash) return changed === null ? null : { from: toBlockCursor(block + 1), kept: markSuspects(toReorgState(kept), ([other]) => other > block) }
        changed = block
      }
      if (changed === null) return null
      context.log.warn('the chain was reorganised as far back as its blocks are kept', { provider: name })
      const from = changed
      return { from: toBlockCursor(from), kept: markSuspects(toReorgState(kept), ([other]) => other >= from) }
    },
    settle({ fetchedItems: seen, cursor, isComplete }, given) {
      const { from, hashes: told } = parseHashes(cursor.metadata?.custom)
      const hashes = new Map(told.filter(([block]) => block >= from))
      const { blocks, suspects } = toReorgState(markSuspects(toReorgState(given), ([block, hash]) => hashes.has(block) && hashes.get(block) !== hash))
      // The block before those of the page is another than the one that was read: so it has to be read again as well.
      const isReplaced = ([block, hash]: TrackedBlock): boolean => block < from && told.some(([other, now]) => other === block && now !== hash)
      const after = new Map(blocks.map((entry): [number, TrackedBlock] => [entry[0], isReplaced(entry) ? [entry[0], REPLACED_HASH, ...getKeys(entry)] : entry]))
      for (const [block, hash] of hashes) {
        const landed = seen.filter((transfer) => transfer.block === block).map(getTransferKey)
        after.set(block, [block, hash, ...new Set([...getKeys(after.get(block)), ...landed])])
      }
      const top = Math.max(0, ...after.keys())
      const kept = [...after.values()].filter(([block]) => block > top - depth).toSorted((a, b) => a[0] - b[0])
      if (suspects === undefined) return { changes: [], kept: { blocks: kept } as unknown as JsonValue }
      const alive = new Set([...seen.map(getTransferKey), ...kept.flatMap(getKeys)])
      const missing = suspects.keys.filter((key) => !alive.has(key))
      const place = cursor.primary.type === 'blockNumber' ? cursor.primary.value : 0
      // A chain that ends before, with its last block named, has become shorter. An end without it proves nothing.
      const isRead = place > suspects.until || (isComplete && told.some(([block]) => block === place - 1))
      if (!isRead) return { changes: [], kept: { blocks: kept, suspects: { ...suspects, keys: missing } } as unknown as JsonValue }
      return { changes: missing.map((key): Change => ({ type: 'delete', key })), kept: { blocks: kept } as unknown as JsonValue }
    },
  }
}

function markSuspects({ blocks, suspects }: ReorgState, isGone: (entry: TrackedBlock) => boolean): JsonValue {
  const gone = blocks.filter(isGone)
  const keys = [...new Set([...(suspects?.keys ?? []), ...gone.flatMap(getKeys)])]
  const until = Math.max(suspects?.until ?? 0, ...gone.map(([block]) => block))
  return { blocks: blocks.filter((entry) => !isGone(entry)), ...(keys.length > 0 && { suspects: { until, keys } }) } as unknown as JsonValue
}

function getKeys(entry: TrackedBlock | undefined): string[] {
  return entry === undefined ? [] : entry.slice(2) as string[]
}

function toReorgState(kept: JsonValue | undefined): ReorgState {
  return (kept as ReorgState | undefined) ?? { blocks: [] }
}

function toBlockCursor(value: number): { readonly type: 'blockNumber'; readonly value: number } {
  return { type: 'blockNumber', value }
}
