import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SyncError, type Change, type Execute, type TimeRange } from '../../src/contract/index.ts'
import { toRangePlan } from '../../src/engine/range-plan.ts'
import type { SyncPlan } from '../../src/engine/sync-plan.ts'
import { createScriptedSource, EngineFixture, planOf, ref, WORKER } from './engine-fixture.ts'

let scene: EngineFixture
beforeEach(async () => void (scene = await EngineFixture.open()))
afterEach(() => scene.close())

interface SourceRow {
  readonly key: string
  readonly at: string
  readonly v: number
}

const JANUARY = { from: '2026-01-01', to: '2026-02-01' }

const toUpsert = ({ key, at, v }: SourceRow): Change => ({ type: 'upsert', key, record: { v }, upstreamUpdatedAt: at })

/** Lists its rows two at a time, also by a range of their times. */
function sourceOf(rows: SourceRow[]): Execute<number> & { readonly asked: [TimeRange, number][] } {
  const asked: [TimeRange, number][] = []
  const list =
    (range: TimeRange): Execute<number> =>
    async (state = 0) => {
      asked.push([range, state])
      const { from = '', to = '9' } = range
      const inside = rows.filter(({ at }) => at >= from && at < to)
      const changes = inside.slice(state, state + 2).map(toUpsert)
      return state + 2 < inside.length ? { changes, hasMore: true, nextState: state + 2 } : { changes, hasMore: false }
    }
  return Object.assign(list({}), { range: list, asked })
}

const JAN = [1, 2, 3, 4, 5].map((day) => ({ key: `j${day}`, at: `2026-01-0${day}T00:00:00.000000Z`, v: 1 }))
const FEB = [1, 2].map((day) => ({ key: `f${day}`, at: `2026-02-0${day}T00:00:00.000000Z`, v: 1 }))

const backfillOf = (execute: Execute<any>, options: Partial<SyncPlan> = {}): SyncPlan =>
  planOf({
    sync: 'things-backfill',
    mode: 'replace',
    owner: `${WORKER}/things`,
    pair: { role: 'backfill', delta: 'things', anchor: null },
    ...options,
    execute,
  })
const deltaOf = (execute: Execute<any>): SyncPlan =>
  planOf({
    sync: 'things',
    execute,
    owner: `${WORKER}/things`,
    pair: { role: 'delta', backfill: 'things-backfill' },
    listings: ['things-backfill', 'things~range'],
  })

