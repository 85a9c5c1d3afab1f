import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Worker } from '../../src/worker/worker.ts'
import { SyncError, type Change, type Execute, type Page, type SyncContext } from '../../src/contract/index.ts'
import type { SyncPlan } from '../../src/engine/sync-plan.ts'
import {
  counts,
  HOUR,
  listing,
  MINUTE,
  planOf,
  ref,
  EngineFixture,
  createScriptedSource,
  upsert,
  WORKER,
} from './engine-fixture.ts'

let scene: EngineFixture
beforeEach(async () => void (scene = await EngineFixture.open()))
afterEach(() => scene.close())

const full = (keys: string[], more: Partial<Page> = {}): Page => ({
  changes: keys.map((key) => upsert(key)),
  hasMore: false,
  ...more,
})
const replace = (execute: Execute<any>, options: Partial<SyncPlan> = {}): SyncPlan =>
  planOf({ ...options, execute, mode: 'replace' })
const KEYS = Array.from({ length: 10 }, (_, at) => `k${at}`)

describe('the sweep', () => {
  test('N10 invariant 5: after the last page of a complete cycle every row it did not return is deleted', async () => {
    await scene.run(replace(listing(['a', 'b'], ['c', 'd'], ['e'])))
    const result = await scene.run(replace(listing(['a', 'b'], ['c'], ['f'])))
    expect(result).toMatchObject({ stopReason: 'complete', counts: counts({ created: 1, unchanged: 3, swept: 2 }) })
    expect(await scene.keys()).toEqual(['a', 'b', 'c', 'f'])
    expect((await scene.feed()).slice(-2)).toMatchObject([
      { action: 'deleted', key: 'd', page: 3 },
      { action: 'deleted', key: 'e', page: 3 },
    ])
  })

  test('an incremental cycle does not delete rows that it did not return', async () => {
    await scene.run(planOf(createScriptedSource(full(['a', 'b']))))
    await scene.run(planOf(createScriptedSource(full(['a']))))
    expect(await scene.keys()).toEqual(['a', 'b'])
  })

  test('invariant 5: a cycle whose source hid a part deletes nothing, also after a failure, until it is complete', async () => {
    await scene.run(replace(listing(['a', 'b'], ['c'])))
    const { tidemark } = await scene.run(replace(listing(['a', 'b'], ['c'])))
    let isBroken = true
    const hidden = replace(async (state) => {
      if (state === undefined) return { changes: [upsert('a')], hasMore: true, nextState: 1, isIncomplete: true }
      if (isBroken) throw new SyncError('AUTH_REJECTED', 'no')
      return full(['c'])
    })
    scene.clock.step(HOUR)
    expect((await scene.run(hidden)).error).toMatchObject({ code: 'AUTH_REJECTED' })
    isBroken = false
    const result = await scene.run(hidden)
    expect(result).toMatchObject({ resumed: true, stopReason: 'complete', endReason: 'incomplete', tidemark })
    expect(await scene.keys()).toEqual(['a', 'b', 'c'])
    expect(await scene.run(replace(listing(['a', 'c'])))).toMatchObject({ endReason: null, counts: { swept: 1 } })
  })

  test('an operator may allow the sweep of a cycle whose source hid a part', async () => {
    await scene.run(replace(listing(['a', 'b'])))
    const hidden = replace(async () => full(['a'], { isIncomplete: true }))
    expect(await scene.run(hidden, { allowDeletes: true })).toMatchObject({ counts: { swept: 1 } })
  })

  test('invariant 12: an incremental cycle whose source hid a part does not advance its tidemark', async () => {
    const page = { nextState: 1, tidemark: '2026-02-01T00:00:00Z' }
    await scene.run(planOf(createScriptedSource(full(['a'], page))))
    const later = { nextState: 2, tidemark: '2026-02-02T00:00:00Z' }
    const result = await scene.run(planOf(createScriptedSource(full(['b'], { ...later, isIncomplete: true }))))
    expect(result.tidemark).toMatch(/^2026-02-01T00:00:00/)
  })

  test.each([1, 2, 3, 4])(
    'N12 XE1 a cycle that fails on page %i of 5 deletes nothing; the next run resumes it and removes exactly the missing rows',
    async (failing) => {
      await scene.run(replace(listing(['a'], ['b'], ['c'], ['d'], ['e'], ['gone'])))
      const list = listing(['a'], ['b'], ['c'], ['d'], ['e'])
      const broken = await scene.run(
        replace(async (state, context) => {
          if ((state ?? 0) === failing) throw new SyncError('AUTH_REJECTED', 'no')
          return list(state, context)
        }),
      )
      expect(broken).toMatchObject({ stopReason: 'error', counts: { swept: 0, deleted: 0 } })
      expect(await scene.keys()).toEqual(['a', 'b', 'c', 'd', 'e', 'gone'])
      expect(await scene.run(replace(list))).toMatchObject({
        resumed: true,
        stopReason: 'complete',
        counts: { swept: 1 },
      })
      expect(await scene.keys()).toEqual(['a', 'b', 'c', 'd', 'e'])
    },
  )

  test('XE2 rows seen by a discarded cycle do not count for the next', async () => {
    await scene.run(replace(listing(['a', 'b', 'c'], ['d'])))
    await scene.run(
      replace(
        createScriptedSource(full(['a'], { hasMore: true, nextState: 1 }), new SyncError('AUTH_REJECTED', 'no'))
          .execute,
      ),
    )
    await scene.run(replace(createScriptedSource(full(['b', 'c', 'd'])).execute), { fresh: true })
    expect(await scene.keys()).toEqual(['b', 'c', 'd'])
  })

  test('a quarantined record counts as listed: its row is not swept', async () => {
    await scene.run(replace(listing(['a', 'b', 'c'])))
    const result = await scene.run(
      replace(createScriptedSource({ changes: [upsert('a'), upsert('b', { n: Number.NaN })], hasMore: false }).execute),
    )
    expect(result.counts).toEqual(counts({ unchanged: 1, quarantined: 1, swept: 1 }))
    expect(await scene.keys()).toEqual(['a', 'b'])
  })

  test('an invalid change counts as listed if it has a key', async () => {
    await scene.run(replace(listing(['a', 'b', 'c', 'd'])))
    const changes: Change[] = [
      upsert('a'),
      { type: 'invalid', key: 'b', reason: 'row 2 is not UTF-8', raw: null },
      { type: 'invalid', key: null, reason: 'row 3 is not UTF-8', raw: null },
      upsert('d'),
    ]
    const result = await scene.run(replace(createScriptedSource({ changes, hasMore: false }).execute))
    expect(result.counts).toEqual(counts({ unchanged: 2, quarantined: 2, swept: 1 }))
    expect(await scene.keys()).toEqual(['a', 'b', 'd'])
  })

  test('a database that the sync does not name is not swept by it', async () => {
    const both = { databases: [{ name: 'things' }, { name: 'parts' }] }
    await scene.run(
      replace(
        createScriptedSource({
          changes: [
            upsert('a'),
            upsert('b'),
            upsert('p', {}, { database: 'parts' }),
            upsert('q', {}, { database: 'parts' }),
          ],
          hasMore: false,
        }).execute,
        both,
      ),
    )
    await scene.run(
      replace(
        createScriptedSource({ changes: [upsert('a'), upsert('p', {}, { database: 'parts' })], hasMore: false })
          .execute,
        both,
      ),
    )
    expect([await scene.keys(), await scene.keys('parts')]).toEqual([['a'], ['p']])
  })
})

