import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  ERROR_CODES,
  SyncError,
  type ErrorCode,
  type Page,
  type Store,
  type SyncContext,
} from '../../src/contract/index.ts'
import {
  counts,
  HOUR,
  listing,
  MINUTE,
  planOf,
  ref,
  EngineFixture,
  createScriptedSource,
  SECOND,
  storeWith,
  upsert,
} from './engine-fixture.ts'

let scene: EngineFixture
beforeEach(async () => void (scene = await EngineFixture.open()))
afterEach(() => scene.close())

const END: Page = { changes: [], hasMore: false }
const more = (key: string, nextState: unknown): Page => ({ changes: [upsert(key)], hasMore: true, nextState })
const last = (key: string, nextState?: unknown): Page => ({ changes: [upsert(key)], hasMore: false, nextState })
const failing = (reason: unknown) => () => Promise.reject(reason as Error)
/** As thrown by a connector that bundles its own copy of the package, or none. */
const rateLimit = (retryAfter: unknown): Error =>
  Object.assign(new Error('slow down'), { name: 'RateLimitError', retryAfter })

describe('a page that fails', () => {
  test('XD3 is retried with growing waits, and the cycle continues at the same page', async () => {
    const down = new SyncError('SOURCE_UNAVAILABLE', 'down')
    const source = createScriptedSource(more('a', 1), down, down, down, last('b', 2))
    const waits: number[] = []
    const result = await scene.run(planOf(source), {
      onProgress: (progress) => progress.kind === 'waiting' && void waits.push(progress.ms),
    })
    expect(waits).toEqual([1, 2, 4].map((seconds) => seconds * SECOND))
    expect(source.asked).toEqual([undefined, 1, 1, 1, 1])
    expect(result).toMatchObject({ stopReason: 'complete', retries: 3, waitedMs: 7 * SECOND })
    expect((await scene.store.cycles(ref()))[0]).toMatchObject({ retries: 3, waitedMs: 7 * SECOND })
  })

  test('XD3 a bounded number of times; then the state is that of the last full page', async () => {
    const source = createScriptedSource(
      more('a', 1),
      ...Array.from({ length: 3 }, () => new SyncError('SOURCE_UNAVAILABLE', 'down')),
    )
    const result = await scene.run(planOf({ ...source, limits: { retriesMax: 2 } }))
    expect(result).toMatchObject({ stopReason: 'error', pages: 1, retries: 2, error: { code: 'SOURCE_UNAVAILABLE' } })
    expect(source.asked).toHaveLength(4)
    expect((await scene.checkpoint()).inflight).toMatchObject({ page: 1, state: '1' })
  })

  test('XD3 each page has its own attempts', async () => {
    const down = new SyncError('SOURCE_UNAVAILABLE', 'down')
    const source = createScriptedSource(down, more('a', 1), down, more('b', 2), down, last('c'))
    expect(await scene.run(planOf({ ...source, limits: { retriesMax: 1 } }))).toMatchObject({
      stopReason: 'complete',
      retries: 3,
    })
  })

  test('F11 the wait is the server’s or the backoff, whichever is longer', async () => {
    const limited = (ms: number) => new SyncError('RATE_LIMITED', 'slow down', { retryAfterMs: ms })
    const source = createScriptedSource(limited(20 * SECOND), limited(100), limited(100), last('a'))
    const waits: number[] = []
    await scene.run(planOf(source), {
      onProgress: (progress) => progress.kind === 'waiting' && void waits.push(progress.ms),
    })
    expect(waits).toEqual([20 * SECOND, 2 * SECOND, 4 * SECOND])
  })

  test('F11 the wait has jitter, so that many clients do not return at once', async () => {
    const waits: number[] = []
    for (const chance of [0, 0.999]) {
      const source = createScriptedSource(new SyncError('SOURCE_UNAVAILABLE', 'down'), last('a'))
      await scene.run(planOf(source), {
        ports: { ...scene.ports, random: { next: () => chance } },
        onProgress: (progress) => progress.kind === 'waiting' && void waits.push(progress.ms),
      })
    }
    expect(waits).toEqual([500, 1_499])
  })

  const remedies = Object.entries(ERROR_CODES)
    .map(([code, { remedy }]) => [code as ErrorCode, remedy] as const)
    .filter(([code]) => !['CURSOR_REJECTED', 'CANCELLED'].includes(code))
  test.each(remedies.filter(([, remedy]) => remedy === 'retry' || remedy === 'wait'))('%s is retried', async (code) => {
    const source = createScriptedSource(new SyncError(code, 'once'), last('a'))
    expect(await scene.run(planOf(source))).toMatchObject({ stopReason: 'complete', retries: 1 })
  })
  test.each(remedies.filter(([, remedy]) => remedy !== 'retry' && remedy !== 'wait'))(
    '%s, whose remedy is %s, is not retried',
    async (code) => {
      const source = createScriptedSource(new SyncError(code, 'once'), last('a'))
      expect(await scene.run(planOf(source))).toMatchObject({
        pages: 0,
        retries: 0,
        error: { code, advice: ERROR_CODES[code].advice },
      })
      expect(source.asked).toHaveLength(1)
    },
  )

  test.each<[string, unknown, ErrorCode]>([
    ['an Error', new Error('boom'), 'CONNECTOR_FAILED'],
    ['text', 'boom', 'CONNECTOR_FAILED'],
    ['undefined', undefined, 'CONNECTOR_FAILED'],
    ['null', null, 'CONNECTOR_FAILED'],
    ['an error of another copy of the package', { code: 'AUTH_REJECTED', message: 'no' }, 'AUTH_REJECTED'],
    ['an error with a code of its own', Object.assign(new Error('x'), { code: 'E_CUSTOM' }), 'CONNECTOR_FAILED'],
    [
      'an error whose code is a member of every object',
      Object.assign(new Error('x'), { code: 'constructor' }),
      'CONNECTOR_FAILED',
    ],
    ['a rate limit', rateLimit(1), 'RATE_LIMITED'],
    ['a refused connection', Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }), 'SOURCE_UNAVAILABLE'],
    ['a failed fetch', new TypeError('fetch failed', { cause: { code: 'ENOTFOUND' } }), 'SOURCE_UNAVAILABLE'],
    [
      'a timeout of the network',
      new TypeError('fetch failed', { cause: { code: 'UND_ERR_HEADERS_TIMEOUT' } }),
      'SOURCE_TIMEOUT',
    ],
    [
      'a timeout of a signal',
      AbortSignal.timeout(0).reason ?? new DOMException('late', 'TimeoutError'),
      'SOURCE_TIMEOUT',
    ],
  ])('F10 thrown or returned, %s is recognized by its structure', async (_, thrown, code) => {
    const limits = { retriesMax: 0 }
    expect((await scene.run(planOf({ execute: failing(thrown), limits }))).error?.code).toBe(code)
    expect((await scene.run(planOf({ execute: async () => ({ error: thrown }) as never, limits }))).error?.code).toBe(
      code,
    )
  })
})

