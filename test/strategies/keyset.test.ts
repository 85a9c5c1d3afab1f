import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Execute, SyncContext } from '../../src/contract/index.ts'
import type { CycleResult } from '../../src/engine/cycle-options.ts'
import {
  numericIds,
  type KeysetAnswer,
  type KeysetOptions,
  type KeysetQuery,
  type KeysetState,
} from '../../src/strategies/index.ts'
import { HOUR, MINUTE, EngineFixture, SECOND } from '../engine/engine-fixture.ts'
import { iso, runOn, setState, stateOn } from './run-strategy.ts'
import { keysetOf, Table, toChange, type TableRow } from './table.ts'

const LAG = 15 * SECOND

let scene: EngineFixture
let table: Table

beforeEach(async () => {
  scene = await EngineFixture.open()
  table = new Table(scene.clock)
})
afterEach(() => scene.close())

const cycle = (execute: Execute<any>, choices: Parameters<typeof runOn>[2] = {}): Promise<CycleResult> =>
  runOn(scene, execute, choices)
/** Without the horizon of the cycle's answers, which `empty-answers.test.ts` checks. */
const state = async (): Promise<Omit<KeysetState, 'answeredMs'> | null> => {
  const stored: KeysetState | null = await stateOn(scene)
  if (stored === null) return null
  const { answeredMs: _, ...rest } = stored
  return rest
}

/** n rows stamped a second apart, the last of them a minute ago. */
function fill(n: number): void {
  const start = scene.clock.now() - MINUTE - n * SECOND
  for (let index = 0; index < n; index++)
    table.put(`r${String(index).padStart(4, '0')}`, { at: iso(start + index * SECOND) })
}

describe('a backfill', () => {
  test('N20 N22 XC7 scenario 1: a thousand rows, 350 of them with one timestamp, come in eleven pages and once each; one more confirms the end', async () => {
    const start = scene.clock.now() - HOUR
    for (let index = 0; index < 1_000; index++)
      table.put(`r${String(index).padStart(4, '0')}`, {
        at: iso(start + (index < 300 ? index : index < 650 ? 300 : index) * SECOND),
      })
    const result = await cycle(keysetOf(table), { mode: 'replace' })
    expect(result).toMatchObject({ stopReason: 'complete', pages: 12, counts: { created: 1_000, unchanged: 0 } })
    expect(await scene.rows()).toEqual(table.truth())
    expect(await scene.feed()).toHaveLength(1_000)
  })

  test('invariant 12: inside a tie the tidemark of a page is before the time of its last row', async () => {
    const at = iso(scene.clock.now() - HOUR)
    for (let index = 0; index < 10; index++) table.put(`r${index}`, { at })
    const read = keysetOf(table, { limit: 4 })
    const tidemarks: string[] = []
    await cycle(
      async (from: KeysetState | undefined, context) => {
        const page = await read(from, context)
        if (page.hasMore && page.tidemark !== undefined && page.tidemark !== null) tidemarks.push(page.tidemark)
        return page
      },
      { mode: 'incremental' },
    )
    expect(tidemarks.length).toBeGreaterThan(1)
    for (const tidemark of tidemarks) expect(Date.parse(tidemark)).toBeLessThan(Date.parse(at))
  })

  test('T8 as a control: asking only for later timestamps loses the ties at the border of a page', async () => {
    for (let index = 0; index < 25; index++)
      table.put(`r${String(index).padStart(2, '0')}`, {
        at: iso(scene.clock.now() - HOUR + Math.floor(index / 5) * SECOND),
      })
    const byTimestampOnly = keysetOf(table, {
      limit: 7,
      read: (query) => table.read({ ...query, after: query.after && { ...query.after, id: '\uffff' } }),
    })
    await cycle(byTimestampOnly, { mode: 'replace' })
    expect(Object.keys(await scene.rows()).length).toBeLessThan(25)
    await cycle(keysetOf(table, { limit: 7 }), { mode: 'replace' })
    expect(await scene.rows()).toEqual(table.truth())
  })

  test('N21 the first page has no position, the next one that of the last row before it', async () => {
    fill(5)
    await cycle(keysetOf(table, { limit: 2 }), { mode: 'replace' })
    const { r0001, r0003, r0004 } = table.truth()
    const places = [r0001!, r0003!, r0004!].map(({ at }, n) => ({ timestamp: at, id: ['r0001', 'r0003', 'r0004'][n] }))
    expect(table.asked.map(({ after }) => after)).toEqual([undefined, ...places])
  })

  test('N28 the last page leaves no state, and no upper bound is ever asked for', async () => {
    fill(5)
    const pages: unknown[] = []
    const inner = keysetOf(table, { limit: 2 })
    await cycle(
      async (given: KeysetState | undefined, context: SyncContext) => {
        const page = await inner(given, context)
        pages.push(page.nextState)
        return page
      },
      { mode: 'replace' },
    )
    expect(pages.at(-1)).toBeUndefined()
    expect(table.asked.every(({ until }) => until === undefined)).toBe(true)
    table.put('new')
    await cycle(keysetOf(table), { mode: 'replace', afterMs: 0 })
    expect(await scene.rows()).toEqual(table.truth())
  })

  test('N10 N12 N16 scenario 6: broken off on page three of five it deletes nothing; taken up, it removes exactly who is gone, and spares what a delta brought meanwhile', async () => {
    fill(10)
    const byCreation = (): Execute<KeysetState> => keysetOf(table, { limit: 2 })
    await cycle(byCreation(), { mode: 'replace' })
    table.remove('r0001')
    table.remove('r0008')
    expect(await cycle(byCreation(), { mode: 'replace', pagesMax: 3 })).toMatchObject({ stopReason: 'max_pages' })
    expect(await scene.keys()).toHaveLength(10)
    // Behind the backfill's position, so only the delta can bring it.
    table.put('r0000a', { at: table.truth().r0000!.at })
    await cycle(keysetOf(table), { sync: 'delta' })
    expect(await cycle(byCreation(), { mode: 'replace' })).toMatchObject({
      stopReason: 'complete',
      resumed: true,
      counts: { swept: 2 },
    })
    expect(await scene.rows()).toEqual(table.truth())
  })
})

