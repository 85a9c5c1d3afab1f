import { describe, expect, test } from 'vitest'
import type { WorldConfig } from '../../src/testing/simulation/world-config.ts'
import { observe, type Observed, type Worlds } from './worlds.ts'

/** Worlds with one fault each, at an unrealistically high rate, so that its every effect on the engine shows. */

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
/** No other problems: no other faults, exact clocks, records that can be stored. */
const CALM: Partial<WorldConfig> = {
  rates: {},
  skewMs: 0,
  runnerSkewMs: 0,
  lagMs: 0,
  unstorableShare: 0,
  plain: false,
  monotonic: true,
  pagesMax: 100_000,
}

async function calm(worlds: Partial<Worlds> & Pick<Worlds, 'kinds'>): Promise<Observed> {
  const observed = await observe({ seeds: 15, ...worlds, overrides: { ...CALM, ...worlds.overrides } })
  expect(observed.broken).toEqual([])
  return observed
}

function countOf(observed: Observed, mark: RegExp): number {
  let count = 0
  for (const [name, times] of observed.marks) if (mark.test(name)) count += times
  return count
}

function answered({ verdicts }: Observed, kind: 'fenced' | 'conflict' | 'overlap' | 'massDeleteBlocked'): number {
  return verdicts.reduce((sum, { outcomes }) => sum + (outcomes[kind] ?? 0), 0)
}

const codesOf = ({ results }: Observed): Set<string | undefined> => new Set(results.map((result) => result.error?.code))

describe('crashes', () => {
  test('XA1 XA2 XA5 XA8 crashes before a request, between answer and landing, after a commit, and again in the recovery leave no trace', async () => {
    const crashed = await calm({
      kinds: ['replace', 'delta', 'pair'],
      seeds: 45,
      overrides: { rates: { crash: 0.04 } },
    })
    expect(countOf(crashed, /^crash source\.\w+:before/)).toBeGreaterThan(1)
    expect(countOf(crashed, /^crash store\.commit:before/)).toBeGreaterThan(1)
    expect(countOf(crashed, /^crash store\.commit:after/)).toBeGreaterThan(1)
    expect(countOf(crashed, /^crash store\.(acquire|begin)/)).toBeGreaterThan(1)
  })

  test('XA11 a runner frozen for longer than its lease lands nothing after another took over', async () => {
    const frozen = await calm({
      kinds: ['replace', 'delta'],
      seeds: 30,
      overrides: { rates: { freeze: 0.04 }, leaseTtlMs: 2_000, runners: 3, runnerGapMs: 500 },
    })
    expect(countOf(frozen, /^freeze/)).toBeGreaterThan(35)
    expect(frozen.results.filter((result) => result.stopReason === 'lease_lost').length).toBeGreaterThan(1)
    expect(answered(frozen, 'fenced')).toBeGreaterThan(0)
  })

  test('a runner that receives a stop signal ends its cycle as cancelled, and the next one continues', async () => {
    const stopped = await calm({ kinds: ['replace', 'delta'], overrides: { rates: { terminate: 0.03 } } })
    expect(countOf(stopped, /^terminate/)).toBeGreaterThan(7)
    expect(stopped.results.some((result) => result.stopReason === 'cancelled')).toBe(true)
    expect(stopped.results.some((result) => result.resumed && result.stopReason === 'complete')).toBe(true)
  })
})

