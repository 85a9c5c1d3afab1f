import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Worker } from '../../src/worker/worker.ts'
import { SyncError, type Page } from '../../src/contract/index.ts'
import type { SyncPlan } from '../../src/engine/sync-plan.ts'
import { remove, EngineFixture, upsert, WORKER } from './engine-fixture.ts'

/** A source with a list and a change log; both return the current records. */
class Shop {
  readonly items = new Map<string, number>()
  readonly log: { key: string; value: number | null }[] = []
  /** Events before this sequence are dropped. */
  kept = 0
  /** Called before a list page is returned, so that a test can change something. */
  onPage: (page: number) => void = () => {}
  asked: string[] = []

  put(key: string, value: number): void {
    this.items.set(key, value)
    this.log.push({ key, value })
  }

  drop(key: string): void {
    this.items.delete(key)
    this.log.push({ key, value: null })
  }

  plans(): { backfill: SyncPlan; delta: SyncPlan } {
    const worker = new Worker({ name: WORKER })
    const things = worker.database('things')
    const handle = worker.track<{ after: string }, { event: number }>('shop', {
      database: things,
      source: {
        anchor: async () => {
          this.asked.push('anchor')
          return { event: this.log.length }
        },
        backfill: async (state, { cycle }) => {
          this.asked.push('page')
          this.onPage(cycle.page)
          const keys = [...this.items.keys()].toSorted().filter((key) => key > (state?.after ?? ''))
          const page = keys.slice(0, 2)
          return {
            changes: page.map((key) => upsert(key, { value: this.items.get(key)! })),
            hasMore: keys.length > 2,
            nextState: { after: page.at(-1) ?? '' },
          }
        },
        delta: async (state = { event: this.log.length }) => {
          this.asked.push('delta')
          if (state.event < this.kept) throw new SyncError('HISTORY_LOST', 'events are kept for a while only')
          const events = this.log.slice(state.event)
          return {
            changes: events.map(({ key, value }) => (value === null ? remove(key) : upsert(key, { value }))),
            hasMore: false,
            nextState: { event: this.log.length },
          }
        },
      },
    })
    return { backfill: worker.plan(handle.backfill), delta: worker.plan(handle.delta) }
  }

  truth(): Record<string, unknown> {
    return Object.fromEntries(
      [...this.items].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([key, value]) => [key, { value }]),
    )
  }
}