describe('a delta', () => {
  test('N23 N26 N29 N30 every page leads to its last row, and so does the cycle', async () => {
    fill(5)
    await cycle(keysetOf(table, { limit: 2 }))
    expect(await state()).toEqual({ cursorTimestamp: table.truth().r0004!.at, cursorId: 'r0004' })
    expect(await scene.rows()).toEqual(table.truth())
    expect((await scene.feed()).map(({ cursor }) => cursor)).toEqual(Object.values(table.truth()).map(({ at }) => at))
    expect(table.asked[2]!.after).toEqual({ timestamp: table.truth().r0003!.at, id: 'r0003' })
  })

  test('N75 rows keep coming: after many cycles of changes the copy is the table, by deltas alone', async () => {
    const delta = keysetOf(table, { limit: 7 })
    for (let round = 0; round < 12; round++) {
      for (let index = 0; index < 10; index++)
        table.put(`r${(round * 7 + index) % 40}`, { lateMs: (index % 3) * 4 * SECOND })
      await cycle(delta, { afterMs: 20 * SECOND })
    }
    await cycle(delta)
    expect(await scene.rows()).toEqual(table.truth())
  })

  test('N24 N76 the upper bound is fifteen seconds before the cycle began', async () => {
    fill(1)
    const { startedAt } = await cycle(keysetOf(table))
    expect(table.asked.map(({ until }) => until)).toEqual([iso(startedAt - LAG)])
  })

  test('N9 N25 XC5 scenario 3: a row that is visible eight seconds late is not lost behind the lag, and is lost without it', async () => {
    const run = async (lagMs: number): Promise<boolean> => {
      scene = await EngineFixture.open()
      table = new Table(scene.clock)
      const delta = keysetOf(table, { lagMs })
      table.put('late', { lateMs: 8 * SECOND })
      scene.clock.step(SECOND)
      table.put('prompt')
      await cycle(delta, { afterMs: SECOND })
      await cycle(delta, { afterMs: 30 * SECOND })
      await cycle(delta)
      return Object.hasOwn(await scene.rows(), 'late')
    }
    expect(await run(LAG)).toBe(true)
    expect(await run(0)).toBe(false)
  })

  test('D2 rows inside the buffer are not sent again and again: each is landed once', async () => {
    const delta = keysetOf(table)
    fill(3)
    table.put('fresh')
    expect((await cycle(delta, { afterMs: SECOND })).counts).toMatchObject({ unchanged: 0 })
    expect(Object.keys(await scene.rows())).not.toContain('fresh')
    expect((await cycle(delta)).counts).toMatchObject({ created: 1, unchanged: 0 })
    expect((await cycle(delta)).counts).toMatchObject({ created: 0, unchanged: 0 })
  })

  test('XC3 a row that is changed while the pages are read comes with the next cycle', async () => {
    fill(6)
    const delta = keysetOf(table, {
      limit: 2,
      read: async (query) => {
        const answer = await table.read(query)
        if (table.asked.length === 1) table.put('r0003')
        return answer
      },
    })
    await cycle(delta)
    await cycle(delta)
    expect(await scene.rows()).toEqual(table.truth())
  })
})