describe('the store and the registry', () => {
  test('XB1 of runners that start together one holds the sync, and the others send no request to the source', async () => {
    // Sequential requests can only be observed where one runner is at work.
    const alone = await calm({ kinds: ['replace'], overrides: { runners: 3, runnerGapMs: 500, operations: 20 } })
    const held = alone.results.filter((result) => result.stopReason === 'held')
    expect(held.length).toBeGreaterThan(17)
    expect(held.every((result) => result.cycle === null && result.pages === 0)).toBe(true)
  })

  test('XB2 XB16 wrong clocks, also ones that step back, neither break a lease nor the order of the feed', async () => {
    const wrong = await calm({
      kinds: ['replace', 'delta', 'pair'],
      seeds: 24,
      overrides: { rates: { 'clock-step': 0.03 }, runnerSkewMs: 5_000, runners: 3, leaseTtlMs: 2_000 },
    })
    expect(countOf(wrong, /^clock-step/)).toBeGreaterThan(17)
    expect(wrong.results.filter((result) => result.stopReason === 'complete').length).toBeGreaterThan(17)
  })

  test('XB3 a commit that arrives after its successor is refused and overwrites nothing', async () => {
    const late = await calm({ kinds: ['replace', 'delta'], seeds: 24, overrides: { rates: { 'applied-late': 0.15 } } })
    expect(countOf(late, /^applied-late store\.commit/)).toBeGreaterThan(10)
    expect(answered(late, 'conflict') + answered(late, 'fenced')).toBeGreaterThan(7)
  })

  test('XB4 a commit whose answer was lost is looked up: landed ones count, lost ones are sent again', async () => {
    const unknown = await calm({
      kinds: ['replace', 'delta', 'pair'],
      seeds: 40,
      overrides: { rates: { 'applied-unknown': 0.15, 'lost-unknown': 0.15 } },
    })
    expect(countOf(unknown, /^applied-unknown store\.commit/)).toBeGreaterThan(17)
    expect(countOf(unknown, /^lost-unknown store\.commit/)).toBeGreaterThan(17)
    expect(
      unknown.results.filter((result) => result.stopReason === 'complete' && result.retries > 0).length,
    ).toBeGreaterThan(7)
  })

  test('XB5 an outcome that cannot be determined ends the cycle as unknown, and the next one reads the checkpoint', async () => {
    const unresolved = await calm({
      kinds: ['replace', 'delta'],
      seeds: 24,
      overrides: { rates: { 'applied-unknown': 0.3, 'lost-unknown': 0.4 } },
    })
    expect(unresolved.results.some((result) => result.stopReason === 'unknown')).toBe(true)
  })

  test('XB8 a busy store is retried, and the page is not read again for it', async () => {
    const quiet = {
      kinds: ['replace'] as const,
      seeds: 10,
      overrides: {
        operations: 0,
        gapMs: 100_000,
        records: 20,
        pageSize: 3,
        runners: 1,
        emptyPages: false,
        sourceLatencyMs: [2, 30] as const,
      },
    }
    const busy = await calm({ ...quiet, overrides: { ...quiet.overrides, rates: { 'store-busy': 0.3 } } })
    expect(countOf(busy, /^store-busy store\.commit/)).toBeGreaterThan(10)
    // A page for each commit, and one that had been read ahead when the cycle ended.
    for (const result of busy.results.filter(({ stopReason }) => stopReason === 'complete'))
      expect(result.requests).toBe(result.pages)
  })

  test('XB14 a concurrent backfill and delta of the same rows never revert one to an older version', async () => {
    const contended = await calm({
      kinds: ['pair'],
      seeds: 20,
      overrides: {
        granularityMs: 1_000,
        records: 4,
        operations: 100,
        gapMs: 700,
        pageSize: 3,
        runners: 3,
        runnerGapMs: 500,
        sourceLatencyMs: [20, 400],
        storeLatencyMs: [1, 50],
        leaseTtlMs: 10_000,
        rates: { freeze: 0.03 },
      },
    })
    const of = (sync: string): number =>
      contended.results.filter((result) => result.sync === sync && result.stopReason === 'complete').length
    expect(Math.min(of('delta'), of('list-a'))).toBeGreaterThan(17)
  })

  test('XB14 two listings without times are ordered by when they were read', async () => {
    const contended = await calm({
      kinds: ['owners'],
      seeds: 30,
      overrides: {
        stamped: false,
        records: 4,
        operations: 100,
        gapMs: 700,
        pageSize: 3,
        runners: 3,
        runnerGapMs: 500,
        sourceLatencyMs: [20, 400],
        storeLatencyMs: [1, 50],
        leaseTtlMs: 10_000,
        rates: { freeze: 0.03 },
      },
    })
    expect(answered(contended, 'overlap')).toBeGreaterThan(0)
  })

  test('XB15 a lease that cannot be renewed in time ends the reading', async () => {
    const unrenewed = await calm({
      kinds: ['replace', 'delta'],
      seeds: 30,
      overrides: {
        rates: { 'store-unavailable': 0.1, freeze: 0.03 },
        leaseTtlMs: 2_000,
        sourceLatencyMs: [500, 12_000],
        deadlineMs: 60_000,
        runners: 2,
      },
    })
    expect(countOf(unrenewed, /^store-unavailable store\.renew/)).toBeGreaterThan(7)
    expect(codesOf(unrenewed)).toContain('LEASE_LOST')
  })
})

