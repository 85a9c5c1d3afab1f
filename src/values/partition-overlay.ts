import type { JsonValue, PartitionReader, PartitionState } from '../contract/index.ts'

/** For a source that is called outside a cycle: no partition has a state. */
export const NO_PARTITIONS: PartitionReader = { get: async () => new Map(), list: async () => [] }

/**
 * The partitions as they will be once these writes are committed: the same before and after the commit. `writes` may grow.
 */
export function overlayPartitions(
  reader: PartitionReader,
  writes: ReadonlyMap<string, JsonValue | null>,
): PartitionReader {
  return {
    get: async (keys) => {
      const stored = keys.filter((key) => !writes.has(key))
      const found = new Map(stored.length === 0 ? [] : await reader.get(stored))
      for (const key of keys) {
        const state = writes.get(key)
        if (state !== undefined && state !== null) found.set(key, state)
      }
      return found
    },
    list: async ({ after, limit }) => {
      // Each write may hide one stored partition.
      const stored = await reader.list({ ...(after !== undefined && { after }), limit: limit + writes.size })
      const written = [...writes].flatMap(([key, state]): PartitionState[] =>
        state !== null && (after === undefined || compareKeys(key, after) > 0) ? [{ key, state }] : [],
      )
      return [...stored.filter(({ key }) => !writes.has(key)), ...written]
        .toSorted((a, b) => compareKeys(a.key, b.key))
        .slice(0, limit)
    },
  }
}

/** By UTF-8 bytes, as stores order keys: above U+FFFF the order of UTF-16 is another. */
export function compareKeys(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}
