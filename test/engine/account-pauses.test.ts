import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SyncError, type Page, type SyncContext } from '../../src/contract/index.ts'
import { AccountPauses, NOOP_PAUSE_STORE, PauseError, type PauseStore } from '../../src/engine/account-pauses.ts'
import { RandomStream } from '../../src/testing/simulation/random-stream.ts'
import { planOf, EngineFixture, SECOND, MINUTE, HOUR, storeWith, upsert, WORKER } from './engine-fixture.ts'

let scene: EngineFixture
beforeEach(async () => void (scene = await EngineFixture.open()))
afterEach(() => scene.close())

const API = 'https://api.example.com'
const budget = { name: 'api', allowedRequests: 1_000, intervalMs: 1_000 }

/** A vendor that refuses on demand, and records every request that arrives during a pause it has announced. */
class Vendor {
  readonly requests: number[] = []
  readonly intrusions: string[] = []
  refusals = 0
  /** Answers the next request with this instead of data. */
  next: (() => { response: Response; pauseMs: number }) | null = null
  readonly #pauses: Array<{ readonly origin: string; readonly from: number; readonly until: number }> = []

  readonly fetch = (input: string | URL): Promise<Response> => this.#answer(new URL(input).origin, scene.clock.now())

  /** Each request takes a while to arrive. A request already in flight when the pause was announced does not count. */
  readonly slowFetch = async (input: string | URL): Promise<Response> => {
    const sentAt = scene.clock.now()
    await scene.clock.sleep(50)
    return this.#answer(new URL(input).origin, sentAt)
  }

  async #answer(origin: string, sentAt: number): Promise<Response> {
    const now = scene.clock.now()
    this.requests.push(now)
    for (const { until } of this.#pauses.filter(
      (pause) => pause.origin === origin && now < pause.until && sentAt >= pause.from + 20,
    )) {
      this.intrusions.push(`${until - now} ms before the end of a pause of ${origin}`)
    }
    if (this.next === null) return Response.json({ ok: true })
    const { response, pauseMs } = this.next()
    this.refusals++
    this.#pauses.push({ origin, from: now, until: now + pauseMs })
    return response
  }

  refuse(headers: Record<string, string>, pauseMs: number, status = 429): void {
    this.next = () => ((this.next = null), { response: new Response('', { status, headers }), pauseMs })
  }
}

const reading =
  (origin = API) =>
  async (_: unknown, context: SyncContext): Promise<Page> => {
    const response = await context.fetch(`${origin}/things`)
    if (response.status !== 200)
      throw new SyncError('RATE_LIMITED', `GET /things answered ${response.status}.`, {
        retryAfterMs: Number(response.headers.get('retry-after')) * SECOND,
      })
    return { changes: [upsert('a')], hasMore: false }
  }

