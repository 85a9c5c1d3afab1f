import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SyncError, type Change, type JsonObject, type Lookup, type Page } from '../../src/contract/index.ts'
import type { SyncPlan } from '../../src/engine/sync-plan.ts'
import { counts, planOf, remove, EngineFixture, SECOND, upsert } from './engine-fixture.ts'

let scene: EngineFixture
beforeEach(async () => void (scene = await EngineFixture.open()))
afterEach(() => scene.close())

const T = (minute: number): string => `2026-01-01T00:${String(minute).padStart(2, '0')}:00Z`
const FUTURE = '2040-01-01T00:00:00Z'
const page = (...changes: Change[]): Page => ({ changes, hasMore: false })

/** A source that lists its records in pages of two, and supports lookups. */
class Shelf {
  readonly items = new Map<string, { record: JsonObject; at?: string }>()
  /** Omitted from the listing. */
  readonly hidden = new Set<string>()
  /** Versions that a lagging replica still returns in the listing. */
  readonly lagging = new Map<string, { record: JsonObject; at?: string }>()
  looked: string[] = []

  put(key: string, record: JsonObject, at?: string): void {
    this.items.set(key, { record, ...(at !== undefined && { at }) })
  }

  readonly execute: SyncPlan['execute'] = async (state: { after: string } | undefined) => {
    const keys = [...this.items.keys()].filter((key) => key > (state?.after ?? '') && !this.hidden.has(key)).toSorted()
    return {
      changes: keys.slice(0, 2).map((key) => this.#change(key, this.lagging.get(key))),
      hasMore: keys.length > 2,
      nextState: { after: keys[1] ?? '' },
    }
  }

  readonly lookup: Lookup = async (key) => {
    this.looked.push(key)
    return this.items.has(key) ? this.#change(key) : null
  }

  truth(): Record<string, unknown> {
    return Object.fromEntries([...this.items].map(([key, { record }]) => [key, record]))
  }

  #change(key: string, item = this.items.get(key)!): Change {
    return upsert(key, item.record, item.at === undefined ? {} : { at: item.at })
  }
}

const backfillOf = (shelf: Shelf, more: Partial<SyncPlan> = {}): SyncPlan =>
  planOf({ sync: 'backfill', mode: 'replace', owner: 'pair', execute: shelf.execute, ...more } as Parameters<
    typeof planOf
  >[0])
const deltaOf = (...changes: Change[]): SyncPlan =>
  planOf({ sync: 'delta', owner: 'pair', execute: async () => page(...changes) })