describe('the horizon', () => {
  test('is fixed when the cycle begins: not raised by the pages, nor when another process takes the cycle up', async () => {
    fill(6)
    const delta = keysetOf(table, { limit: 2 })
    const { startedAt } = await cycle(delta, { pagesMax: 1 })
    table.put('later')
    expect(await cycle(keysetOf(table, { limit: 2, lagMs: 0 }), { pagesMax: 1 })).toMatchObject({
      stopReason: 'max_pages',
      resumed: true,
    })
    await cycle(delta)
    await cycle(delta, { pagesMax: 1 })
    expect(table.asked.slice(0, 4).map(({ until }) => until)).toEqual(Array(4).fill(iso(startedAt - LAG)))
  })

  test('is not left behind in the state: the next cycle has its own', async () => {
    fill(6)
    const delta = keysetOf(table, { limit: 2 })
    await cycle(delta)
    table.put('later')
    await cycle(delta)
    expect(await state()).toEqual({ cursorTimestamp: table.truth().later!.at, cursorId: 'later' })
    expect(await scene.rows()).toEqual(table.truth())
  })

  /** Crashes are pages that end the run: what is durable then is the state between two pages. */
  const planted: Execute<{ timestamp: string; id: string } | undefined> = async (given, { clock }) => {
    const items = table.select({ after: given, until: undefined, limit: 2 })
    const last = items.at(-1)
    const done = items.length < 2
    const cap = iso(clock.now() - LAG)
    return {
      changes: items.map(toChange),
      hasMore: !done,
      nextState: last === undefined ? given : { timestamp: done && last.at > cap ? cap : last.at, id: last.id },
    }
  }

  test('T6 D8 holds between pages too; as a control, a cursor that is capped only at the end of a cycle loses a late row', async () => {
    const run = async (execute: Execute<any>): Promise<boolean> => {
      scene = await EngineFixture.open()
      table = new Table(scene.clock)
      table.put('a')
      table.put('late', { lateMs: 8 * SECOND })
      scene.clock.step(SECOND)
      table.put('b')
      table.put('c')
      await cycle(execute, { afterMs: SECOND, pagesMax: 1 })
      for (let index = 0; index < 6; index++) await cycle(execute, { pagesMax: 1 })
      return Object.hasOwn(await scene.rows(), 'late')
    }
    expect(await run(planted)).toBe(false)
    expect(await run(keysetOf(table, { read: (query) => table.read(query), limit: 2 }))).toBe(true)
  })

  test('D2 T5 as a control: a capped timestamp with the id of a newer row skips rows at the cap; ours resets the id', async () => {
    const run = async (execute: Execute<any>): Promise<string[]> => {
      scene = await EngineFixture.open()
      table = new Table(scene.clock)
      // Whole seconds, and a cap that falls on one of them.
      scene.clock.step(LAG)
      const cap = scene.clock.now()
      table.put('a-late', { at: iso(cap), lateMs: 16 * SECOND })
      table.put('z', { at: iso(cap + SECOND) })
      await cycle(execute, { afterMs: LAG })
      await cycle(execute)
      await cycle(execute)
      return scene.keys()
    }
    expect(await run(planted)).toEqual(['z'])
    expect(await run(keysetOf(table, { read: (query) => table.read(query), lagMs: LAG + SECOND }))).toEqual([
      'a-late',
      'z',
    ])
  })

  test('XC18 a cursor from the year 2999 is set back to the horizon, its id is dropped, and a warning is logged', async () => {
    fill(3)
    const delta = keysetOf(table)
    await cycle(delta)
    await setState(scene, { cursorTimestamp: '2999-01-01T00:00:00Z', cursorId: 'zzz' })
    const { startedAt } = await cycle(delta)
    expect(await state()).toEqual({ cursorTimestamp: iso(startedAt - LAG), cursorId: '' })
    expect(scene.logged.join('\n')).toMatch(/ahead of the horizon/)
    expect(scene.logged.join('\n')).not.toMatch(/2999/)
    table.put('new')
    await cycle(delta)
    expect(await scene.rows()).toEqual(table.truth())
  })

  test('XC18 where stamps are whole seconds, a position that was set back does not come after the rows of its second', async () => {
    await scene.clock.advance(15_947 - (scene.clock.now() % SECOND))
    const second = (at: string): string => `${at.slice(0, 19)}Z`
    const read = async (query: KeysetQuery): Promise<KeysetAnswer<TableRow>> => {
      const after = query.after && { ...query.after, timestamp: second(query.after.timestamp) }
      const items = table.select({ ...query, after, until: second(query.until!) })
      return { items, end: items.length < query.limit }
    }
    const delta = keysetOf(table, { read })
    await setState(scene, { cursorTimestamp: '2999-01-01T00:00:00Z', cursorId: 'zzz' })
    const at = second(iso(scene.clock.now() - LAG))
    table.put('a', { at })
    expect(await cycle(delta, { afterMs: 0 })).toMatchObject({ stopReason: 'complete', counts: { created: 1 } })
    // Also one that a release before this rule has stored.
    await setState(scene, { cursorTimestamp: at.replace('Z', '.947Z'), cursorId: '' })
    expect(await cycle(delta)).toMatchObject({ stopReason: 'complete', counts: { unchanged: 1 } })
  })

  test('XC25 the clock of the source jumps a day ahead and back: the cursor does not run to tomorrow', async () => {
    const delta = keysetOf(table)
    fill(3)
    table.clockErrorMs = 24 * HOUR
    table.put('tomorrow')
    await cycle(delta)
    table.clockErrorMs = 0
    table.put('today')
    await cycle(delta)
    expect(await scene.keys()).toEqual(['r0000', 'r0001', 'r0002', 'today'])
    await cycle(delta, { afterMs: 24 * HOUR })
    expect(await scene.rows()).toEqual(table.truth())
  })

  test('XC25 also when the source cannot be asked for an upper bound: what lies above it is left for later', async () => {
    const delta = keysetOf(table, { read: (query) => table.read({ ...query, until: undefined }), limit: 2 })
    fill(3)
    table.put('tomorrow', { at: iso(scene.clock.now() + 24 * HOUR) })
    table.put('tomorrow-2', { at: iso(scene.clock.now() + 24 * HOUR) })
    await cycle(delta)
    expect(await scene.keys()).toEqual(['r0000', 'r0001', 'r0002'])
    table.put('today')
    await cycle(delta)
    expect(await scene.keys()).toContain('today')
  })

  test('XC24 the clock of the source jumps back by less than the lag: what it stamps then is landed', async () => {
    const delta = keysetOf(table)
    table.put('a')
    await cycle(delta, { afterMs: 20 * SECOND })
    table.clockErrorMs = -14 * SECOND
    table.put('a')
    table.put('b')
    await cycle(delta)
    expect(await scene.rows()).toEqual(table.truth())
  })

  describe('XC26 our own clock is an hour ahead', () => {
    const withServerTime = (options: Partial<KeysetOptions<TableRow>> = {}, error = 0): Execute<any> =>
      keysetOf(table, {
        read: async (query) => ({
          ...(await table.read(query)),
          serverTime: new Date(table.now() + error).toUTCString(),
        }),
        ...options,
      })
    const scenario = async (execute: Execute<any>): Promise<string[]> => {
      fill(3)
      // The source's clock is an hour behind ours.
      table.clockErrorMs = -HOUR
      table.put('late', { lateMs: 8 * SECOND })
      scene.clock.step(SECOND)
      table.put('prompt')
      await cycle(execute, { afterMs: SECOND })
      await cycle(execute)
      return scene.keys()
    }

    test("the source's clock lowers the horizon, and what is above it is neither landed nor passed", async () => {
      expect(await scenario(withServerTime())).toContain('late')
    })

    test('as a control, without it a late row is lost', async () => {
      expect(await scenario(keysetOf(table))).not.toContain('late')
    })

    test('XD28 a clock of the source that is ahead raises nothing, and one that is no date says nothing', async () => {
      fill(1)
      table.put('fresh')
      for (const serverTime of [iso(table.now() + 24 * HOUR), 'soon', null, Number.NaN]) {
        await cycle(
          keysetOf(table, {
            read: async (query) => ({ ...(await table.read({ ...query, until: undefined })), serverTime }),
          }),
          { afterMs: SECOND },
        )
      }
      expect(await scene.keys()).toEqual(['r0000'])
    })

    test('XD28 a clock of the source that is hours behind only holds things up: the cursor stays', async () => {
      fill(3)
      await cycle(keysetOf(table))
      const before = await state()
      table.put('new')
      await cycle(withServerTime({}, -6 * HOUR))
      expect(await state()).toEqual(before)
      await cycle(withServerTime())
      expect(await scene.rows()).toEqual(table.truth())
    })

    test('the time an answer took is taken off: it may have been found before it was stamped', async () => {
      const asked: number[] = []
      const slow = keysetOf(table, {
        limit: 1,
        read: async (query, { clock }) => {
          asked.push(Date.parse(query.until!))
          const answer = await table.read(query)
          await clock.sleep(20 * SECOND)
          return { ...answer, serverTime: table.now() }
        },
      })
      for (const id of ['a', 'b', 'c']) table.put(id, { at: iso(scene.clock.now() - 2 * HOUR) })
      table.clockErrorMs = -HOUR
      const { startedAt } = await cycle(slow, { pagesMax: 2 })
      expect(asked).toEqual([startedAt - LAG, startedAt - HOUR - LAG])
    })
  })

  test("a horizon that an operator wrote into the state cannot be later than the cycle's own", async () => {
    fill(1)
    table.put('fresh')
    await setState(scene, { cursorTimestamp: null, cursorId: null, untilMs: scene.clock.now() + HOUR })
    await cycle(keysetOf(table), { afterMs: SECOND })
    expect(await scene.keys()).toEqual(['r0000'])
  })
})

