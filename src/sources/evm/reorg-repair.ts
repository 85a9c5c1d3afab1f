import type { Change, JsonValue } from '../../contract/index.ts'
import type { HistoryRepair } from '../../strategies/index.ts'
import { required } from '../../values/required.ts'
import { parseHashes, type ChainProvider } from './chain-provider.ts'
import { getTransferKey, type Transfer } from './transfer.ts'

/** The state between pages: the newest blocks, and the keys of replaced blocks. A type alias, so that it is a JSON value. */
type ReorgState = {
  readonly blocks: TrackedBlock[]
  readonly suspects?: SuspectKeys
}

/** A block that may still be replaced: its number, its hash, and the keys that were landed from it. */
type TrackedBlock = [block: number, hash: string, ...keys: string[]]

/** Replaces the hash of a block that is no longer part of the chain. */
const REPLACED_HASH = ''

/** Keys of replaced blocks. Keys that are not found again when all blocks up to `until` have been re-read are deleted. */
type SuspectKeys = {
  readonly until: number
  readonly keys: string[]
}

/**
 * Blocks near the head may be replaced. The state keeps the hashes of the last `depth` blocks and the keys landed from them. If a
 * provider has another hash, everything after the last common block is read again, and keys that are in no block any more are
 * deleted. A provider that lacks a transfer of the same block has a gap, and the row stays.
 */
export function createReorgRepair(providers: readonly ChainProvider[], depth: number): HistoryRepair<Transfer> {
  return {
    async check({ provider: name, kept }, context) {
      const provider = required(
        providers.find((other) => other.name === name),
        `The provider ${name}`,
      )
      const { blocks } = toReorgState(kept)
      let changed = blocks.find(([, hash]) => hash === REPLACED_HASH)?.[0] ?? null
      for (const [block, hash] of blocks.filter((entry) => changed === null || entry[0] < changed).toReversed()) {
        const found = await provider.getBlockHash(block, context)
        // A provider without the block proves nothing.
        if (found === null) continue
        if (found === hash)
          return changed === null
            ? null
            : { from: toBlockCursor(block + 1), kept: markSuspects(toReorgState(kept), ([other]) => other > block) }
        changed = block
      }
      if (changed === null) return null
      context.log.warn('the chain was reorganised beyond the tracked blocks', { provider: name })
      const from = changed
      return { from: toBlockCursor(from), kept: markSuspects(toReorgState(kept), ([other]) => other >= from) }
    },
    settle({ fetchedItems, cursor, isComplete }, given) {
      const { from, hashes: pageHashes } = parseHashes(cursor.metadata?.custom)
      const hashes = new Map(pageHashes.filter(([block]) => block >= from))
      const { blocks, suspects } = toReorgState(
        markSuspects(toReorgState(given), ([block, hash]) => hashes.has(block) && hashes.get(block) !== hash),
      )
      // The block before the page differs from the one that was read, so it must be read again too.
      const isReplaced = ([block, hash]: TrackedBlock): boolean =>
        block < from && pageHashes.some(([other, now]) => other === block && now !== hash)
      const after = new Map(
        blocks.map((entry): [number, TrackedBlock] => [
          entry[0],
          isReplaced(entry) ? [entry[0], REPLACED_HASH, ...getKeys(entry)] : entry,
        ]),
      )
      for (const [block, hash] of hashes) {
        const landed = fetchedItems.filter((transfer) => transfer.block === block).map(getTransferKey)
        after.set(block, [block, hash, ...new Set([...getKeys(after.get(block)), ...landed])])
      }
      const top = Math.max(0, ...after.keys())
      const kept = [...after.values()].filter(([block]) => block > top - depth).toSorted((a, b) => a[0] - b[0])
      if (suspects === undefined) return { changes: [], kept: { blocks: kept } }
      const present = new Set([...fetchedItems.map(getTransferKey), ...kept.flatMap(getKeys)])
      const missing = suspects.keys.filter((key) => !present.has(key))
      const nextBlock = cursor.primary.type === 'blockNumber' ? cursor.primary.value : 0
      // A chain that ends earlier has become shorter, if the page has the hash of its last block. Otherwise the end proves nothing.
      const isRead = nextBlock > suspects.until || (isComplete && pageHashes.some(([block]) => block === nextBlock - 1))
      if (!isRead) return { changes: [], kept: { blocks: kept, suspects: { ...suspects, keys: missing } } }
      return { changes: missing.map((key): Change => ({ type: 'delete', key })), kept: { blocks: kept } }
    },
  }
}

function markSuspects({ blocks, suspects }: ReorgState, isGone: (entry: TrackedBlock) => boolean): JsonValue {
  const gone = blocks.filter(isGone)
  const keys = [...new Set([...(suspects?.keys ?? []), ...gone.flatMap(getKeys)])]
  const until = Math.max(suspects?.until ?? 0, ...gone.map(([block]) => block))
  return { blocks: blocks.filter((entry) => !isGone(entry)), ...(keys.length > 0 && { suspects: { until, keys } }) }
}

function getKeys(entry: TrackedBlock | undefined): string[] {
  return entry === undefined ? [] : entry.slice(2).map(String)
}

function toReorgState(kept: JsonValue | undefined): ReorgState {
  return (kept as ReorgState | undefined) ?? { blocks: [] }
}

function toBlockCursor(value: number): { readonly type: 'blockNumber'; readonly value: number } {
  return { type: 'blockNumber', value }
}
