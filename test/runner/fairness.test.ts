import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Page, Store, SyncContext } from '../../src/contract/index.ts'
import { declare, HOUR, MINUTE, ref, RunnerFixture, SECOND, WORKER } from './runner-fixture.ts'

let scene: RunnerFixture
beforeEach(async () => {
  scene = await RunnerFixture.open()
})
afterEach(() => scene.close())

/** Records the order and the concurrency of the runs. */
class Source {
  readonly order: string[] = []
  running = 0
  most = 0

  execute(name: string, ms = SECOND): (state: unknown, context: SyncContext) => Promise<Page> {
    return async (_, { clock, signal }) => {
      this.order.push(name)
      this.most = Math.max(this.most, ++this.running)
      await clock.sleep(ms, signal).finally(() => this.running--)
      return { changes: [], hasMore: false }
    }
  }
}

describe('thousands of due syncs', () => {
  test('XB19: all run, with bounded concurrency and by priority', async () => {
    const source = new Source()
    const names = Array.from({ length: 5_000 }, (_, i) => `manual${i}`)
    const syncs = declare(
      Object.fromEntries([
        ...Array.from(
          { length: 20 },
          (_, i) => [`backfill${i}`, { mode: 'replace', schedule: '7d', execute: source.execute('backfill') }] as const,
        ),
        ...Array.from(
          { length: 30 },
          (_, i) => [`delta${i}`, { schedule: '7d', execute: source.execute('delta') }] as const,
        ),
        ...names.map((name) => [name, { schedule: 'manual', execute: source.execute('manual', 100) }] as const),
      ]),
    )
    await Promise.all(names.map((name) => scene.trigger(name)))
    const runner = scene.runner(syncs, { concurrency: 8, pollBatchMax: 6_000, pollMs: 30 * SECOND })
    await runner.start()
    await scene.time.until(() => source.order.length === 5_050 && source.running === 0, MINUTE)
    expect(source.most).toBe(8)
    expect(source.order.slice(0, 5_000).every((name) => name === 'manual')).toBe(true)
    expect(source.order.slice(5_000)).toEqual([
      ...Array<string>(30).fill('delta'),
      ...Array<string>(20).fill('backfill'),
    ])
    expect(runner.status()).toMatchObject({ waiting: 0, running: [] })
  })

  test('XB19: a backfill is not starved by deltas that are due repeatedly', async () => {
    const source = new Source()
    const deltas = Object.fromEntries(
      Array.from({ length: 12 }, (_, i) => [
        `delta${i}`,
        { schedule: 'continuous', execute: source.execute('delta', 20 * SECOND) },
      ]),
    )
    const syncs = declare({
      backfill: { mode: 'replace', schedule: '1d', execute: source.execute('backfill', 20 * SECOND) },
      ...deltas,
    })
    await scene.runner(syncs, { concurrency: 2 }).start()
    await scene.time.until(() => source.order.includes('backfill'), SECOND, 10 * MINUTE)
    expect(source.order.length).toBeGreaterThan(12)
  })

  test('XB19: a backfill is not starved by a stream of triggers', async () => {
    const source = new Source()
    const manual = Array.from({ length: 10 }, (_, i) => `manual${i}`)
    const syncs = declare({
      backfill: { mode: 'replace', schedule: '1d', execute: source.execute('backfill', 10 * SECOND) },
      ...Object.fromEntries(
        manual.map((name) => [name, { schedule: 'manual', execute: source.execute(name, 10 * SECOND) }]),
      ),
    })
    await Promise.all(manual.map((name) => scene.trigger(name)))
    await scene.runner(syncs, { concurrency: 1 }).start()
    await scene.time.until(
      () => {
        for (const name of manual) void scene.trigger(name)
        return source.order.includes('backfill')
      },
      5 * SECOND,
      HOUR,
    )
    expect(source.order.length).toBeGreaterThan(50)
    // The head start of a trigger over a full listing is 800 s; after that it waits in the queue.
    expect(scene.time.now() - Date.parse('2026-03-01T00:00:00Z')).toBeLessThan(20 * MINUTE)
  })

  test('a trigger passes the backlog of a day of downtime', async () => {
    const source = new Source()
    const syncs = declare({
      ...Object.fromEntries(
        Array.from({ length: 50 }, (_, i) => [
          `delta${i}`,
          { schedule: '1h', execute: source.execute('delta', MINUTE) },
        ]),
      ),
      wanted: { schedule: 'manual', execute: source.execute('wanted', MINUTE) },
    })
    const before = scene.runner(syncs, { concurrency: 50 })
    await before.start()
    await scene.time.advance(2 * MINUTE)
    await before.stop()
    scene.time.step(24 * HOUR)
    source.order.length = 0
    await scene.runner(syncs, { concurrency: 1 }).start()
    await scene.time.advance(90 * SECOND)
    await scene.trigger('wanted')
    await scene.time.advance(3 * MINUTE)
    expect(source.order.indexOf('wanted')).toBeGreaterThan(0)
    expect(source.order.indexOf('wanted')).toBeLessThanOrEqual(3)
  })
})

describe('tenants', () => {
  test.each([1, 4])(
    'XB19, XF18: a small tenant is served beside one with thousands of syncs, %i at once',
    async (concurrency) => {
      const source = new Source()
      const names = Array.from({ length: 1_000 }, (_, i) => `s${i}`)
      const syncs = declare(
        Object.fromEntries(
          names.map((name) => [
            name,
            {
              schedule: 'manual',
              execute: async (state: unknown, context: SyncContext) =>
                source.execute(context.secrets.get('tenant'))(state, context),
            },
          ]),
        ),
      )
      const stores: Record<string, Store> = { big: scene.store.forTenant('big'), small: scene.store.forTenant('small') }
      await Promise.all(names.map((name) => scene.trigger(name, stores['big'])))
      await Promise.all(names.slice(500, 510).map((name) => scene.trigger(name, stores['small'])))
      const runner = scene.runner(syncs, {
        tenants: ['big', 'small'],
        concurrency,
        pollBatchMax: 5_000,
        secrets: (tenant) => ({ get: () => tenant }),
      })
      await runner.start()
      await scene.time.advance(30 * SECOND)
      expect(source.order.filter((tenant) => tenant === 'small')).toHaveLength(10)
      expect(source.order.lastIndexOf('small')).toBeLessThan(20)
      expect((await stores['small']!.cycles(null)).every(({ worker }) => worker === WORKER)).toBe(true)
      expect(await scene.store.readCheckpoint(ref('s500'))).toMatchObject({ version: 0 })
    },
  )

  test('XB19: cycles of a tenant in another process count towards its share', async () => {
    const order: string[] = []
    const execute = async (_: unknown, { secrets }: SyncContext): Promise<Page> => {
      order.push(secrets.get('tenant'))
      return { changes: [], hasMore: false }
    }
    const syncs = declare(
      Object.fromEntries(Array.from({ length: 4 }, (_, i) => [`s${i}`, { schedule: 'manual', execute }])),
    )
    const [big, small] = [scene.store.forTenant('big'), scene.store.forTenant('small')]
    for (const sync of ['s0', 's1'])
      await big.acquire(ref(sync), { holder: 'elsewhere', ttlMs: HOUR, at: scene.time.now() })
    await scene.trigger('s2', big)
    await scene.time.advance(5 * SECOND)
    await scene.trigger('s3', small)
    await scene
      .runner(syncs, { tenants: ['big', 'small'], concurrency: 1, secrets: (tenant) => ({ get: () => tenant }) })
      .start()
    await scene.time.advance(10 * SECOND)
    expect(order).toEqual(['small', 'big'])
  })
})