describe('an empty page', () => {
  test('D7 D12 T7 keeps the cursor', async () => {
    fill(3)
    const delta = keysetOf(table)
    await cycle(delta)
    const before = await state()
    await cycle(delta)
    await cycle(delta)
    expect(await state()).toEqual(before)
  })

  test('T7 D12 as a control: moving on to the horizon on an empty page loses what a source wrongly left out', async () => {
    const run = async (execute: (hide: () => boolean) => Execute<any>): Promise<string[]> => {
      scene = await EngineFixture.open()
      table = new Table(scene.clock)
      let hiding = true
      fill(2)
      await cycle(execute(() => hiding))
      hiding = false
      await cycle(execute(() => hiding))
      return scene.keys()
    }
    const wronglyEmpty = (hide: () => boolean) =>
      keysetOf(table, { read: async (query) => (hide() ? { items: [], end: true } : table.read(query)) })
    const movesOn =
      (hide: () => boolean): Execute<{ at: string }> =>
      async (given, { cycle }) => {
        const until = iso(cycle.startedAt - LAG)
        const items = hide()
          ? []
          : table.select({ after: given && { timestamp: given.at, id: '\uffff' }, until, limit: 100 })
        return { changes: items.map(toChange), hasMore: false, nextState: { at: until } }
      }
    expect(await run(movesOn)).toEqual([])
    expect(await run(wronglyEmpty)).toEqual(['r0000', 'r0001'])
  })

  test('of an empty table leaves the sync without a cursor', async () => {
    await cycle(keysetOf(table))
    expect(await state()).toEqual({ cursorTimestamp: null, cursorId: null })
  })

  test('D1 scenario 2: that is not the end fails, and moves nothing', async () => {
    fill(3)
    await cycle(keysetOf(table))
    const before = await state()
    const result = await cycle(keysetOf(table, { read: async () => ({ items: [], end: false }) }))
    expect(result).toMatchObject({ stopReason: 'error', error: { code: 'SOURCE_INVALID' } })
    expect(await state()).toEqual(before)
  })

  test("D1 XC14 that is not the end is followed by the connector's own locator, from the same position", async () => {
    fill(4)
    const asked: Array<string | undefined> = []
    const delta = keysetOf(table, {
      limit: 2,
      read: async (query) => {
        asked.push(query.locator)
        if (asked.length === 2 || asked.length === 3) return { items: [], end: false, locator: `next-${asked.length}` }
        return table.read(query)
      },
    })
    await cycle(delta)
    expect(asked).toEqual([undefined, undefined, 'next-2', 'next-3', undefined])
    expect(await scene.rows()).toEqual(table.truth())
    expect(await state()).toEqual({ cursorTimestamp: table.truth().r0003!.at, cursorId: 'r0003' })
  })

  test('D1 locators on an empty table leave neither themselves nor a horizon behind', async () => {
    const execute = keysetOf(table, {
      read: async ({ locator }) =>
        locator === undefined ? { items: [], end: false, locator: 'next' } : { items: [], end: true },
    })
    await cycle(execute)
    expect(await state()).toEqual({ cursorTimestamp: null, cursorId: null })
    table.put('a')
    await cycle(keysetOf(table))
    expect(await scene.rows()).toEqual(table.truth())
  })
})

