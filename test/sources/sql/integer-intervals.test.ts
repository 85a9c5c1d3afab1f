import fc from 'fast-check'
import { expect, test } from 'vitest'
import { listIntegerIntervals } from '../../../src/sources/sql/integer-intervals.ts'
import { compareKeys } from '../../../src/values/partition-overlay.ts'

const LIMITS = { min: -(2n ** 63n), max: 2n ** 63n - 1n }

test('the intervals of a key range contain exactly the integers whose text is in it', () => {
  const integer = fc.oneof(fc.bigInt({ min: -2000n, max: 2000n }), fc.bigInt(LIMITS))
  const bound = fc.oneof(fc.constant(null), integer.map(String), fc.string({ maxLength: 4 }))
  fc.assert(
    fc.property(bound, bound, fc.array(integer, { minLength: 1, maxLength: 20 }), (after, upTo, numbers) => {
      const intervals = listIntegerIntervals({ after, upTo }, LIMITS)
      for (const number of numbers) {
        const text = String(number)
        const isInside =
          (after === null || compareKeys(text, after) > 0) && (upTo === null || compareKeys(text, upTo) <= 0)
        expect(intervals.filter(({ min, max }) => min <= number && number <= max)).toHaveLength(isInside ? 1 : 0)
      }
    }),
    { numRuns: 300 },
  )
})

test('the intervals stay within the limits of the column', () => {
  expect(listIntegerIntervals({ after: '9', upTo: null }, { min: 0n, max: 95n })).toEqual([{ min: 90n, max: 95n }])
})
