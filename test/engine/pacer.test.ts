import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SyncError, type Page, type SyncContext } from '../../src/contract/index.ts'
import { Pacer } from '../../src/engine/pacer.ts'
import type { PacerPlan } from '../../src/engine/sync-plan.ts'
import { HOUR, planOf, EngineFixture, SECOND, storeWith, WORKER } from './engine-fixture.ts'

let scene: EngineFixture
beforeEach(async () => void (scene = await EngineFixture.open()))
afterEach(() => scene.close())

const pacer = (plan: Partial<PacerPlan> = {}): PacerPlan => ({
  name: 'api',
  allowedRequests: 10,
  intervalMs: 10 * SECOND,
  ...plan,
})

/** Runs one page that calls `body`; returns the seconds since `from` at which each request was sent. */
async function paced(
  pacers: PacerPlan[],
  body: (context: SyncContext, note: () => void) => Promise<unknown>,
  from = scene.clock.now(),
): Promise<number[]> {
  const seconds: number[] = []
  const note = (): void => void seconds.push((scene.clock.now() - from) / SECOND)
  const result = await scene.run(
    planOf({
      pacers,
      async execute(_, context) {
        await body(context, note)
        return { changes: [], hasMore: false }
      },
    }),
    { fetch: async () => (note(), new Response('{}')) },
  )
  expect(result.error).toBeNull()
  return seconds
}

interface Sharing {
  /** Seconds since the start, of all requests in order, and by sync. */
  readonly seconds: number[]
  readonly bySync: ReadonlyMap<string, number[]>
  /** The number of reservations, and of reserved slots. */
  readonly takes: number
  readonly slots: number
}

/** Concurrent cycles of different syncs, in different processes, on one rate limit. */
async function sharing(
  syncs: number,
  plan: PacerPlan,
  body: (context: SyncContext) => Promise<unknown>,
): Promise<Sharing> {
  const name = `budget-${scene.clock.now()}`
  const start = scene.clock.now()
  const bySync = new Map<string, number[]>()
  let [takes, slots] = [0, 0]
  const store = storeWith(scene.store, {
    takeSlots: (request) => (takes++, (slots += request.count), scene.store.takeSlots(request)),
  })
  const results = await scene.clock.drive(
    Promise.all(
      Array.from({ length: syncs }, (_, i) => {
        const own: number[] = []
        bySync.set(`s${i}`, own)
        const execute = async (__: unknown, context: SyncContext): Promise<Page> => (
          await body(context),
          { changes: [], hasMore: false }
        )
        return scene.start(
          planOf({ sync: `s${i}`, pacers: [{ ...plan, name }], execute, limits: { deadlineMs: HOUR } }),
          {
            store,
            holder: `process-${i}`,
            fetch: async () => (own.push((scene.clock.now() - start) / SECOND), new Response('{}')),
          },
        )
      }),
    ),
  )
  for (const { error } of results) expect(error).toBeNull()
  return { seconds: [...bySync.values()].flat().toSorted((a, b) => a - b), bySync, takes, slots }
}

function isSpaced(seconds: readonly number[], pace: number): boolean {
  return seconds.slice(1).every((second, i) => Math.round((second - seconds[i]!) * SECOND) >= pace * SECOND)
}

const times = async (n: number, body: () => Promise<unknown>): Promise<void> => {
  for (let call = 0; call < n; call++) await body()
}