describe('a pause that the source announced', () => {
  test('XD1 also applies to the next run: nothing is sent, and the error names the end', async () => {
    const vendor = new Vendor()
    const plan = planOf({ execute: reading() })
    vendor.refuse({ 'retry-after': '600' }, 600 * SECOND)
    const until = new Date(scene.clock.now() + 600 * SECOND).toISOString().replace('.000Z', 'Z')
    const first = await scene.run(plan, { fetch: vendor.fetch })
    expect(first.error).toMatchObject({
      code: 'RATE_LIMITED',
      message: expect.stringContaining(`until ${until} (in 10m)`),
    })
    await scene.clock.advance(4 * MINUTE)
    const second = await scene.run(plan, { fetch: vendor.fetch })
    expect(second).toMatchObject({
      stopReason: 'error',
      retryAt: Date.parse(until),
      error: { code: 'RATE_LIMITED', message: `${API} asked for a pause until ${until} (in 6m). Nothing was sent.` },
    })
    expect(vendor.requests.length).toBe(1)
    expect(await scene.checkpoint()).toMatchObject({ failures: 1, retryAt: Date.parse(until) })
    await scene.clock.advance(6 * MINUTE)
    expect(await scene.run(plan, { fetch: vendor.fetch })).toMatchObject({ stopReason: 'complete' })
    expect(vendor.intrusions).toEqual([])
  })

  test('XD1 is waited for if it is short', async () => {
    const vendor = new Vendor()
    vendor.refuse({ 'retry-after': '600' }, 600 * SECOND)
    await scene.run(planOf({ execute: reading() }), { fetch: vendor.fetch })
    await scene.clock.advance(570 * SECOND)
    expect(await scene.run(planOf({ execute: reading() }), { fetch: vendor.fetch })).toMatchObject({
      stopReason: 'complete',
      retries: 1,
      waitedMs: 30 * SECOND,
    })
    expect([vendor.requests.length, vendor.intrusions]).toEqual([2, []])
  })

  test.each([
    ['a sync of the same pacer', [budget], [budget], 0],
    ['a sync of one of its pacers', [budget, { ...budget, name: 'search' }], [{ ...budget, name: 'search' }], 0],
    ['a sync without a pacer, of one with', [budget], [], 0],
    ['a sync with a pacer, of one without', [], [budget], 0],
    ['a sync without a pacer, of another', [], [], 0],
    ['not by a sync of another pacer', [budget], [{ ...budget, name: 'other' }], 1],
  ])('XD1 applies to %s', async (_, pacers, siblings, requests) => {
    const vendor = new Vendor()
    vendor.refuse({ 'retry-after': '600' }, 600 * SECOND)
    await scene.run(planOf({ execute: reading(), pacers }), { fetch: vendor.fetch })
    await scene.run(planOf({ sync: 'sibling', execute: reading(), pacers: siblings }), { fetch: vendor.fetch })
    expect(vendor.requests.length).toBe(1 + requests)
  })

  test('XD1 applies to one origin, one worker and one tenant', async () => {
    const vendor = new Vendor()
    vendor.refuse({ 'retry-after': '600' }, 600 * SECOND)
    await scene.run(planOf({ execute: reading() }), { fetch: vendor.fetch })
    expect(
      await scene.run(planOf({ sync: 'elsewhere', execute: reading('https://other.example.com') }), {
        fetch: vendor.fetch,
      }),
    ).toMatchObject({ stopReason: 'complete' })
    expect(await scene.run(planOf({ worker: 'other', execute: reading() }), { fetch: vendor.fetch })).toMatchObject({
      stopReason: 'complete',
    })
    expect(
      await scene.run(planOf({ execute: reading() }), { fetch: vendor.fetch, store: scene.store.forTenant('acme') }),
    ).toMatchObject({ stopReason: 'complete' })
  })

  test('XD1 applies to a connector that swallows the refusal and retries at once', async () => {
    const vendor = new Vendor()
    vendor.refuse({ 'retry-after': '600' }, 600 * SECOND)
    const stubborn = async (_: unknown, context: SyncContext): Promise<Page> => {
      for (;;) if ((await context.fetch(`${API}/things`)).ok) return { changes: [], hasMore: false }
    }
    expect((await scene.run(planOf({ execute: stubborn }), { fetch: vendor.fetch })).error).toMatchObject({
      code: 'RATE_LIMITED',
    })
    expect(vendor.requests.length).toBe(1)
  })

  test('XD1 that only a client library detects applies to every sync of the account', async () => {
    let calls = 0
    const client = async (): Promise<Page> => (
      calls++,
      Promise.reject(Object.assign(new Error('slow down'), { name: 'RateLimitError', retryAfter: 600 }))
    )
    for (const sync of ['one', 'two', 'one'])
      expect((await scene.run(planOf({ sync, execute: client }))).error).toMatchObject({
        code: 'RATE_LIMITED',
        message: expect.stringContaining('until'),
      })
    expect(calls).toBe(1)
  })

  test('XD1 applies to this process even if the store cannot save it', async () => {
    const vendor = new Vendor()
    vendor.refuse({ 'retry-after': '30' }, 30 * SECOND)
    const store = storeWith(scene.store, {
      recordPause: () => Promise.reject(new SyncError('STORE_UNAVAILABLE', 'away')),
    })
    expect(await scene.run(planOf({ execute: reading() }), { fetch: vendor.fetch, store })).toMatchObject({
      stopReason: 'complete',
      waitedMs: 30 * SECOND,
    })
    expect(vendor.intrusions).toEqual([])
    expect(scene.logged.join()).toContain('could not store a pause')
  })

  test('XD1 that the store could not save at first is stored at the end of the cycle, for every other process', async () => {
    const vendor = new Vendor()
    vendor.refuse({ 'retry-after': '600' }, 600 * SECOND)
    let failing = 3
    const store = storeWith(scene.store, {
      recordPause: (request) =>
        failing-- > 0 ? Promise.reject(new SyncError('STORE_UNAVAILABLE', 'away')) : scene.store.recordPause(request),
    })
    expect(await scene.run(planOf({ execute: reading() }), { fetch: vendor.fetch, store })).toMatchObject({
      stopReason: 'error',
    })
    expect(await scene.run(planOf({ execute: reading() }), { fetch: vendor.fetch })).toMatchObject({
      error: { code: 'RATE_LIMITED' },
    })
    expect(vendor.requests.length).toBe(1)
    await scene.clock.advance(601 * SECOND)
    expect(await scene.run(planOf({ execute: reading() }), { fetch: vendor.fetch })).toMatchObject({
      stopReason: 'complete',
    })
  })

  test('XD1 a source that refuses without a wait time is retried with growing delays, a bounded number of times, then paused for a minute for all processes', async () => {
    const vendor = new Vendor()
    vendor.next = () => ({ response: new Response('', { status: 429 }), pauseMs: 0 })
    const startedAt = scene.clock.now()
    const execute = async (_: unknown, { fetch }: SyncContext): Promise<Page> => {
      await fetch(`${API}/things`)
      throw new SyncError('RATE_LIMITED', 'GET /things answered 429.')
    }
    const { error } = await scene.run(planOf({ execute, limits: { retriesMax: 4 } }), { fetch: vendor.fetch })
    expect(error).toMatchObject({
      code: 'RATE_LIMITED',
      message: expect.stringMatching(/gave no wait time; nothing is sent until \d{4}-/),
    })
    const gaps = vendor.requests.map((at, n) => at - (vendor.requests[n - 1] ?? startedAt)).slice(1)
    expect(gaps).toEqual([1, 2, 4, 8].map((seconds) => seconds * SECOND))
    // Another sync of the account, in another process.
    const other = await scene.run(planOf({ sync: 'other', execute, limits: { waitMaxMs: SECOND } }), {
      fetch: vendor.fetch,
    })
    expect(other.error).toMatchObject({ code: 'RATE_LIMITED', message: expect.stringContaining('Nothing was sent') })
    expect(vendor.requests.length).toBe(5)
    await scene.clock.advance(MINUTE)
    vendor.next = null
    expect(await scene.run(planOf({ execute: reading() }), { fetch: vendor.fetch })).toMatchObject({
      stopReason: 'complete',
    })
  })

  test('XD1 of a server that is down and gives a retry time also applies', async () => {
    const vendor = new Vendor()
    vendor.refuse({ 'retry-after': '600' }, 600 * SECOND, 503)
    for (const _ of [1, 2])
      await scene.run(
        planOf({ execute: async (__, { fetch }) => (await fetch(`${API}/x`), { changes: [], hasMore: false }) }),
        { fetch: vendor.fetch },
      )
    expect(vendor.requests.length).toBe(1)
  })
})

