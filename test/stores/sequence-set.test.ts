import { expect, test } from 'vitest'
import { SequenceSet } from '../../src/stores/sqlite/sequence-set.ts'

test('ranges are ascending and disjoint, keep every gap, and join across chunks', () => {
  const set = new SequenceSet()
  const added = [
    [131_073, 131_073],
    [65_530, 65_540],
    [65_542, 65_542],
    [3, 3],
    [5, 5],
    [4, 4],
    [8, 16],
    [5, 6],
  ] as const
  for (const [first, last] of added) set.add(first, last)
  expect([...set.ranges()]).toEqual([
    [3, 6],
    [8, 16],
    [65_530, 65_540],
    [65_542, 65_542],
    [131_073, 131_073],
  ])
  expect([...new SequenceSet().ranges()]).toEqual([])
})
