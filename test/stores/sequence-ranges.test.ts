import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { mergeRanges, toSequenceRanges } from '../../src/stores/kit/plan-landing.ts'

const sequences = fc.array(fc.nat(40), { maxLength: 20 })

describe('ranges of sequences', () => {
  test('contain exactly the given sequences, in as few ranges as possible', () => {
    fc.assert(fc.property(sequences, (given) => expectExact(toSequenceRanges(given), given)))
  })

  test('merged, contain exactly the sequences of each', () => {
    fc.assert(
      fc.property(fc.array(sequences, { maxLength: 4 }), (lists) =>
        expectExact(mergeRanges(lists.flatMap(toSequenceRanges)), lists.flat()),
      ),
    )
  })
})

function expectExact(ranges: ReadonlyArray<[number, number]>, given: readonly number[]): void {
  const contained = ranges.flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, n) => first + n))
  expect(contained).toEqual([...new Set(given)].toSorted((a, b) => a - b))
  for (const [at, [first]] of ranges.entries()) expect(first).not.toBe((ranges[at - 1]?.[1] ?? -2) + 1)
}
