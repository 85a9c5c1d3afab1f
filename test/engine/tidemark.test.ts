import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SyncError, type Mode, type Page, type SyncContext } from '../../src/contract/index.ts'
import type { CycleResult, CycleProgress } from '../../src/engine/cycle-options.ts'
import { MINUTE, planOf, remove, EngineFixture, createScriptedSource, upsert } from './engine-fixture.ts'

let scene: EngineFixture

beforeEach(async () => {
  scene = await EngineFixture.open()
})
afterEach(() => scene.close())

const T = (minute: number): string => `2026-02-01T00:${String(minute).padStart(2, '0')}:00.000000Z`
const page = (changes: Page['changes'], more: Partial<Page> = {}): Page => ({
  changes,
  hasMore: false,
  nextState: 1,
  ...more,
})
/** The last second before the cycle began: a source may use whole seconds. */
const started = ({ startedAt }: CycleResult): string =>
  new Date(Math.floor(startedAt / 1_000) * 1_000 - 1).toISOString().replace('Z', '000Z')

describe('invariant 12: a tidemark stated by the source', () => {
  test('is the tidemark, and advances page by page', async () => {
    const source = createScriptedSource(
      page([upsert('a', {}, { at: T(9) })], { hasMore: true, tidemark: T(3) }),
      page([], { tidemark: '2026-02-01T01:05:00+01:00' }),
    )
    const shown: unknown[] = []
    const onProgress = (progress: CycleProgress): void =>
      void (progress.kind === 'landed' && shown.push(progress.tidemark))
    expect((await scene.run(planOf(source), { onProgress })).tidemark).toBe(T(5))
    expect([shown, (await scene.checkpoint()).tidemark]).toEqual([[T(3), T(5)], T(5)])
  })

  test('may go back when a cycle completes: the source has found that its claim was wrong', async () => {
    const source = createScriptedSource(page([], { tidemark: T(30) }), page([], { tidemark: T(20) }))
    await scene.run(planOf(source))
    expect((await scene.run(planOf(source))).tidemark).toBe(T(20))
  })

  test('does not go back for a page in the middle, which only reads something again', async () => {
    const source = createScriptedSource(
      page([], { tidemark: T(30) }),
      page([], { hasMore: true, nextState: 2, tidemark: T(20) }),
      page([], { nextState: 3, tidemark: T(31) }),
    )
    await scene.run(planOf(source))
    const shown: unknown[] = []
    await scene.run(planOf(source), {
      onProgress: (progress) => void (progress.kind === 'landed' && shown.push(progress.tidemark)),
    })
    expect(shown).toEqual([T(30), T(31)])
  })

  test('may be null: then the engine makes no claim either', async () => {
    const source = createScriptedSource(
      page([], { tidemark: T(30) }),
      page([upsert('a', {}, { at: T(40) })], { tidemark: null }),
    )
    await scene.run(planOf(source))
    expect((await scene.run(planOf(source))).tidemark).toBeNull()
    const list = planOf({
      ...createScriptedSource(page([upsert('a')], { tidemark: null })),
      sync: 'list',
      mode: 'replace',
    })
    expect(await scene.run(list)).toMatchObject({ stopReason: 'complete', tidemark: null })
  })

  test.each([
    ['a local time', '2026-02-01T00:00:00'],
    ['a number', 1_770_000_000_000],
    ['no date', 'yesterday'],
  ])('must be a time: %s is refused', async (_, tidemark) => {
    const result = await scene.run(
      planOf({ ...createScriptedSource(page([], { tidemark: tidemark as string })), limits: { retriesMax: 0 } }),
    )
    expect(result.error).toMatchObject({
      code: 'PAGE_INVALID',
      message: expect.stringContaining('`tidemark`') as string,
    })
  })
})

describe('invariant 12: a source that states no tidemark', () => {
  test('it does not advance before the cycle completes', async () => {
    const source = createScriptedSource(
      page([upsert('a', {}, { at: T(9) })], { hasMore: true }),
      new SyncError('AUTH_REJECTED', 'no'),
      page([]),
    )
    expect((await scene.run(planOf(source))).tidemark).toBeNull()
    expect((await scene.checkpoint()).tidemark).toBeNull()
    // The times of the pages before the interruption still count.
    expect((await scene.run(planOf(source))).tidemark).toBe(T(9))
  })

  test('it never goes beyond the start of the cycle', async () => {
    const result = await scene.run(
      planOf(createScriptedSource(page([upsert('a', {}, { at: '2026-03-01T00:10:00Z' })]))),
    )
    expect(result.tidemark).toBe(started(result))
  })

  test('the times of deletions do not advance it: they come from another list', async () => {
    const source = createScriptedSource(page([upsert('a', {}, { at: T(1) })]), page([remove('b', T(40))]))
    await scene.run(planOf(source))
    expect((await scene.run(planOf(source))).tidemark).toBe(T(1))
  })

  test("a clock that is ahead of the source's is no evidence: the `Date` header lowers the start", async () => {
    const fetch = async (): Promise<Response> =>
      new Response('', { headers: { date: 'Sat, 28 Feb 2026 23:50:00 GMT' } })
    const source = {
      mode: 'replace' as const,
      execute: async (_: unknown, context: { fetch(url: string): Promise<Response> }) => (
        await context.fetch('https://vendor.test/'),
        page([upsert('a')])
      ),
    }
    expect((await scene.run(planOf(source), { fetch })).tidemark).toBe('2026-02-28T23:49:59.999000Z')
  })
})