describe('the delete limit: invariant 11', () => {
  beforeEach(() => scene.run(replace(listing(KEYS))))

  test('XE3 an empty listing deletes nothing, is reported, and the cycle does not count', async () => {
    const result = await scene.run(replace(createScriptedSource(full([])).execute))
    expect(result).toMatchObject({
      stopReason: 'blocked',
      version: 1,
      error: { code: 'MASS_DELETE', message: expect.stringContaining('10 of the 10') },
    })
    expect(await scene.keys()).toEqual(KEYS)
    expect(await scene.checkpoint()).toMatchObject({ version: 1, inflight: null, failures: 1 })
    expect((await scene.store.audit(ref()))[0]).toMatchObject({
      action: 'abandon',
      reason: expect.stringContaining('10 of the 10'),
    })
  })

  test('XE4 more than half missing deletes nothing, and the listed rows are committed', async () => {
    const result = await scene.run(replace(createScriptedSource(full([...KEYS.slice(0, 4), 'new'])).execute))
    expect(result).toMatchObject({
      stopReason: 'blocked',
      counts: counts({ created: 1, unchanged: 4 }),
      error: { code: 'MASS_DELETE' },
    })
    expect(await scene.keys()).toEqual([...KEYS, 'new'])
  })

  test('XE4 exactly the allowed share may be deleted', async () => {
    expect(await scene.run(replace(createScriptedSource(full(KEYS.slice(0, 5))).execute))).toMatchObject({
      stopReason: 'complete',
      counts: { swept: 5 },
    })
  })

  test('XE4 the share is configurable per sync', async () => {
    const strict = { sweep: { maxShare: 0.1, allowEmpty: false } }
    expect(await scene.run(replace(createScriptedSource(full(KEYS.slice(0, 8))).execute, strict))).toMatchObject({
      stopReason: 'blocked',
    })
    expect(await scene.run(replace(createScriptedSource(full(KEYS.slice(0, 9))).execute, strict))).toMatchObject({
      stopReason: 'complete',
      counts: { swept: 1 },
    })
  })

  test('XE5 a source that is really empty is not stuck: confirmed once, everything is deleted', async () => {
    const empty = replace(async () => full([]))
    expect(await scene.run(empty)).toMatchObject({ stopReason: 'blocked' })
    expect(await scene.run(empty)).toMatchObject({ stopReason: 'blocked' })
    expect(await scene.run(empty, { allowDeletes: true })).toMatchObject({
      stopReason: 'complete',
      counts: { swept: 10 },
    })
    expect(await scene.run(empty)).toMatchObject({ stopReason: 'complete', counts: { swept: 0 }, error: null })
    expect(await scene.checkpoint()).toMatchObject({ failures: 0, lastError: null })
  })

  test('XE5 a sync may declare that its source can be empty', async () => {
    expect(
      await scene.run(replace(async () => full([]), { sweep: { maxShare: 0.5, allowEmpty: true } })),
    ).toMatchObject({ stopReason: 'complete', counts: { swept: 10 } })
  })

  test('a blocked cycle of many pages starts over with its first page', async () => {
    const source = createScriptedSource(full(['k0'], { hasMore: true, nextState: 2 }), full(['k1']), full(KEYS))
    await scene.run(replace(source.execute))
    expect(await scene.run(replace(source.execute))).toMatchObject({ stopReason: 'complete', resumed: false })
    expect(source.asked).toEqual([undefined, 2, undefined])
  })
})

