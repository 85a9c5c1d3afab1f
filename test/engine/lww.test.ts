import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Change, Page } from '../../src/contract/index.ts'
import type { SyncPlan } from '../../src/engine/sync-plan.ts'
import { counts, planOf, remove, EngineFixture, createScriptedSource, upsert } from './engine-fixture.ts'

let scene: EngineFixture
beforeEach(async () => void (scene = await EngineFixture.open()))
afterEach(() => scene.close())

const T = (minute: number): string => `2026-01-01T00:${String(minute).padStart(2, '0')}:00Z`
const fact = (key: string, version: string, minute?: number): Change =>
  upsert(key, { version }, minute === undefined ? {} : { at: T(minute) })
const by = (sync: string, ...pages: Array<Page | (() => Promise<Page>)>): SyncPlan =>
  planOf({ ...createScriptedSource(...pages), sync })
const page = (...changes: Change[]): Page => ({ changes, hasMore: false })

describe('invariant 6: an older version never overwrites a newer one', () => {
  test('N9 XB14 a stale page of the backfill does not overwrite the delta, in any order', async () => {
    await scene.run(by('delta', page(fact('a', 'new', 5))))
    expect(await scene.run(by('backfill', page(fact('a', 'old', 1), fact('b', 'only', 1))))).toMatchObject({
      counts: counts({ stale: 1, created: 1 }),
    })
    await scene.run(by('delta', page(fact('b', 'newer', 2))))
    expect(await scene.rows()).toEqual({ a: { version: 'new' }, b: { version: 'newer' } })
  })

  test('XE7 an older page does not restore a row that the delta deleted', async () => {
    await scene.run(by('delta', page(fact('a', '1', 1))))
    await scene.run(by('delta', page(remove('a', T(5)))))
    expect(await scene.run(by('backfill', page(fact('a', 'stale', 3))))).toMatchObject({ counts: counts({ stale: 1 }) })
    expect(await scene.keys()).toEqual([])
  })

  test('XE7 a delete that arrives before its create keeps the create out', async () => {
    expect(await scene.run(by('deletes', page(remove('a', T(5)))))).toMatchObject({ counts: counts({ missing: 1 }) })
    expect(await scene.run(by('delta', page(fact('a', 'stale', 3))))).toMatchObject({ counts: counts({ stale: 1 }) })
  })

  test('XE8 XE10 a key created again after its delete stays, and a late delete of the earlier record does not remove it', async () => {
    await scene.run(by('delta', page(fact('a', '1', 1))))
    await scene.run(by('delta', page(remove('a', T(2)))))
    expect(await scene.run(by('delta', page(fact('a', '2', 3))))).toMatchObject({ counts: counts({ created: 1 }) })
    expect(await scene.run(by('deletes', page(remove('a', T(2)))))).toMatchObject({ counts: counts({ stale: 1 }) })
    expect(await scene.rows()).toEqual({ a: { version: '2' } })
  })

  test('times that differ by a microsecond, and in different zones, are distinguished', async () => {
    await scene.run(by('one', page(upsert('a', { version: 'later' }, { at: '2026-01-01T00:00:00.000002Z' }))))
    await scene.run(by('two', page(upsert('a', { version: 'earlier' }, { at: '2026-01-01T02:00:00.000001+02:00' }))))
    expect(await scene.rows()).toEqual({ a: { version: 'later' } })
  })

  test('XC24 a source whose clock stepped back within the tolerance is accepted; beyond it, not', async () => {
    const tolerant = (...changes: Change[]): SyncPlan => ({
      ...by('delta', page(...changes)),
      upstreamToleranceMs: 2 * 60_000,
    })
    await scene.run(tolerant(fact('a', 'first', 10), fact('b', 'first', 10)))
    expect(await scene.run(tolerant(fact('a', 'second', 8), fact('b', 'second', 7)))).toMatchObject({
      counts: counts({ updated: 1, stale: 1 }),
    })
    expect(await scene.rows()).toEqual({ a: { version: 'second' }, b: { version: 'first' } })
  })

  test('XC24 without a tolerance a step back is stale', async () => {
    await scene.run(by('delta', page(fact('a', 'first', 10))))
    expect(await scene.run(by('delta', page(fact('a', 'second', 8))))).toMatchObject({ counts: counts({ stale: 1 }) })
  })
})

