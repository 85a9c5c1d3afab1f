import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Execute } from '../../src/contract/index.ts'
import type { CycleResult } from '../../src/engine/cycle-options.ts'
import type { SearchAnswer, SearchOptions, SearchQuery, SearchState } from '../../src/strategies/index.ts'
import { HOUR, MINUTE, EngineFixture, SECOND } from '../engine/engine-fixture.ts'
import { SearchIndex, searchOf, toUpsert, type Contact } from './search-index.ts'
import { runOn, runToEnd, setState, stateOn } from './run-strategy.ts'

const LAG = 10 * SECOND

let scene: EngineFixture
let index: SearchIndex

async function fresh(): Promise<void> {
  scene = await EngineFixture.open()
  index = new SearchIndex(scene.clock)
}

beforeEach(fresh)
afterEach(() => scene.close())

const cycle = (execute: Execute<any>, choices: Parameters<typeof runOn>[2] = {}): Promise<CycleResult> =>
  runOn(scene, execute, choices)
const state = (): Promise<SearchState | null> => stateOn(scene)

/** n contacts with ids that do not grow with their time. */
function fill(n: number, at: (place: number) => number): void {
  for (let place = 0; place < n; place++) index.put(1_000 + ((place * 7_919) % 100_003), { at: at(place) })
}