describe('a range read', () => {
  test('repairs wrong rows inside the range, deletes nothing, and leaves the states of the pair alone', async () => {
    const rows = [...JAN, ...FEB]
    const source = sourceOf(rows)
    await scene.run(backfillOf(source))
    await scene.run(deltaOf(createScriptedSource({ changes: [], hasMore: false, nextState: { cursor: 7 } }).execute))
    const before = [await scene.checkpoint('things'), await scene.checkpoint('things-backfill')]

    // The source changed rows without a change of their time; one is gone.
    rows.splice(
      0,
      rows.length,
      ...JAN.slice(1).map((row) => ({ ...row, v: 2 })),
      ...FEB.map((row) => ({ ...row, v: 9 })),
    )
    const result = await scene.run(toRangePlan(backfillOf(source), JANUARY))

    expect(result).toMatchObject({ sync: 'things~range', stopReason: 'complete', tidemark: null })
    expect(result.counts).toMatchObject({ updated: 4, created: 0, deleted: 0, swept: 0 })
    expect(await scene.rows()).toEqual({
      j1: { v: 1 },
      j2: { v: 2 },
      j3: { v: 2 },
      j4: { v: 2 },
      j5: { v: 2 },
      f1: { v: 1 },
      f2: { v: 1 },
    })
    expect([await scene.checkpoint('things'), await scene.checkpoint('things-backfill')]).toEqual(before)
    const corrections = (await scene.feed()).slice(-4)
    expect(corrections.map(({ action, key }) => [action, key])).toEqual(
      ['j2', 'j3', 'j4', 'j5'].map((key) => ['updated', key]),
    )
    expect(await scene.checkpoint('things~range')).toMatchObject({ version: 1, committed: null, tidemark: null })
  })

  test('an empty range deletes nothing', async () => {
    await scene.run(backfillOf(sourceOf([...JAN, ...FEB])))
    expect(await scene.run(toRangePlan(backfillOf(sourceOf([])), JANUARY))).toMatchObject({
      stopReason: 'complete',
      counts: { swept: 0 },
    })
    expect(await scene.keys()).toHaveLength(7)
  })

  test('continues after its last committed page when it failed, and starts over for another range', async () => {
    const source = sourceOf([...JAN, ...FEB])
    const failing = Object.assign(source, {
      range: (range: TimeRange): Execute<number> => {
        const list = sourceOf([...JAN, ...FEB]).range?.(range)
        return async (state, context) => {
          if (state === 4) throw new SyncError('AUTH_REJECTED', 'no')
          source.asked.push([range, state ?? 0])
          return list!(state, context)
        }
      },
    })
    expect(await scene.run(toRangePlan(backfillOf(failing), JANUARY))).toMatchObject({ stopReason: 'error', pages: 2 })
    expect(await scene.keys()).toHaveLength(4)

    const again = sourceOf([...JAN, ...FEB])
    expect(await scene.run(toRangePlan(backfillOf(again), JANUARY))).toMatchObject({
      stopReason: 'complete',
      resumed: true,
      pages: 1,
    })
    expect(again.asked.map(([, state]) => state)).toEqual([4])

    await scene.run(toRangePlan(backfillOf(failing), JANUARY))
    const other = sourceOf([...JAN, ...FEB])
    const february = { from: '2026-02-01T00:00:00Z' }
    expect(await scene.run(toRangePlan(backfillOf(other), february))).toMatchObject({
      stopReason: 'complete',
      resumed: false,
    })
    expect(other.asked).toEqual([[{ from: '2026-02-01T00:00:00.000000Z' }, 0]])
  })

  test('a row that the delta writes while the range is read keeps its newer version', async () => {
    const rows = [...JAN]
    const source = sourceOf(rows)
    await scene.run(backfillOf(source))
    const newer: SourceRow = { key: 'j1', at: '2026-03-01T00:00:00.000000Z', v: 5 }
    const racing = Object.assign(sourceOf(rows), {
      range: (range: TimeRange): Execute<number> => {
        const list = source.range!(range)
        return async (state, context) => {
          const page = await list(state, context)
          if (state === undefined)
            await scene.start(
              deltaOf(createScriptedSource({ changes: [toUpsert(newer)], hasMore: false, nextState: 1 }).execute),
              { holder: 'process-2' },
            )
          return page
        }
      },
    })
    expect(await scene.run(toRangePlan(backfillOf(racing), JANUARY))).toMatchObject({ stopReason: 'complete' })
    expect(await scene.rows()).toMatchObject({ j1: { v: 5 } })
  })

  test('a row without times that changes and changes back while its page is in transit is not set back', async () => {
    const timeless = (v: number): Change => ({ type: 'upsert', key: 'a', record: { v } })
    const page = (v: number) => ({ changes: [timeless(v)], hasMore: false, nextState: v })
    await scene.run(deltaOf(createScriptedSource(page(1)).execute))
    let reads = 0
    const range = (): Execute => async () => {
      // The first response shows the row in between; by then it has changed back, which the delta has read.
      const isFirst = reads++ === 0
      if (isFirst) await scene.start(deltaOf(createScriptedSource(page(1)).execute), { holder: 'process-2' })
      return { changes: [timeless(isFirst ? 2 : 1)], hasMore: false }
    }
    await scene.run(toRangePlan(backfillOf(Object.assign(async () => page(1), { range })), JANUARY))
    expect(await scene.rows()).toEqual({ a: { v: 1 } })
    expect(reads).toBe(2)
  })

  test('a range read and a listing that runs beside it leave every row', async () => {
    const source = sourceOf([...JAN, ...FEB])
    await scene.run(backfillOf(source))
    const listing: Execute<number> = async (state, context) => {
      if (state === undefined)
        await scene.start(toRangePlan(backfillOf(source), { from: '2026-01-02' }), { holder: 'process-2' })
      return source(state, context)
    }
    expect(await scene.run(backfillOf(listing))).toMatchObject({ stopReason: 'complete', counts: { swept: 0 } })
    expect(await scene.keys()).toHaveLength(7)
  })

  test('a stored version with a later time is contested, and the second range read repairs it', async () => {
    const source = sourceOf([...JAN])
    const future = { ...JAN[0]!, at: '2030-01-01T00:00:00.000000Z', v: 99 }
    await scene.run(
      deltaOf(createScriptedSource({ changes: [toUpsert(future)], hasMore: false, nextState: 1 }).execute),
    )
    await scene.run(toRangePlan(backfillOf(source), JANUARY))
    expect(await scene.rows()).toMatchObject({ j1: { v: 99 } })
    await scene.run(toRangePlan(backfillOf(source), JANUARY))
    expect(await scene.rows()).toMatchObject({ j1: { v: 1 } })
  })

  test('the limits of the sync are those of the range read, and it has no retention', () => {
    const plan = toRangePlan(backfillOf(sourceOf([]), { retentionMs: 5, scope: 'acct' }), JANUARY)
    expect(plan).toMatchObject({
      owner: 'shop/things',
      scope: 'range 2026-01-01T00:00:00.000000Z..2026-02-01T00:00:00.000000Z acct',
      range: { from: '2026-01-01T00:00:00.000000Z', to: '2026-02-01T00:00:00.000000Z' },
    })
    expect(plan).not.toHaveProperty('pair')
    expect(plan).not.toHaveProperty('retentionMs')
  })
})

describe('a range that cannot be read', () => {
  test.each([
    [{}, 'neither `from` nor `to`'],
    [{ from: '2026-02-01', to: '2026-01-01' }, 'is not after its start'],
    [{ from: '2026-02-01', to: '2026-02-01' }, 'is not after its start'],
    [{ from: 'yesterday' }, '`from` is "yesterday"'],
    [{ to: '2026-02-30' }, '`to` is "2026-02-30"'],
  ])('%j is refused', (range, message) => {
    expect(() => toRangePlan(backfillOf(sourceOf([])), range)).toThrow(message)
  })

  test.each([
    [backfillOf(async () => ({ changes: [], hasMore: false })), 'tidemark backfill things`'],
    [deltaOf(async () => ({ changes: [], hasMore: false })), 'tidemark backfill things`'],
    [planOf({ execute: async () => ({ changes: [], hasMore: false }), mode: 'replace' }), 'tidemark run sync`'],
    [planOf({ execute: async () => ({ changes: [], hasMore: false }) }), 'tidemark state reset sync`'],
  ])('a source without ranges names the alternative', (plan, alternative) => {
    expect(() => toRangePlan(plan, JANUARY)).toThrow(expect.objectContaining({ code: 'RANGE_UNSUPPORTED' }))
    expect(() => toRangePlan(plan, JANUARY)).toThrow(alternative)
  })

  test('no declared sync can have the name of a range read', async () => {
    expect(toRangePlan(backfillOf(sourceOf([])), JANUARY).sync).toBe('things~range')
    expect(await scene.store.readCheckpoint(ref('things~range'))).toMatchObject({ version: 0 })
  })
})