describe('the scope: the account and the visible data', () => {
  const seen = (scope: string, keys: string[]) => replace(async () => full(keys, { scope }))
  beforeEach(() => scene.run(seen('admin', KEYS)))

  test('XE11 changed permissions delete no row until confirmed', async () => {
    const hidden = seen('intern', KEYS.slice(1))
    expect(await scene.run(hidden)).toMatchObject({
      stopReason: 'blocked',
      error: { code: 'SCOPE_CHANGED', message: expect.stringContaining('1 of the 10') },
    })
    expect(await scene.run(hidden)).toMatchObject({ stopReason: 'blocked' })
    expect(await scene.keys()).toEqual(KEYS)
    expect(await scene.run(hidden, { allowDeletes: true })).toMatchObject({
      stopReason: 'complete',
      counts: { swept: 1 },
    })
    expect(await scene.run(seen('intern', KEYS.slice(2)))).toMatchObject({
      stopReason: 'complete',
      counts: { swept: 1 },
    })
  })

  test('XE11 unchanged permissions delete as before', async () => {
    expect(await scene.run(seen('admin', KEYS.slice(1)))).toMatchObject({
      stopReason: 'complete',
      counts: { swept: 1 },
    })
  })

  test('XE11 a scope that changes in the middle of a cycle counts as changed', async () => {
    const source = createScriptedSource(
      full(KEYS.slice(0, 5), { scope: 'admin', hasMore: true, nextState: 1 }),
      full(KEYS.slice(5, 9), { scope: 'intern' }),
    )
    expect(await scene.run(replace(source.execute))).toMatchObject({
      stopReason: 'blocked',
      error: { code: 'SCOPE_CHANGED' },
    })
  })

  test('XE11 a scope on the first page applies to the pages after it', async () => {
    const source = createScriptedSource(
      full(KEYS.slice(0, 5), { scope: 'admin', hasMore: true, nextState: 1 }),
      full(KEYS.slice(5, 9)),
    )
    expect(await scene.run(replace(source.execute))).toMatchObject({ stopReason: 'complete', counts: { swept: 1 } })
  })

  test('XE11 a source that no longer returns its scope is not assumed to be the same', async () => {
    expect(await scene.run(replace(async () => full(KEYS.slice(1))))).toMatchObject({
      error: { code: 'SCOPE_CHANGED' },
    })
  })

  test('XE11 another scope that still lists everything is accepted, and becomes the known one', async () => {
    expect(await scene.run(seen('owner', [...KEYS, 'more']))).toMatchObject({ stopReason: 'complete' })
    expect((await scene.checkpoint()).scope).toBe('owner')
  })

  test('XE12 a first filter needs confirmation before it deletes', async () => {
    const filtered = replace(async () => full(KEYS.slice(1), { scope: 'since 2024-01-01T00:00:00.000000Z' }), {
      sync: 'other',
      databases: [{ name: 'others' }],
      owner: 'other',
    })
    await scene.run({ ...filtered, execute: async () => full(KEYS) })
    expect(await scene.run(filtered)).toMatchObject({ error: { code: 'SCOPE_CHANGED' } })
    expect(await scene.run(filtered, { allowDeletes: true })).toMatchObject({ counts: { swept: 1 } })
    expect(await scene.run(filtered)).toMatchObject({ stopReason: 'complete' })
  })

  test('XE12 a filter changed in the declaration needs confirmation before it deletes', async () => {
    const filtered = (scope: string, keys: string[]) => replace(async () => full(keys, { scope: 'admin' }), { scope })
    expect(await scene.run(filtered('country = NO', KEYS.slice(1)))).toMatchObject({ error: { code: 'SCOPE_CHANGED' } })
    expect(await scene.run(filtered('country = NO', KEYS.slice(1)), { allowDeletes: true })).toMatchObject({
      counts: { swept: 1 },
    })
    expect(await scene.run(filtered('country = NO', KEYS.slice(2)))).toMatchObject({
      stopReason: 'complete',
      counts: { swept: 1 },
    })
    expect(await scene.run(filtered('country = SE', KEYS.slice(3)))).toMatchObject({ error: { code: 'SCOPE_CHANGED' } })
  })
})