describe('a search by time', () => {
  test('N48 N50 is bounded on both sides, by the cursor and by ten seconds before the cycle began', async () => {
    fill(3, () => scene.clock.now())
    const { startedAt } = await cycle(searchOf(index), { afterMs: MINUTE })
    const question = {
      fromMs: startedAt - 300_000,
      untilMs: startedAt - LAG,
      sortBy: 'modified',
      afterId: undefined,
      throughId: undefined,
      limit: 100,
    }
    expect(index.asked).toEqual([question, question])
  })

  test('T7 two ends of a search do not confirm each other if the second one comes later', async () => {
    const at = scene.clock.now()
    for (const place of [1, 2, 3]) index.put(place, { at: at + place })
    let request = 0
    // Without a count, and broken off after one item, then after two.
    const early = searchOf(index, { read: async (query) => ({ items: index.find(query).items.slice(0, ++request) }) })
    expect(await cycle(early, { afterMs: MINUTE })).toMatchObject({ stopReason: 'complete', pages: 4 })
    expect(await scene.rows()).toEqual(index.truth())
  })

  test('N49 N52 the cursor is the newest time on the page, and a page that is not full ends the cycle, twice', async () => {
    const at = scene.clock.now()
    index.put(1, { at: at + 3 })
    index.put(2, { at: at + 1 })
    const unsorted = searchOf(index, { read: async (query) => ({ items: index.find(query).items.toReversed() }) })
    expect(await cycle(unsorted, { afterMs: MINUTE })).toMatchObject({ stopReason: 'complete', pages: 2 })
    expect(await state()).toEqual({ phase: 'delta', cursorMs: at + 3 })
  })

  test('N51 the first cycle looks five minutes back', async () => {
    index.put(1, { at: scene.clock.now() - 6 * MINUTE })
    index.put(2, { at: scene.clock.now() - 4 * MINUTE })
    await cycle(searchOf(index), { afterMs: 0 })
    expect(await scene.keys()).toEqual(['2'])
  })

  test('N51 looking back less far than the lag begins at the horizon, not ahead of it', async () => {
    const { startedAt } = await cycle(searchOf(index, { lookBackMs: SECOND }))
    expect(index.asked[0]).toMatchObject({ fromMs: startedAt - LAG, untilMs: startedAt - LAG })
    expect(await state()).toEqual({ phase: 'delta', cursorMs: startedAt - LAG })
  })

  test('T1 N51 the first beginning is kept when it finds nothing: what comes in the hour until the next cycle is found', async () => {
    const delta = searchOf(index)
    await cycle(delta)
    index.put(1)
    await cycle(delta, { afterMs: HOUR })
    expect(await scene.keys()).toEqual(['1'])
  })

  test('D7 T1 T7 an empty page keeps the cursor', async () => {
    const delta = searchOf(index)
    index.put(1)
    await cycle(delta)
    const before = await state()
    await cycle(delta)
    await cycle(delta, { afterMs: HOUR })
    expect(await state()).toEqual(before)
    expect(before).toMatchObject({ cursorMs: expect.any(Number) as number })
  })

  test('D7 T1 as a control: the greatest of nothing is refused as state, and as null it would forget an hour', async () => {
    const greatest =
      (kept: (ms: number) => unknown): Execute<any> =>
      async (given: { cursorMs: number } | undefined, { clock }) => {
        const { items } = index.find({
          fromMs: given?.cursorMs ?? clock.now() - 5 * MINUTE,
          untilMs: clock.now() - LAG,
          sortBy: 'modified',
          afterId: undefined,
          throughId: undefined,
          limit: 100,
        })
        return {
          changes: items.map(toUpsert),
          hasMore: false,
          nextState: { cursorMs: kept(Math.max(...items.map(({ modifiedMs }) => modifiedMs))) },
        }
      }
    expect(await cycle(greatest((ms) => ms))).toMatchObject({ error: { code: 'STATE_INVALID' } })
    const forgets = greatest((ms) => (Number.isFinite(ms) ? ms : null))
    await cycle(forgets)
    index.put(1)
    await cycle(forgets, { afterMs: HOUR })
    expect(await scene.keys()).toEqual([])
  })

  test('N25 XC5 a contact that is found eight seconds late is not lost behind the lag, and is lost without it', async () => {
    const run = async (lagMs: number): Promise<boolean> => {
      await fresh()
      const delta = searchOf(index, { lagMs })
      index.put(1, { lateMs: 8 * SECOND })
      scene.clock.step(SECOND)
      index.put(2)
      await cycle(delta, { afterMs: SECOND })
      await cycle(delta)
      return (await scene.keys()).includes('1')
    }
    expect(await run(LAG)).toBe(true)
    expect(await run(0)).toBe(false)
  })

  test('N75 contacts keep changing: after many cycles the copy is the source, by deltas alone', async () => {
    const delta = searchOf(index, { limit: 5 })
    for (let round = 0; round < 15; round++) {
      for (let place = 0; place < 12; place++)
        index.put(1 + ((round * 5 + place) % 30), { lateMs: (place % 3) * 3 * SECOND })
      await cycle(delta, { afterMs: 15 * SECOND })
    }
    await cycle(delta)
    expect(await scene.rows()).toEqual(index.truth())
  })

  test('XC18 a cursor from the future is set back to the horizon, and a warning is logged', async () => {
    await setState(scene, { phase: 'delta', cursorMs: Date.parse('2999-01-01T00:00:00Z') })
    const { startedAt } = await cycle(searchOf(index))
    expect(await state()).toEqual({ phase: 'delta', cursorMs: startedAt - LAG })
    expect(scene.logged.join('\n')).toMatch(/ahead of the horizon/)
  })

  test("XC26 our clock is an hour ahead: the source's own lowers the horizon, and the first cycle begins as much earlier", async () => {
    const run = async (tells: boolean): Promise<string[]> => {
      await fresh()
      index.clockErrorMs = -HOUR
      const delta = searchOf(index, {
        read: async (query) => ({ ...(await index.read(query)), ...(tells && { serverTime: index.now() }) }),
      })
      index.put(1)
      await cycle(delta, { afterMs: 20 * SECOND })
      index.put(2, { lateMs: 8 * SECOND })
      scene.clock.step(SECOND)
      index.put(3)
      await cycle(delta, { afterMs: SECOND })
      await cycle(delta)
      return scene.keys()
    }
    expect(await run(true)).toEqual(['1', '2', '3'])
    expect(await run(false)).toEqual([])
  })

  test('XC26 a horizon that is lowered cuts a page: what is above is left, what is below is kept', async () => {
    const at = scene.clock.now()
    for (let place = 0; place < 10; place++) index.put(place + 1, { at: at + place * SECOND })
    await setState(scene, { phase: 'delta', cursorMs: at })
    const delta = searchOf(index, {
      limit: 10,
      read: async (query) => ({ ...(await index.read(query)), serverTime: at + 4 * SECOND + LAG }),
    })
    expect(await cycle(delta)).toMatchObject({ stopReason: 'complete', pages: 2 })
    expect(await scene.keys()).toEqual(['1', '2', '3', '4', '5'])
    expect(await state()).toEqual({ phase: 'delta', cursorMs: at + 4 * SECOND })
  })

  test('XD28 a source whose clock is far behind only holds things up', async () => {
    const delta = searchOf(index)
    index.put(1)
    await cycle(delta)
    const before = await state()
    index.put(2)
    await cycle(
      searchOf(index, {
        read: async (query) => ({ ...(await index.read(query)), serverTime: index.now() - 6 * HOUR }),
      }),
    )
    expect(await state()).toEqual(before)
    await cycle(delta)
    expect(await scene.rows()).toEqual(index.truth())
  })
})