describe('invariant 13: a backfill repairs the damage of a wrong clock', () => {
  test.each([
    ['the source’s clock stepped back', [upsert('a', { v: 1 }, { at: T(10) })]],
    ['a stamp was wrong once', [upsert('a', { v: 1 }, { at: FUTURE })]],
    ['a record was restored with the stamp it had', [upsert('a', { v: 1 }, { at: T(9) }), remove('a')]],
    ['a record was deleted at a time in the future', [remove('a', FUTURE)]],
  ])('%s: refused by the delta, and repaired by two complete backfills', async (_, stored) => {
    const shelf = new Shelf()
    shelf.put('a', { v: 2 }, T(9))
    for (const change of stored) await scene.run(deltaOf(change))
    expect(await scene.run(deltaOf(upsert('a', { v: 2 }, { at: T(9) })))).toMatchObject({
      counts: counts({ stale: 1 }),
    })
    expect(await scene.run(backfillOf(shelf))).toMatchObject({ stopReason: 'complete', counts: { stale: 1 } })
    expect(await scene.run(backfillOf(shelf))).toMatchObject({ stopReason: 'complete', counts: { stale: 0 } })
    expect(await scene.rows()).toEqual(shelf.truth())
  })

  test('with a lookup, one backfill is enough', async () => {
    const shelf = new Shelf()
    shelf.put('a', { v: 2 }, T(9))
    shelf.put('b', { v: 1 }, T(1))
    await scene.run(deltaOf(upsert('a', { v: 1 }, { at: T(10) }), upsert('b', { v: 1 }, { at: T(1) })))
    expect(await scene.run(backfillOf(shelf, { lookup: shelf.lookup }))).toMatchObject({
      stopReason: 'complete',
      counts: counts({ updated: 1, unchanged: 1 }),
    })
    expect(shelf.looked).toEqual(['a'])
    expect(await scene.rows()).toEqual(shelf.truth())
  })

  test('invariant 6: pages of a lagging replica overwrite nothing, with a lookup or without, however often they are read', async () => {
    for (const lookup of [undefined, new Shelf().lookup]) {
      const shelf = new Shelf()
      shelf.put('a', { v: 2 }, T(10))
      await scene.run(deltaOf(upsert('a', { v: 2 }, { at: T(10) })))
      shelf.lagging.set('a', { record: { v: 1 }, at: T(9) })
      const plan = backfillOf(shelf, { lagMs: 60 * SECOND, ...(lookup !== undefined && { lookup: shelf.lookup }) })
      for (let cycle = 0; cycle < 3; cycle++) {
        expect(await scene.run(plan)).toMatchObject({ stopReason: 'complete', counts: counts({ stale: 1 }) })
        await scene.clock.advance(10 * SECOND)
      }
      shelf.lagging.clear()
      await scene.clock.advance(60 * SECOND)
      await scene.run(plan)
      expect(await scene.rows()).toEqual(shelf.truth())
      expect(await scene.feed()).toHaveLength(1)
    }
  })

  test('a lookup that fails decides nothing: the next backfill does', async () => {
    const shelf = new Shelf()
    shelf.put('a', { v: 2 }, T(9))
    await scene.run(deltaOf(upsert('a', { v: 1 }, { at: T(10) })))
    const lookup: Lookup = async () => {
      throw new SyncError('SOURCE_FORBIDDEN', 'not for you')
    }
    expect(await scene.run(backfillOf(shelf, { lookup }))).toMatchObject({
      stopReason: 'complete',
      counts: counts({ stale: 1 }),
    })
    expect(await scene.run(backfillOf(shelf, { lookup }))).toMatchObject({
      stopReason: 'complete',
      counts: counts({ updated: 1 }),
    })
  })

  test('invariant 12: a listing with unresolved contests does not advance the tidemark, on any page', async () => {
    const shelf = new Shelf()
    for (const key of ['a', 'b', 'c']) shelf.put(key, { v: 1 }, T(1))
    const { tidemark } = await scene.run(backfillOf(shelf))
    await scene.run(deltaOf(upsert('a', { v: 2 }, { at: T(10) })))
    shelf.put('a', { v: 3 }, T(9))
    const lookup: Lookup = async () => {
      throw new SyncError('SOURCE_FORBIDDEN', 'not for you')
    }
    await scene.clock.advance(60 * SECOND)
    // One page per run: the last run knows the contests that the first could not resolve.
    const plan = backfillOf(shelf, { lookup, limits: { ...planOf(shelf).limits, pagesMax: 1 } })
    expect(await scene.run(plan)).toMatchObject({ stopReason: 'max_pages', counts: { stale: 1 } })
    expect(await scene.run(plan)).toMatchObject({ stopReason: 'complete', tidemark })
    expect((await scene.checkpoint('backfill')).tidemark).toBe(tidemark)
    await scene.clock.advance(60 * SECOND)
    await scene.run(backfillOf(shelf))
    expect((await scene.run(backfillOf(shelf))).tidemark! > tidemark!).toBe(true)
    expect(await scene.rows()).toEqual(shelf.truth())
  })

  test('invariant 13: if times are only bounds, a listing with unresolved contests is not complete', async () => {
    const shown = (v: number): Change => ({ ...upsert('a', { v }, { at: T(1) }), asOf: 'read' }) as Change
    await scene.run(deltaOf(upsert('a', { v: 1 }, { at: T(10) })))
    const lookup: Lookup = async () => {
      throw new SyncError('SOURCE_FORBIDDEN', 'not for you')
    }
    const plan = backfillOf(new Shelf(), { lookup, execute: async () => page(shown(2)) })
    expect(await scene.run(plan)).toMatchObject({
      stopReason: 'error',
      error: { code: 'SOURCE_FORBIDDEN' },
      tidemark: null,
    })
    expect(await scene.run({ ...plan, lookup: async () => shown(2) })).toMatchObject({
      stopReason: 'complete',
      counts: counts({ updated: 1 }),
    })
  })

  describe('the result of a lookup', () => {
    const stored = (): Promise<unknown> => scene.run(deltaOf(upsert('a', { v: 1 }, { at: T(10) })))
    const answering = (...answers: Array<Change | null>): Lookup & { asked: string[] } => {
      const asked: string[] = []
      return Object.assign(async (key: string) => answers[asked.push(key) - 1] ?? null, { asked })
    }

    test('without a record confirms a deletion in the listing', async () => {
      await stored()
      const plan = backfillOf(new Shelf(), { lookup: answering(null), execute: async () => page(remove('a', T(9))) })
      expect(await scene.run(plan)).toMatchObject({ stopReason: 'complete', counts: counts({ deleted: 1 }) })
    })

    test('with the time of the listing confirms it, also in another form', async () => {
      await stored()
      const lookup = answering(upsert('a', { v: 2, more: true }, { at: T(9) }))
      const plan = backfillOf(new Shelf(), { lookup, execute: async () => page(upsert('a', { v: 2 }, { at: T(9) })) })
      expect(await scene.run(plan)).toMatchObject({ counts: counts({ updated: 1 }) })
    })

    test('with another time refutes the listing, and the next one does not win by a second sighting', async () => {
      await stored()
      const answer = upsert('a', { v: 1, more: true }, { at: T(10) })
      const plan = backfillOf(new Shelf(), {
        lookup: answering(answer, answer),
        execute: async () => page(upsert('a', { v: 2 }, { at: T(9) })),
      })
      for (let cycle = 0; cycle < 2; cycle++)
        expect(await scene.run(plan)).toMatchObject({ counts: counts({ stale: 1 }) })
    })

    test('without a time and in another form proves nothing: the second listing decides', async () => {
      await stored()
      const answer = upsert('a', { v: 2, more: true })
      const plan = backfillOf(new Shelf(), {
        lookup: answering(answer, answer),
        execute: async () => page(upsert('a', { v: 2 }, { at: T(9) })),
      })
      expect(await scene.run(plan)).toMatchObject({ counts: counts({ stale: 1 }) })
      expect(await scene.run(plan)).toMatchObject({ counts: counts({ updated: 1 }) })
    })

    test('is requested for at most 50 contested keys of a page; the next listing decides the others', async () => {
      const keys = Array.from({ length: 60 }, (_, n) => `k${String(n).padStart(2, '0')}`)
      const shown = (v: number, at: string): Change[] => keys.map((key) => upsert(key, { v }, { at }))
      await scene.run(deltaOf(...shown(1, T(10))))
      const lookup = answering(...shown(2, T(9)))
      const plan = backfillOf(new Shelf(), { lookup, execute: async () => page(...shown(2, T(9))) })
      expect(await scene.run(plan)).toMatchObject({
        stopReason: 'complete',
        counts: counts({ updated: 50, stale: 10 }),
      })
      expect(lookup.asked).toEqual(keys.slice(0, 50))
    })
  })

  test('a delta that commits during the lookup is the newer one', async () => {
    const shelf = new Shelf()
    shelf.put('a', { v: 2 }, T(9))
    await scene.run(deltaOf(upsert('a', { v: 1 }, { at: T(10) })))
    const lookup: Lookup = async (key, context) => {
      await scene.start(deltaOf(upsert('a', { v: 3 }, { at: T(11) })), { holder: 'process-2' })
      return shelf.lookup(key, context)
    }
    await scene.run(backfillOf(shelf, { lookup }))
    expect(await scene.rows()).toEqual({ a: { v: 3 } })
  })

  test('a log that is read again is confirmed by its second read, and never by a lookup', async () => {
    const shelf = new Shelf()
    await scene.run(deltaOf(upsert('a', { v: 9 }, { at: FUTURE }), upsert('b', { v: 2 }, { at: T(2) })))
    const log = [
      upsert('a', { v: 1 }, { at: T(1) }),
      upsert('b', { v: 1 }, { at: T(1) }),
      upsert('a', { v: 2 }, { at: T(2) }),
      upsert('b', { v: 2 }, { at: T(2) }),
    ]
    const plan = backfillOf(shelf, {
      lookup: shelf.lookup,
      execute: async (state = 0) => ({ changes: [log[state]!], hasMore: state < 3, nextState: state + 1, isLog: true }),
    })
    await scene.run(plan)
    await scene.run(plan)
    expect(await scene.rows()).toEqual({ a: { v: 2 }, b: { v: 2 } })
    expect(shelf.looked).toEqual([])
    expect((await scene.feed()).filter(({ key }) => key === 'b')).toHaveLength(1)
  })
})

