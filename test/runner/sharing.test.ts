import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Page, Store, SyncContext } from '../../src/contract/index.ts'
import { fingerprintCheckpoint } from '../../src/runner/due.ts'
import { createOncePerSlotStore } from '../../src/runner/once-per-slot-store.ts'
import { declare, HOUR, MINUTE, recordRequestTimes, ref, RunnerFixture, SECOND } from './runner-fixture.ts'

let scene: RunnerFixture
let start: number
let asked: number[]

beforeEach(async () => {
  scene = await RunnerFixture.open()
  start = scene.time.now()
  asked = []
})
afterEach(() => scene.close())

describe('several runners on one store', () => {
  test('XB1: no sync is read twice at once, and a held lease is not an error', async () => {
    const running = new Map<string, number>()
    let most = 0
    const execute =
      (name: string) =>
      async (_: unknown, { clock, signal }: SyncContext): Promise<Page> => {
        running.set(name, (running.get(name) ?? 0) + 1)
        most = Math.max(most, running.get(name)!)
        await clock.sleep(3 * SECOND, signal)
        running.set(name, running.get(name)! - 1)
        return { changes: [], hasMore: false }
      }
    const syncs = declare(
      Object.fromEntries(
        Array.from({ length: 12 }, (_, i) => [`s${i}`, { schedule: 'continuous', execute: execute(`s${i}`) }]),
      ),
    )
    for (let i = 0; i < 4; i++) await scene.runner(syncs, { concurrency: 3 }).start()
    await scene.time.advance(10 * MINUTE)
    expect(most).toBe(1)
    expect(running.size).toBe(12)
    const ended = scene.events.filter((event) => event.kind === 'ended')
    expect(ended.every(({ result }) => result.stopReason === 'complete')).toBe(true)
    expect(scene.events.filter((event) => event.kind === 'store')).toEqual([])
  })

  test('XB18: each slot runs once, whichever process sees it', async () => {
    const syncs = declare({ delta: { schedule: { cron: '*/5 * * * *' }, execute: recordRequestTimes(asked, start) } })
    for (let i = 0; i < 5; i++) await scene.runner(syncs).start()
    await scene.time.advance(2 * HOUR)
    expect(asked).toEqual(Array.from({ length: 25 }, (_, i) => i * 300))
  })

  test('N17: one trigger starts one cycle, whichever process sees it', async () => {
    const syncs = declare({ backfill: { schedule: 'manual', execute: recordRequestTimes(asked, start, 2 * SECOND) } })
    for (let i = 0; i < 5; i++) await scene.runner(syncs).start()
    await scene.trigger('backfill')
    await scene.time.advance(10 * MINUTE)
    expect(asked).toHaveLength(1)
  })

  test('XB18: a lease on a sync that has changed since the poll is released', async () => {
    const before = await scene.store.readCheckpoint(ref('delta'))
    await scene.trigger('delta')
    let moved = 0
    const late = createOncePerSlotStore(scene.store, ref('delta'), fingerprintCheckpoint(before), () => moved++)
    expect(await late.acquire(ref('delta'), { holder: 'late', ttlMs: MINUTE, at: start })).toMatchObject({
      kind: 'held',
    })
    expect(moved).toBe(1)
    expect(await scene.store.readCheckpoint(ref('delta'))).toMatchObject({ heldBy: null, triggeredAt: start })
  })

  test('a held sync is left alone until the lease may have expired, and taken when it is released', async () => {
    const syncs = declare({ delta: { schedule: '5m', execute: recordRequestTimes(asked, start) } })
    const taken = await scene.store.acquire(ref('delta'), { holder: 'by hand', ttlMs: 10 * MINUTE, at: start })
    const acquires: number[] = []
    const store = counting(scene.store, acquires)
    const runner = scene.runner(syncs, { store })
    await runner.start()
    await scene.time.advance(5 * MINUTE)
    expect(acquires).toEqual([])
    expect(runner.status().syncs).toMatchObject([{ heldBy: 'by hand', heldUntil: start + 10 * MINUTE }])
    if (taken.kind === 'acquired') await scene.store.release(taken.lease)
    await scene.time.advance(2 * SECOND)
    expect(asked).toHaveLength(1)
  })

  test('an unexpected held lease is reported as an event and delays the next attempt', async () => {
    const syncs = declare({ delta: { schedule: '5m', execute: recordRequestTimes(asked, start) } })
    // The holder's clock is behind: by the store's clock the lease has expired, by the holder's it has not.
    let refusals = 0
    const store: Store = {
      ...scene.store,
      acquire: async () => ({ kind: 'held', holder: 'another', expiresAt: start + ++refusals }),
    }
    await scene.runner(syncs, { store }).start()
    await scene.time.advance(30 * SECOND)
    expect(refusals).toBeGreaterThan(5)
    expect(refusals).toBeLessThanOrEqual(31)
    expect(scene.events[0]).toEqual({
      kind: 'held',
      tenant: 'default',
      worker: 'shop',
      sync: 'delta',
      by: null,
      until: null,
    })
    expect(await scene.store.readCheckpoint(ref('delta'))).toMatchObject({ failures: 0 })
  })
})