describe('two syncs of one database', () => {
  const declare = (executes: { backfill: Execute<any>; delta: Execute<any> }): Worker => {
    const worker = new Worker({ name: WORKER })
    const things = worker.database('things')
    worker.sync('backfill', { database: things, mode: 'replace', schedule: 'manual', execute: executes.backfill })
    worker.sync('delta', { database: things, mode: 'incremental', execute: executes.delta })
    return worker
  }

  test('N14 N15 N16 both write it, and each has its own state', async () => {
    const backfill = createScriptedSource(full(['a'], { hasMore: true, nextState: 'page 2' }), full(['b']))
    const delta = createScriptedSource(
      full(['c'], { nextState: { since: 1 } }),
      full(['d'], { nextState: { since: 2 } }),
    )
    const worker = declare({ backfill: backfill.execute, delta: delta.execute })
    await scene.run(worker.plan('delta'))
    await scene.run(worker.plan('backfill'))
    await scene.run(worker.plan('delta'))
    expect(backfill.asked).toEqual([undefined, 'page 2'])
    expect(delta.asked).toEqual([undefined, { since: 1 }])
    expect([(await scene.checkpoint('backfill')).committed, (await scene.checkpoint('delta')).committed]).toEqual([
      null,
      '{"since":2}',
    ])
  })

  test('N16 F7 rows of the delta that the source dropped are deleted by the backfill', async () => {
    const worker = declare({ backfill: async () => full(['a', 'b', 'c']), delta: async () => full(['old']) })
    await scene.run(worker.plan('backfill'))
    await scene.run(worker.plan('delta'))
    expect(await scene.run(worker.plan('backfill'))).toMatchObject({ counts: { swept: 1 } })
    expect(await scene.keys()).toEqual(['a', 'b', 'c'])
  })

  test('XE6 F7 invariant 5: rows that the delta commits during the backfill are not swept', async () => {
    const worker: Worker = declare({
      backfill: createScriptedSource(
        full(['a', 'b', 'c', 'e', 'gone']),
        full(['a', 'b'], { hasMore: true, nextState: 1 }),
        async () => {
          await scene.start(worker.plan('delta'))
          return full(['c'])
        },
      ).execute,
      delta: async () => ({
        changes: [upsert('born behind the sweep'), upsert('e', { of: 'changed' })],
        hasMore: false,
      }),
    })
    await scene.run(worker.plan('backfill'))
    const result = await scene.run(worker.plan('backfill'))
    expect(result).toMatchObject({ stopReason: 'complete', counts: { swept: 1 } })
    expect(await scene.keys()).toEqual(['a', 'b', 'born behind the sweep', 'c', 'e'])
  })

  test('F7 two replace syncs sweep only their own rows, and a row both list stays until neither does', async () => {
    const east = (...keys: string[]) => replace(listing(keys), { sync: 'east', owner: 'east' })
    const west = (...keys: string[]) => replace(listing(keys), { sync: 'west', owner: 'west' })
    await scene.run(east('e1', 'e2', 'both'))
    await scene.run(west('w1', 'w2', 'both'))
    await scene.run(east('e1', 'both'))
    expect(await scene.keys()).toEqual(['both', 'e1', 'w1', 'w2'])
    await scene.run(east('e1'))
    expect(await scene.keys()).toEqual(['both', 'e1', 'w1', 'w2'])
    await scene.run(west('w1', 'w2'))
    expect(await scene.keys()).toEqual(['e1', 'w1', 'w2'])
  })
})