describe('invariant 12: a replace cycle', () => {
  test('does not advance before it completes, whatever times its pages have', async () => {
    const source = createScriptedSource(
      page([upsert('a', {}, { at: T(1) })]),
      page([upsert('a', {}, { at: T(50) })], { hasMore: true, tidemark: T(50) }),
      new SyncError('AUTH_REJECTED', 'no'),
      page([upsert('b', {}, { at: T(2) })]),
    )
    const first = await scene.run(planOf({ ...source, mode: 'replace' }))
    expect(first.tidemark).toBe(started(first))
    await scene.clock.drive(scene.clock.sleep(10 * MINUTE))
    expect((await scene.run(planOf({ ...source, mode: 'replace' }))).tidemark).toBe(started(first))
    const { tidemark, inflight } = await scene.checkpoint()
    expect([tidemark, inflight?.tidemark]).toEqual([started(first), null])
    await scene.clock.drive(scene.clock.sleep(10 * MINUTE))
    // Resumed: complete as of when it began, not as of when it was resumed.
    expect((await scene.run(planOf({ ...source, mode: 'replace' }))).tidemark).toBe('2026-03-01T00:09:59.999000Z')
  })

  test('is complete up to the tidemark of its last page, and never beyond its start', async () => {
    const source = createScriptedSource(
      page([upsert('a')], { tidemark: T(10) }),
      page([upsert('a')], { tidemark: '2027-01-01T00:00:00Z' }),
    )
    expect((await scene.run(planOf({ ...source, mode: 'replace' }))).tidemark).toBe(T(10))
    const second = await scene.run(planOf({ ...source, mode: 'replace' }))
    expect(second.tidemark).toBe(started(second))
  })
})

describe('invariant 12: a cycle that a runner with a correct clock takes over from one whose clock is ahead', () => {
  const AHEAD = 5 * MINUTE
  /** The source's clock is correct; so is the runner's once the step is undone. */
  const fetch = async (): Promise<Response> =>
    new Response('', { headers: { date: new Date(scene.clock.now() - aheadMs).toUTCString() } })
  let aheadMs = 0
  const asking = (...answers: Array<Page | Error>) => {
    const { execute } = createScriptedSource(...answers)
    return {
      execute: async (state: unknown, context: SyncContext) => (
        await context.fetch('https://vendor.test/'),
        execute(state, context)
      ),
    }
  }
  const stepTo = (ms: number): void => {
    scene.clock.step(ms - aheadMs)
    aheadMs = ms
  }
  const takenOver = async (mode: Mode, ...answers: Array<Page | Error>): Promise<CycleResult> => {
    const plan = planOf({ ...asking(...answers), mode, limits: { retriesMax: 0 } })
    stepTo(AHEAD)
    expect((await scene.run(plan, { fetch })).stopReason).toBe('error')
    stepTo(0)
    scene.clock.step(2 * MINUTE)
    return scene.run(plan, { fetch })
  }
  beforeEach(() => void (aheadMs = 0))

  test.each([
    ['a listing is complete as of its first page', 'replace', page([upsert('a')], { hasMore: true })],
    ['times of an incremental cycle count up to its first page', 'incremental', page([upsert('a')], { hasMore: true })],
  ] as const)('%s', async (_, mode, first) => {
    const result = await takenOver(
      mode,
      first,
      new SyncError('AUTH_REJECTED', 'no'),
      page([upsert('b', {}, { at: '2026-03-01T00:01:00Z' })], { nextState: 2 }),
    )
    expect(result).toMatchObject({ stopReason: 'complete', resumed: true, tidemark: '2026-02-28T23:59:59.999000Z' })
  })

  test('a listing whose first page was never committed is complete as of when it was read', async () => {
    const result = await takenOver('replace', new SyncError('AUTH_REJECTED', 'no'), page([upsert('a')]))
    expect(result).toMatchObject({ stopReason: 'complete', resumed: true, tidemark: '2026-03-01T00:01:59.999000Z' })
  })

  test('a listing that states its lag relative to the clock of its first runner is corrected too', async () => {
    const stated = '2026-03-01T00:04:50Z'
    const result = await takenOver(
      'replace',
      page([upsert('a')], { hasMore: true }),
      new SyncError('AUTH_REJECTED', 'no'),
      page([upsert('b')], { nextState: 2, tidemark: stated }),
    )
    expect(result).toMatchObject({ stopReason: 'complete', tidemark: '2026-02-28T23:59:50.000000Z' })
  })
})