describe("the end of the pages is the source's own rule", () => {
  /** A query that answers with a flag which is not to be trusted, and with pages shorter than they need be. */
  const answering = (
    answers: ReadonlyArray<{ take: number; done: boolean }>,
    isEnd: (done: boolean, length: number) => boolean,
  ): Execute<KeysetState> => {
    let call = 0
    return keysetOf(table, {
      limit: 3,
      read: async (query) => {
        const { take, done } = answers[call++] ?? { take: 3, done: true }
        const items = table.select({ ...query, limit: take })
        return { items, end: isEnd(done, items.length) }
      },
    })
  }
  const both = (done: boolean, length: number): boolean => done && length < 3

  test.each([
    { done: true, take: 3, more: true },
    { done: false, take: 3, more: true },
    { done: false, take: 2, more: true },
    { done: true, take: 2, more: false },
  ])('N27 scenario 2: done $done and $take of 3 rows means more: $more', async ({ done, take, more }) => {
    fill(7)
    const { pages } = await cycle(answering([{ done, take }], both), { pagesMax: 2 })
    expect(pages > 1).toBe(more)
  })

  test('D1 XC10 as a control: a connector that trusts the length alone, or the flag alone, loses rows', async () => {
    fill(8)
    const liesInLength = [
      { take: 2, done: false },
      { take: 3, done: false },
    ]
    const liesInFlag = [
      { take: 3, done: true },
      { take: 3, done: true },
    ]
    const incremental = { mode: 'incremental', sync: 'length' } as const
    await cycle(
      answering(liesInLength, (_, length) => length < 3),
      incremental,
    )
    expect(await scene.keys()).toHaveLength(2)
    await cycle(
      answering(liesInFlag, (done) => done),
      { ...incremental, sync: 'flag' },
    )
    expect(await scene.keys()).toHaveLength(3)
    // In a replace cycle two consecutive responses have to claim the end.
    await cycle(
      answering(
        [
          { take: 3, done: true },
          { take: 3, done: false },
        ],
        (done) => done,
      ),
      { mode: 'replace' },
    )
    expect(await scene.rows()).toEqual(table.truth())
    for (const answers of [liesInLength, liesInFlag]) {
      await cycle(answering(answers, both), { mode: 'replace' })
      expect(await scene.rows()).toEqual(table.truth())
    }
  })

  test('N66 N67 N70 a backfill may end on an empty page only, and on a second one', async () => {
    fill(6)
    const backfill = keysetOf(table, {
      limit: 3,
      read: async (query) => {
        const items = table.select({ ...query, limit: table.asked.length === 1 ? 1 : 3 })
        table.asked.push(query)
        return { items, end: items.length === 0 }
      },
    })
    expect(await cycle(backfill, { mode: 'replace' })).toMatchObject({ pages: 5 })
    expect(await scene.rows()).toEqual(table.truth())
  })

  test('T7 two ends of a backfill confirm each other after the same item', async () => {
    fill(9)
    await cycle(keysetOf(table, { limit: 3 }), { mode: 'replace' })
    table.asked.length = 0
    const early = keysetOf(table, {
      limit: 3,
      read: async (query) => {
        const answer = await table.read(query)
        return table.asked.length <= 2 ? { ...answer, end: true } : answer
      },
    })
    expect(await cycle(early, { mode: 'replace', allowDeletes: true })).toMatchObject({
      stopReason: 'complete',
      counts: { swept: 0 },
    })
    expect(await scene.rows()).toEqual(table.truth())
  })

  test('invariant 9: a backfill ends also while rows come in faster than it asks', async () => {
    fill(4)
    const busy = keysetOf(table, {
      limit: 3,
      read: async (query) => {
        scene.clock.step(SECOND)
        table.put(`new${table.asked.length}`)
        return table.read(query)
      },
    })
    expect(await cycle(busy, { mode: 'replace' })).toMatchObject({ stopReason: 'complete', pages: 4 })
  })

  test('invariant 9: a backfill that ends too early each time fails, and goes on later', async () => {
    fill(30)
    const ending = keysetOf(table, { limit: 2, read: async (query) => ({ ...(await table.read(query)), end: true }) })
    const failed = await cycle(ending, { mode: 'replace' })
    expect(failed).toMatchObject({ stopReason: 'error', error: { code: 'SOURCE_UNAVAILABLE' }, pages: 5 })
    expect(await cycle(keysetOf(table), { mode: 'replace', afterMs: HOUR })).toMatchObject({
      stopReason: 'complete',
      resumed: true,
    })
    expect(await scene.rows()).toEqual(table.truth())
  })

  test('N71 a delta may end on a page that is not full', async () => {
    fill(5)
    expect(await cycle(keysetOf(table, { limit: 3 }))).toMatchObject({ pages: 2, stopReason: 'complete' })
  })
})