describe('pages, cursors and order', () => {
  test('XC1 XC12 a repeated page changes nothing; repeated for ever, it fails the cycle and never completes it', async () => {
    const repeated = await calm({
      kinds: ['replace', 'delta'],
      seeds: 30,
      overrides: { rates: { 'page-repeated': 0.4 }, pageSize: 4 },
    })
    expect(countOf(repeated, /^page-repeated/)).toBeGreaterThan(70)
    expect(codesOf(repeated)).toContain('CURSOR_STALLED')
  })

  test('XC2 a response after its deadline is ignored', async () => {
    const late = await calm({
      kinds: ['replace', 'delta', 'pair'],
      seeds: 24,
      overrides: { rates: { 'late-answer': 0.3 }, deadlineMs: 15_000 },
    })
    expect(countOf(late, /^late-answer/)).toBeGreaterThan(10)
    expect(late.results.some((result) => result.retries > 0 && result.stopReason === 'complete')).toBe(true)
  })

  test('XC3 XC5 rows that move, appear late and change during paging land in their current version', async () => {
    const moving = await calm({
      kinds: ['delta', 'pair'],
      seeds: 24,
      overrides: {
        lagMs: 20_000,
        operations: 60,
        gapMs: 1_500,
        pageSize: 2,
        records: 20,
        sourceLatencyMs: [50, 3_000],
      },
    })
    expect(
      moving.results.filter((result) => result.sync === 'delta' && result.counts.updated > 0).length,
    ).toBeGreaterThan(1)
  })

  test('XC7 T8 ties larger than a page land completely, with no more requests than needed', async () => {
    const tied = await calm({
      kinds: ['delta'],
      seeds: 24,
      overrides: { granularityMs: 10_000, bulkShare: 0.3, pageSize: 2, records: 30, emptyPages: false },
    })
    expect(tied.results.filter((result) => result.counts.created + result.counts.updated > 4).length).toBeGreaterThan(1)
  })

  test('XC9 the order inside a page and a tie does not matter', async () => {
    await calm({
      kinds: ['delta', 'replace'],
      seeds: 12,
      overrides: { shuffled: true, granularityMs: 10_000, bulkShare: 0.3, pageSize: 3, records: 20 },
    })
  })

  test('XC10 XC11 a false or missing end flag does not end a cycle', async () => {
    const flags = await calm({
      kinds: ['replace', 'delta'],
      seeds: 24,
      overrides: { rates: { 'end-flag-early': 0.4, 'end-flag-never': 0.4 }, pageSize: 3, records: 20 },
    })
    expect(countOf(flags, /^end-flag-early/)).toBeGreaterThan(17)
    expect(countOf(flags, /^end-flag-never/)).toBeGreaterThan(17)
  })

  test('XC13 a repeated cursor is detected, and the cycle fails', async () => {
    const circling = await calm({
      kinds: ['replace', 'delta'],
      seeds: 30,
      overrides: { rates: { 'empty-page': 0.4, 'page-repeated': 0.4 }, emptyPages: true, pageSize: 3, records: 20 },
    })
    expect(codesOf(circling)).toContain('CURSOR_CYCLE')
  })

  test('XC14 T7 an empty or a short page in the middle neither ends a cycle nor moves a frontier', async () => {
    const empty = await calm({
      kinds: ['replace', 'delta', 'pair'],
      seeds: 30,
      overrides: { rates: { 'empty-page': 0.4, 'short-page': 0.3 }, emptyPages: true, lagMs: 3_000 },
    })
    expect(countOf(empty, /^empty-page/)).toBeGreaterThan(21)
    expect(countOf(empty, /^short-page/)).toBeGreaterThan(21)
  })

  test('XC24 a source whose clock steps back within its declared limit loses nothing: newer content with an older time lands', async () => {
    await calm({
      kinds: ['delta', 'replace'],
      seeds: 40,
      overrides: { skewMs: 2_000, granularityMs: 1, records: 6, operations: 60, gapMs: 500 },
    })
  })

  test('XC25 a source whose clock is an hour ahead for a while does not move the frontier with it', async () => {
    const ahead = await calm({
      kinds: ['delta'],
      seeds: 8,
      overrides: {
        restMs: 1.1 * HOUR_MS,
        runnerGapMs: 120_000,
        operations: 40,
        gapMs: 1_000,
        usesSourceTime: false,
        granularityMs: 1_000,
      },
      onStart: (world) => {
        world.scheduleAfter(5_000, () => void (world.source.clockErrorMs = HOUR_MS))
        world.scheduleAfter(12_000, () => void (world.source.clockErrorMs = 0))
      },
      beforeHeal: ({ source }) => void (source.clockErrorMs = 0),
    })
    expect(ahead.verdicts.some(({ rows }) => rows !== '[]')).toBe(true)
  })

  test('XC26 runners whose clock jumps a day forward and back never read past the records that the source can show', async () => {
    const jumped = await calm({
      kinds: ['delta'],
      seeds: 15,
      overrides: {
        usesSourceTime: true,
        lagMs: 3_000,
        runners: 1,
        operations: 40,
        gapMs: 3_000,
        runnerGapMs: 500,
        sourceLatencyMs: [2, 30],
        storeLatencyMs: [1, 5],
      },
      onStart: (world) => {
        world.scheduleAfter(10_000, () => world.setClocks(DAY_MS))
        world.scheduleAfter(40_000, () => world.setClocks(-DAY_MS))
        world.scheduleAfter(50_000, () => world.setClocks(0))
      },
      beforeHeal: (world) => world.setClocks(0),
    })
    expect(jumped.results.filter((result) => result.stopReason === 'complete').length).toBeGreaterThan(5)
  })

  test('T6 a crash between two pages leaves no frontier in the range that is not safe yet', async () => {
    const crashed = await calm({
      kinds: ['delta'],
      seeds: 30,
      overrides: { lagMs: 20_000, rates: { crash: 0.04 }, pageSize: 2, records: 20, operations: 40, gapMs: 3_000 },
    })
    expect(countOf(crashed, /^crash/)).toBeGreaterThan(21)
  })
})