describe('the wait that a server requests', () => {
  test.each<[unknown, number]>([
    [7, 7 * SECOND],
    ['7', 7 * SECOND],
    [0.5, SECOND],
    [0, SECOND],
    [-5, SECOND],
    [Number.NaN, SECOND],
    [Number.POSITIVE_INFINITY, SECOND],
    ['soon', SECOND],
    [undefined, SECOND],
    [null, SECOND],
    [{}, SECOND],
  ])(
    'XD1 a RateLimitError with retryAfter %s waits %i ms: an invalid value means the usual backoff',
    async (retryAfter, ms) => {
      const source = createScriptedSource(failing(rateLimit(retryAfter)), last('a'))
      expect(await scene.run(planOf(source))).toMatchObject({ stopReason: 'complete', waitedMs: ms })
    },
  )

  test('XD1 ten years are capped to a day', async () => {
    const start = scene.clock.now()
    const result = await scene.run(planOf(createScriptedSource(failing(rateLimit(10 * 365 * 86_400)))))
    expect(result).toMatchObject({ stopReason: 'error', error: { code: 'RATE_LIMITED' }, retryAt: start + 24 * HOUR })
  })

  test('a wait that is too long ends the cycle at once, and sets the time of the next attempt', async () => {
    const source = createScriptedSource(more('a', 1), failing(rateLimit(600)), last('b'))
    const start = scene.clock.now()
    const result = await scene.run(planOf({ ...source, limits: { waitMaxMs: MINUTE } }))
    expect(result).toMatchObject({
      stopReason: 'error',
      pages: 1,
      retries: 0,
      endedAt: start,
      retryAt: start + 10 * MINUTE,
      error: { code: 'RATE_LIMITED' },
    })
    expect(await scene.checkpoint()).toMatchObject({
      retryAt: start + 10 * MINUTE,
      inflight: { page: 1 },
      heldBy: null,
    })
  })

  test('F11 S36 between cycles the wait grows with consecutive failures, counted from the last error, and a success resets it', async () => {
    const plan = planOf({ execute: failing(new SyncError('AUTH_REJECTED', 'no')) })
    const waits: number[] = []
    for (let failure = 0; failure < 6; failure++) {
      scene.clock.step(3 * HOUR)
      const { retryAt } = await scene.run(plan)
      waits.push((retryAt! - scene.clock.now()) / MINUTE)
    }
    expect(waits).toEqual([1, 5, 30, 120, 120, 120])
    expect(await scene.checkpoint()).toMatchObject({
      failures: 6,
      lastError: { code: 'AUTH_REJECTED', at: scene.clock.now() },
    })
    await scene.run(planOf(createScriptedSource(END)))
    expect(await scene.checkpoint()).toMatchObject({ failures: 0, lastError: null, retryAt: null })
    expect((await scene.run(plan)).retryAt).toBe(scene.clock.now() + MINUTE)
  })

  test('F11 a wait is counted from the error, not from the start of the cycle', async () => {
    const plan = planOf({
      async execute(_, { clock }) {
        await clock.sleep(90 * SECOND)
        throw new SyncError('AUTH_REJECTED', 'no')
      },
    })
    const start = scene.clock.now()
    expect((await scene.run(plan)).retryAt).toBe(start + 90 * SECOND + MINUTE)
  })
})