describe('what a source sends is not trusted', () => {
  const row = (id: string, at = '2026-02-28T12:00:00Z'): TableRow => ({ id, at, v: 1 })
  const sends = (items: readonly unknown[], options: Partial<KeysetOptions<TableRow>> = {}): Execute<any> =>
    keysetOf(table, { read: async () => ({ items, end: true }) as KeysetAnswer<TableRow>, ...options })

  test.each([
    ['out of order by time', [row('a', '2026-02-28T12:00:01Z'), row('b', '2026-02-28T12:00:00Z')]],
    ['out of order by id', [row('b'), row('a')]],
    ['with a row twice', [row('a'), row('a')]],
    ['XC22 with a local time', [row('a', '2026-02-28T12:00:00')]],
    ['XC23 with infinity', [row('a', 'infinity')]],
    ['XC23 with a day that does not exist', [row('a', '2026-02-30T12:00:00Z')]],
    ['XC20 with a number for a timestamp', [{ id: 'a', at: 1_772_000_000, v: 1 }]],
    ['XC20 with a number for an id', [{ id: 7, at: '2026-02-28T12:00:00Z', v: 1 }]],
    ['with an empty id', [row('')]],
  ])('a page %s fails, and nothing of it is landed', async (_, items) => {
    const result = await cycle(sends(items))
    expect(result).toMatchObject({ stopReason: 'error', error: { code: 'SOURCE_INVALID' } })
    expect(await scene.keys()).toEqual([])
    expect(await state()).toBeNull()
  })

  test('a page that begins at the position, or before it, fails', async () => {
    fill(3)
    await cycle(keysetOf(table))
    const { r0001, r0002 } = table.truth()
    for (const item of [r0001!, r0002!])
      expect(await cycle(sends([item]))).toMatchObject({
        error: { code: 'SOURCE_INVALID', message: expect.stringMatching(/at or before the requested cursor/) },
      })
  })

  test('XC20 ids are compared as declared: "9" comes before "10" as a number, after it as bytes', async () => {
    expect(await cycle(sends([row('9'), row('10')]))).toMatchObject({ stopReason: 'error' })
    expect(
      await cycle(
        sends([row('9'), row('10'), row('90071992547409930'), row('90071992547409931')], { compareIds: numericIds }),
      ),
    ).toMatchObject({ stopReason: 'complete', counts: { created: 4 } })
    expect(
      await cycle(
        sends([row('zwölf', '2026-02-28T13:00:00Z'), row('9', '2026-02-28T13:00:00Z')], { compareIds: numericIds }),
      ),
    ).toMatchObject({ error: { code: 'SOURCE_INVALID' } })
  })

  test('by bytes, not by a locale: B before a, ｆ before 𝑎', async () => {
    expect(await cycle(sends([row('B'), row('a'), row('ä'), row('ｆ'), row('𝑎')]))).toMatchObject({
      counts: { created: 5 },
    })
  })

  test('D10 instants are compared as instants: a fraction is later than none, an offset is taken into account', async () => {
    const items = [
      row('a', '2026-02-28T12:00:45Z'),
      row('b', '2026-02-28T12:00:45.123Z'),
      row('c', '2026-02-28T14:00:45.2+02:00'),
    ]
    expect(await cycle(sends(items))).toMatchObject({ counts: { created: 3 } })
    expect(await state()).toEqual({ cursorTimestamp: '2026-02-28T14:00:45.2+02:00', cursorId: 'c' })
  })

  test('D10 as a control: the lesser of two texts is the later instant, and the cursor passes a late row', async () => {
    const lesser = (a: string, b: string): string => (a < b ? a : b)
    const planted: Execute<{ at: string }> = async (given, { clock }) => {
      const items = table.select({
        after: given && { timestamp: given.at, id: '\uffff' },
        until: undefined,
        limit: 100,
      })
      const cap = new Date(clock.now() - LAG).toISOString().replace('.000Z', 'Z')
      return {
        changes: items.map(toChange),
        hasMore: false,
        nextState: { at: lesser(items.at(-1)?.at ?? given?.at ?? cap, cap) },
      }
    }
    const run = async (execute: Execute<any>): Promise<boolean> => {
      scene = await EngineFixture.open()
      table = new Table(scene.clock)
      const at = scene.clock.now() - LAG
      table.put('prompt', { at: iso(at + 123) })
      table.put('late', { at: iso(at + 100), lateMs: SECOND })
      await cycle(execute, { afterMs: 0 })
      await cycle(execute)
      return Object.hasOwn(await scene.rows(), 'late')
    }
    expect(await run(planted)).toBe(false)
    expect(await run(keysetOf(table, { read: (query) => table.read(query) }))).toBe(true)
  })

  test('XC21 microseconds count, and the cursor keeps them as they were written', async () => {
    table.put('b', { at: '2026-02-28T12:00:00.000001Z' })
    table.put('a', { at: '2026-02-28T12:00:00.000002Z' })
    await cycle(keysetOf(table, { limit: 1 }))
    expect(await scene.keys()).toEqual(['a', 'b'])
    expect(await state()).toEqual({ cursorTimestamp: '2026-02-28T12:00:00.000002Z', cursorId: 'a' })
  })

  test('XC21 a row a microsecond above the horizon stays above it', async () => {
    const at = iso(scene.clock.now() - LAG)
    table.put('below', { at })
    table.put('above', { at: at.replace('Z', '001Z') })
    await cycle(keysetOf(table, { read: (query) => table.read({ ...query, until: undefined }) }), { afterMs: 0 })
    expect(await scene.keys()).toEqual(['below'])
  })

  test.each([
    [{ cursorTimestamp: 'yesterday', cursorId: '' }],
    [{ cursorTimestamp: '2026-01-01T00:00:00Z', cursorId: 7 }],
    [{ cursorTimestamp: '2026-01-01T00:00:00Z', cursorId: 'a', untilMs: 'now' }],
  ])('T1 a state that is not its own is refused and kept: %o', async (stored) => {
    fill(1)
    await cycle(keysetOf(table))
    await setState(scene, stored)
    expect(await cycle(keysetOf(table))).toMatchObject({ error: { code: 'CURSOR_REJECTED' } })
    expect(await state()).toEqual(stored)
  })
})