describe('a deadlock', () => {
  test('N53 N54 N55 N56 N57 XC7 XC9 scenario 1: a thousand contacts, 350 of one millisecond, all come and in few requests', async () => {
    const at = scene.clock.now()
    fill(1_000, (place) => at + (place < 300 ? place : place < 650 ? 300 : place))
    const delta = searchOf(index, { lookBackMs: HOUR })
    await cycle(delta, { afterMs: MINUTE })
    expect(await scene.rows()).toEqual(index.truth())
    expect(await scene.feed()).toHaveLength(1_000)
    expect(index.asked.length).toBeLessThan(20)
    const tied = index.asked.filter(({ sortBy }) => sortBy === 'id')
    expect(tied.every(({ fromMs, untilMs }) => fromMs === at + 300 && untilMs === at + 300)).toBe(true)
    expect(tied[0]!.afterId).toBe('0')
  })

  test('N54 N56 N57 the states it goes through', async () => {
    const at = scene.clock.now()
    fill(5, () => at)
    index.put(2_000_000, { at: at + 5 })
    const states: unknown[] = []
    const inner = searchOf(index, { limit: 2, lookBackMs: HOUR })
    const { startedAt } = await cycle(
      async (given: SearchState | undefined, context) => {
        const page = await inner(given, context)
        states.push([page.changes.length, page.hasMore, page.nextState])
        return page
      },
      { afterMs: MINUTE },
    )
    const untilMs = startedAt - LAG
    const ids = Object.keys(index.truth())
      .slice(0, 5)
      .toSorted((a, b) => Number(a) - Number(b))
    const tied = { phase: 'deadlock', deadlockMs: at, resumeCursorMs: at, untilMs }
    expect(states).toEqual([
      [
        2,
        true,
        { phase: 'delta', cursorMs: at, untilMs, before: { cursorMs: startedAt - HOUR, throughMs: untilMs, left: 6 } },
      ],
      [2, true, { ...tied, lastId: '0' }],
      [2, true, { ...tied, lastId: ids[1], before: { lastId: '0', left: 3 } }],
      [2, true, { ...tied, lastId: ids[3], before: { lastId: ids[1], left: 1 } }],
      // As many as the page before left.
      [1, true, { phase: 'delta', cursorMs: at + 1, untilMs }],
      [1, true, { phase: 'delta', cursorMs: at + 1, untilMs, endMs: at + 5 }],
      [1, false, { phase: 'delta', cursorMs: at + 5 }],
    ])
  })

  test('XC9 requests in ties are few: what is left is counted, and no empty page is needed', async () => {
    const requests = async (
      count: number,
      at: (place: number) => number,
      windowMax = Number.POSITIVE_INFINITY,
    ): Promise<number> => {
      await fresh()
      const from = scene.clock.now()
      fill(count, (place) => from + at(place))
      // A source that shows the first page of what it will not search through, as HubSpot does.
      const read = async (query: SearchQuery): Promise<SearchAnswer<Contact>> => index.read(query)
      expect(
        await cycle(searchOf(index, { read, lookBackMs: HOUR, windowMax: Math.min(windowMax, 1_000_000) }), {
          afterMs: MINUTE,
        }),
      ).toMatchObject({ stopReason: 'complete' })
      expect(await scene.keys()).toHaveLength(count)
      return index.asked.length
    }
    // Each tie: one page that shows it, and its own pages.
    expect(await requests(1_500, (place) => Math.floor(place / 150))).toBeLessThanOrEqual(10 * 3 + 3)
    expect(await requests(3_000, (place) => Math.floor(place / 1_000))).toBeLessThanOrEqual(30 + 3 * 2 + 2)
    // More of one millisecond than the source will search through.
    expect(await requests(3_000, () => 0, 1_000)).toBeLessThanOrEqual(30 + 25)
    // As dense as an import, in windows of 1,000.
    expect(await requests(5_000, (place) => Math.floor(place / 4), 1_000)).toBeLessThanOrEqual(50 + 25)
  })

  test.each([
    ['empty', () => ({ items: [], total: 0 })],
    ['the end of another one', ({ items }: SearchAnswer<Contact>) => ({ items: items.slice(-1), total: 1 })],
  ])('T7 a first answer that is %s passes nothing over, and states no tidemark that is not true', async (_, spoil) => {
    fill(5, (place) => scene.clock.now() + place)
    const delta = searchOf(index, {
      read: async (query) => (index.asked.length === 0 ? spoil(await index.read(query)) : index.read(query)),
    })
    await cycle(delta)
    expect(await scene.rows()).toEqual(index.truth())
  })

  test('N58 a page of one millisecond that is not full is none', async () => {
    fill(3, () => scene.clock.now())
    expect(await cycle(searchOf(index, { limit: 4 }))).toMatchObject({ pages: 2 })
    expect(index.asked.every(({ sortBy }) => sortBy === 'modified')).toBe(true)
  })

  test('N59 broken off after every page, it is taken up where it was, and nothing is lost', async () => {
    const at = scene.clock.now()
    fill(40, (place) => at + (place < 5 ? place : place < 30 ? 10 : place))
    await runToEnd(scene, searchOf(index, { limit: 6, lookBackMs: HOUR }), { pagesMax: 1, afterMs: 7 * SECOND })
    await cycle(searchOf(index, { limit: 6 }))
    expect(await scene.rows()).toEqual(index.truth())
  })

  /** The rule as it is often written: by id from the last of the page, and then one millisecond on, however young it is. */
  const planted =
    (from: (items: readonly Contact[]) => string, lagMs: number): Execute<any> =>
    async (given: SearchState | undefined, { clock }) => {
      const cap = clock.now() - lagMs
      if (given?.phase === 'deadlock') {
        const { items } = index.find({
          fromMs: given.deadlockMs,
          untilMs: given.deadlockMs,
          sortBy: 'id',
          afterId: given.lastId,
          throughId: undefined,
          limit: 10,
        })
        return {
          changes: items.map(toUpsert),
          hasMore: true,
          nextState:
            items.length === 0
              ? { phase: 'delta', cursorMs: given.resumeCursorMs + 1 }
              : { ...given, lastId: items.at(-1)!.id },
        }
      }
      const cursorMs = given?.cursorMs ?? clock.now() - HOUR
      const { items } = index.find({
        fromMs: cursorMs,
        untilMs: Number.POSITIVE_INFINITY,
        sortBy: 'modified',
        afterId: undefined,
        throughId: undefined,
        limit: 10,
      })
      const newest = items.reduce((most, { modifiedMs }) => Math.max(most, modifiedMs), cursorMs)
      if (items.length === 10 && items.every(({ modifiedMs }) => modifiedMs === newest)) {
        return {
          changes: items.map(toUpsert),
          hasMore: true,
          nextState: { phase: 'deadlock', deadlockMs: newest, lastId: from(items), resumeCursorMs: newest },
        }
      }
      const done = items.length < 10
      return {
        changes: items.map(toUpsert),
        hasMore: !done,
        nextState: { phase: 'delta', cursorMs: done ? Math.min(newest, cap) : newest },
      }
    }

  test('D6 D11 T2 as a control: from the last id of the page, whatever has a lower one is never read; from the lowest, all are', async () => {
    const run = async (execute: Execute<any>): Promise<number> => {
      await fresh()
      fill(150, () => scene.clock.now())
      await cycle(execute)
      return (await scene.keys()).length
    }
    expect(await run(planted((items) => items.at(-1)!.id, LAG))).toBeLessThan(150)
    expect(await run(planted(() => '0', LAG))).toBe(150)
    expect(await run(searchOf(index, { read: (query) => index.read(query), limit: 10, lookBackMs: HOUR }))).toBe(150)
  })

  test('D11 a source that knows no filter by id is found out, and does not send the same page for ever', async () => {
    fill(30, () => scene.clock.now())
    const result = await cycle(
      searchOf(index, { limit: 10, read: (query) => index.read({ ...query, sortBy: 'modified', afterId: undefined }) }),
    )
    expect(result).toMatchObject({ stopReason: 'error', error: { code: 'SOURCE_INVALID' } })
    expect(index.asked.length).toBeLessThan(10)
  })

  test('D8 T3 as a control: left while it is young, it loses who comes late; behind the horizon it cannot be young', async () => {
    const run = async (execute: Execute<any>): Promise<number> => {
      await fresh()
      fill(20, () => scene.clock.now())
      index.put(5, { lateMs: 8 * SECOND })
      // The process dies when the millisecond has been left.
      await cycle(execute, { afterMs: SECOND, pagesMax: 4 })
      await cycle(execute)
      await cycle(execute)
      return (await scene.keys()).length
    }
    expect(await run(planted(() => '0', LAG))).toBe(20)
    expect(await run(searchOf(index, { read: (query) => index.read(query), limit: 10 }))).toBe(21)
  })

  test('T3 one that lies on the horizon itself is not passed: the next cycle reads it again', async () => {
    const at = scene.clock.now()
    fill(20, () => at)
    const delta = searchOf(index, { limit: 10 })
    expect(await cycle(delta, { afterMs: LAG })).toMatchObject({ stopReason: 'complete' })
    expect(await state()).toEqual({ phase: 'delta', cursorMs: at })
    index.put(7, { at })
    await cycle(delta)
    expect(await scene.rows()).toEqual(index.truth())
    expect(await state()).toEqual({ phase: 'delta', cursorMs: at + 1 })
  })

  test('a contact that is modified while its millisecond is read by id comes later, at its new time', async () => {
    fill(20, () => scene.clock.now())
    let touched = false
    const delta = searchOf(index, {
      limit: 10,
      read: async (query) => {
        const { items } = await index.read(query)
        if (query.sortBy !== 'id' || touched) return { items }
        touched = true
        const at = scene.clock.now()
        index.put(items[3]!.id, { at })
        // A record that was found by its old time is sent with its new one.
        return { items: items.map((item, place) => (place === 3 ? { ...item, modifiedMs: at } : item)) }
      },
    })
    await cycle(delta)
    await cycle(delta)
    expect(await scene.rows()).toEqual(index.truth())
  })

  test('ids are compared as numbers, of any length', async () => {
    const at = scene.clock.now()
    for (const id of ['9', '10', '9007199254740993', '9007199254740992', '100000000000000000000']) index.put(id, { at })
    await cycle(searchOf(index, { limit: 1 }))
    expect(await scene.rows()).toEqual(index.truth())
  })
})