describe('invariant 13: after two undisturbed complete backfills the copy equals the source, whatever was stored before', () => {
  const KEYS = ['a', 'b', 'c', 'd', 'e']
  const time = fc.constantFrom(undefined, T(1), T(2), T(3), T(30), FUTURE)
  const change = fc
    .record({ key: fc.constantFrom(...KEYS), v: fc.nat(3), at: time, isDelete: fc.boolean() })
    .map(({ key, v, at, isDelete }): Change =>
      isDelete ? remove(key, at) : upsert(key, { v }, at === undefined ? {} : { at }),
    )
  /** The earlier writer: the pair’s delta, a sync of another owner, or the backfill itself. */
  const history = fc.array(
    fc.record({
      by: fc.constantFrom('delta', 'stranger', 'backfill'),
      changes: fc.uniqueArray(change, { selector: ({ key }) => key, maxLength: 4 }),
    }),
    { maxLength: 6 },
  )
  const source = fc.uniqueArray(fc.record({ key: fc.constantFrom(...KEYS), v: fc.nat(3), at: time }), {
    selector: ({ key }) => key,
    minLength: 1,
  })

  test.each([
    ['without a lookup', false],
    ['with a lookup', true],
  ])('%s', async (_, hasLookup) => {
    await fc.assert(
      fc.asyncProperty(history, source, fc.constantFrom(0, 10 * SECOND), async (before, listed, lagMs) => {
        const world = await EngineFixture.open()
        try {
          for (const { by, changes } of before) {
            const owner = by === 'stranger' ? 'stranger' : 'pair'
            await world.run(
              planOf({
                sync: by,
                mode: by === 'backfill' ? 'replace' : 'incremental',
                owner,
                execute: async () => page(...changes),
              }),
              { allowDeletes: true },
            )
          }
          const shelf = new Shelf()
          for (const { key, v, at } of listed) shelf.put(key, { v }, at)
          // Rows of another owner are not swept. Unlisted rows belong to the pair.
          const strangers = new Set(
            before.filter(({ by }) => by === 'stranger').flatMap(({ changes }) => changes.map(({ key }) => key!)),
          )
          await world.clock.advance(lagMs + SECOND)
          const plan = backfillOf(shelf, { lagMs, ...(hasLookup && { lookup: shelf.lookup }) })
          for (let cycle = 0; cycle < 2; cycle++)
            expect(await world.run(plan, { allowDeletes: true })).toMatchObject({ stopReason: 'complete' })
          const rows = await world.rows()
          for (const key of strangers) if (!shelf.items.has(key)) delete rows[key]
          expect(rows).toEqual(shelf.truth())
          const settled = (await world.feed()).length
          await world.run(plan, { allowDeletes: true })
          expect(await world.feed()).toHaveLength(settled)
        } finally {
          await world.close()
        }
      }),
      { numRuns: 60 },
    )
  })
})