test('invariant 12: if the clock was set back meanwhile, a response counts as taking the maximum time of a page', async () => {
  const date = new Date(scene.clock.now()).toUTCString()
  const fetch = async (): Promise<Response> => {
    scene.clock.step(-MINUTE)
    return new Response('', { headers: { date } })
  }
  const execute = async (_: unknown, context: SyncContext): Promise<Page> => (
    await context.fetch('https://vendor.test/'),
    page([upsert('a')])
  )
  const { tidemark } = await scene.run(planOf({ execute, mode: 'replace', limits: { deadlineMs: 30_000 } }), { fetch })
  expect(tidemark).toBe('2026-02-28T23:59:29.999000Z')
})

describe('invariant 12: the delta of a pair', () => {
  const delta = (...pages: Page[]) =>
    planOf({ ...createScriptedSource(...pages), sync: 'delta', pair: { role: 'delta', backfill: 'backfill' } })
  const backfill = (source: ReturnType<typeof createScriptedSource>) =>
    planOf({ ...source, sync: 'backfill', mode: 'replace', pair: { role: 'backfill', delta: 'delta', anchor: null } })

  test('has no tidemark before its backfill has completed once', async () => {
    const plan = delta(
      page([upsert('a', {}, { at: T(9) })], { tidemark: T(9) }),
      page([], { tidemark: T(10) }),
      page([], { tidemark: T(11) }),
    )
    expect((await scene.run(plan)).tidemark).toBeNull()
    const list = createScriptedSource(
      page([upsert('a')], { hasMore: true }),
      new SyncError('AUTH_REJECTED', 'no'),
      page([upsert('b')]),
    )
    await scene.run(backfill(list))
    expect((await scene.run(plan)).tidemark).toBeNull()
    await scene.run(backfill(list))
    expect((await scene.run(plan)).tidemark).toBe(T(11))
    expect((await scene.checkpoint('delta')).tidemark).toBe(T(11))
  })

  test('has none after its state was set, until a requested backfill has completed', async () => {
    const list = createScriptedSource(page([upsert('a')]), page([upsert('a')]))
    await scene.run(backfill(list))
    const plan = delta(page([], { tidemark: T(9) }), page([], { tidemark: T(10) }))
    await scene.store.signalSync(
      { worker: 'shop', sync: 'backfill' },
      { kind: 'trigger', actor: 'engine', at: scene.clock.now() },
    )
    expect((await scene.run(plan)).tidemark).toBeNull()
    await scene.run(backfill(list))
    expect((await scene.run(plan)).tidemark).toBe(T(10))
  })

  test('has none after it lost its history, until the backfill that this requests has completed', async () => {
    const list = createScriptedSource(page([upsert('a')]), page([upsert('a')]))
    await scene.run(backfill(list))
    const source = createScriptedSource(
      page([], { tidemark: T(9) }),
      new SyncError('HISTORY_LOST', 'gone'),
      page([], { tidemark: T(20) }),
      page([], { tidemark: T(21) }),
    )
    const plan = planOf({ ...source, sync: 'delta', pair: { role: 'delta', backfill: 'backfill' } })
    expect((await scene.run(plan)).tidemark).toBe(T(9))
    expect((await scene.run(plan)).error?.code).toBe('HISTORY_LOST')
    expect(await scene.run(plan)).toMatchObject({ stopReason: 'complete', tidemark: null })
    await scene.run(backfill(list))
    expect((await scene.run(plan)).tidemark).toBe(T(21))
  })

  test('has none while the first backfill after it received a state is running', async () => {
    const list = createScriptedSource(
      page([upsert('a')]),
      page([upsert('a')], { hasMore: true }),
      page([upsert('a')], { nextState: 2 }),
    )
    await scene.run(backfill(list))
    const { limits } = planOf(list)
    expect(await scene.run({ ...backfill(list), limits: { ...limits, pagesMax: 1 } })).toMatchObject({
      stopReason: 'max_pages',
    })
    const plan = delta(page([], { tidemark: T(9) }), page([], { tidemark: T(10) }))
    expect(await scene.run(plan)).toMatchObject({ stopReason: 'complete', tidemark: null })
    await scene.run(backfill(list))
    expect((await scene.run(plan)).tidemark).toBe(T(10))
  })

  test('keeps its tidemark while a later backfill is running', async () => {
    const list = createScriptedSource(
      page([upsert('a')]),
      page([upsert('a')], { hasMore: true }),
      new SyncError('AUTH_REJECTED', 'no'),
    )
    const plan = delta(page([], { tidemark: T(9) }), page([], { tidemark: T(10) }))
    await scene.run(backfill(list))
    await scene.run(plan)
    await scene.run(backfill(list))
    expect((await scene.run(plan)).tidemark).toBe(T(10))
  })
})