describe('a tracked pair', () => {
  let scene: EngineFixture
  let shop: Shop
  beforeEach(async () => {
    scene = await EngineFixture.open()
    shop = new Shop()
    for (const [at, key] of ['a', 'b', 'c', 'd', 'e'].entries()) shop.put(key, at)
  })
  afterEach(() => scene.close())

  test('N35 N36 XC34 the anchor is taken and stored before the first backfill page, and the delta starts there', async () => {
    const { backfill, delta } = shop.plans()
    shop.onPage = (page) => {
      if (page === 2) shop.put('a', 100) // behind the backfill
    }
    expect((await scene.run(backfill)).stopReason).toBe('complete')
    expect(shop.asked.slice(0, 2)).toEqual(['anchor', 'page'])
    expect((await scene.checkpoint('shop')).committed).toBe('{"event":5}')
    expect(await scene.rows()).toMatchObject({ a: { value: 0 } })
    await scene.run(delta)
    expect(await scene.rows()).toEqual(shop.truth())
    expect(await scene.store.audit({ worker: WORKER, sync: 'shop' })).toMatchObject([
      { action: 'complete' },
      { action: 'set', actor: 'engine', reason: 'anchor taken before shop-backfill began' },
    ])
  })

  test('N79 a delta that already has a state keeps it', async () => {
    const { backfill, delta } = shop.plans()
    await scene.run(delta)
    shop.put('f', 6)
    await scene.run(backfill)
    expect(shop.asked).not.toContain('anchor')
    expect((await scene.checkpoint('shop')).committed).toBe('{"event":5}')
    await scene.run(delta)
    expect(await scene.rows()).toEqual(shop.truth())
  })

  test('N79 a delta that has begun and committed nothing has no state: it receives the anchor, and misses no change in between', async () => {
    const { backfill, delta } = shop.plans()
    const fails: SyncPlan['execute'] = async () => {
      throw new SyncError('SOURCE_FORBIDDEN', 'not yet')
    }
    await scene.run({ ...delta, execute: fails })
    expect(await scene.checkpoint('shop')).toMatchObject({ committed: null, inflight: { page: 0, state: null } })
    shop.onPage = (page) => {
      if (page === 2) shop.put('a', 100)
    }
    await scene.run(backfill)
    expect((await scene.checkpoint('shop')).committed).toBe('{"event":5}')
    await scene.run(delta)
    expect(await scene.rows()).toEqual(shop.truth())
  })

  test('N78 a backfill that crashes after its anchor keeps it: the second attempt takes no later one', async () => {
    const { backfill, delta } = shop.plans()
    shop.onPage = (page) => {
      if (page === 2) throw new Error('dead')
    }
    expect((await scene.run(backfill)).stopReason).toBe('error')
    shop.put('a', 100)
    shop.onPage = () => {}
    expect((await scene.run(backfill)).stopReason).toBe('complete')
    expect(shop.asked.filter((asked) => asked === 'anchor')).toHaveLength(1)
    await scene.run(delta)
    expect(await scene.rows()).toEqual(shop.truth())
  })

  test('XE6 XB14 NX14 a delta during the backfill: its rows survive the sweep, its deletes stay, its updates are not overwritten', async () => {
    const { backfill, delta } = shop.plans()
    await scene.run(delta)
    let during: Promise<unknown> = Promise.resolve()
    shop.onPage = (page) => {
      if (page !== 2) return
      shop.put('aa', 50) // already passed by the backfill
      shop.drop('e') // not yet reached by it
      shop.put('b', 51)
      during = scene.start(delta, { holder: 'process-2' })
    }
    expect((await scene.run(backfill)).stopReason).toBe('complete')
    await scene.clock.drive(during)
    expect(await scene.rows()).toEqual(shop.truth())
  })

  test('XB14 a backfill that reads a log again does not overwrite rows that the delta has committed since it began', async () => {
    const worker = new Worker({ name: WORKER })
    let during: Promise<unknown> = Promise.resolve()
    const handle = worker.track<{ at: number }, { at: number }>('shop', {
      database: worker.database('things'),
      source: {
        anchor: async () => ({ at: 0 }),
        backfill: async (state = { at: 0 }) => {
          // The delta completes before the page with the old value is requested.
          if (state.at === 1) await (during = scene.start(worker.plan(handle.delta), { holder: 'process-2' }))
          const told = [[upsert('a', { value: 1 })], [upsert('b', { value: 1 })], [upsert('b', { value: 2 })]][
            state.at
          ]!
          return { changes: told, hasMore: state.at < 2, nextState: { at: state.at + 1 }, isLog: true }
        },
        delta: async () => ({
          changes: [upsert('a', { value: 9 }), upsert('b', { value: 9 })],
          hasMore: false,
          nextState: { at: 1 },
        }),
      },
    })
    expect(await scene.run(worker.plan(handle.backfill))).toMatchObject({
      stopReason: 'complete',
      counts: { stale: 2, swept: 0 },
    })
    await scene.clock.drive(during)
    expect(await scene.rows()).toEqual({ a: { value: 9 }, b: { value: 9 } })
  })

  test('XB14 a record that changed back while a backfill page was in flight stays, although the delta finds no difference', async () => {
    const { delta } = shop.plans()
    shop.put('f', 5)
    await scene.run(shop.plans().backfill)
    await scene.run(delta)
    shop.drop('f')
    await scene.run(delta)
    const listed = (): Page => ({
      changes: [...shop.items].map(([key, value]) => upsert(key, { value })),
      hasMore: false,
    })
    let asked = 0
    const execute: SyncPlan['execute'] = async () => {
      if (asked++ > 0) return listed()
      shop.put('a', 7)
      shop.put('f', 8)
      const page = listed()
      shop.put('a', 0)
      shop.drop('f')
      await scene.start(delta, { holder: 'process-2' })
      return page
    }
    expect((await scene.run({ ...shop.plans().backfill, execute })).stopReason).toBe('complete')
    expect(asked).toBe(2)
    expect(await scene.rows()).toEqual(shop.truth())
  })

  test('XB14 a record that was logged once is logged again if it changes back after a later page was requested', async () => {
    const { delta } = shop.plans()
    await scene.run(shop.plans().backfill)
    await scene.run(delta)
    const others = [...shop.items].slice(1).map(([key, value]) => upsert(key, { value }))
    const again = async (): Promise<void> => {
      shop.put('a', 0)
      await scene.start(delta, { holder: 'process-2' })
    }
    let asked = 0
    const execute: SyncPlan['execute'] = async (state: { page: number } | undefined) => {
      const page = state?.page ?? 1
      if (page === 1) await again()
      if (page < 3) return { changes: page === 1 ? others : [], hasMore: true, nextState: { page: page + 1 } }
      // Requested after the log entry that the delta added for `a`.
      if (asked++ > 0) return { changes: [upsert('a', { value: shop.items.get('a')! })], hasMore: false }
      shop.put('a', 7)
      await again()
      return { changes: [upsert('a', { value: 7 })], hasMore: false }
    }
    const result = await scene.run({ ...shop.plans().backfill, execute })
    expect([result.stopReason, result.error, asked]).toEqual(['complete', null, 2])
    expect(await scene.rows()).toEqual(shop.truth())
  })

  test('invariant 12 XB14: of two versions with one time, the listing does not restore the older, also if the syncs are declared separately', async () => {
    const worker = new Worker({ name: WORKER })
    const database = worker.database('things')
    const [before, second] = ['2026-02-28T23:59:58Z', '2026-02-28T23:59:59Z']
    let item = { on: true, at: before }
    const shown = (): Page['changes'] => [upsert('a', { on: item.on }, { at: item.at })]
    worker.sync('delta', {
      database,
      mode: 'incremental',
      execute: async () => ({ changes: shown(), hasMore: false, nextState: item.at }),
    })
    let asked = 0
    const execute: SyncPlan['execute'] = async () => {
      if (asked++ > 0) return { changes: shown(), hasMore: false }
      item = { on: false, at: second }
      const changes = shown()
      item = { on: true, at: second }
      await scene.start(worker.plan('delta'), { holder: 'process-2' })
      return { changes, hasMore: false }
    }
    worker.sync('all', { database, mode: 'replace', execute })
    expect((await scene.run(worker.plan('delta'))).tidemark).toBe('2026-02-28T23:59:58.000000Z')
    expect((await scene.run(worker.plan('all'))).stopReason).toBe('complete')
    expect((await scene.checkpoint('delta')).tidemark).toBe('2026-02-28T23:59:59.000000Z')
    expect(await scene.rows()).toEqual({ a: { on: true } })
    expect(asked).toBe(2)
  })

  test('F7 a row that the delta created and the source dropped silently is deleted by the backfill', async () => {
    const { backfill, delta } = shop.plans()
    await scene.run(backfill)
    shop.put('f', 6)
    await scene.run(delta)
    shop.items.delete('f') // not in the log
    expect((await scene.run(backfill)).counts.swept).toBe(1)
    expect(await scene.rows()).toEqual(shop.truth())
  })

  test('XC32 lost history: the delta clears its state with an audit entry, requests the backfill, and the pair is complete again', async () => {
    const { backfill, delta } = shop.plans()
    await scene.run(backfill)
    await scene.run(delta)
    shop.drop('b')
    shop.put('g', 7)
    shop.kept = shop.log.length
    const lost = await scene.run(delta)
    expect(lost.error?.code).toBe('HISTORY_LOST')
    expect((await scene.checkpoint('shop')).committed).toBeNull()
    expect((await scene.checkpoint('shop-backfill')).backfillNeeded).toMatchObject({
      reason: 'events are kept for a while only',
      cycle: null,
    })
    expect((await scene.store.audit({ worker: WORKER, sync: 'shop' }))[0]).toMatchObject({
      action: 'set',
      reason: 'history lost; shop-backfill was requested',
    })
    await scene.run(backfill)
    expect((await scene.checkpoint('shop-backfill')).backfillNeeded).toBeNull()
    expect(shop.asked.filter((asked) => asked === 'anchor')).toHaveLength(2)
    shop.put('h', 8)
    await scene.run(delta)
    expect(await scene.rows()).toEqual(shop.truth())
  })

  test('D5 a feed without a cursor yet leaves the delta undefined', async () => {
    const worker = new Worker({ name: WORKER })
    worker.database('things')
    worker.track('shop', {
      database: 'things',
      source: {
        anchor: async () => undefined,
        backfill: async () => ({ changes: [upsert('a')], hasMore: false }),
        delta: async () => ({ changes: [], hasMore: false }),
      },
    })
    expect((await scene.run(worker.plan('shop-backfill'))).stopReason).toBe('complete')
    expect((await scene.checkpoint('shop')).committed).toBeNull()
  })

  test('a declaration that fails reserves neither name', () => {
    const worker = new Worker({ name: WORKER })
    worker.database('things')
    const source = {
      backfill: async () => ({ changes: [], hasMore: false }),
      delta: async () => ({ changes: [], hasMore: false }),
    }
    expect(() => worker.track('shop', { database: 'things', source, schedule: 'now and then' as never })).toThrow(
      /now and then/,
    )
    expect(() => worker.track('shop', { database: 'things', source: { ...source, delta: 1 as never } })).toThrow(
      /source\.delta/,
    )
    worker.track('shop', { database: 'things', source })
    expect(
      worker.manifest.syncs.map(({ name, mode, schedule, owner, pair }) => [name, mode, schedule.kind, owner, pair]),
    ).toEqual([
      ['shop-backfill', 'replace', 'manual', `${WORKER}/shop`, 'backfill'],
      ['shop', 'incremental', 'interval', `${WORKER}/shop`, 'delta'],
    ])
    expect(() => worker.sync('shop-backfill', { database: 'things', execute: source.delta })).toThrow(/shop-backfill/)
  })
})
