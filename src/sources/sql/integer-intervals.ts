import type { KeyRange } from '../../contract/index.ts'

/** Integers from `min` to `max`, both included. */
export interface IntegerInterval {
  readonly min: bigint
  readonly max: bigint
}

const DIGITS_MAX = 20

/**
 * The integers whose decimal text is in a range of keys, which is ordered by bytes: `10` comes before `9`. Of numbers
 * with the same sign and length the order is that of their digits, so there is at most one interval for each.
 */
export function listIntegerIntervals(range: KeyRange, limits: IntegerInterval): IntegerInterval[] {
  if (range.after === null && range.upTo === null) return [limits]
  const intervals: IntegerInterval[] = []
  for (const sign of ['-', '']) {
    for (let digits = 1; digits <= DIGITS_MAX; digits++) {
      const lowest = digits === 1 && sign === '' ? 0n : 10n ** BigInt(digits - 1)
      const highest = 10n ** BigInt(digits) - 1n
      // The smallest number after the range's start, and the smallest after its end.
      const first = findFirst(lowest, highest, (number) => isAbove(`${sign}${number}`, range.after))
      const end = findFirst(lowest, highest, (number) => range.upTo !== null && isAbove(`${sign}${number}`, range.upTo))
      if (first >= end) continue
      const [low, high] = sign === '' ? [first, end - 1n] : [1n - end, -first]
      const min = low < limits.min ? limits.min : low
      const max = high > limits.max ? limits.max : high
      if (min <= max) intervals.push({ min, max })
    }
  }
  return intervals
}

/** Digits and signs are ASCII, so UTF-16 and UTF-8 order them alike against any text. */
function isAbove(text: string, bound: string | null): boolean {
  return bound === null || text > bound
}

/** The smallest number that passes, if all numbers after it do; one more than the highest if none does. */
function findFirst(lowest: bigint, highest: bigint, passes: (number: bigint) => boolean): bigint {
  let [from, to] = [lowest, highest + 1n]
  while (from < to) {
    const middle = (from + to) / 2n
    if (passes(middle)) to = middle
    else from = middle + 1n
  }
  return from
}
