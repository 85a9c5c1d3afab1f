import { expect, test } from 'vitest'
import { simulate } from '../../src/testing/simulation/simulate.ts'
import type { WorldConfig } from '../../src/testing/simulation/world-config.ts'

/** Two syncs write the same few rows, whose times are whole seconds and whose contents repeat. */
const REPEATED_CONTENTS: Partial<WorldConfig> = {
  granularityMs: 1_000,
  lagMs: 0,
  skewMs: 0,
  runnerSkewMs: 0,
  stamped: true,
  plain: true,
  monotonic: true,
  emptyPages: false,
  unstorableShare: 0,
  records: 10,
  operations: 150,
  gapMs: 1_500,
  bulkShare: 0,
  deleteShare: 0.4,
  deletions: 'none',
  pageSize: 2,
  pagesMax: 2,
  runners: 3,
  runnerGapMs: 500,
  sourceLatencyMs: [20, 400],
  storeLatencyMs: [1, 50],
  leaseTtlMs: 10_000,
  rates: { freeze: 0.03 },
}

// A listing reads version 2 of a record and freezes; the record goes back to the content of
// version 1 within the same second; the delta reads that and finds the row unchanged. The row must still count as read after the
// listing's page, or the listing would commit version 2 over it.
test('invariants 6 and 12: a listing never overwrites a row that a delta has read after it and found unchanged', async () => {
  const { failures } = await simulate({
    seeds: 1,
    firstSeed: 17,
    worlds: ['pair'],
    overrides: REPEATED_CONTENTS,
    shrinks: false,
  })
  expect(failures.map(({ oracle, message }) => ({ oracle, message }))).toEqual([])
})
