import { expect, test } from 'vitest'
import { simulate } from '../../src/testing/simulation/simulate.ts'
import type { WorldConfig } from '../../src/testing/simulation/world-config.ts'

/** Records that change and change back within one second, read by a slow listing beside a fast delta. */
const CHANGED_BACK: Partial<WorldConfig> = {
  plain: true,
  granularityMs: 1_000,
  lagMs: 0,
  skewMs: 0,
  runnerSkewMs: 0,
  usesSourceTime: false,
  stamped: true,
  monotonic: true,
  emptyPages: false,
  unstorableShare: 0,
  rates: {},
  records: 10,
  operations: 150,
  gapMs: 700,
  bulkShare: 0,
  deleteShare: 0.4,
  deletions: 'none',
  pageSize: 2,
  pagesMax: 100_000,
  runners: 3,
  runnerGapMs: 500,
  sourceLatencyMs: [5, 50],
  responseLatencyMs: { replace: [100, 2_000] },
  storeLatencyMs: [1, 10],
  leaseTtlMs: 10_000,
}

test('invariants 6 and 12: of two versions with one time, a listing that read the older does not restore it', async () => {
  const { failures } = await simulate({ seeds: 16, worlds: ['pair'], overrides: CHANGED_BACK, shrinks: false })
  expect(failures).toEqual([])
}, 120_000)
