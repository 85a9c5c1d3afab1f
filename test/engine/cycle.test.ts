import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SyncError, type Page } from '../../src/contract/index.ts'
import { runCycle } from '../../src/engine/cycle.ts'
import type { CycleProgress } from '../../src/engine/cycle-options.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import {
  counts,
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

describe('the sequence of states', () => {
  test('N1 N2 N3 N4 the first call gets undefined, each next one exactly the state before it, and hasMore: false ends the cycle', async () => {
    const source = createScriptedSource(
      more('a', { at: 1, seen: ['a'] }),
      more('b', { at: 2, seen: [] }),
      last('c', { at: 3 }),
    )
    const result = await scene.run(planOf(source))
    expect(source.asked).toEqual([undefined, { at: 1, seen: ['a'] }, { at: 2, seen: [] }])
    expect(result).toMatchObject({
      stopReason: 'complete',
      pages: 3,
      resumed: false,
      version: 1,
      counts: counts({ created: 3 }),
      error: null,
    })
    expect(await scene.keys()).toEqual(['a', 'b', 'c'])
  })

  test('N5 N7 F20 an incremental cycle keeps the state of its last page, and the next cycle starts with it', async () => {
    const source = createScriptedSource(more('a', 1), last('b', 2), last('c', 3))
    await scene.run(planOf(source))
    expect(await scene.checkpoint()).toMatchObject({ version: 1, committed: '2', inflight: null })
    await scene.run(planOf(source))
    expect(source.asked).toEqual([undefined, 1, 2])
    expect(await scene.checkpoint()).toMatchObject({ version: 2, committed: '3' })
  })

  test('N7 a last page without a state keeps the state it was requested with', async () => {
    const source = createScriptedSource(more('a', { at: 1 }), END, END)
    await scene.run(planOf(source))
    expect((await scene.checkpoint()).committed).toBe('{"at":1}')
    await scene.run(planOf(source))
    expect(source.asked.at(-1)).toEqual({ at: 1 })
  })

  test('S22 the last page may give an end reason: it is in the result and in the record, and must be a single word', async () => {
    const source = createScriptedSource(
      { ...more('a', 1), endReason: 'not_yet' },
      { ...last('b', 2), endReason: 'reached_since' },
      last('c', 3),
      { ...last('d', 4), endReason: 'the token is 7f3a' },
    )
    expect(await scene.run(planOf({ ...source, limits: { pagesMax: 1 } }))).toMatchObject({
      stopReason: 'max_pages',
      endReason: null,
    })
    expect(await scene.run(planOf(source))).toMatchObject({ stopReason: 'complete', endReason: 'reached_since' })
    expect(await scene.run(planOf(source))).toMatchObject({ stopReason: 'complete', endReason: null })
    expect(await scene.run(planOf(source))).toMatchObject({
      stopReason: 'error',
      endReason: null,
      error: { code: 'PAGE_INVALID' },
    })
    expect((await scene.store.cycles(null)).map(({ endReason }) => endReason)).toEqual([null, null, 'reached_since'])
  })

  test('N2 a cycle that never returned a state stores none', async () => {
    const source = createScriptedSource(END, END)
    await scene.run(planOf(source))
    await scene.run(planOf(source))
    expect(source.asked).toEqual([undefined, undefined])
    expect(await scene.checkpoint()).toMatchObject({ version: 2, committed: null })
  })

  test('N11 F20 a replace cycle discards its state: the next one starts with undefined', async () => {
    const source = createScriptedSource(more('a', 'page 2'), last('b', 'page 3'), last('a'))
    const plan = planOf({ ...source, mode: 'replace' })
    await scene.run(plan)
    expect((await scene.checkpoint()).committed).toBeNull()
    await scene.run(plan)
    expect(source.asked).toEqual([undefined, 'page 2', undefined])
  })

  test('N8 a source may move its own state back, from cycle to cycle', async () => {
    const source = createScriptedSource(last('a', 100), last('b', 40), END)
    for (let cycle = 0; cycle < 3; cycle++) await scene.run(planOf(source))
    expect(source.asked).toEqual([undefined, 100, 40])
  })

  test.each<[string, unknown]>([
    ['a union', { phase: 'deletes', since: '2026-01-01T00:00:00Z', tie: { id: 17, kind: 'open' } }],
    ['a map', { cursors: { 'repo/one': 'Y3Vyc29y', 'répo “two”': null, __proto: 1 } }],
    ['an array of arrays', [[1, 'a'], [], [null, false]]],
    ['null', null],
    ['false', false],
    ['zero', 0],
    ['text with quotes, zeros and emoji', 'a"b\\c\u0000\u{1f30a}'],
    ['a fraction', 0.1 + 0.2],
    ['the largest safe integer', Number.MAX_SAFE_INTEGER],
    ['members named like those of every object', JSON.parse('{"__proto__":{"a":1},"constructor":2,"toString":3}')],
  ])('N19 state comes back as it was: %s', async (_, state) => {
    const source = createScriptedSource(
      { changes: [], hasMore: true, nextState: state },
      { changes: [], hasMore: false, nextState: state },
      END,
    )
    await scene.run(planOf(source))
    await scene.run(planOf(source))
    expect(source.asked.slice(1)).toStrictEqual([state, state])
    expect(Object.keys((source.asked[1] ?? {}) as object)).toEqual(Object.keys((state ?? {}) as object))
  })

  test('N6 state survives the process: a new one on the same file continues', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tidemark-engine-'))
    try {
      const source = createScriptedSource(last('a', { at: 1 }), last('b', { at: 2 }))
      for (let process = 0; process < 2; process++) {
        const store = await openSqliteStore({ file: join(folder, 'store.db') })
        await scene.run(planOf(source), { store, holder: `process-${process}` })
        await store.close()
      }
      expect(source.asked).toEqual([undefined, { at: 1 }])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  test('the source receives the cycle, the page and the start time of the cycle', async () => {
    const source = createScriptedSource(more('a', 1), new SyncError('AUTH_REJECTED', 'no'), last('b'))
    const startedAt = scene.clock.now()
    await scene.run(planOf(source))
    scene.clock.step(MINUTE)
    await scene.run(planOf(source))
    expect(source.contexts.map(({ cycle }) => cycle)).toEqual([
      { id: 1, mode: 'incremental', startedAt, page: 1 },
      { id: 1, mode: 'incremental', startedAt, page: 2 },
      { id: 1, mode: 'incremental', startedAt, page: 2 },
    ])
  })
})

describe('two checkpoints', () => {
  test('F1 T6 invariant 1 invariant 2: a cycle that fails leaves committed as it was and keeps inflight, page by page', async () => {
    const failing = createScriptedSource(
      last('a', 10),
      more('b', 11),
      more('c', 12),
      new SyncError('AUTH_REJECTED', 'no'),
    )
    await scene.run(planOf(failing))
    const result = await scene.run(planOf(failing))
    expect(result).toMatchObject({ stopReason: 'error', pages: 2, error: { code: 'AUTH_REJECTED' } })
    expect(await scene.checkpoint()).toMatchObject({
      version: 1,
      committed: '10',
      inflight: { page: 2, state: '12' },
      failures: 1,
    })
    expect(await scene.keys()).toEqual(['a', 'b', 'c'])
  })

  test('F1 the next run resumes after the last committed page, and the cycle completes once', async () => {
    const source = createScriptedSource(more('a', 1), more('b', 2), new SyncError('AUTH_REJECTED', 'no'), last('c', 3))
    const first = await scene.run(planOf(source))
    const second = await scene.run(planOf(source))
    expect(source.asked).toEqual([undefined, 1, 2, 2])
    expect(second).toMatchObject({ resumed: true, cycle: first.cycle, pages: 1, stopReason: 'complete', version: 1 })
    expect(await scene.checkpoint()).toMatchObject({
      version: 1,
      committed: '3',
      inflight: null,
      failures: 0,
      lastError: null,
    })
    expect(await scene.store.cycles(ref())).toMatchObject([
      { cycle: first.cycle, pages: 3, counts: counts({ created: 3 }), stopReason: 'complete', error: null },
    ])
  })

  test('`fresh` discards the unfinished cycle and starts from committed', async () => {
    const source = createScriptedSource(
      last('a', 10),
      more('b', 11),
      new SyncError('AUTH_REJECTED', 'no'),
      last('c', 12),
    )
    await scene.run(planOf(source))
    await scene.run(planOf(source))
    const result = await scene.run(planOf(source), { fresh: true })
    expect(source.asked.at(-1)).toBe(10)
    expect(result).toMatchObject({ resumed: false, stopReason: 'complete', version: 2 })
  })

  test('a cycle of the other mode does not resume the unfinished one', async () => {
    const source = createScriptedSource(more('a', 1), new SyncError('AUTH_REJECTED', 'no'), last('b'))
    await scene.run(planOf(source))
    await scene.run(planOf({ ...source, mode: 'replace' }))
    expect(source.asked.at(-1)).toBeUndefined()
  })

  test('the tidemark is the newest time of a complete cycle, and never goes back', async () => {
    const source = createScriptedSource(
      { changes: [upsert('a', {}, { at: '2026-01-01T00:00:00Z' })], hasMore: true, nextState: 1 },
      {
        changes: [upsert('b', {}, { at: '2026-01-03T00:00:00Z' }), upsert('c', {}, { at: '2026-01-02T00:00:00Z' })],
        hasMore: false,
        nextState: 2,
      },
      { changes: [upsert('d', {}, { at: '2025-12-01T00:00:00Z' })], hasMore: false },
      END,
    )
    expect((await scene.run(planOf(source))).tidemark).toBe('2026-01-03T00:00:00.000000Z')
    await scene.run(planOf(source))
    await scene.run(planOf(source))
    expect((await scene.checkpoint()).tidemark).toBe('2026-01-03T00:00:00.000000Z')
  })
})

test('without times the tidemark is the last cursor', async () => {
  const source = createScriptedSource(
    { changes: [upsert('a', {}, { cursor: '7' }), upsert('b', {}, { cursor: '10' })], hasMore: true, nextState: 1 },
    END,
  )
  await scene.run(planOf(source))
  expect((await scene.checkpoint()).tidemark).toBe('10')
})

describe('a record the cursor has passed', () => {
  /** Rows become visible in the source some time after their timestamp. */
  const written = [
    { id: 'a', at: 1_000, visible: 1_000 },
    { id: 'late', at: 4_000, visible: 12_000 },
    { id: 'b', at: 5_000, visible: 5_000 },
    { id: 'c', at: 20_000, visible: 20_000 },
  ]
  const deltaOf = (lagMs: number, start: number) =>
    planOf({
      async execute(since = 0, { clock }) {
        const now = clock.now() - start
        const found = written.filter((row) => row.visible <= now && row.at > since)
        return {
          changes: found.map((row) => upsert(row.id)),
          hasMore: false,
          nextState: Math.min(now - lagMs, Math.max(since, ...found.map((row) => row.at))),
        }
      },
    })
  const readAt = async (lagMs: number): Promise<string[]> => {
    const plan = deltaOf(lagMs, scene.clock.now())
    for (const ms of [6_000, 10_000, 14_000]) {
      scene.clock.step(ms)
      await scene.run(plan)
    }
    return scene.keys()
  }

  test('N9 T7 is lost permanently: nothing reads behind the cursor', async () => {
    expect(await readAt(0)).toEqual(['a', 'b', 'c'])
  })

  test('N9 T7 is not lost if the cursor stays behind rows that may still appear', async () => {
    expect(await readAt(10_000)).toEqual(['a', 'b', 'c', 'late'])
  })

  const tied = Array.from({ length: 25 }, (_, id) => ({ id, at: Math.floor(id / 7) }))

  test('T8 ties that straddle a page are lost behind a bare timestamp', async () => {
    await scene.run(
      planOf({
        async execute(since = -1) {
          const page = tied.filter((row) => row.at > since).slice(0, 5)
          return {
            changes: page.map(({ id }) => upsert(`${id}`)),
            hasMore: page.length === 5,
            nextState: page.at(-1)?.at ?? since,
          }
        },
      }),
    )
    expect((await scene.keys()).length).toBeLessThan(tied.length)
  })

  test('T8 ties that straddle a page are all read with the id beside the timestamp', async () => {
    await scene.run(
      planOf({
        async execute(since = { at: -1, id: -1 }) {
          const page = tied.filter((row) => row.at > since.at || (row.at === since.at && row.id > since.id)).slice(0, 5)
          return {
            changes: page.map(({ id }) => upsert(`${id}`)),
            hasMore: page.length === 5,
            nextState: page.at(-1) ?? since,
          }
        },
      }),
    )
    expect(await scene.keys()).toHaveLength(tied.length)
  })
})

describe('reading ahead', () => {
  /** Records when each call begins and ends; a commit takes a second. */
  const slowly = (events: string[], failAt = 0) =>
    storeWith(scene.store, {
      async commit(commit) {
        const page = 'page' in commit.transition ? commit.transition.page : 0
        events.push(`commit ${page}`)
        await scene.clock.sleep(SECOND)
        if (page === failAt) throw new SyncError('STORE_FULL', 'full')
        const outcome = await scene.store.commit(commit)
        events.push(`landed ${page}`)
        return outcome
      },
    })
  const noting = (events: string[], pages: number) =>
    planOf({
      async execute(state = 1, { signal, clock }) {
        events.push(`ask ${state}`)
        signal.addEventListener('abort', () => events.push(`drop ${state}`))
        await clock.sleep(1, signal)
        return { changes: [upsert(`${state}`)], hasMore: state < pages, nextState: state + 1 }
      },
    })

  test('the next page is requested while this one commits, and never more than one ahead', async () => {
    const events: string[] = []
    await scene.run(noting(events, 3), { store: slowly(events) })
    const order = events.filter((event) => !event.startsWith('drop'))
    expect(order.indexOf('ask 2')).toBeLessThan(order.indexOf('landed 1'))
    expect(order.indexOf('ask 3')).toBeGreaterThan(order.indexOf('landed 1'))
    expect(order.indexOf('ask 3')).toBeLessThan(order.indexOf('landed 2'))
    expect(order.filter((event) => event.startsWith('landed'))).toEqual(['landed 1', 'landed 2', 'landed 3'])
  })

  test('a failed commit discards the page read ahead, and nothing of either is stored', async () => {
    const events: string[] = []
    const result = await scene.run(noting(events, 3), { store: slowly(events, 2) })
    expect(result).toMatchObject({ stopReason: 'error', pages: 1, error: { code: 'STORE_FULL' } })
    expect(events).toContain('ask 3')
    expect(events).toContain('drop 3')
    expect(events).not.toContain('commit 3')
    expect(await scene.keys()).toEqual(['1'])
    expect((await scene.checkpoint()).inflight).toMatchObject({ page: 1, state: '2' })
  })

  test('a failed page read ahead does not undo the page that commits', async () => {
    const source = createScriptedSource(more('a', 1), new SyncError('AUTH_REJECTED', 'no'))
    const result = await scene.run(planOf(source), { store: slowly([]) })
    expect(result).toMatchObject({ pages: 1, error: { code: 'AUTH_REJECTED' } })
    expect(await scene.keys()).toEqual(['a'])
  })
})

describe('a cycle that ends early', () => {
  test('a page limit is an interruption: no error, and the next run continues', async () => {
    const plan = planOf({ execute: listing(['a'], ['b'], ['c'], ['d'], ['e']), limits: { pagesMax: 2 } })
    expect(await scene.run(plan)).toMatchObject({ stopReason: 'max_pages', pages: 2, error: null, retryAt: null })
    expect(await scene.checkpoint()).toMatchObject({
      version: 0,
      committed: null,
      inflight: { page: 2, state: '2' },
      failures: 0,
    })
    expect(await scene.run(plan)).toMatchObject({ stopReason: 'max_pages', resumed: true })
    expect(await scene.run(plan)).toMatchObject({ stopReason: 'complete', pages: 1, version: 1 })
    expect(await scene.keys()).toEqual(['a', 'b', 'c', 'd', 'e'])
  })

  test('the page that reaches the limit is the last one requested', async () => {
    const source = createScriptedSource(more('a', 1), more('b', 2))
    await scene.run(planOf({ ...source, limits: { pagesMax: 2 } }))
    expect(source.asked).toHaveLength(2)
  })

  test('a time limit is an interruption too', async () => {
    const list = listing(['a'], ['b'], ['c'])
    const plan = planOf({
      limits: { minutesMax: 1 },
      async execute(state, context) {
        await context.clock.sleep(40 * SECOND, context.signal)
        return list(state, context)
      },
    })
    expect(await scene.run(plan)).toMatchObject({ stopReason: 'timeout', pages: 2, error: null, retryAt: null })
    expect((await scene.checkpoint()).inflight).toMatchObject({ page: 2, state: '2' })
    expect(await scene.run(plan)).toMatchObject({ stopReason: 'complete', pages: 1 })
  })

  test('a pause lets the page finish, keeps inflight, and requests no more; a resume continues', async () => {
    const source = createScriptedSource(
      more('a', 1),
      async () => {
        await scene.store.signalSync(ref(), { kind: 'pause', actor: 'somebody', at: scene.clock.now() })
        return more('b', 2)
      },
      async (_, { signal }) => {
        await scene.clock.sleep(MINUTE, signal)
        return last('never')
      },
      last('c', 3),
    )
    expect(await scene.run(planOf(source))).toMatchObject({ stopReason: 'paused', pages: 2, error: null })
    expect(await scene.keys()).toEqual(['a', 'b'])
    expect((await scene.checkpoint()).inflight).toMatchObject({ page: 2, state: '2' })
    expect(source.contexts[2]?.signal.aborted).toBe(true)

    const asked = source.asked.length
    expect(await scene.run(planOf(source))).toMatchObject({
      stopReason: 'paused',
      cycle: null,
      error: { code: 'PAUSED' },
    })
    expect(source.asked).toHaveLength(asked)
    expect((await scene.checkpoint()).heldBy).toBeNull()

    await scene.store.signalSync(ref(), { kind: 'resume', actor: 'somebody', at: scene.clock.now() })
    expect(await scene.run(planOf(source))).toMatchObject({ stopReason: 'complete', resumed: true, pages: 1 })
    expect(await scene.keys()).toEqual(['a', 'b', 'c'])
  })

  test('a stop while the source runs: the page is dropped, committed pages stay, the lease is released', async () => {
    const stopping = new AbortController()
    const source = createScriptedSource(more('a', 1), async (_, { clock, signal }) => {
      await clock.sleep(SECOND)
      stopping.abort()
      expect(signal.aborted).toBe(true)
      return more('b', 2)
    })
    expect(await scene.run(planOf(source), { signal: stopping.signal })).toMatchObject({
      stopReason: 'cancelled',
      pages: 1,
      error: null,
      retryAt: null,
    })
    expect(await scene.checkpoint()).toMatchObject({ inflight: { page: 1, state: '1' }, heldBy: null, failures: 0 })
  })

  test('XD9 a stop ends the cycle at once even if the source ignores the signal', async () => {
    const stopping = new AbortController()
    const start = scene.clock.now()
    const source = createScriptedSource(() => {
      void scene.clock.sleep(SECOND).then(() => stopping.abort())
      return new Promise<Page>(() => {})
    })
    expect(await scene.run(planOf(source), { signal: stopping.signal })).toMatchObject({ stopReason: 'cancelled' })
    expect(scene.clock.now() - start).toBe(SECOND)
  })

  test('a stop while waiting for a retry does not wait for it', async () => {
    const stopping = new AbortController()
    const source = createScriptedSource(new SyncError('RATE_LIMITED', 'slow down', { retryAfterMs: 30 * SECOND }))
    const start = scene.clock.now()
    const running = scene.start(planOf(source), {
      signal: stopping.signal,
      onProgress: ({ kind }) => kind === 'waiting' && void scene.clock.sleep(SECOND).then(() => stopping.abort()),
    })
    expect(await scene.clock.drive(running)).toMatchObject({ stopReason: 'cancelled' })
    expect(scene.clock.now() - start).toBe(SECOND)
  })

  test('a stop before the start sends no request to the source', async () => {
    const source = createScriptedSource(END)
    expect(await scene.run(planOf(source), { signal: AbortSignal.abort() })).toMatchObject({ stopReason: 'cancelled' })
    expect(source.asked).toHaveLength(0)
  })

  test('a stop while the last page commits: the cycle is complete', async () => {
    const stopping = new AbortController()
    const store = storeWith(scene.store, {
      commit(commit) {
        stopping.abort()
        return scene.store.commit(commit)
      },
    })
    expect(
      await scene.run(planOf(createScriptedSource(last('a', 1))), { store, signal: stopping.signal }),
    ).toMatchObject({ stopReason: 'complete', version: 1 })
  })
})

describe('a state the source no longer accepts', () => {
  const rejected = new SyncError('CURSOR_REJECTED', 'expired')

  test('XC16 inside a cycle: it starts over once, from committed', async () => {
    const source = createScriptedSource(last('a', 10), more('b', 11), rejected, more('b', 12), last('c', 13))
    await scene.run(planOf(source))
    const result = await scene.run(planOf(source))
    expect(source.asked).toEqual([undefined, 10, 11, 10, 12])
    expect(result).toMatchObject({ stopReason: 'complete', version: 2 })
    expect(await scene.keys()).toEqual(['a', 'b', 'c'])
  })

  test('XC16 inside a cycle that another run began', async () => {
    const source = createScriptedSource(
      last('a', 10),
      more('b', 11),
      new SyncError('AUTH_REJECTED', 'no'),
      rejected,
      last('c', 12),
    )
    for (let run = 0; run < 3; run++) await scene.run(planOf(source))
    expect(source.asked).toEqual([undefined, 10, 11, 11, 10])
  })

  test('XC16 rejected twice: it fails, and committed is still there', async () => {
    const source = createScriptedSource(last('a', 10), more('b', 11), rejected, more('b', 12), rejected)
    await scene.run(planOf(source))
    expect(await scene.run(planOf(source))).toMatchObject({ stopReason: 'error', error: { code: 'CURSOR_REJECTED' } })
    expect(await scene.checkpoint()).toMatchObject({ committed: '10', version: 1 })
  })

  test('XC16 the committed state itself: it fails, and never restarts from nothing or from now', async () => {
    const source = createScriptedSource(last('a', 10), rejected, rejected)
    await scene.run(planOf(source))
    const { error } = await scene.run(planOf(source))
    expect(error).toMatchObject({
      code: 'CURSOR_REJECTED',
      message: expect.stringContaining('declare it with `worker.track`'),
    })
    // Requested twice: a single odd response is not worth a backfill.
    expect(source.asked).toEqual([undefined, 10, 10])
    expect((await scene.checkpoint()).committed).toBe('10')
  })
})

test('progress is reported: begun, each committed page with the totals so far, and waits', async () => {
  const told: CycleProgress[] = []
  const source = createScriptedSource(more('a', 1), new SyncError('SOURCE_UNAVAILABLE', 'down'), last('b'))
  await scene.run(planOf(source), { onProgress: (progress) => told.push(progress) })
  expect(told).toEqual([
    { kind: 'begun', cycle: 1, resumed: false, page: 0 },
    { kind: 'landed', cycle: 1, page: 1, counts: counts({ created: 1 }), tidemark: null, headSequence: 1 },
    { kind: 'waiting', cycle: 1, ms: SECOND, code: 'SOURCE_UNAVAILABLE' },
    { kind: 'landed', cycle: 1, page: 2, counts: counts({ created: 2 }), tidemark: null, headSequence: 2 },
  ])
})

test('a cycle whose lease cannot be released still returns its result', async () => {
  const store = storeWith(scene.store, { release: () => Promise.reject(new SyncError('STORE_UNAVAILABLE', 'gone')) })
  const result = await scene.clock.drive(
    runCycle(planOf(createScriptedSource(last('a', 1))), {
      store,
      ports: scene.ports,
      fetch,
      secrets: { get: (name) => name },
      holder: 'process-1',
      trigger: 'test',
    }),
  )
  expect(result.stopReason).toBe('complete')
  expect(scene.logged).toEqual([expect.stringContaining('could not release the lease')])
})