describe('where a cycle begins', () => {
  test('NX6 without state at the first row, or where the author says', async () => {
    fill(10)
    await cycle(keysetOf(table, { since: table.truth().r0007!.at }))
    expect(await scene.keys()).toEqual(['r0007', 'r0008', 'r0009'])
  })

  test('T1 a beginning reckoned from the clock is kept from the first cycle on, also when that finds nothing', async () => {
    const delta = keysetOf(table, { since: ({ cycle }) => iso(cycle.startedAt - 5 * MINUTE) })
    await cycle(delta)
    table.put('between')
    await cycle(delta, { afterMs: HOUR })
    expect(await scene.keys()).toEqual(['between'])
  })

  test('F5 NX6 an overlap reads again what lies behind the position, lands nothing twice, and finds what came late', async () => {
    const delta = keysetOf(table, { overlapMs: 2 * MINUTE })
    fill(3)
    await cycle(delta)
    const before = await state()
    table.put('very-late', { at: iso(Date.parse(table.truth().r0002!.at) - MINUTE) })
    expect((await cycle(delta)).counts).toMatchObject({ created: 1, unchanged: 3 })
    expect(await state()).toEqual(before)
    expect(await scene.feed()).toHaveLength(4)
  })

  test('an overlap that finds nothing, cycle after cycle, does not carry the cursor back', async () => {
    const delta = keysetOf(table, { overlapMs: 2 * MINUTE })
    fill(3)
    await cycle(delta)
    const before = await state()
    for (const id of ['r0000', 'r0001', 'r0002']) table.remove(id)
    for (let index = 0; index < 3; index++) await cycle(delta)
    expect(await state()).toEqual(before)
  })

  test('an overlap of several pages ends where the position was, even when the row there is gone', async () => {
    const delta = keysetOf(table, { overlapMs: 2 * MINUTE, limit: 1 })
    fill(4)
    await cycle(delta)
    const before = await state()
    table.remove('r0002')
    table.remove('r0003')
    expect(await cycle(delta)).toMatchObject({ stopReason: 'complete', counts: { unchanged: 2 } })
    expect(await state()).toEqual(before)
  })

  test('a beginning without an id is below every id, also below numeric ones', async () => {
    const at = iso(scene.clock.now() - MINUTE)
    table.put('0', { at })
    table.put('7', { at })
    await cycle(keysetOf(table, { since: at, compareIds: numericIds }))
    expect(await scene.keys()).toEqual(['0', '7'])
  })

  test("N78 XC26 an anchor is taken by the source's clock where ours is ahead", async () => {
    table.clockErrorMs = -HOUR
    const delta = keysetOf(table, {
      read: async (query) => ({ ...(await table.read(query)), serverTime: table.now() }),
    })
    let anchor: KeysetState | undefined
    await cycle(
      async (_, context) => {
        anchor = await delta.anchor(context)
        return { changes: [], hasMore: false }
      },
      { sync: 'backfill', afterMs: 0 },
    )
    table.put('meanwhile')
    await setState(scene, anchor)
    await cycle(delta)
    expect(await scene.keys()).toEqual(['meanwhile'])
  })

  test('N78 an anchor captured before a backfill finds all that changes meanwhile', async () => {
    fill(20)
    const delta = keysetOf(table)
    let anchor: KeysetState | undefined
    const backfill = keysetOf(table, {
      limit: 5,
      read: async (query, context) => {
        if (anchor === undefined) anchor = await delta.anchor(context)
        const answer = await table.read(query)
        if (table.asked.length <= 4) for (const digit of [1, 4, 7]) table.put(`r00${table.asked.length % 2}${digit}`)
        scene.clock.step(MINUTE)
        return answer
      },
    })
    await cycle(backfill, { sync: 'backfill', mode: 'replace' })
    await setState(scene, anchor)
    await cycle(delta)
    expect(await scene.rows()).toEqual(table.truth())
  })
})

describe("an author's mistakes", () => {
  test.each([[{ lagMs: -1 }], [{ lagMs: Number.NaN }], [{ limit: 0 }], [{ overlapMs: -1 }]])(
    '%o is refused at once',
    (options) => {
      expect(() => keysetOf(table, options)).toThrow(expect.objectContaining({ code: 'SYNC_INVALID' }))
    },
  )

  test('a row may become several changes, or none, and is passed all the same', async () => {
    fill(3)
    await cycle(
      keysetOf(table, {
        limit: 1,
        toChange: (item) => (item.id === 'r0000' ? null : [toChange(item), { type: 'delete', key: `old-${item.id}` }]),
      }),
    )
    expect(await scene.keys()).toEqual(['r0001', 'r0002'])
    expect(await state()).toMatchObject({ cursorId: 'r0002' })
  })
})