describe('a process that crashes', () => {
  /** Reads three pages, ten seconds each. */
  function pages(
    log: string[],
    who: string,
  ): (state: { page: number } | undefined, context: SyncContext) => Promise<Page> {
    return async (state, { clock, signal }) => {
      const page = (state?.page ?? 0) + 1
      log.push(`${who}${page}`)
      await clock.sleep(10 * SECOND, signal)
      return {
        changes: [{ type: 'upsert', key: String(page), record: { page } }],
        hasMore: page < 3,
        nextState: { page },
      }
    }
  }

  test('XB1: leaves its cycle to the others, which continue after the last committed page once its lease expires', async () => {
    const log: string[] = []
    const dying = mortal(scene.store)
    await scene.runner(declare({ delta: { schedule: '1d', execute: pages(log, 'a') } }), { store: dying.store }).start()
    await scene.time.advance(15 * SECOND)
    dying.die()
    await scene.runner(declare({ delta: { schedule: '1d', execute: pages(log, 'b') } })).start()
    const died = scene.time.now()
    await scene.time.until(() => log.includes('b2'), SECOND)
    expect(scene.time.now() - died).toBeLessThanOrEqual(62 * SECOND)
    await scene.time.advance(MINUTE)
    expect(log.filter((entry) => entry.startsWith('b'))).toEqual(['b2', 'b3'])
    expect(await scene.store.cycles(ref('delta'))).toMatchObject([{ stopReason: 'complete', pages: 3 }])
  })

  test('that is known to have exited is not waited for', async () => {
    const log: string[] = []
    const dying = mortal(scene.store)
    await scene
      .runner(declare({ delta: { schedule: '1d', execute: pages(log, 'a') } }), { store: dying.store, holder: 'dead' })
      .start()
    await scene.time.advance(15 * SECOND)
    dying.die()
    await scene
      .runner(declare({ delta: { schedule: '1d', execute: pages(log, 'b') } }), {
        isDead: (holder) => holder.startsWith('dead#'),
      })
      .start()
    await scene.time.advance(2 * SECOND)
    expect(log).toContain('b2')
  })

  test('N17: a triggered backfill is taken over too', async () => {
    const log: string[] = []
    const dying = mortal(scene.store)
    await scene.trigger('backfill')
    await scene
      .runner(declare({ backfill: { schedule: 'manual', execute: pages(log, 'a') } }), { store: dying.store })
      .start()
    await scene.time.advance(15 * SECOND)
    dying.die()
    await scene.runner(declare({ backfill: { schedule: 'manual', execute: pages(log, 'b') } })).start()
    await scene.time.advance(2 * MINUTE)
    expect(await scene.store.readCheckpoint(ref('backfill'))).toMatchObject({ version: 1, inflight: null })
  })

  test('a lease that a runner failed to release does not block it', async () => {
    const store: Store = { ...scene.store, release: async () => Promise.reject(new Error('the connection broke')) }
    await scene
      .runner(
        declare({ delta: { schedule: '1m', execute: recordRequestTimes(asked, start) } }, { leaseTtlMs: 10 * MINUTE }),
        { store },
      )
      .start()
    await scene.time.advance(5 * MINUTE + SECOND)
    expect(asked.length).toBeGreaterThanOrEqual(5)
  })
})

/** A store that a killed process no longer reaches: its calls never return. */
function mortal(store: Store): { store: Store; die: () => void } {
  let dead = false
  const reached = new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      return (...args: unknown[]) =>
        dead ? new Promise(() => {}) : (member as (...args: unknown[]) => unknown).apply(target, args)
    },
  })
  return { store: reached, die: () => void (dead = true) }
}

function counting(store: Store, acquires: number[]): Store {
  return { ...store, acquire: (sync, request) => (acquires.push(request.at), store.acquire(sync, request)) }
}