describe('more than the source searches through', () => {
  test('XC8 is split by time until it fits, and nothing is lost', async () => {
    const at = scene.clock.now()
    fill(900, (place) => at + place * 37)
    index.windowMax = 50
    await cycle(searchOf(index, { limit: 20, lookBackMs: HOUR, windowMax: 50 }), { afterMs: MINUTE })
    await cycle(searchOf(index, { limit: 20, windowMax: 50 }))
    expect(await scene.rows()).toEqual(index.truth())
    expect(index.asked.length).toBeLessThan(200)
  })

  test('XC8 a source that refuses at a lower bound than declared is found out by its count', async () => {
    fill(900, (place) => scene.clock.now() + place)
    index.windowMax = 50
    expect(await cycle(searchOf(index, { limit: 20, windowMax: 1_000 }))).toMatchObject({
      error: { code: 'SOURCE_INVALID', message: expect.stringMatching(/incomplete/) },
    })
  })

  test('XC8 inside one millisecond it is split by ids, also by very long ones', async () => {
    const at = scene.clock.now()
    for (let place = 0; place < 300; place++)
      index.put(String(10n ** 15n + BigInt((place * 7_919) % 100_003) ** 2n), { at })
    index.put(3, { at: at - 1 })
    index.put(4, { at: at + 1 })
    index.windowMax = 50
    await cycle(searchOf(index, { limit: 20, windowMax: 50 }), { afterMs: MINUTE })
    expect(await scene.rows()).toEqual(index.truth())
    expect(index.asked.length).toBeLessThan(250)
  })

  test('XC8 a source that refuses everything is given up, not asked for ever', async () => {
    const result = await cycle(
      searchOf(index, {
        read: async (query) => {
          index.asked.push(query)
          return { items: [], total: 20_000 }
        },
      }),
    )
    expect(result).toMatchObject({
      stopReason: 'error',
      error: { code: 'SOURCE_INVALID', message: expect.stringMatching(/even for a single id/) },
    })
    expect(index.asked.length).toBeLessThan(100)
  })

  test('N59 and all of that can be broken off after every page', async () => {
    const at = scene.clock.now()
    fill(200, (place) => at + (place < 120 ? 50 : place))
    index.windowMax = 30
    await runToEnd(scene, searchOf(index, { limit: 10, lookBackMs: HOUR, windowMax: 30 }), {
      pagesMax: 1,
      afterMs: SECOND,
    })
    await cycle(searchOf(index, { limit: 10, windowMax: 30 }))
    expect(await scene.rows()).toEqual(index.truth())
  })

  test("T7 a part of the time is left only when the source's own count agrees with what it sent", async () => {
    fill(100, (place) => scene.clock.now() + place)
    index.windowMax = 20
    const delta = searchOf(index, {
      limit: 10,
      windowMax: 20,
      read: async (query) => {
        const { items, total } = await index.read(query)
        return { items: items.slice(0, 3), total: total! }
      },
    })
    expect(await cycle(delta)).toMatchObject({
      error: { code: 'SOURCE_INVALID', message: expect.stringMatching(/incomplete/) },
    })
  })
})