describe('invariant 5: rows more recent than the source’s lag stay', () => {
  const shelf = (): Shelf => {
    const made = new Shelf()
    for (const key of ['a', 'b', 'c', 'd']) made.put(key, { of: key })
    return made
  }

  test('a row that the delta committed shortly before a lagging listing began is not swept, and a deleted one is swept by the next', async () => {
    const source = shelf()
    const plan = backfillOf(source, { lagMs: 30 * SECOND })
    await scene.run(plan)
    await scene.clock.advance(60 * SECOND)
    await scene.run(deltaOf(upsert('new', { of: 'new' })))
    await scene.clock.advance(10 * SECOND)
    expect(await scene.run(plan)).toMatchObject({ stopReason: 'complete', counts: { swept: 0 } })
    expect(await scene.keys()).toContain('new')
    await scene.clock.advance(30 * SECOND)
    expect(await scene.run(plan)).toMatchObject({ counts: { swept: 1 } })
  })

  test('the lag is counted from the cycle’s start, even if the cycle is resumed much later', async () => {
    const source = shelf()
    await scene.run(backfillOf(source, { lagMs: 30 * SECOND }))
    await scene.clock.advance(60 * SECOND)
    await scene.run(deltaOf(upsert('new', { of: 'new' })))
    const first = backfillOf(source, { lagMs: 30 * SECOND, limits: { ...backfillOf(source).limits, pagesMax: 1 } })
    expect(await scene.run(first)).toMatchObject({ stopReason: 'max_pages' })
    await scene.clock.advance(600 * SECOND)
    expect(await scene.run(backfillOf(source, { lagMs: 30 * SECOND }))).toMatchObject({
      stopReason: 'complete',
      resumed: true,
      counts: { swept: 0 },
    })
    expect(await scene.keys()).toContain('new')
  })
})