describe('a source that never responds', () => {
  test('XD9 XC2 the cycle ends at the deadline, and a late response is never used', async () => {
    let answer!: (page: Page) => void
    const source = createScriptedSource(more('a', 1), () => new Promise<Page>((resolve) => (answer = resolve)))
    const start = scene.clock.now()
    const result = await scene.run(planOf({ ...source, limits: { deadlineMs: 30 * SECOND, retriesMax: 0 } }))
    expect(result).toMatchObject({ stopReason: 'error', pages: 1, error: { code: 'SOURCE_TIMEOUT' } })
    expect(scene.clock.now() - start).toBe(30 * SECOND)
    expect(source.contexts[1]!.signal.aborted).toBe(true)
    expect(await scene.checkpoint()).toMatchObject({ heldBy: null, inflight: { page: 1 } })
    answer(last('late', 99))
    await scene.run(planOf(createScriptedSource(last('b', 2))))
    expect(await scene.keys()).toEqual(['a', 'b'])
    expect((await scene.checkpoint()).committed).toBe('2')
  })

  test('XC2 a late response does not replace the retried one', async () => {
    let late!: (page: Page) => void
    const source = createScriptedSource(
      () => new Promise<Page>((resolve) => (late = resolve)),
      async (_, { clock }) => {
        expect(source.contexts[0]!.signal.reason).toMatchObject({ code: 'SOURCE_TIMEOUT' })
        await clock.sleep(SECOND)
        late(last('late'))
        await clock.sleep(SECOND)
        return last('in time')
      },
    )
    expect(await scene.run(planOf({ ...source, limits: { deadlineMs: 30 * SECOND } }))).toMatchObject({
      stopReason: 'complete',
      retries: 1,
    })
    expect(await scene.keys()).toEqual(['in time'])
  })

  test('a schema that never resolves is subject to the deadline too', async () => {
    const databases = [{ name: 'things', validate: () => new Promise<null>(() => {}) }]
    const result = await scene.run(
      planOf({ ...createScriptedSource(last('a')), databases, limits: { deadlineMs: 30 * SECOND, retriesMax: 0 } }),
    )
    expect(result).toMatchObject({ stopReason: 'error', error: { code: 'SOURCE_TIMEOUT' } })
  })

  test('a page in time leaves no timer behind, neither in the cycle nor after it', async () => {
    const start = scene.clock.now()
    const asleep: number[] = []
    const list = listing(['a'], ['b'], ['c'], ['d'])
    await scene.run(
      planOf({
        execute(state, context) {
          asleep.push(scene.clock.sleepers)
          return list(state, context)
        },
      }),
    )
    // The renewal of the lease, and the deadline of this page.
    expect(asleep).toEqual([2, 2, 2, 2])
    expect(scene.clock.sleepers).toBe(0)
    expect(scene.clock.now()).toBe(start)
  })
})

