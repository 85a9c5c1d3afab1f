import { expect, test } from 'vitest'
import type { JsonValue, PartitionReader } from '../../src/contract/index.ts'
import { overlayPartitions } from '../../src/values/partition-overlay.ts'

const compareKeys = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b))

function readerOf(stored: ReadonlyMap<string, JsonValue>): PartitionReader {
  const sorted = [...stored].toSorted(([a], [b]) => compareKeys(a, b))
  return {
    get: async (keys) => new Map(keys.flatMap((key) => (stored.has(key) ? [[key, stored.get(key) ?? null]] : []))),
    list: async ({ after, limit }) =>
      sorted
        .filter(([key]) => after === undefined || compareKeys(key, after) > 0)
        .slice(0, limit)
        .map(([key, state]) => ({ key, state })),
  }
}

test('partitions look the same before and after the commit of the writes over them, in pages of any size', async () => {
  const keys = ['a', 'b', 'c', 'd', '\u{ffff}', '\u{10000}']
  const states: readonly (JsonValue | undefined | null)[] = [undefined, null, 1]
  // Every combination of two stored and two written keys.
  for (let combination = 0; combination < 3 ** 4; combination++) {
    const stored = new Map<string, JsonValue>(keys.map((key) => [key, `stored ${key}`]))
    const writes = new Map<string, JsonValue | null>()
    for (const [index, key] of ['a', 'c', 'x', '\u{10000}'].entries()) {
      const state = states[Math.floor(combination / 3 ** index) % 3]
      if (state !== undefined) writes.set(key, state)
    }
    const committed = new Map(stored)
    for (const [key, state] of writes) {
      if (state === null) committed.delete(key)
      else committed.set(key, state)
    }
    const expected = readerOf(committed)
    for (const base of [stored, committed]) {
      const overlay = overlayPartitions(readerOf(base), writes)
      const wanted = [...keys, 'x', 'y']
      expect(new Map(await overlay.get(wanted))).toEqual(new Map(await expected.get(wanted)))
      for (const limit of [1, 2, 10])
        for (const after of [undefined, 'a', 'c', 'x'])
          expect(await overlay.list({ limit, ...(after !== undefined && { after }) })).toEqual(
            await expected.list({ limit, ...(after !== undefined && { after }) }),
          )
    }
  }
})
