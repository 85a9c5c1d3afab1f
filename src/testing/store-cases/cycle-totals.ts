import assert from 'node:assert/strict'
import type { CycleTotals, CycleTotalsQuery, Store } from '../../contract/index.ts'
import { remove, rule, START, type StoreCase, SyncDriver, upsert } from './harness.ts'

const STEP_MS = 1_000

/** Cycles of two syncs: within a step, across steps, before and after the range, failed, and still running. */
const CYCLES = {
  delta: [
    { from: -90_000, to: -89_500, rows: 3 },
    { from: -80_000, to: 2_500, rows: 825, waitedMs: 165 },
    { from: 2_600, to: 2_700, rows: 4, retries: 2 },
    { from: 2_999, to: 3_000, removed: 2 },
    { from: 4_100, to: 4_200, rows: 7, waitedMs: 30 },
    { from: 4_300, to: 4_400, error: true },
    { from: 7_500, to: 12_500, rows: 100, retries: 1 },
    { from: 20_000, to: 20_100, rows: 1 },
  ],
  other: [
    { from: -5_000, to: -4_000, rows: 50 },
    { from: 4_150, to: 4_250, rows: 11 },
    { from: 5_100, to: null, rows: 6 },
  ],
} satisfies Record<string, readonly TestCycle[]>

interface TestCycle {
  readonly from: number
  readonly to: number | null
  readonly rows?: number
  /** The number of deletes, of rows of earlier cycles. */
  readonly removed?: number
  readonly retries?: number
  readonly waitedMs?: number
  readonly error?: boolean
}

export const cycleTotalsCases: readonly StoreCase[] = [
  rule('the totals of cycles in steps of time equal those computed from the records', async ({ store }) => {
    await writeCycles(store)
    for (const ref of [null, { worker: 'crm', sync: 'delta' }, { worker: 'crm', sync: 'other' }])
      for (const [from, steps] of [
        [0, 10],
        [2_000, 3],
        [4_000, 1],
        [-100_000, 200],
        [30_000, 10],
      ] as const) {
        const query = { ref, from: START + from, stepMs: STEP_MS, steps, at: START + 6_000 }
        assert.deepEqual(await store.cycleTotals(query), await computeTotals(store, query), `${ref?.sync} ${from}`)
      }
    const [first] = await store.cycleTotals({ ref: null, from: START + 2_000, stepMs: 1_000, steps: 1, at: START })
    // Half of a step of the long cycle, and the two after it.
    assert.deepEqual(first, {
      step: 0,
      cycles: 2,
      failed: 0,
      rows: 11,
      waitedMs: 1,
      retries: 2,
      completeSince: START + 2_600,
    })
    assert.deepEqual(
      await store.cycleTotals({
        ref: { worker: 'crm', sync: 'none' },
        from: START,
        stepMs: 1_000,
        steps: 9,
        at: START,
      }),
      [],
    )
  }),
  rule('invariant 10 the totals contain the cycles of the tenant alone', async ({ store }) => {
    await writeCycles(store.forTenant('acme'))
    const query = { ref: null, from: START, stepMs: STEP_MS, steps: 10, at: START }
    assert.deepEqual(await store.cycleTotals(query), [])
    assert.notDeepEqual(await store.forTenant('acme').cycleTotals(query), [])
  }),
]

/** In the order of their start, as real cycles are numbered. */
async function writeCycles(store: Store): Promise<void> {
  const all = Object.entries(CYCLES).flatMap(([sync, cycles]) => cycles.map((cycle: TestCycle) => ({ sync, ...cycle })))
  let written = 0
  for (const { sync, from, to, rows = 0, removed = 0, retries = 0, waitedMs = 0, error = false } of all.toSorted(
    (a, b) => a.from - b.from,
  )) {
    const driver = await SyncDriver.acquire(store, { sync })
    await driver.begin({ at: START + from, fresh: true })
    await driver.page([
      ...Array.from({ length: rows }, () => upsert(`k${written++}`, { n: 1 })),
      ...Array.from({ length: removed }, (_, n) => remove(`k${n}`)),
    ])
    if (to === null) continue
    await driver.release({
      endedAt: START + to,
      stopReason: error ? 'error' : 'complete',
      retries,
      waitedMs,
      error: error ? { code: 'SOURCE_TIMEOUT', message: 'no answer' } : null,
    })
  }
}

/** The definition, without SQL. */
async function computeTotals(store: Store, { ref, from, stepMs, steps, at }: CycleTotalsQuery): Promise<CycleTotals[]> {
  const cycles = await store.cycles(ref, { limit: 100 })
  return Array.from({ length: steps }, (_, step) => {
    const [begin, end] = [from + step * stepMs, from + (step + 1) * stepMs]
    const total = { step, cycles: 0, failed: 0, rows: 0, waitedMs: 0, retries: 0, completeSince: null as number | null }
    let overlaps = false
    for (const cycle of cycles) {
      const stop = Math.max(cycle.startedAt + 1, cycle.endedAt ?? at)
      const share = Math.max(0, Math.min(end, stop) - Math.max(begin, cycle.startedAt)) / (stop - cycle.startedAt)
      const { created, updated, deleted, swept } = cycle.counts
      total.rows += (created + updated + deleted + swept) * share
      total.waitedMs += cycle.waitedMs * share
      overlaps ||= share > 0
      if (cycle.endedAt === null || cycle.endedAt < begin || cycle.endedAt >= end) continue
      overlaps = true
      total.cycles++
      total.retries += cycle.retries
      if (cycle.error !== null) total.failed++
      if (cycle.stopReason === 'complete') total.completeSince = Math.max(total.completeSince ?? 0, cycle.startedAt)
    }
    return overlaps ? [{ ...total, rows: Math.round(total.rows), waitedMs: Math.round(total.waitedMs) }] : []
  }).flat()
}