describe('the pauses of one process', () => {
  const signal = new AbortController().signal
  const away = (): Promise<never> => Promise.reject(new SyncError('STORE_UNAVAILABLE', 'away'))
  const refusal = (seconds: number): Response =>
    new Response('', { status: 429, headers: { 'retry-after': String(seconds) } })
  let now: number
  beforeEach(() => void (now = 1_000_000))

  function pausesWith(store: Partial<PauseStore>): AccountPauses {
    const clock = { now: () => now, sleep: async (ms: number) => void (now += ms) }
    return new AccountPauses(
      planOf({ execute: reading() }),
      { clock, log: scene.ports.log },
      { ...NOOP_PAUSE_STORE, ...store },
    )
  }

  async function waitMs(pauses: AccountPauses): Promise<number> {
    const error: unknown = await pauses.check(API, signal).then(
      () => null,
      (thrown: unknown) => thrown,
    )
    if (error !== null && !(error instanceof PauseError)) throw error
    return error?.retryAfterMs ?? 0
  }

  test('XD1 a shorter announcement does not end a longer pause, even without a store', async () => {
    const pauses = pausesWith({ recordPause: away })
    await pauses.recordResponse(API, refusal(600))
    await pauses.recordResponse(API, refusal(1))
    expect(await waitMs(pauses)).toBe(600 * SECOND)
  })

  test('XD1 a clock that is set back does not extend a pause beyond its announced length', async () => {
    const pauses = pausesWith({ recordPause: away })
    await pauses.recordResponse(API, refusal(600))
    now -= HOUR
    expect(await waitMs(pauses)).toBe(600 * SECOND)
  })

  test('XD1 a store that fails once is read again by the next request', async () => {
    let reads = 0
    const pauses = pausesWith({ pauses: async ({ at }) => (reads++ === 0 ? away() : { now: at, pauses: [] }) })
    await expect(pauses.check(API, signal)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    expect([await waitMs(pauses), reads]).toEqual([0, 2])
  })

  test('XD1 a pause that cannot be stored does not fail the request that announced it', async () => {
    await expect(pausesWith({ recordPause: away }).recordResponse(API, refusal(600))).resolves.toBeUndefined()
  })

  test('XD1 a pause ends at its announced time, even without a store', async () => {
    const pauses = pausesWith({ recordPause: away })
    await pauses.recordResponse(API, refusal(600))
    now += 599 * SECOND
    expect(await waitMs(pauses)).toBe(SECOND)
    now += SECOND
    expect(await waitMs(pauses)).toBe(0)
  })

  test('XD1 a store that stays unavailable is retried a bounded number of times at the end, and not for an expired pause', async () => {
    let calls = 0
    const pauses = pausesWith({ recordPause: () => (calls++, away()) })
    await pauses.recordResponse(API, refusal(600))
    await pauses.flush(new RandomStream(1, 'keep'))
    expect([calls > 2, calls < 10]).toEqual([true, true])
    calls = 0
    now += 600 * SECOND
    await pauses.flush(new RandomStream(1, 'keep'))
    expect(calls).toBe(0)
  })

  test('XD1 a pause is read by the name of the worker', async () => {
    const asked: string[] = []
    await waitMs(pausesWith({ pauses: async ({ worker, at }) => (asked.push(worker), { now: at, pauses: [] }) }))
    expect(asked).toEqual([WORKER])
  })

  test('XD1 a blocked sync does not extend the pause to the other pacers of its worker', async () => {
    const vendor = new Vendor()
    vendor.refuse({ 'retry-after': '600' }, 600 * SECOND)
    await scene.run(planOf({ execute: reading(), pacers: [budget] }), { fetch: vendor.fetch })
    expect(await scene.run(planOf({ sync: 'without', execute: reading() }), { fetch: vendor.fetch })).toMatchObject({
      stopReason: 'error',
    })
    const other = planOf({ sync: 'other', execute: reading(), pacers: [{ ...budget, name: 'other' }] })
    expect(await scene.run(other, { fetch: vendor.fetch })).toMatchObject({ stopReason: 'complete' })
  })
})

test.each(Array.from({ length: 20 }, (_, seed) => seed))(
  'XD1 no request is sent during an announced pause, across syncs and restarts (seed %i)',
  async (seed) => {
    const random = new RandomStream(seed, 'pauses')
    const vendor = new Vendor()
    const pacers = random.pick([[], [budget], [budget, { ...budget, name: 'search' }]])
    const announce = (): void => {
      const seconds = random.pick([1, 2, 20, 59, 61, 600, 3_600, 100_000])
      const skewMs = random.pick([null, 0, HOUR, -HOUR, 5 * MINUTE, -5 * MINUTE])
      const form = random.pick(['seconds', 'date', 'reset', 'span', 'ms', 'structured'])
      vendor.next = () => {
        vendor.next = null
        const now = scene.clock.now()
        // These headers have a resolution of whole seconds.
        const end =
          form === 'date' || form === 'reset' ? Math.ceil(now / SECOND + seconds) * SECOND : now + seconds * SECOND
        const date: Record<string, string> = skewMs === null ? {} : { date: new Date(now + skewMs).toUTCString() }
        const headers = {
          seconds: { 'retry-after': String(seconds), ...date },
          date: { 'retry-after': new Date(end).toUTCString(), ...date },
          reset: { 'x-ratelimit-reset': String(end / SECOND), ...date },
          span: { 'x-ratelimit-reset': String(seconds) },
          ms: { 'retry-after-ms': String(seconds * SECOND) },
          structured: { ratelimit: `"a";r=0;t=${seconds}` },
        }[form]!
        return { response: new Response('', { status: 429, headers }), pauseMs: Math.min(end - now, 24 * HOUR) }
      }
    }
    const execute = async (state: number | undefined, context: SyncContext): Promise<Page<number>> => {
      if (random.chance(0.3)) announce()
      for (let tries = 0; ; tries++) {
        const response = await context.fetch(`${API}/things`)
        if (response.ok) return { changes: [upsert('a')], hasMore: (state ?? 0) % 3 < 2, nextState: (state ?? 0) + 1 }
        if (tries === 2 || random.chance(0.5)) throw new SyncError('RATE_LIMITED', 'refused')
      }
    }
    await scene.clock.drive(
      Promise.all(
        ['one', 'two', 'three'].map(async (sync) => {
          for (let run = 0; run < 15; run++) {
            await scene.start(planOf({ sync, execute, pacers, worker: WORKER }), {
              holder: `${sync}-${run}`,
              fetch: vendor.slowFetch,
            })
            await scene.clock.sleep(random.pick([1, SECOND, 30 * SECOND, 10 * MINUTE]))
          }
        }),
      ),
    )
    expect(vendor.refusals).toBeGreaterThan(0)
    expect(vendor.intrusions).toEqual([])
  },
)