describe('two reads that overlap', () => {
  /** The backfill reads; before its page is committed, the delta commits a page that it read meanwhile. */
  const overlapping = (first: Page, meanwhile: Page, ...later: Array<Page | (() => Page)>) => {
    const source = createScriptedSource(
      async () => {
        await scene.start(by('delta', meanwhile))
        return first
      },
      ...later,
    )
    return { ...source, plan: planOf({ ...source, sync: 'backfill' }) }
  }

  test('XB14 without times the page is read again, and the newer content wins', async () => {
    const source = overlapping(page(fact('a', 'old')), page(fact('a', 'new')), page(fact('a', 'new')))
    expect(await scene.run(source.plan)).toMatchObject({
      stopReason: 'complete',
      pages: 1,
      counts: counts({ unchanged: 1 }),
    })
    expect(source.asked).toEqual([undefined, undefined])
    expect(await scene.rows()).toEqual({ a: { version: 'new' } })
    expect(await scene.feed()).toHaveLength(1)
  })

  test('XB14 with equal times too', async () => {
    const source = overlapping(page(fact('a', 'old', 1)), page(fact('a', 'new', 1)), page(fact('a', 'newer still', 1)))
    expect(await scene.run(source.plan)).toMatchObject({ stopReason: 'complete', counts: counts({ updated: 1 }) })
    expect(await scene.rows()).toEqual({ a: { version: 'newer still' } })
  })

  test('XB14 times that differ decide, and nothing is read again', async () => {
    const source = overlapping(
      page(fact('a', 'old', 1), fact('b', 'new', 9)),
      page(fact('a', 'new', 2), fact('b', 'old', 3)),
    )
    expect(await scene.run(source.plan)).toMatchObject({
      stopReason: 'complete',
      counts: counts({ stale: 1, updated: 1 }),
    })
    expect(source.asked).toHaveLength(1)
    expect(await scene.rows()).toEqual({ a: { version: 'new' }, b: { version: 'new' } })
  })

  test('XB14 the page read ahead is discarded with it, and the order of pages is kept', async () => {
    const more = (nextState: number, ...changes: Change[]): Page => ({ changes, hasMore: true, nextState })
    const source = overlapping(
      more(1, fact('a', 'old')),
      page(fact('a', 'new')),
      page(fact('b', 'read ahead')),
      () => {
        expect(source.contexts[1]!.signal.aborted).toBe(true)
        return more(1, fact('a', 'new'))
      },
      page(fact('b', 'read again')),
    )
    expect(await scene.run(source.plan)).toMatchObject({ stopReason: 'complete', pages: 2 })
    expect(source.asked).toEqual([undefined, 1, undefined, 1])
    expect(await scene.rows()).toEqual({ a: { version: 'new' }, b: { version: 'read again' } })
  })

  test('XB14 XD24 a field first seen on the page that was read twice still becomes a column', async () => {
    const source = overlapping(
      page(upsert('a', { version: 'old', fresh: 1 })),
      page(fact('a', 'new')),
      page(upsert('a', { version: 'new', fresh: 1 })),
    )
    await scene.run(source.plan)
    expect((await scene.store.databases())[0]!.columns.map(({ name }) => name).toSorted()).toEqual(['fresh', 'version'])
  })

  test('XB14 two syncs that never stop overlapping fail the cycle instead of reading forever', async () => {
    let reads = 0
    const plan = planOf({
      sync: 'backfill',
      async execute() {
        await scene.start(by('delta', page(fact('a', `of the delta ${++reads}`))))
        return page(fact('a', 'of the backfill'))
      },
    })
    expect(await scene.run(plan)).toMatchObject({
      stopReason: 'error',
      pages: 0,
      error: { code: 'OVERLAP_UNRESOLVED' },
    })
    expect(reads).toBe(21)
    expect(await scene.rows()).toEqual({ a: { version: 'of the delta 21' } })
  })

  test('XB14 a row committed before the page was requested does not overlap: the later read wins', async () => {
    await scene.run(by('delta', page(fact('a', 'before'))))
    expect(await scene.run(by('backfill', page(fact('a', 'after'))))).toMatchObject({ counts: counts({ updated: 1 }) })
  })
})