describe('a pacer', () => {
  test('NX1 every fetch automatically waits for its slot, evenly spaced', async () => {
    expect(await paced([pacer()], ({ fetch }) => times(4, () => fetch('https://example.com')))).toEqual([0, 1, 2, 3])
  })

  test('NX1 concurrent requests are spaced too', async () => {
    expect(
      await paced([pacer()], ({ fetch }) => Promise.all([1, 2, 3].map(() => fetch('https://example.com')))),
    ).toEqual([0, 1, 2])
  })

  test('NX1 slots that were reserved in advance and have passed are not used', async () => {
    const hurried = pacer({ allowedRequests: 100, intervalMs: 10 * SECOND })
    for (let before = 20; before <= 60; before += 5) {
      const seconds = await paced([{ ...hurried, name: `api-${before}` }], async ({ fetch, clock }) => {
        await times(before, () => fetch('https://example.com'))
        await clock.sleep(0.35 * SECOND)
        await times(5, () => fetch('https://example.com'))
      })
      expect(seconds).toHaveLength(before + 5)
      expect(isSpaced(seconds, 0.1), `after ${before} requests: ${seconds.slice(-6).join(', ')}`).toBe(true)
    }
  })

  test('NX1 a request after an idle time does not wait, and idle time does not allow a burst', async () => {
    const seconds = await paced([pacer()], async ({ fetch, clock }) => {
      await fetch('https://example.com')
      await clock.sleep(60 * SECOND)
      await times(3, () => fetch('https://example.com'))
    })
    expect(seconds).toEqual([0, 60, 61, 62])
  })

  test('a source with its own client can wait explicitly', async () => {
    expect(await paced([pacer()], ({ pacer }, note) => times(3, () => pacer.wait().then(note)))).toEqual([0, 1, 2])
    expect(
      await paced([pacer({ name: 'other' })], ({ pacer }, note) => times(2, () => pacer.wait('other').then(note))),
    ).toEqual([0, 1])
  })

  test('NX1 syncs that share a rate limit never exceed it together, and use all of it', async () => {
    const { seconds, slots } = await sharing(3, pacer(), ({ fetch }) => times(6, () => fetch('https://example.com')))
    expect(seconds).toEqual(Array.from({ length: 18 }, (_, i) => i))
    expect(slots).toBe(18)
  })

  test('NX1 syncs that wait for slots reserve them in batches; many syncs use small batches, so that none waits for long', async () => {
    const quick = pacer({ allowedRequests: 1_000, intervalMs: 10 * SECOND })
    const alone = await sharing(1, quick, ({ fetch }) => times(2_000, () => fetch('https://example.com')))
    expect(alone.seconds.at(-1)).toBe(1_999 / 100)
    expect(alone.takes).toBeLessThan(100)
    const crowd = await sharing(40, quick, ({ fetch }) => times(100, () => fetch('https://example.com')))
    expect(isSpaced(crowd.seconds, 0.01)).toBe(true)
    expect(crowd.takes).toBeLessThan(4_000 / 2)
    // Fair: at half time no sync has had many more slots than another.
    const half = [...crowd.bySync.values()].map(
      (own) => own.filter((second) => second < crowd.seconds.at(-1)! / 2).length,
    )
    expect(Math.max(...half) - Math.min(...half)).toBeLessThan(30)
    expect(
      Math.max(...[...crowd.bySync.values()].flatMap((own) => own.slice(1).map((second, i) => second - own[i]!))),
    ).toBeLessThan(8)
  })

  test('NX1 a source slower than its rate limit reserves one slot per request and no spare ones', async () => {
    const quick = pacer({ allowedRequests: 1_000, intervalMs: 10 * SECOND })
    const { takes, slots } = await sharing(3, quick, ({ fetch, clock }) =>
      times(50, async () => {
        await fetch('https://example.com')
        await clock.sleep(200)
      }),
    )
    expect([takes, slots]).toEqual([150, 150])
  })

  test('NX1 a cycle leaves few slots unused', async () => {
    const quick = pacer({ allowedRequests: 1_000, intervalMs: 10 * SECOND })
    for (const count of [1, 5, 40, 500]) {
      const { slots } = await sharing(1, quick, ({ fetch }) => times(count, () => fetch('https://example.com')))
      expect(slots).toBeLessThanOrEqual(count * 1.15)
    }
  })

  test('with two pacers, each request waits for both', async () => {
    const slow = pacer({ name: 'slow', allowedRequests: 1, intervalMs: 5 * SECOND })
    expect(await paced([pacer(), slow], ({ fetch }) => times(3, () => fetch('https://example.com')))).toEqual([
      0, 5, 10,
    ])
  })

  test('an interval that does not divide evenly is rounded up', async () => {
    const seconds = await paced([pacer({ allowedRequests: 3, intervalMs: SECOND })], ({ fetch }) =>
      times(4, () => fetch('https://example.com')),
    )
    expect(seconds.at(-1)).toBeGreaterThanOrEqual(1)
  })

  test('NX1 the last slot is stored, and the next run continues after it', async () => {
    const start = scene.clock.now()
    await paced([pacer()], ({ fetch }) => times(3, () => fetch('https://example.com')))
    expect(await scene.store.lastSlotTimes(WORKER)).toEqual({ api: start + 2 * SECOND })
    expect(await paced([pacer()], ({ fetch }) => fetch('https://example.com'), start)).toEqual([3])
  })

  test('XC26 a clock set back between two runs does not delay the next one', async () => {
    await paced([pacer()], ({ fetch }) => fetch('https://example.com'))
    scene.clock.step(-HOUR)
    const [first, second] = await paced([pacer()], ({ fetch }) => times(2, () => fetch('https://example.com')))
    expect(first).toBeLessThanOrEqual(2)
    expect(second! - first!).toBe(1)
  })

  test('XC26 a clock set back within a run does not delay it either', async () => {
    const start = scene.clock.now()
    await paced([pacer()], async ({ fetch, clock }) => {
      await times(2, () => fetch('https://example.com'))
      scene.clock.step(-HOUR)
      const before = clock.now()
      await times(2, () => fetch('https://example.com'))
      expect(clock.now() - before).toBeLessThanOrEqual(3 * SECOND)
    })
    expect(scene.clock.now()).toBeLessThan(start)
  })

  test('XC26 a clock set forward causes no burst', async () => {
    const seconds = await paced([pacer()], async ({ fetch }) => {
      await fetch('https://example.com')
      scene.clock.step(HOUR)
      await times(3, () => fetch('https://example.com'))
    })
    expect(seconds).toEqual([0, 3_600, 3_601, 3_602])
  })

  test('that the sync does not use is an error with its name', async () => {
    const result = await scene.run(
      planOf({
        pacers: [pacer()],
        execute: (_, { pacer }) => pacer.wait('apy').then(() => ({ changes: [], hasMore: false })),
      }),
    )
    expect(result.error).toMatchObject({ code: 'PACER_UNKNOWN', message: expect.stringContaining('"apy"') })
  })

  test('wakes when the cycle is stopped', async () => {
    const stopping = new AbortController()
    const pacing = new Pacer({
      ports: scene.ports,
      signal: stopping.signal,
      plans: [pacer()],
      takeSlots: (request) => scene.store.takeSlots({ worker: WORKER, ...request }),
    })
    await pacing.wait()
    const waiting = pacing.wait()
    stopping.abort(new SyncError('CANCELLED', 'stopped'))
    await expect(waiting).rejects.toMatchObject({ code: 'CANCELLED' })
  })

  test('NX1 a cycle that fails or crashes before a commit has still used its slots', async () => {
    const start = scene.clock.now()
    await scene.run(
      planOf({
        pacers: [pacer()],
        execute: (_, { pacer }) => pacer.wait().then(() => Promise.reject(new SyncError('AUTH_REJECTED', 'no'))),
      }),
    )
    expect(await scene.store.lastSlotTimes(WORKER)).toEqual({ api: start })
  })

  test('a sync without pacers does not wait', async () => {
    expect(await paced([], ({ fetch }) => times(3, () => fetch('https://example.com')))).toEqual([0, 0, 0])
  })

  test('waiting requests fail if the store fails, and later requests try again', async () => {
    let down = true
    const pacing = new Pacer({
      ports: scene.ports,
      signal: new AbortController().signal,
      plans: [pacer()],
      takeSlots: async (request) => {
        if (down) throw new SyncError('STORE_UNAVAILABLE', 'gone')
        return await scene.store.takeSlots({ worker: WORKER, ...request })
      },
    })
    for (const waiting of [pacing.wait(), pacing.wait()])
      await expect(waiting).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    down = false
    await pacing.wait()
  })
})

test('a fetch is aborted with the page, also if the source passed its own signal', async () => {
  const signals: AbortSignal[] = []
  const own = new AbortController()
  await scene.run(
    planOf({
      limits: { deadlineMs: SECOND, retriesMax: 0 },
      async execute(_, { fetch, clock }) {
        await fetch('https://example.com')
        await fetch('https://example.com', { signal: own.signal })
        await clock.sleep(HOUR)
        return { changes: [], hasMore: false }
      },
    }),
    { fetch: async (_, init) => (signals.push(init!.signal!), new Response('{}')) },
  )
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true])
})