describe('a count that contradicts the answer', () => {
  /** Spoils the answers to these requests, counted from 1. */
  const lying = (
    spoil: (answer: SearchAnswer<Contact>, query: SearchQuery) => SearchAnswer<Contact>,
    when: (n: number, query: SearchQuery) => boolean,
  ): Partial<SearchOptions<Contact>> => {
    let asked = 0
    return {
      read: async (query) => {
        const answer = await index.read(query)
        return when(++asked, query) ? spoil(answer, query) : answer
      },
    }
  }
  const empty = ({ total }: SearchAnswer<Contact>): SearchAnswer<Contact> => ({
    items: [],
    ...(total !== undefined && { total }),
  })
  const tied = (nth: number): ((n: number, query: SearchQuery) => boolean) => {
    let seen = 0
    return (_, { sortBy }) => sortBy === 'id' && ++seen === nth
  }

  test.each([
    ['says how many are left', empty],
    ['says that none are left', () => ({ items: [], total: 0 })],
    ['does not count', () => ({ items: [] })],
  ])('T7 an empty answer inside a tie that %s does not leave it', async (_, spoil) => {
    for (const nth of [1, 2, 3, 6, 7]) {
      await fresh()
      fill(60, () => scene.clock.now())
      const delta = searchOf(index, { limit: 10, ...lying(spoil, tied(nth)) })
      await cycle(delta, { limits: { retriesMax: 3 } })
      await cycle(delta)
      expect(await scene.rows(), `request ${nth} of the tie`).toEqual(index.truth())
    }
  })

  test('T7 a page with half its rows does not move the cursor past the others', async () => {
    const at = scene.clock.now()
    fill(30, (place) => at + place)
    const half = ({ items, total }: SearchAnswer<Contact>): SearchAnswer<Contact> => ({
      items: items.filter((__, place) => place % 2 === 1),
      total: total!,
    })
    const delta = searchOf(index, { limit: 10, lookBackMs: HOUR, ...lying(half, (n) => n % 2 === 1) })
    const result = await cycle(delta, { limits: { retriesMax: 3 } })
    expect(result).toMatchObject({ stopReason: 'complete' })
    expect(await scene.rows()).toEqual(index.truth())
  })

  test('T7 a window in the middle that comes back empty once is asked for again before it is left', async () => {
    fill(300, (place) => scene.clock.now() - 200 * SECOND + place * 500)
    index.windowMax = 50
    for (const nth of [2, 4, 6, 9]) {
      let windows = 0
      const isWindow = (__: number, { sortBy, untilMs, fromMs }: SearchQuery): boolean =>
        sortBy === 'modified' && untilMs - fromMs < 100 * SECOND && ++windows === nth
      const delta = searchOf(index, { limit: 20, windowMax: 50, ...lying(() => ({ items: [], total: 0 }), isWindow) })
      await cycle(delta, { afterMs: 0 })
      await cycle(delta)
      expect(await scene.rows(), `window ${nth}`).toEqual(index.truth())
      await fresh()
      fill(300, (place) => scene.clock.now() - 200 * SECOND + place * 500)
      index.windowMax = 50
    }
  })

  test('a count that is too low, now and then or always, holds nothing up', async () => {
    const at = scene.clock.now()
    fill(120, (place) => at + (place < 50 ? 7 : place))
    const low = ({ items, total }: SearchAnswer<Contact>): SearchAnswer<Contact> => ({
      items,
      total: Math.floor(total! / 3),
    })
    for (const when of [(n: number) => n % 3 === 0, () => true]) {
      const delta = searchOf(index, { limit: 10, lookBackMs: HOUR, ...lying(low, when) })
      expect(await cycle(delta, { sync: String(when) })).toMatchObject({ stopReason: 'complete' })
      expect(await scene.rows()).toEqual(index.truth())
    }
  })

  test('a count that is too high is an error that names both numbers, and nothing moves', async () => {
    fill(5, () => scene.clock.now())
    const delta = searchOf(index, {
      limit: 10,
      ...lying(
        ({ items }) => ({ items, total: 9 }),
        () => true,
      ),
    })
    expect(await cycle(delta)).toMatchObject({
      error: { code: 'SOURCE_INVALID', message: expect.stringMatching(/returned 5 items but reports 9/) },
    })
    expect(await state()).toBeNull()
  })
})