describe('deletes and replace cycles', () => {
  test('XE1 XE2 an interrupted replace cycle deletes nothing, and the rows a resumed one listed before count', async () => {
    const interrupted = await calm({
      kinds: ['replace', 'owners'],
      seeds: 30,
      overrides: { rates: { crash: 0.03, terminate: 0.02 }, pageSize: 2, pagesMax: 3, records: 20 },
    })
    expect(
      interrupted.results.filter((result) => result.resumed && result.stopReason === 'complete').length,
    ).toBeGreaterThan(7)
  })

  test.each([
    ['XE3 a listing that is empty by mistake', 'all'],
    ['XE4 a listing that omits most rows by mistake', 'most'],
  ] as const)('%s deletes nothing and is reported', async (_, lie) => {
    const lied = await calm({ kinds: ['lie'], seeds: 20, overrides: { omission: lie, rates: { 'listing-lie': 0.6 } } })
    expect(countOf(lied, /^listing-lie/)).toBeGreaterThan(7)
    expect(
      lied.results.filter((result) => result.error?.code === 'MASS_DELETE' && result.counts.swept === 0).length,
    ).toBeGreaterThan(7)
  })

  test('XE6 a row that the delta lands behind the current key of a listing is not swept', async () => {
    const swept = await calm({
      kinds: ['pair'],
      seeds: 16,
      overrides: {
        operations: 60,
        gapMs: 700,
        deleteShare: 0.4,
        records: 20,
        pageSize: 2,
        pagesMax: 3,
        runners: 3,
        runnerGapMs: 500,
        deletions: 'none',
      },
    })
    expect(swept.results.reduce((sum, result) => sum + result.counts.swept, 0)).toBeGreaterThan(5)
  })

  test('XE6 a row that was deleted and recreated unchanged is not swept by a running listing', async () => {
    await calm({
      kinds: ['pair'],
      seeds: 30,
      overrides: {
        plain: true,
        records: 10,
        operations: 100,
        deleteShare: 0.4,
        gapMs: 1_500,
        pageSize: 2,
        pagesMax: 2,
        deletions: 'none',
        granularityMs: 1_000,
        runners: 3,
        runnerGapMs: 500,
        sourceLatencyMs: [20, 400],
        storeLatencyMs: [1, 50],
      },
    })
  })

  test('XE7 deletes before their creates, and after a record is recreated, leave the newest version', async () => {
    const reborn = await calm({
      kinds: ['delta', 'pair'],
      seeds: 40,
      overrides: { deletions: 'apart', deleteShare: 0.4, records: 5, operations: 60, gapMs: 1_500, lagMs: 3_000 },
    })
    expect(reborn.results.reduce((sum, result) => sum + result.counts.deleted, 0)).toBeGreaterThan(7)
  })

  test('XE9 deleted rows stay deleted through crashes', async () => {
    const crashed = await calm({
      kinds: ['pair', 'delta'],
      seeds: 40,
      overrides: {
        deletions: 'inline',
        deleteShare: 0.4,
        records: 5,
        operations: 60,
        gapMs: 1_500,
        rates: { crash: 0.03 },
      },
    })
    expect(countOf(crashed, /^crash store\.commit:after/)).toBeGreaterThan(1)
  })
})