describe('invariant 5: absences are confirmed if the source supports lookups', () => {
  const KEYS = Array.from({ length: 100 }, (_, n) => `k${String(n).padStart(2, '0')}`)
  let shelf: Shelf
  let plan: SyncPlan
  beforeEach(async () => {
    shelf = new Shelf()
    for (const key of KEYS) shelf.put(key, { of: key })
    plan = backfillOf(shelf, { lookup: shelf.lookup })
    await scene.run(plan)
  })

  test('a listing that omits 49 % of the rows deletes nothing, and the cycle fails', async () => {
    for (const key of KEYS.slice(20, 69)) shelf.hidden.add(key)
    expect(await scene.run(plan)).toMatchObject({
      stopReason: 'blocked',
      counts: { swept: 0 },
      error: { code: 'LISTING_INCOMPLETE', message: expect.stringContaining('49 rows') },
    })
    expect(shelf.looked).toHaveLength(1)
    expect(await scene.keys()).toEqual(KEYS)
    shelf.hidden.clear()
    expect(await scene.run(plan)).toMatchObject({ stopReason: 'complete', counts: { swept: 0 } })
  })

  test('one omitted row among many that are really deleted is found', async () => {
    for (const key of KEYS.slice(0, 40)) shelf.items.delete(key)
    shelf.hidden.add('k77')
    expect(await scene.run(plan)).toMatchObject({
      error: { code: 'LISTING_INCOMPLETE', message: expect.stringContaining('"k77"') },
    })
    expect(await scene.keys()).toEqual(KEYS)
  })

  test('rows that are really deleted are swept by the same cycle', async () => {
    for (const key of KEYS.slice(0, 30)) shelf.items.delete(key)
    expect(await scene.run(plan)).toMatchObject({ stopReason: 'complete', counts: { swept: 30 } })
    expect(shelf.looked).toHaveLength(30)
    expect(await scene.keys()).toEqual(KEYS.slice(30))
  })

  test('a row whose record could not be stored still exists', async () => {
    shelf.hidden.add('k05')
    const lookup: Lookup = async (key) => upsert(key, { of: '\ud800' })
    expect(await scene.run({ ...plan, lookup })).toMatchObject({
      stopReason: 'blocked',
      error: { code: 'LISTING_INCOMPLETE' },
    })
    expect(await scene.keys()).toEqual(KEYS)
  })

  test('beyond the limit of lookups, a sample is checked', async () => {
    for (const key of KEYS.slice(0, 30)) shelf.items.delete(key)
    expect(await scene.run({ ...plan, sweep: { ...plan.sweep, lookupsMax: 7 } })).toMatchObject({
      stopReason: 'complete',
      counts: { swept: 30 },
    })
    expect(shelf.looked).toHaveLength(7)
  })

  test('a limit of 0, or an operator’s confirmation, skips the lookups', async () => {
    for (const key of KEYS.slice(0, 20)) shelf.items.delete(key)
    expect(await scene.run({ ...plan, sweep: { ...plan.sweep, lookupsMax: 0 } })).toMatchObject({
      counts: { swept: 20 },
    })
    for (const key of KEYS.slice(20, 90)) shelf.items.delete(key)
    expect(await scene.run(plan, { allowDeletes: true })).toMatchObject({ counts: { swept: 70 } })
    expect(shelf.looked).toEqual([])
  })

  test('a lookup that fails deletes nothing; the cycle continues when it works', async () => {
    shelf.items.delete('k00')
    const failing = {
      ...plan,
      lookup: async () => {
        throw new SyncError('SOURCE_FORBIDDEN', 'not for you')
      },
    }
    expect(await scene.run(failing)).toMatchObject({
      stopReason: 'error',
      error: { code: 'SOURCE_FORBIDDEN', message: expect.stringContaining('nothing was deleted') },
    })
    expect(await scene.keys()).toEqual(KEYS)
    expect(await scene.run(plan)).toMatchObject({ stopReason: 'complete', resumed: true, counts: { swept: 1 } })
  })
})