/** Each call of the method first fails with the next of these; null lets it through. */
function meeting<M extends 'commit' | 'beginCycle' | 'acquire' | 'renew' | 'takeSlots'>(
  method: M,
  ...faults: Array<((call: () => Promise<unknown>) => Promise<unknown>) | null>
): Store {
  return storeWith(scene.store, {
    [method]: (...args: unknown[]) => {
      const call = (): Promise<unknown> => (scene.store[method] as (...args: unknown[]) => Promise<unknown>)(...args)
      const fault = faults.shift()
      return fault == null ? call() : fault(call)
    },
  })
}
const busy = failing(new SyncError('STORE_BUSY', 'locked'))
const gone = failing(new SyncError('STORE_UNAVAILABLE', 'gone'))
const unknown = new SyncError('COMMIT_UNKNOWN', 'the connection broke')
const lost = failing(unknown)
const answerLost = async (call: () => Promise<unknown>): Promise<never> => {
  await call()
  throw unknown
}

describe('a store that is busy', () => {
  test.each(['acquire', 'beginCycle', 'takeSlots', 'commit'] as const)(
    'XB8 at %s is retried, and the page is not',
    async (method) => {
      const source = createScriptedSource(more('a', 1), last('b', 2))
      const paced = async (state: unknown, context: SyncContext): Promise<Page> => (
        await context.pacer.wait(),
        source.execute(state as never, context) as Promise<Page>
      )
      const result = await scene.run(
        planOf({ execute: paced, pacers: [{ name: 'api', allowedRequests: 1, intervalMs: 1 }] }),
        { store: meeting(method, busy, busy, busy) },
      )
      expect(result).toMatchObject({ stopReason: 'complete', pages: 2, retries: 3, counts: counts({ created: 2 }) })
      expect(result.waitedMs).toBe(50 + 100 + 200)
      expect(source.asked).toHaveLength(2)
    },
  )

  test('XB8 permanently fails the cycle after a bounded number of attempts', async () => {
    const source = createScriptedSource(last('a', 1))
    let tries = 0
    const store = storeWith(scene.store, { commit: () => (tries++, busy()) })
    expect(await scene.run(planOf(source), { store })).toMatchObject({
      stopReason: 'error',
      error: { code: 'STORE_BUSY' },
    })
    expect(tries).toBe(7)
    expect(source.asked).toHaveLength(1)
  })

  test('XB6 XB7 full, read-only or unavailable is not retried: nothing is committed, and reading still works', async () => {
    for (const code of ['STORE_FULL', 'STORE_READONLY', 'STORE_UNAVAILABLE'] as const) {
      const result = await scene.run(planOf(createScriptedSource(last('a', 1))), {
        store: meeting('commit', failing(new SyncError(code, 'no'))),
      })
      expect(result).toMatchObject({ stopReason: 'error', retries: 0, error: { code } })
    }
    expect(await scene.checkpoint()).toMatchObject({ version: 0, inflight: { page: 0 } })
    expect(await scene.keys()).toEqual([])
  })
})