describe('invariant 6: a page of a listing that is dated before the pages before it', () => {
  /** Responses of a source with a correct clock, except for pages that were cached earlier. */
  const dated = (...pages: Array<{ page: Page; cachedMs?: number }>) => {
    let asked = 0
    const fetch = async (): Promise<Response> => {
      const { cachedMs = 0 } = pages[asked]!
      return new Response('', { headers: { date: new Date(scene.clock.now() - cachedMs).toUTCString() } })
    }
    const execute = async (_: unknown, context: SyncContext): Promise<Page> => {
      await context.fetch('https://vendor.test/')
      return pages[asked++]!.page
    }
    return { plan: planOf({ mode: 'replace', execute }), fetch, asked: () => asked }
  }
  const first: Page = { changes: [upsert('a')], hasMore: true, nextState: 1 }
  const second = (v: number): Page => ({ changes: [upsert('b', { v })], hasMore: false })

  test('is requested again, and reverts nothing', async () => {
    const fresh = dated({ page: first }, { page: second(2) })
    await scene.run(fresh.plan, { fetch: fresh.fetch })
    await scene.clock.advance(MINUTE)
    const source = dated({ page: first }, { page: second(1), cachedMs: 30_000 }, { page: second(2) })
    expect(await scene.run(source.plan, { fetch: source.fetch })).toMatchObject({
      stopReason: 'complete',
      counts: counts({ unchanged: 2 }),
    })
    expect(source.asked()).toBe(3)
    expect(await scene.feed()).toHaveLength(2)
  })

  test('also the first page, if it is dated before the last complete cycle', async () => {
    await scene.clock.advance(HOUR)
    const fresh = dated({ page: first }, { page: second(2) })
    await scene.run(fresh.plan, { fetch: fresh.fetch })
    await scene.clock.advance(MINUTE)
    const source = dated(
      { page: { ...first, changes: [upsert('a', { v: 0 })] }, cachedMs: HOUR },
      { page: first },
      { page: second(2) },
    )
    expect(await scene.run(source.plan, { fetch: source.fetch })).toMatchObject({
      stopReason: 'complete',
      counts: counts({ unchanged: 2 }),
    })
    expect(source.asked()).toBe(3)
  })

  test('is accepted in the end, because the clock may be wrong; the tidemark shows its age', async () => {
    await scene.clock.advance(2 * HOUR)
    const old = { page: second(1), cachedMs: HOUR }
    const source = dated({ page: first }, old, old, old, old)
    const { stopReason, tidemark } = await scene.run(source.plan, { fetch: source.fetch })
    expect([stopReason, tidemark, source.asked()]).toEqual(['complete', '2026-03-01T00:59:59.999000Z', 5])
  })
})
