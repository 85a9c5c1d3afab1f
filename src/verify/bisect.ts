import type { RangeSummary } from '../contract/index.ts'
import { required } from '../values/required.ts'

/** Consecutive units of the copy: from `first` up to, and without, `end`. */
export interface UnitRange {
  readonly first: number
  readonly end: number
}

/**
 * Finds the units whose summaries differ between the copy and the source. A step asks for the summaries of some ranges
 * of units. Of two halves only the first is asked for: counts and digests are sums, so the second half has the rest.
 *
 * Without differences it asks `parts` times. Every further request is one yes-or-no question about a range that is known
 * to differ, so their number is bounded by the bits that identify the units: see `countMinimum`.
 */
export function* bisect(
  units: readonly RangeSummary[],
  parts: number,
): Generator<readonly UnitRange[], number[], readonly RangeSummary[]> {
  const sums = new PrefixSums(units)
  const differing: number[] = []
  const size = Math.max(1, Math.ceil(units.length / Math.max(1, parts)))
  let open: Array<UnitRange & { readonly source: RangeSummary }> = []
  const starts = Array.from({ length: Math.ceil(units.length / size) }, (_, at) => at * size)
  const asked = starts.map((first) => ({ first, end: Math.min(first + size, units.length) }))
  const keep = (range: UnitRange, source: RangeSummary): void => {
    if (!isEqualSummary(sums.of(range), source)) open.push({ ...range, source })
  }
  if (asked.length > 0) {
    const answers = yield asked
    for (const [at, range] of asked.entries()) keep(range, required(answers[at], 'summary of a range'))
  }
  while (open.length > 0) {
    const wide = open.filter(({ first, end }) => end - first > 1)
    for (const { first, end } of open) if (end - first === 1) differing.push(first)
    open = []
    if (wide.length === 0) break
    const halves = wide.map(({ first, end }) => ({ first, end: Math.ceil((first + end) / 2) }))
    const answers = yield halves
    for (const [at, { end, source }] of wide.entries()) {
      const half = required(halves[at], 'first half')
      const answer = required(answers[at], 'summary of a half')
      keep(half, answer)
      keep({ first: half.end, end }, subtract(source, answer))
    }
  }
  return differing.toSorted((a, b) => a - b)
}

/**
 * The fewest yes-or-no questions that identify which `differing` of `units` differ: the binary logarithm of the number of
 * possible answers.
 */
export function countMinimum(units: number, differing: number): number {
  let bits = 0
  for (let at = 0; at < differing; at++) bits += Math.log2((units - at) / (differing - at))
  return Math.max(1, Math.ceil(bits))
}

const MODULUS_BITS = 64

function isEqualSummary(a: RangeSummary, b: RangeSummary): boolean {
  return a.count === b.count && (b.digest === undefined || a.digest === b.digest)
}

function subtract(a: RangeSummary, b: RangeSummary): RangeSummary {
  return {
    count: a.count - b.count,
    ...(a.digest !== undefined &&
      b.digest !== undefined && { digest: BigInt.asUintN(MODULUS_BITS, a.digest - b.digest) }),
  }
}

class PrefixSums {
  readonly #counts: readonly number[]
  readonly #digests: readonly bigint[]

  constructor(units: readonly RangeSummary[]) {
    const counts = [0]
    const digests = [0n]
    for (const [at, { count, digest = 0n }] of units.entries()) {
      counts.push(required(counts[at], 'count') + count)
      digests.push(BigInt.asUintN(MODULUS_BITS, required(digests[at], 'digest') + digest))
    }
    this.#counts = counts
    this.#digests = digests
  }

  of({ first, end }: UnitRange): RangeSummary {
    const [from, to] = [required(this.#digests[first], 'digest'), required(this.#digests[end], 'digest')]
    return {
      count: required(this.#counts[end], 'count') - required(this.#counts[first], 'count'),
      digest: BigInt.asUintN(MODULUS_BITS, to - from),
    }
  }
}