describe('an order that is not kept', () => {
  const orders: ReadonlyArray<readonly [string, (a: Contact, b: Contact) => number]> = [
    ['by id', (a, b) => Number(BigInt(a.id) - BigInt(b.id))],
    ['newest first', (a, b) => b.modifiedMs - a.modifiedMs || Number(BigInt(b.id) - BigInt(a.id))],
    ['at random', (a, b) => hashed(a.id) - hashed(b.id)],
  ]
  const hashed = (id: string): number => (Number(id) * 2_654_435_761) % 4_294_967_296
  const disordered = (
    order: (a: Contact, b: Contact) => number,
    isSortedWithin = false,
  ): Partial<SearchOptions<Contact>> => ({
    read: async (query) => {
      index.asked.push(query)
      const { items, total } = index.find({ ...query, limit: 1_000_000 })
      const page = items.toSorted(order).slice(0, query.limit)
      if (!isSortedWithin) return { items: page, total }
      return {
        items: page.toSorted((a, b) =>
          query.sortBy === 'id' ? Number(BigInt(a.id) - BigInt(b.id)) : a.modifiedMs - b.modifiedMs,
        ),
        total,
      }
    },
  })

  test.each(
    orders.flatMap(([name, order]) => [false, true].map((isSortedWithin) => [name, isSortedWithin, order] as const)),
  )(
    'XC9 items sorted %s (pages sorted within: %s) all come, in a bounded number of requests',
    async (_, isSortedWithin, order) => {
      const at = scene.clock.now()
      fill(1_000, (place) => at + (place < 400 ? 50 : place * 31))
      const delta = searchOf(index, { lookBackMs: HOUR, ...disordered(order, isSortedWithin) })
      expect(await cycle(delta, { afterMs: 2 * MINUTE })).toMatchObject({ stopReason: 'complete' })
      expect(await scene.rows()).toEqual(index.truth())
      // Ten full pages hold them; windows and ranges have to be found first.
      expect(index.asked.length).toBeLessThan(200)
      for (let place = 0; place < 300; place++) index.put(1_000 + ((place * 7_919) % 100_003))
      expect(await cycle(delta)).toMatchObject({ stopReason: 'complete' })
      expect(await scene.rows()).toEqual(index.truth())
    },
  )

  test('with pages of two items, which look sorted half of the time', async () => {
    const at = scene.clock.now()
    fill(60, (place) => at + (place < 20 ? 50 : place * 31))
    const delta = searchOf(index, { limit: 2, lookBackMs: HOUR, ...disordered(orders[2]![1]) })
    expect(await cycle(delta, { afterMs: MINUTE })).toMatchObject({ stopReason: 'complete' })
    expect(await scene.rows()).toEqual(index.truth())
  })

  test('N59 and all of that can be broken off after every page, while contacts keep changing', async () => {
    const at = scene.clock.now()
    fill(80, (place) => at + (place < 30 ? 50 : place * 31))
    const delta = searchOf(index, { limit: 5, lookBackMs: HOUR, ...disordered(orders[1]![1]) })
    for (let run = 0; run < 400; run++) {
      const { stopReason } = await cycle(delta, { afterMs: SECOND, pagesMax: 1 })
      if (stopReason === 'complete') break
      if (run % 5 === 0) index.put(1_000 + ((run * 7_919) % 100_003))
    }
    await cycle(delta)
    expect(await scene.rows()).toEqual(index.truth())
  })
})

