import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { RangeSummary } from '../../src/contract/index.ts'
import { bisect, countMinimum, type UnitRange } from '../../src/verify/bisect.ts'

interface Search {
  readonly found: number[]
  readonly requests: number
}

const summaryOf = (counts: readonly bigint[]): RangeSummary => ({
  count: counts.length,
  digest: BigInt.asUintN(
    64,
    counts.reduce((sum, digest) => sum + digest, 0n),
  ),
})

function search(copy: readonly bigint[], source: readonly bigint[][], parts: number): Search {
  const generator = bisect(
    copy.map((digest) => summaryOf([digest])),
    parts,
  )
  let requests = 0
  let step = generator.next()
  while (!step.done) {
    requests += step.value.length
    step = generator.next(step.value.map(({ first, end }: UnitRange) => summaryOf(source.slice(first, end).flat())))
  }
  return { found: step.value, requests }
}

const random = (n: number): bigint => BigInt.asUintN(64, BigInt(n + 1) * 0x9e3779b97f4a7c15n)

describe('bisect', () => {
  test('finds exactly the units that differ, whatever differs', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 300 }),
        fc.array(fc.tuple(fc.nat(299), fc.constantFrom('missing', 'extra', 'stale')), { maxLength: 12 }),
        fc.integer({ min: 1, max: 40 }),
        (size, planted, parts) => {
          const copy = Array.from({ length: size }, (_, at) => random(at))
          const source = copy.map((digest) => [digest])
          const differing = new Set<number>()
          for (const [at, kind] of planted) {
            if (at >= size || differing.has(at)) continue
            differing.add(at)
            source[at] =
              kind === 'missing' ? [random(at), random(at + 1_000)] : kind === 'extra' ? [] : [random(at + 2_000)]
          }
          const result = search(copy, source, parts)
          expect(result.found).toEqual([...differing].toSorted((a, b) => a - b))
        },
      ),
    )
  })

  test('asks at most twice as often as the fewest questions that can find them', () => {
    for (const [size, count] of [
      [4_096, 1],
      [4_096, 10],
      [4_096, 100],
      [10_000, 30],
    ] as const) {
      const copy = Array.from({ length: size }, (_, at) => random(at))
      const source = copy.map((digest) => [digest])
      for (let n = 0; n < count; n++) source[Number(random(n) % BigInt(size))] = [0n]
      const { found, requests } = search(copy, source, 1)
      expect(requests).toBeLessThanOrEqual(2 * countMinimum(size, found.length) + 1)
    }
  })

  test('without differences, one question is asked', () => {
    const copy = Array.from({ length: 100 }, (_, at) => random(at))
    expect(
      search(
        copy,
        copy.map((digest) => [digest]),
        1,
      ),
    ).toEqual({ found: [], requests: 1 })
  })
})
