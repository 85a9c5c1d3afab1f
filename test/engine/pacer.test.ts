import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SyncError, type SyncContext } from '../../src/contract/index.ts'
import { Pacer } from '../../src/engine/pacer.ts'
import type { PacerPlan } from '../../src/engine/sync-plan.ts'
import { HOUR, planOf, ref, Scene, SECOND } from './scene.ts'

let scene: Scene
beforeEach(async () => void (scene = await Scene.open()))
afterEach(() => scene.close())

const pacer = (plan: Partial<PacerPlan> = {}): PacerPlan => ({ name: 'api', allowedRequests: 10, intervalMs: 10 * SECOND, sharedBy: 1, ...plan })

/** Runs one page that calls `body`; gives what the page was told, and the seconds since `from` at which each call came through. */
async function paced(pacers: PacerPlan[], body: (context: SyncContext, note: () => void) => Promise<unknown>, from = scene.clock.now()): Promise<number[]> {
  const seconds: number[] = []
  const note = (): void => void seconds.push((scene.clock.now() - from) / SECOND)
  const result = await scene.run(planOf({
    pacers,
    async execute(_, context) {
      await body(context, note)
      return { changes: [], hasMore: false }
    },
  }), { fetch: async () => (note(), new Response('{}')) })
  expect(result.error).toBeNull()
  return seconds
}

const times = async (n: number, body: () => Promise<unknown>): Promise<void> => {
  for (let call = 0; call < n; call++) await body()
}

describe('a pacer', () => {
  test('NX1 every fetch waits for its slot, evenly spaced, without being asked to', async () => {
    expect(await paced([pacer()], ({ fetch }) => times(4, () => fetch('https://example.com')))).toEqual([0, 1, 2, 3])
  })

  test('NX1 requests made at once are spaced all the same', async () => {
    expect(await paced([pacer()], ({ fetch }) => Promise.all([1, 2, 3].map(() => fetch('https://example.com'))))).toEqual([0, 1, 2])
  })

  test('NX1 a request after a rest does not wait, and the rest is not saved up for a burst', async () => {
    const seconds = await paced([pacer()], async ({ fetch, clock }) => {
      await fetch('https://example.com')
      await clock.sleep(60 * SECOND)
      await times(3, () => fetch('https://example.com'))
    })
    expect(seconds).toEqual([0, 60, 61, 62])
  })

  test('a source that makes requests of its own can wait by hand', async () => {
    expect(await paced([pacer()], ({ pacer }, note) => times(3, () => pacer.wait().then(note)))).toEqual([0, 1, 2])
    expect(await paced([pacer({ name: 'other' })], ({ pacer }, note) => times(2, () => pacer.wait('other').then(note)))).toEqual([0, 1])
  })

  test('NX1 a budget that syncs share is divided evenly', async () => {
    expect(await paced([pacer({ sharedBy: 3 })], ({ fetch }) => times(3, () => fetch('https://example.com')))).toEqual([0, 3, 6])
  })

  test('with two pacers, each request keeps to both', async () => {
    const slow = pacer({ name: 'slow', allowedRequests: 1, intervalMs: 5 * SECOND })
    expect(await paced([pacer(), slow], ({ fetch }) => times(3, () => fetch('https://example.com')))).toEqual([0, 5, 10])
  })

  test('a budget that does not divide is rounded to the safe side', async () => {
    const seconds = await paced([pacer({ allowedRequests: 3, intervalMs: SECOND })], ({ fetch }) => times(4, () => fetch('https://example.com')))
    expect(seconds.at(-1)).toBeGreaterThanOrEqual(1)
  })

  test('NX1 where it stood is kept with the page, and the next run goes on from there', async () => {
    const start = scene.clock.now()
    await paced([pacer()], ({ fetch }) => times(3, () => fetch('https://example.com')))
    expect(await scene.store.pacers(ref())).toEqual({ api: start + 2 * SECOND })
    expect(await paced([pacer()], ({ fetch }) => fetch('https://example.com'), start)).toEqual([3])
  })

  test('XC26 a clock set back between two runs does not hold the next one up', async () => {
    await paced([pacer()], ({ fetch }) => fetch('https://example.com'))
    scene.clock.step(-HOUR)
    const [first, second] = await paced([pacer()], ({ fetch }) => times(2, () => fetch('https://example.com')))
    expect(first).toBeLessThanOrEqual(2)
    expect(second! - first!).toBe(1)
  })

  test('XC26 a clock set back within a run does not hold it up either', async () => {
    const start = scene.clock.now()
    await paced([pacer()], async ({ fetch, clock }) => {
      await times(2, () => fetch('https://example.com'))
      scene.clock.step(-HOUR)
      const before = clock.now()
      await times(2, () => fetch('https://example.com'))
      expect(clock.now() - before).toBe(2 * SECOND)
    })
    expect(scene.clock.now()).toBeLessThan(start)
  })

  test('XC26 a clock set forward causes no storm', async () => {
    const seconds = await paced([pacer()], async ({ fetch }) => {
      await fetch('https://example.com')
      scene.clock.step(HOUR)
      await times(3, () => fetch('https://example.com'))
    })
    expect(seconds).toEqual([0, 3_600, 3_601, 3_602])
  })

  test('that the sync does not use is an error which names it', async () => {
    const result = await scene.run(planOf({ pacers: [pacer()], execute: (_, { pacer }) => pacer.wait('apy').then(() => ({ changes: [], hasMore: false })) }))
    expect(result.error).toMatchObject({ code: 'PACER_UNKNOWN', message: expect.stringContaining('"apy"') })
  })

  test('wakes when the cycle is stopped', async () => {
    const stopping = new AbortController()
    const pacing = new Pacer(scene.ports, stopping.signal, [pacer()], {})
    await pacing.wait()
    const waiting = pacing.wait()
    stopping.abort(new SyncError('CANCELLED', 'stopped'))
    await expect(waiting).rejects.toMatchObject({ code: 'CANCELLED' })
  })

  test('a cycle that fails before a page lands keeps no slot, and one without pacers waits for nothing', async () => {
    await scene.run(planOf({ pacers: [pacer()], execute: (_, { pacer }) => pacer.wait().then(() => Promise.reject(new SyncError('AUTH_REJECTED', 'no'))) }))
    expect(await scene.store.pacers(ref())).toEqual({})
    expect(await paced([], ({ fetch }) => times(3, () => fetch('https://example.com')))).toEqual([0, 0, 0])
  })
})

test('a fetch is aborted with the page, also when the source gave a signal of its own', async () => {
  const signals: AbortSignal[] = []
  const own = new AbortController()
  await scene.run(planOf({
    limits: { deadlineMs: SECOND, retriesMax: 0 },
    async execute(_, { fetch, clock }) {
      await fetch('https://example.com')
      await fetch('https://example.com', { signal: own.signal })
      await clock.sleep(HOUR)
      return { changes: [], hasMore: false }
    },
  }), { fetch: async (_, init) => (signals.push(init!.signal!), new Response('{}')) })
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true])
})