describe('a commit whose response is lost', () => {
  test('XB4 that was committed is detected, and is not committed twice', async () => {
    const source = createScriptedSource(more('a', 1), more('b', 2), last('c', 3))
    const result = await scene.run(planOf(source), { store: meeting('commit', answerLost, null, answerLost) })
    expect(result).toMatchObject({ stopReason: 'complete', pages: 3, version: 1 })
    expect(source.asked).toEqual([undefined, 1, 2])
    expect(await scene.checkpoint()).toMatchObject({ version: 1, committed: '3', inflight: null })
    expect((await scene.feed()).map(({ key }) => key)).toEqual(['a', 'b', 'c'])
  })

  test('XB4 that was committed as the last page is complete', async () => {
    const result = await scene.run(planOf(createScriptedSource(last('a', 1))), { store: meeting('commit', answerLost) })
    expect(result).toMatchObject({ stopReason: 'complete', version: 1, headSequence: 1 })
    expect((await scene.store.audit(ref())).map(({ action }) => action)).toEqual(['complete'])
  })

  test('XB4 that was not committed is committed', async () => {
    const result = await scene.run(planOf(createScriptedSource(more('a', 1), last('b', 2))), {
      store: meeting('commit', lost, lost, null),
    })
    expect(result).toMatchObject({ stopReason: 'complete', version: 1, counts: counts({ created: 2 }) })
  })

  test('XB5 and never resolved ends the run as unknown; the next one reads the checkpoint', async () => {
    const source = createScriptedSource(more('a', 1), last('b', 2), last('b', 2))
    const result = await scene.run(planOf(source), { store: meeting('commit', answerLost, ...Array(10).fill(lost)) })
    expect(result).toMatchObject({ stopReason: 'unknown', version: 0, error: { code: 'COMMIT_UNKNOWN' } })
    expect((await scene.checkpoint()).inflight).toMatchObject({ page: 1, state: '1' })
    expect(await scene.run(planOf(source))).toMatchObject({ stopReason: 'complete', resumed: true })
    expect(source.asked.at(-1)).toBe(1)
    expect((await scene.feed()).map(({ key }) => key)).toEqual(['a', 'b'])
  })

  test('XB4 by a store that is then unavailable for a while is resolved when it returns', async () => {
    const result = await scene.run(planOf(createScriptedSource(last('a', 1))), {
      store: meeting('commit', answerLost, gone, gone),
    })
    expect(result).toMatchObject({ stopReason: 'complete', version: 1 })
  })

  test('XB5 by a store that stays unavailable is unknown too, and not a plain failure', async () => {
    const result = await scene.run(planOf(createScriptedSource(last('a', 1))), {
      store: meeting('commit', answerLost, ...Array(10).fill(gone)),
    })
    expect(result).toMatchObject({ stopReason: 'unknown', version: 0, error: { code: 'COMMIT_UNKNOWN' } })
    expect(await scene.checkpoint()).toMatchObject({ version: 1, committed: '1' })
  })

  test('XB4 is not taken for committed if another writer changed the checkpoint', async () => {
    const store = meeting('commit', async () => {
      const { lease, version } = await holding()
      await scene.store.commit({
        lease,
        version,
        at: scene.clock.now(),
        transition: { kind: 'set', state: '"elsewhere"', actor: 'somebody', reason: 'test' },
        owner: 'o',
        landings: [],
        quarantined: [],
        columns: {},
        readAtSequence: 0,
        upstreamToleranceMs: 0,
      })
      throw unknown
    })
    expect(await scene.run(planOf(createScriptedSource(last('a', 1))), { store })).toMatchObject({
      stopReason: 'error',
      error: { code: 'VERSION_CONFLICT' },
    })
    expect(await scene.checkpoint()).toMatchObject({ committed: '"elsewhere"' })
    expect(await scene.keys()).toEqual([])
  })
})

