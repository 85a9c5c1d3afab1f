import { expect, test } from 'vitest'
import { simulate } from '../../src/testing/simulation/simulate.ts'
import type { WorldConfig } from '../../src/testing/simulation/world-config.ts'

const TIMES_GO_BACK: Partial<WorldConfig> = {
  backStampShare: 0.3,
  stamped: true,
  plain: false,
  granularityMs: 1,
  unstorableShare: 0,
}

test.each([
  ['confirmed by the next listing', false],
  ['confirmed by a lookup', true],
])(
  'invariant 13: where times of records go back, two undisturbed listings repair the copy and no row goes back, %s',
  async (_, lookup) => {
    const { failures } = await simulate({
      seeds: 40,
      worlds: ['replace'],
      overrides: { ...TIMES_GO_BACK, lookup },
      shrinks: false,
    })
    expect(failures).toEqual([])
  },
  120_000,
)

test('invariant 5: a listing that omits 40 % of the rows deletes no live one, where the source supports lookups', async () => {
  const { failures } = await simulate({
    seeds: 40,
    worlds: ['lie'],
    overrides: { omission: 'some', lookup: true },
    shrinks: false,
  })
  expect(failures).toEqual([])
}, 120_000)