describe('what a source sends is not trusted', () => {
  const contact = (id: unknown, modifiedMs: unknown): Contact => ({ id, modifiedMs, v: 1 }) as Contact
  const now = Date.parse('2026-03-01T00:00:00Z')

  test.each([
    ['from before the cursor', /from before the requested/, [contact('1', now - HOUR)]],
    ['XC20 in seconds', /from before the requested/, [contact('1', now / 1_000)]],
    ['XC20 in microseconds', /not a time in milliseconds/, [contact('1', now * 1_000)]],
    ['XC20 as text', /not a time in milliseconds/, [contact('1', String(now))]],
    ['with no time', /not a time in milliseconds/, [contact('1', Number.NaN)]],
    ['XC20 with a number for an id', /not a string/, [contact(1, now)]],
    [
      'full and newer than asked for',
      /only items from after/,
      [contact('1', now + HOUR), contact('2', now + HOUR), contact('3', now + HOUR)],
    ],
  ])('a page %s fails, and nothing moves', async (_, message, items) => {
    const before = { phase: 'delta', cursorMs: now }
    await setState(scene, before)
    expect(await cycle(searchOf(index, { limit: 3, read: async () => ({ items }) }))).toMatchObject({
      stopReason: 'error',
      error: { code: 'SOURCE_INVALID', message: expect.stringMatching(message) },
    })
    expect(await state()).toEqual(before)
    expect(await scene.keys()).toEqual([])
  })

  test.each([
    ['at the id it was to follow', /ids outside/, [contact('3', now)]],
    ['beyond the id it was to end with', /ids outside/, [contact('5', now), contact('21', now)]],
    ['with an id that is no number', /not a whole number/, [contact('x', now)]],
    ['of an earlier time', /before the requested/, [contact('9', now - 1)]],
  ])('a page of a deadlock %s fails, and nothing moves', async (_, message, items) => {
    const before = {
      phase: 'deadlock',
      deadlockMs: now,
      resumeCursorMs: now,
      lastId: '3',
      throughId: '20',
      idSpan: '17',
      untilMs: now + 1,
    }
    await setState(scene, before)
    const answers = [items]
    expect(
      await cycle(searchOf(index, { limit: 3, read: async () => ({ items: answers.shift() ?? [] }) })),
    ).toMatchObject({ stopReason: 'error', error: { code: 'SOURCE_INVALID', message: expect.stringMatching(message) } })
    expect(await state()).toEqual(before)
  })

  test.each([
    [{ phase: 'delta', cursorMs: null }],
    [{ phase: 'search', cursorMs: 1 }],
    [{ phase: 'deadlock', deadlockMs: 1, resumeCursorMs: 1, untilMs: 5 }],
    [{ phase: 'deadlock', deadlockMs: '1', resumeCursorMs: 1, lastId: '0', untilMs: 5 }],
  ])('T1 a state that is not its own is refused and kept: %o', async (stored) => {
    await setState(scene, stored)
    expect(await cycle(searchOf(index))).toMatchObject({ error: { code: 'CURSOR_REJECTED' } })
    expect(await state()).toEqual(stored)
  })

  test('as a replace sync it would sweep what is older: refused', async () => {
    expect(await cycle(searchOf(index), { mode: 'replace' })).toMatchObject({ error: { code: 'SYNC_INVALID' } })
  })

  test.each([[{ lagMs: -1 }], [{ limit: 0 }], [{ lookBackMs: Number.NaN }], [{ windowMax: 99 }]])(
    '%o is refused at once',
    (options) => {
      expect(() => searchOf(index, options)).toThrow(expect.objectContaining({ code: 'SYNC_INVALID' }))
    },
  )
})

test("N78 an anchor captured before a backfill finds what changes meanwhile, by the source's clock", async () => {
  index.clockErrorMs = -HOUR
  const delta = searchOf(index, {
    lookBackMs: MINUTE,
    read: async (query) => ({ ...(await index.read(query)), serverTime: index.now() }),
  })
  let anchor: SearchState | undefined
  await cycle(
    async (_, context) => {
      anchor = await delta.anchor(context)
      return { changes: [], hasMore: false }
    },
    { sync: 'backfill', afterMs: 0 },
  )
  index.put(1)
  await setState(scene, anchor)
  await cycle(delta)
  expect(await scene.keys()).toEqual(['1'])
})