/** The lease of the running cycle, as an operator would use it. */
async function holding(): Promise<{
  lease: { ref: ReturnType<typeof ref>; holder: string; epoch: number }
  version: number
}> {
  return { lease: { ref: ref(), holder: 'process-1', epoch: 1 }, version: (await scene.checkpoint()).version }
}

describe('two runners', () => {
  const takeOver = async (): Promise<void> => {
    const taken = await scene.store.acquire(ref(), { holder: 'process-2', ttlMs: MINUTE, at: scene.clock.now() + HOUR })
    expect(taken.kind).toBe('acquired')
  }

  test('XB1 the second runner learns the holder, and sends no request to the source', async () => {
    const second = createScriptedSource(END)
    const first = createScriptedSource(async () => {
      expect(await scene.start(planOf(second), { holder: 'process-2' })).toMatchObject({
        stopReason: 'held',
        cycle: null,
        error: { code: 'LEASE_HELD', message: 'sync is being run by process-1.' },
      })
      return END
    })
    expect(await scene.run(planOf(first))).toMatchObject({ stopReason: 'complete' })
    expect(second.asked).toHaveLength(0)
  })

  test('XB1 when both start at once, exactly one runs', async () => {
    const source = createScriptedSource(async (_, { clock }) => {
      await clock.sleep(SECOND)
      return END
    })
    const results = await scene.clock.drive(
      Promise.all(['a', 'b', 'c'].map((holder) => scene.start(planOf(source), { holder }))),
    )
    expect(results.map(({ stopReason }) => stopReason).toSorted()).toEqual(['complete', 'held', 'held'])
    expect(source.asked).toHaveLength(1)
  })

  test('the lease of a holder known to have exited is taken at once, any other is waited for', async () => {
    await takeOver()
    const source = createScriptedSource(END)
    expect(await scene.run(planOf(source), { isHolderGone: (holder) => holder !== 'process-2' })).toMatchObject({
      stopReason: 'held',
    })
    expect(await scene.run(planOf(source), { isHolderGone: (holder) => holder === 'process-2' })).toMatchObject({
      stopReason: 'complete',
    })
  })

  test('a long cycle keeps its lease', async () => {
    const source = createScriptedSource(async (_, { clock }) => {
      await clock.sleep(10 * MINUTE)
      expect(await scene.start(planOf(createScriptedSource(END)), { holder: 'process-2' })).toMatchObject({
        stopReason: 'held',
      })
      return last('a')
    })
    expect(await scene.run(planOf({ ...source, limits: { deadlineMs: HOUR, leaseTtlMs: MINUTE } }))).toMatchObject({
      stopReason: 'complete',
    })
  })

  test('XA11 invariant 3: a runner that slept past its lease commits nothing after the takeover', async () => {
    const source = createScriptedSource(more('a', 1), async () => {
      await takeOver()
      return last('zombie', 99)
    })
    expect(await scene.run(planOf(source))).toMatchObject({
      stopReason: 'lease_lost',
      pages: 1,
      error: { code: 'LEASE_LOST' },
    })
    expect(await scene.keys()).toEqual(['a'])
    expect(await scene.checkpoint()).toMatchObject({
      version: 0,
      inflight: { page: 1, state: '1' },
      heldBy: 'process-2',
      failures: 0,
    })
  })

  test('XA11 a runner suspended past its lease sends no more requests: neither for a page nor within one', async () => {
    const fetched: string[] = []
    const fetch = async (url: string | URL): Promise<Response> => {
      fetched.push(String(url))
      return new Response('{}')
    }
    const freeze = async (): Promise<void> => {
      await takeOver()
      scene.clock.step(2 * MINUTE)
    }
    const between = createScriptedSource(async () => {
      await freeze()
      return more('a', 1)
    }, END)
    expect(await scene.run(planOf(between), { fetch })).toMatchObject({ stopReason: 'lease_lost' })
    expect(between.asked).toHaveLength(1)
    scene.clock.step(2 * HOUR)
    const within = createScriptedSource(async (_, context) => {
      await context.fetch('http://source/1')
      await freeze()
      await context.fetch('http://source/2')
      return END
    })
    expect(await scene.run(planOf(within), { fetch, holder: 'process-3' })).toMatchObject({ stopReason: 'lease_lost' })
    expect(fetched).toEqual(['http://source/1'])
  })

  test('XA11 a runner suspended for most of its lease renews it before a request, and again if it was suspended meanwhile', async () => {
    const events: string[] = []
    let isSuspended = false
    const store = storeWith(scene.store, {
      async renew(...given: Parameters<Store['renew']>) {
        events.push('renew')
        const renewed = await scene.store.renew(...given)
        if (isSuspended) scene.clock.step(MINUTE - 1)
        isSuspended = false
        return renewed
      },
    })
    const fetch = async (): Promise<Response> => {
      events.push('request')
      return new Response('{}')
    }
    const source = createScriptedSource(async (_, context) => {
      await context.fetch('http://source/1')
      scene.clock.step(40 * SECOND)
      await context.fetch('http://source/2')
      scene.clock.step(40 * SECOND)
      isSuspended = true
      await context.fetch('http://source/3')
      return END
    })
    const result = await scene.run(planOf({ ...source, limits: { leaseTtlMs: MINUTE } }), { fetch, store })
    expect(result).toMatchObject({ stopReason: 'complete' })
    // A heartbeat may follow.
    expect(events.slice(0, 6)).toEqual(['request', 'renew', 'request', 'renew', 'renew', 'request'])
  })

  test('XA11 a runner suspended past its lease while it reads the pauses of the account sends no request', async () => {
    const fetched: string[] = []
    let isArmed = false
    const store = storeWith(scene.store, {
      async pauses(query: Parameters<Store['pauses']>[0]) {
        const pauses = await scene.store.pauses(query)
        if (isArmed) {
          isArmed = false
          await takeOver()
          scene.clock.step(2 * MINUTE)
        }
        return pauses
      },
    })
    const source = createScriptedSource(async (_, context) => {
      // The pauses are kept for a moment.
      scene.clock.step(SECOND)
      isArmed = true
      await context.fetch('http://source/1')
      return END
    })
    const fetch = async (url: string | URL): Promise<Response> => {
      fetched.push(String(url))
      return new Response('{}')
    }
    expect(await scene.run(planOf(source), { fetch, store })).toMatchObject({ stopReason: 'lease_lost' })
    expect({ isArmed, fetched }).toEqual({ isArmed: false, fetched: [] })
  })

  test('XA11 a runner suspended past its lease without a takeover continues', async () => {
    const source = createScriptedSource(async () => {
      scene.clock.step(2 * MINUTE)
      return more('a', 1)
    }, END)
    expect(await scene.run(planOf(source))).toMatchObject({ stopReason: 'complete', pages: 2 })
  })

  test('XA11 a runner that is taken over before it begins does not begin', async () => {
    const store = meeting('beginCycle', async (call) => {
      await takeOver()
      return call()
    })
    const source = createScriptedSource(END)
    expect(await scene.run(planOf(source), { store })).toMatchObject({ stopReason: 'lease_lost', cycle: null })
    expect(source.asked).toHaveLength(0)
  })

  test('XB15 a lost lease stops the page in flight, which is not committed', async () => {
    const source = createScriptedSource(async (_, { clock, signal }) => {
      await takeOver()
      await clock.sleep(30 * MINUTE, signal)
      return last('a')
    })
    const start = scene.clock.now()
    expect(await scene.run(planOf({ ...source, limits: { deadlineMs: HOUR } }))).toMatchObject({
      stopReason: 'lease_lost',
      error: { code: 'LEASE_LOST' },
    })
    expect(scene.clock.now() - start).toBe(20 * SECOND)
    expect(source.contexts[0]!.signal.aborted).toBe(true)
    expect(await scene.keys()).toEqual([])
  })

  test('XB15 a lease that cannot be renewed in time stops the page in flight', async () => {
    const source = createScriptedSource(async (_, { clock, signal }) => {
      await clock.sleep(30 * MINUTE, signal)
      return last('a')
    })
    const start = scene.clock.now()
    const result = await scene.run(planOf({ ...source, limits: { deadlineMs: HOUR } }), {
      store: storeWith(scene.store, { renew: gone }),
    })
    expect(result).toMatchObject({ stopReason: 'lease_lost', pages: 0 })
    expect(scene.clock.now() - start).toBe(MINUTE)
    expect(await scene.keys()).toEqual([])
  })

  test('XB15 one failed renewal is no reason to stop', async () => {
    const source = createScriptedSource(async (_, { clock, signal }) => {
      await clock.sleep(5 * MINUTE, signal)
      return last('a')
    })
    expect(
      await scene.run(planOf({ ...source, limits: { deadlineMs: HOUR } }), {
        store: meeting('renew', gone, null, gone, gone),
      }),
    ).toMatchObject({ stopReason: 'complete' })
  })

  test('XB3 invariant 2: a checkpoint that changed meanwhile stops the run; nothing is overwritten, and it is not retried', async () => {
    const source = createScriptedSource(async () => {
      const { lease, version } = await holding()
      await scene.store.commit({
        lease,
        version,
        at: scene.clock.now(),
        transition: { kind: 'set', state: '"set by hand"', actor: 'somebody', reason: 'test' },
        owner: 'o',
        landings: [],
        quarantined: [],
        columns: {},
        readAtSequence: 0,
        upstreamToleranceMs: 0,
      })
      return last('a', 'from the cycle')
    })
    expect(await scene.run(planOf(source))).toMatchObject({
      stopReason: 'error',
      retries: 0,
      pages: 0,
      error: { code: 'VERSION_CONFLICT' },
    })
    expect(source.asked).toHaveLength(1)
    expect(await scene.checkpoint()).toMatchObject({ version: 1, committed: '"set by hand"' })
    expect(await scene.keys()).toEqual([])
    expect(await scene.store.audit(ref(), { limit: 10 })).toMatchObject([
      { action: 'conflict', version: 1, actor: 'engine', state: null },
      { action: 'set', version: 1, actor: 'somebody' },
    ])
  })

  test('XB2 safety does not depend on clocks: a runner whose clock is an hour behind cannot commit after a takeover', async () => {
    const behind = {
      ...scene.ports,
      clock: { now: () => scene.clock.now() - HOUR, sleep: scene.clock.sleep.bind(scene.clock) },
    }
    const source = createScriptedSource(more('a', 1), async () => {
      const taken = await scene.store.acquire(ref(), { holder: 'process-2', ttlMs: MINUTE, at: scene.clock.now() })
      expect(taken.kind).toBe('acquired')
      return last('zombie')
    })
    expect(await scene.run(planOf(source), { ports: behind })).toMatchObject({ stopReason: 'lease_lost', pages: 1 })
    expect(await scene.keys()).toEqual(['a'])
  })
})
