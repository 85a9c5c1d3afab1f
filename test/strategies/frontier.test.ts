import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Execute } from '../../src/contract/index.ts'
import { SyncError } from '../../src/contract/index.ts'
import { frontier, type FetchContext, type FrontierState } from '../../src/strategies/index.ts'
import { HOUR, MINUTE, planOf, EngineFixture } from '../engine/engine-fixture.ts'
import { frontierOf, NewestFirst, numbered, type Entry } from './newest-first.ts'
import { runOn, runToEnd, setState, stateOn } from './run-strategy.ts'

let scene: EngineFixture
let list: NewestFirst
let execute: Execute<FrontierState>

beforeEach(async () => {
  scene = await EngineFixture.open()
  list = new NewestFirst(scene.clock, ...numbered('a', 35))
  execute = frontierOf(list)
})
afterEach(() => scene.close())

const run = (choices?: Parameters<typeof runOn>[2]): ReturnType<typeof runOn> => runOn(scene, execute, choices)
const committed = async (): Promise<FrontierState> => (await stateOn<FrontierState>(scene))!
const inflight = async (): Promise<FrontierState> =>
  JSON.parse((await scene.checkpoint()).inflight!.state!) as FrontierState
const expectAll = async (): Promise<void> => expect(await scene.keys()).toEqual(expect.arrayContaining(list.ids))
/** Everything was read once, and nothing is on record of it. */
const settle = async (): Promise<void> => {
  expect(await run()).toMatchObject({ stopReason: 'complete' })
  list.takeAsked()
  list.asked.length = 0
}

describe('S34 what a page is asked with', () => {
  test('S1 S3 S4 S5: one context with cursor, anchor and phase; from the newest end with neither on the first page, and no anchor in backfill', async () => {
    await run()
    expect(list.asked).toEqual([
      { cursor: null, sinceItemId: null, phase: 'forward' },
      { cursor: expect.stringMatching(/^26@/), sinceItemId: null, phase: 'backfill' },
      { cursor: expect.stringMatching(/^16@/), sinceItemId: null, phase: 'backfill' },
      { cursor: expect.stringMatching(/^6@/), sinceItemId: null, phase: 'backfill' },
      { cursor: expect.stringMatching(/^6@/), sinceItemId: null, phase: 'backfill' },
    ])
    list.asked.length = 0
    await run()
    expect(list.asked).toEqual([{ cursor: null, sinceItemId: 'a35', phase: 'forward' }])
  })

  test('S1: the context is also all that every source gets: fetch, clock, signal, secrets', async () => {
    const got: FetchContext[] = []
    execute = frontierOf(list, {}, async (context) => {
      got.push(context)
      return list.read(context)
    })
    await run({ pagesMax: 1 })
    expect(got[0]).toMatchObject({
      fetch: expect.any(Function),
      signal: expect.any(AbortSignal),
      clock: expect.anything(),
      cycle: { page: 1 },
    })
    expect(got[0]!.secrets.get('TOKEN')).toBe('TOKEN')
  })

  test('S2: a source that looks at the cursor alone is as good as any', async () => {
    execute = frontierOf(list, {}, async ({ cursor }) => list.read({ cursor, sinceItemId: null, phase: 'forward' }))
    await settle()
    list.add('b01')
    expect(await run()).toMatchObject({ pages: 1, endReason: 'reached_since', counts: { created: 1 } })
    await expectAll()
  })

  test('SX12: a source without cursors makes them of its natural order', async () => {
    const notes = ['three', 'two', 'one']
    execute = frontier<string>(
      async ({ cursor }) => {
        const from = cursor === null ? 0 : notes.indexOf(cursor) + 1
        return { items: notes.slice(from, from + 1), nextCursor: from + 1 < notes.length ? notes[from]! : null }
      },
      { id: (note) => note, toChange: (note) => ({ type: 'upsert', key: note, record: { note } }) },
    )
    expect(await run()).toMatchObject({ stopReason: 'complete', endReason: 'end_of_data', counts: { created: 3 } })
  })
})

describe('the tail', () => {
  test('S6 S7 S9 SX4: the first forward page hands its place over, and backfill goes on from there to the end of the list', async () => {
    await run({ pagesMax: 1 })
    expect(await inflight()).toMatchObject({
      phase: 'backfill',
      headItemId: 'a35',
      tailCursor: expect.stringMatching(/^26@/),
      tailComplete: false,
    })
    expect(await run()).toMatchObject({ stopReason: 'complete', endReason: 'end_of_data', resumed: true })
    expect(await committed()).toMatchObject({ tailComplete: true })
    expect((await committed()).tailCursor).toBeUndefined()
    expect(list.takeAsked()).toEqual(['forward null', 'backfill 26', 'backfill 16', 'backfill 6', 'backfill 6'])
    await expectAll()
  })

  test('S6 S8 XC30: while backfill is deep, a forward pass over many pages leaves its place alone', async () => {
    await run({ pagesMax: 2 })
    const { tailCursor } = await inflight()
    list.add(...numbered('b', 25))
    // A page of backfill, and then, because it was long ago, the head again.
    await run({ afterMs: HOUR, pagesMax: 1 })
    expect(list.takeAsked()).toEqual(['forward null', 'backfill 26', 'backfill 16'])
    const deep = await inflight()
    expect(deep).toMatchObject({ phase: 'forward', headItemId: 'a35' })
    expect(deep.tailCursor).not.toBe(tailCursor)
    await run({ pagesMax: 2 })
    expect(await inflight()).toMatchObject({
      phase: 'forward',
      pass: { pending: { id: 'b25' } },
      headItemId: 'a35',
      tailCursor: deep.tailCursor,
    })
    expect(await run()).toMatchObject({ endReason: 'end_of_data' })
    expect(list.takeAsked()).toEqual(['forward null', 'forward 51', 'forward 41', 'backfill 6', 'backfill 6'])
    await expectAll()
  })

  test('F17 SX3 SD4: no pages of known items end backfill; only the end of the list does', async () => {
    await settle()
    // By an operator: backfill starts again over a list whose items are all known.
    const { headItemId, anchors } = await committed()
    list.limit = 3
    await setState(scene, { phase: 'backfill', headItemId, anchors, checkedAt: scene.clock.now(), tailComplete: false })
    await run({ pagesMax: 11 })
    expect(await inflight()).toMatchObject({ tailComplete: false, tailCursor: expect.any(String) })
    expect(await runToEnd(scene, execute, { pagesMax: 1 })).toHaveLength(2)
    expect(await committed()).toMatchObject({ tailComplete: true })
  })

  test('SD4: a page that forgets to say where the next one begins is no end', async () => {
    execute = frontierOf(list, {}, async (context) => ({
      ...list.read(context),
      ...(context.phase === 'backfill' && { nextCursor: undefined as unknown as null }),
    }))
    expect(await run()).toMatchObject({ stopReason: 'error', error: { code: 'SOURCE_INVALID' } })
    expect(await inflight()).toMatchObject({ tailComplete: false })
  })

  test('empty pages that say that there is more end nothing', async () => {
    let empty = 0
    execute = frontierOf(list, {}, async (context) =>
      context.cursor !== null && empty++ % 2 === 0
        ? { items: [], nextCursor: `${context.cursor} ` }
        : list.read({ ...context, cursor: context.cursor?.trim() ?? null }),
    )
    expect(await run()).toMatchObject({ stopReason: 'complete', counts: { created: 35 } })
  })

  test('a clock that was set back does not prevent reads of the head', async () => {
    await run({ pagesMax: 1 })
    scene.clock.step(-24 * HOUR)
    await run({ pagesMax: 2 })
    expect(list.takeAsked()).toEqual(['forward null', 'backfill 26', 'forward null'])
  })

  test('where every page takes longer than the time between two looks at the head, both still have their turns', async () => {
    execute = frontierOf(list, { refreshMs: MINUTE })
    await runToEnd(scene, execute, { pagesMax: 1 })
    expect(list.takeAsked()).toEqual([
      'forward null',
      'backfill 26',
      'forward null',
      'backfill 16',
      'forward null',
      'backfill 6',
      'backfill 6',
    ])
  })
})

describe('the head', () => {
  test('S10 S13 S31 F8: after twenty pages it is still the first item of the first, and it is the head once the pass has ended', async () => {
    list.limit = 5
    await settle()
    list.add(...numbered('b', 95))
    await run({ pagesMax: 19 })
    expect(await inflight()).toMatchObject({ headItemId: 'a35', pass: { pending: { id: 'b95' } } })
    expect(await run()).toMatchObject({ endReason: 'reached_since', pages: 1 })
    expect(await committed()).toMatchObject({ headItemId: 'b95' })
    await expectAll()
  })

  test('S11 S17 S18 S21 S33 SD1 T9: a pass that was broken off goes on from its place, with the anchor of before it, however often and long', async () => {
    await settle()
    list.add(...numbered('b', 55))
    for (let page = 1; page <= 5; page++) {
      // More arrives meanwhile; it is for the next pass.
      list.add(`c0${page}`)
      await run({ pagesMax: 1, afterMs: 30 * 24 * HOUR })
      expect(await inflight()).toMatchObject({ headItemId: 'a35', pass: { pending: { id: 'c01' } } })
    }
    expect(await run()).toMatchObject({ stopReason: 'complete', endReason: 'reached_since' })
    expect(list.asked.every(({ sinceItemId }) => sinceItemId === 'a35')).toBe(true)
    expect(list.takeAsked()).toEqual([
      'forward null',
      'forward 82',
      'forward 72',
      'forward 62',
      'forward 52',
      'forward 42',
      'forward 32',
    ])
    expect(await committed()).toMatchObject({ headItemId: 'c01' })
    expect(await run()).toMatchObject({ endReason: 'reached_since', pages: 1, counts: { created: 4 } })
    await expectAll()
  })

  test('S12 SD5: where items show their order, an older item never becomes the head', async () => {
    execute = frontierOf(list, { order: ({ at }) => at })
    await settle()
    list.remove('a35', 'a34')
    expect(await run()).toMatchObject({ endReason: 'reached_since' })
    expect(await committed()).toMatchObject({ headItemId: 'a35', headOrder: 35 })
    list.add('b01')
    await run()
    expect(await committed()).toMatchObject({ headItemId: 'b01', headOrder: 36 })
    await expectAll()
  })

  test('S14 S15 S16: the place of a pass is kept with every page, through a failure, and is gone when it has ended', async () => {
    await settle()
    list.add(...numbered('b', 25))
    let broken = true
    execute = frontierOf(list, {}, async (context) => {
      if (broken && context.cursor !== null) throw new SyncError('SOURCE_UNAVAILABLE', 'gone for a while')
      return list.read(context)
    })
    expect(await run()).toMatchObject({ stopReason: 'error', pages: 1 })
    expect((await inflight()).pass).toMatchObject({ headCursor: expect.stringMatching(/^51@/) })
    const startedAt = scene.clock.now()
    broken = false
    expect(await run()).toMatchObject({ stopReason: 'complete', resumed: true, pages: 2 })
    expect((await committed()).pass).toBeUndefined()
    // Items that came after its first page are searched from then on.
    expect((await committed()).checkedAt).toBe(startedAt)
    expect(list.takeAsked()).toEqual(['forward null', 'forward 51', 'forward 41'])
  })

  test('S16 S25 S28 SD2 SX8: out of pages, out of time and cancelled are interruptions: the place and the anchor stay', async () => {
    await settle()
    list.add(...numbered('b', 45))
    const before = await committed()
    const interrupted = async (
      reason: string,
      choices: Parameters<typeof runOn>[2] & { signal?: AbortSignal },
    ): Promise<void> => {
      expect(await run(choices)).toMatchObject({ stopReason: reason, endReason: null })
      const { pass, headItemId, anchors } = await inflight()
      expect({ headItemId, anchors }).toEqual({ headItemId: before.headItemId, anchors: before.anchors })
      expect(pass).toMatchObject({ headCursor: expect.any(String), pending: { id: 'b45' } })
    }
    await interrupted('max_pages', { pagesMax: 1 })
    execute = frontierOf(list, {}, async (context) => {
      scene.clock.step(2 * MINUTE)
      return list.read(context)
    })
    await interrupted('timeout', { limits: { minutesMax: 1 } })
    const cancelled = new AbortController()
    execute = frontierOf(list, {}, async (context) => {
      if (context.cycle.page > 3) cancelled.abort()
      return list.read(context)
    })
    scene.clock.step(MINUTE)
    expect(await scene.run(planOf({ execute, owner: 'shop' }), { signal: cancelled.signal })).toMatchObject({
      stopReason: 'cancelled',
    })
    expect(await inflight()).toMatchObject({ headItemId: before.headItemId, pass: { pending: { id: 'b45' } } })
    execute = frontierOf(list)
    expect(await run()).toMatchObject({ endReason: 'reached_since' })
    await expectAll()
  })

  test('S32: a page that is read again lands nothing twice', async () => {
    await settle()
    list.add('b01')
    await run()
    const before = (await scene.feed()).length
    expect(await run()).toMatchObject({ counts: { created: 0, unchanged: 10 } })
    expect(await scene.feed()).toHaveLength(before)
  })
})

describe('the end of a pass', () => {
  test('S19 S20 S22: the page with the anchor is landed whole, and is the only one that a small increment takes', async () => {
    await settle()
    list.add('b01', 'b02', 'b03')
    expect(await run()).toMatchObject({
      stopReason: 'complete',
      endReason: 'reached_since',
      pages: 1,
      counts: { created: 3, unchanged: 7 },
    })
    expect(list.takeAsked()).toEqual(['forward null'])
    expect((await scene.store.cycles(null, { limit: 1 }))[0]).toMatchObject({
      stopReason: 'complete',
      endReason: 'reached_since',
    })
  })

  test('S19: also when a page ends in the middle of the anchors', async () => {
    await settle()
    list.add(...numbered('b', 8))
    expect(await run()).toMatchObject({ endReason: 'reached_since', pages: 2 })
    await expectAll()
  })

  test('SD3: a source that leaves the anchor out says so, and nothing is forgotten', async () => {
    execute = frontierOf(list, {}, async (context) => {
      const page = list.read(context)
      const at = page.items.findIndex(({ id }) => id === context.sinceItemId)
      return at === -1 ? page : { items: page.items.slice(0, at), nextCursor: null, reachedSince: true }
    })
    await settle()
    for (const id of ['b01', null, 'b02']) {
      if (id !== null) list.add(id)
      expect(await run()).toMatchObject({ endReason: 'reached_since', pages: 1 })
      expect(await committed()).toMatchObject({ headItemId: id ?? 'b01', tailComplete: true })
    }
    await expectAll()
  })

  test('SD3: a source that leaves it out and says nothing does not end backfill by it', async () => {
    execute = frontierOf(list, { refreshMs: 0 }, async (context) => {
      const page = list.read(context)
      const at = page.items.findIndex(({ id }) => id === context.sinceItemId)
      return at === -1 ? page : { items: page.items.slice(0, at), nextCursor: null }
    })
    expect(await run()).toMatchObject({ stopReason: 'complete', counts: { created: 35 } })
    await expectAll()
  })

  test('S23 S26: three pages in a row of nothing but known items end it, when not one of the anchors is left', async () => {
    await settle()
    list.remove(...numbered('a', 35).slice(-10))
    list.limit = 4
    list.add('b01', 'b02')
    expect(await run()).toMatchObject({ stopReason: 'complete', endReason: 'caught_up', pages: 4 })
    expect(list.takeAsked()).toHaveLength(4)
    expect(await committed()).toMatchObject({ headItemId: 'b02' })
    expect((await committed()).pass).toBeUndefined()
    await expectAll()
  })

  test('S23: where items show their order, known is what is older than the head', async () => {
    execute = frontierOf(list, { order: ({ at }) => at, anchorsMax: 10 })
    await settle()
    list.remove(...numbered('a', 35).slice(-10))
    list.limit = 4
    list.add('b01', 'b02')
    expect(await run()).toMatchObject({ endReason: 'caught_up', pages: 4 })
    await expectAll()
  })

  test('S24 S26 S27 S29 S30 XC27: when nothing remembered is left, the pass goes to the end of the list, and the next one, without an anchor, leaves its own', async () => {
    execute = frontierOf(list, { anchorsMax: 10 })
    await settle()
    list.remove(...numbered('a', 35).slice(-10))
    list.add('b01')
    expect(await run()).toMatchObject({ stopReason: 'complete', endReason: 'end_of_data', pages: 4 })
    expect(await committed()).not.toHaveProperty('headItemId')
    expect(await run()).toMatchObject({ stopReason: 'complete', endReason: 'end_of_data', pages: 4 })
    expect(await committed()).toMatchObject({ headItemId: 'b01' })
    expect(await run()).toMatchObject({ endReason: 'reached_since', pages: 1 })
    await expectAll()
  })

  test('S27: of an empty list no anchor stays', async () => {
    await settle()
    list.remove(...list.ids)
    expect(await run()).toMatchObject({ endReason: 'end_of_data' })
    expect((await committed()).headItemId).toBeUndefined()
    expect((await committed()).anchors).toBe('')
    list.add('b01')
    expect(await run()).toMatchObject({ counts: { created: 1 } })
    expect(await committed()).toMatchObject({ headItemId: 'b01' })
  })

  test.each([['a35'], ['a35', 'a34', 'a32', 'a31'], ['a34', 'a33']])(
    'F8: anchors that vanish cost nothing: %s',
    async (...gone) => {
      await settle()
      list.remove(...gone)
      list.add('b01')
      expect(await run()).toMatchObject({ endReason: 'reached_since', pages: 1 })
      await expectAll()
    },
  )

  test.each([[false], [true]])(
    'T9 XC28: an anchor that moved to the top ends nothing; order shown: %s',
    async (isShown) => {
      execute = frontierOf(list, isShown ? { order: ({ at }: Entry) => at } : {})
      await settle()
      list.add(...numbered('b', 20), 'a35', 'a33', 'a34')
      expect(await run()).toMatchObject({ endReason: 'reached_since', pages: 3, counts: { created: 20 } })
      await expectAll()
    },
  )

  test('T9 XC29: a pass whose cursor expired starts again, with the anchor from before it', async () => {
    await settle()
    list.tokenMs = HOUR
    list.add(...numbered('b', 35))
    await run({ pagesMax: 2 })
    list.add('c01')
    expect(await run({ afterMs: 2 * HOUR })).toMatchObject({ stopReason: 'complete', endReason: 'reached_since' })
    expect(list.asked.every(({ sinceItemId }) => sinceItemId === 'a35')).toBe(true)
    expect(list.takeAsked()).toEqual([
      'forward null',
      'forward 61',
      'forward 51',
      'forward null',
      'forward 62',
      'forward 52',
      'forward 42',
      'forward 32',
    ])
    expect(await committed()).toMatchObject({ headItemId: 'c01' })
    await expectAll()
  })

  test('XC29: a backfill whose cursor expired starts again at the top, and its tail is complete only at the end', async () => {
    list.tokenMs = HOUR
    await run({ pagesMax: 2 })
    await run({ afterMs: 2 * HOUR, pagesMax: 1 })
    expect(await inflight()).toMatchObject({ tailComplete: false, tailCursor: expect.stringMatching(/^26@/) })
    expect(await run()).toMatchObject({ stopReason: 'complete' })
    expect(list.takeAsked()).toEqual([
      'forward null',
      'backfill 26',
      'backfill 16',
      'backfill null',
      'forward null',
      'backfill 26',
      'backfill 16',
      'backfill 6',
      'backfill 6',
    ])
    await expectAll()
  })

  test('a source that forgets every place at once is given time, and its list is not read from the top without end', async () => {
    list.tokenMs = -1
    expect(await run()).toMatchObject({ stopReason: 'error', error: { code: 'SOURCE_UNAVAILABLE' } })
    expect(list.asked.length).toBeLessThan(6)
    list.tokenMs = HOUR
    expect(await run({ afterMs: HOUR })).toMatchObject({ stopReason: 'complete' })
    await expectAll()
  })
})

describe('SD4 an end of the list that comes too early', () => {
  /** Cuts these requests, counted from 1, to so many items and says that nothing follows. */
  const cutting = (items: number, ...requests: number[]): Execute<FrontierState> => {
    let request = 0
    return frontierOf(list, {}, async (context) => {
      const page = list.read(context)
      return requests.includes(++request) ? { items: page.items.slice(0, items), nextCursor: null } : page
    })
  }

  test.each([[0], [4], [10]])('on the first page, after %i items: the list is read on', async (items) => {
    execute = cutting(items, 1)
    expect(await run()).toMatchObject({ stopReason: 'complete', endReason: 'end_of_data' })
    expect(await committed()).toMatchObject({ tailComplete: true })
    await expectAll()
  })

  test.each([[0], [4], [10]])('in backfill, after %i items: the tail is not complete', async (items) => {
    execute = cutting(items, 3)
    await run({ pagesMax: 3 })
    expect(await inflight()).toMatchObject({
      tailComplete: false,
      ending: { claims: 1 },
      tailCursor: expect.stringMatching(/^16@/),
    })
    expect(await run()).toMatchObject({ stopReason: 'complete' })
    expect(await committed()).not.toHaveProperty('ending')
    await expectAll()
  })

  test.each([
    [1, 0],
    [1, 4],
    [2, 0],
    [2, 4],
    [2, 10],
  ])('on page %i of a forward pass, after %i items: what is new below is found', async (at, items) => {
    await settle()
    list.add(...numbered('b', 25))
    execute = cutting(items, at)
    expect(await run()).toMatchObject({ stopReason: 'complete', endReason: 'reached_since', counts: { created: 25 } })
    expect(await committed()).toMatchObject({ headItemId: 'b25' })
  })

  test('invariant 12: claimed twice above everything that is known, it moves neither anchors nor tidemark, and the next cycle reads all', async () => {
    await settle()
    const { tidemark } = await scene.checkpoint()
    list.add(...numbered('b', 25))
    execute = cutting(4, 2, 3)
    expect(await run()).toMatchObject({ stopReason: 'complete', endReason: 'end_of_data', counts: { created: 14 } })
    expect((await scene.checkpoint()).tidemark).toBe(tidemark)
    execute = frontierOf(list)
    expect(await run()).toMatchObject({ stopReason: 'complete', counts: { created: 11 } })
    expect((await scene.checkpoint()).tidemark! > tidemark!).toBe(true)
    await expectAll()
    expect(await run()).toMatchObject({ endReason: 'reached_since', pages: 1 })
  })

  test('a true end and a wrong one do not confirm each other', async () => {
    list.remove(...list.ids.slice(3))
    let request = 0
    execute = frontierOf(list, {}, async (context) => {
      if (++request === 2) list.add(...numbered('b', 5))
      const page = list.read(context)
      return request === 2 ? { items: page.items.slice(0, 2), nextCursor: null } : page
    })
    expect(await run()).toMatchObject({ stopReason: 'complete', counts: { created: 8 } })
    expect(request).toBe(4)
  })

  test('invariant 9: a source that ends the list after another item each time is not asked without end', async () => {
    let request = 0
    execute = frontierOf(list, {}, async (context) => ({
      items: list.read(context).items.slice(0, ++request % 7),
      nextCursor: null,
    }))
    expect(await run()).toMatchObject({ stopReason: 'error', error: { code: 'SOURCE_UNAVAILABLE' }, pages: 5 })
    execute = frontierOf(list)
    expect(await run()).toMatchObject({ stopReason: 'complete' })
    await expectAll()
  })

  test('invariant 9: after such an error a list of one page is believed later, wherever it ends', async () => {
    list.remove(...list.ids.slice(3))
    let request = 0
    execute = frontierOf(list, {}, async (context) => ({
      items: list.read(context).items.slice(0, ++request % 3),
      nextCursor: null,
    }))
    expect(await run()).toMatchObject({ stopReason: 'error', error: { code: 'SOURCE_UNAVAILABLE' } })
    execute = frontierOf(list)
    expect(await run({ afterMs: HOUR })).toMatchObject({ stopReason: 'complete' })
    await expectAll()
  })

  test('the same in the middle of the first backfill', async () => {
    await run({ pagesMax: 2 })
    list.add(...numbered('b', 25))
    // A page of backfill, then the top, then two wrong ends.
    execute = cutting(4, 3, 4)
    expect(await run({ afterMs: HOUR })).toMatchObject({ stopReason: 'complete' })
    execute = frontierOf(list)
    await run()
    await expectAll()
  })

  test.each([[0], [4]])('a replace cycle deletes nothing by it, after %i items', async (items) => {
    await settle()
    for (const request of [1, 2, 4, 5, 6]) {
      execute = cutting(items, request)
      const result = await runOn(scene, execute, { sync: 'verify', mode: 'replace' })
      expect(result, `request ${request}`).toMatchObject({ stopReason: 'complete', counts: { swept: 0 } })
    }
    await expectAll()
  })

  test('a source that alternates between an end and an empty page with a cursor comes to an end', async () => {
    let request = 0
    execute = frontierOf(list, { refreshMs: 0 }, async (context) => {
      const page = list.read({ ...context, cursor: context.cursor?.trim() ?? null })
      return page.nextCursor === null && request++ % 2 === 1 ? { items: [], nextCursor: `${context.cursor} ` } : page
    })
    expect(await run({ pagesMax: 50 })).toMatchObject({ stopReason: 'complete', counts: { created: 35 } })
  })
})

describe('SD6 a replace sync of the same function', () => {
  const verify = (choices: Parameters<typeof runOn>[2] = {}): ReturnType<typeof runOn> =>
    runOn(scene, execute, { sync: 'verify', mode: 'replace', ...choices })

  test('SX1: finds what is gone, which a forward pass never does, and deletes nothing before it has read to the end', async () => {
    await settle()
    list.remove('a20', 'a03')
    list.add('b01')
    await run()
    expect(await scene.keys()).toContain('a20')
    await verify({ pagesMax: 2 })
    expect(await scene.keys()).toContain('a20')
    expect(await verify()).toMatchObject({ stopReason: 'complete', counts: { swept: 2 } })
    expect(await scene.keys()).toEqual(list.ids.toSorted())
    // And the forward sync goes on as if nothing had happened.
    list.add('b02')
    expect(await run()).toMatchObject({ endReason: 'reached_since', pages: 1 })
    expect(await scene.keys()).toEqual(list.ids.toSorted())
  })

  test('what moves to the top while it reads below is not taken for gone', async () => {
    await settle()
    for (const id of ['a12', 'a05']) {
      await verify({ pagesMax: 1 })
      list.add(id)
    }
    list.add(...numbered('b', 15))
    expect(await verify()).toMatchObject({ stopReason: 'complete', counts: { swept: 0 } })
    expect(await scene.keys()).toEqual(list.ids.toSorted())
  })

  test('nor is what moves again while the top is read once more', async () => {
    await settle()
    let read = 0
    execute = frontierOf(list, {}, async (context) => {
      read++
      if (read === 3 || read === 6) list.add('a12')
      if (read === 5) list.add(...numbered('b', 12))
      return list.read(context)
    })
    expect(await verify()).toMatchObject({ stopReason: 'complete', counts: { swept: 0 } })
    expect(list.takeAsked()).toEqual([
      'forward null',
      'backfill 26',
      'backfill 16',
      'backfill 5',
      'backfill 5',
      'forward null',
      expect.stringMatching(/^forward \d+$/),
      'forward null',
    ])
    expect(await scene.keys()).toEqual(list.ids.toSorted())
  })

  test('a list on one page is read once, and once more to confirm its end', async () => {
    list.remove(...list.ids.slice(3))
    expect(await verify()).toMatchObject({ stopReason: 'complete', pages: 2 })
  })

  test('a list of fewer items than anchors are needed comes to an end too', async () => {
    list.remove(...list.ids.slice(3))
    list.limit = 1
    expect(await verify()).toMatchObject({ stopReason: 'complete', counts: { created: 3 } })
  })
})

describe('what it refuses', () => {
  test.each<[string, Partial<Parameters<typeof frontierOf>[1]>]>([
    ['anchorsMax', { anchorsMax: 3 }],
    ['refreshMs', { refreshMs: -1 }],
  ])('an option that cannot be: %s', (name, options) => {
    expect(() => frontierOf(list, options)).toThrow(
      expect.objectContaining({ code: 'SYNC_INVALID', message: expect.stringContaining(name) as string }) as Error,
    )
  })

  test('a fetchPage that is none', () => {
    expect(() => frontier(undefined as never, {} as never)).toThrow(
      expect.objectContaining({ code: 'SYNC_INVALID' }) as Error,
    )
  })

  test.each<[string, (entry: Entry) => unknown]>([
    ['id', () => ''],
    ['id', () => undefined],
  ])('an item without an %s', async (_, id) => {
    execute = frontierOf(list, { id: id as (entry: Entry) => string })
    expect(await run()).toMatchObject({
      stopReason: 'error',
      error: { code: 'SOURCE_INVALID', message: expect.stringContaining('id') as string },
    })
  })

  test.each([[undefined], [Number.NaN], [null]])('an item whose order is %s', async (order) => {
    execute = frontierOf(list, { order: () => order as unknown as number })
    expect(await run()).toMatchObject({ error: { code: 'SOURCE_INVALID' } })
  })

  test('a page without items', async () => {
    execute = frontierOf(list, {}, async () => ({ nextCursor: null }) as never)
    expect(await run()).toMatchObject({ error: { code: 'SOURCE_INVALID' } })
  })

  test.each([
    ['of another strategy', { cursor: 'x' }],
    ['with a phase of its own', { phase: 'sideways', anchors: '', checkedAt: 1, tailComplete: true }],
    [
      'with a tail that is no cursor',
      { phase: 'backfill', anchors: '', checkedAt: 1, tailComplete: false, tailCursor: 7 },
    ],
    [
      'with a pass without a place',
      { phase: 'forward', anchors: '', checkedAt: 1, tailComplete: true, pass: { anchors: '' } },
    ],
    ['with half an anchor', { phase: 'forward', anchors: 'abc', checkedAt: 1, tailComplete: true }],
    ['without a time', { phase: 'forward', anchors: '', tailComplete: true }],
  ])('a state %s', async (_, state) => {
    await setState(scene, state)
    expect(await run()).toMatchObject({ stopReason: 'error', error: { code: 'CURSOR_REJECTED' } })
    expect(list.asked).toEqual([])
  })
})

test('S35 the guide describes every field of the state and every end reason of a pass', () => {
  const guide = readFileSync(join(import.meta.dirname, '../../docs/guides/frontier.md'), 'utf8')
  const source = readFileSync(join(import.meta.dirname, '../../src/strategies/frontier.ts'), 'utf8')
  const [, fields = ''] = /export interface FrontierState[^{]*\{([\s\S]*?)\n\}/.exec(source)!
  const names = [...fields.matchAll(/readonly (\w+)\??:/g)].map(([, name]) => name!)
  expect(names.length).toBeGreaterThan(6)
  expect(names.filter((name) => !guide.includes(`\`${name}\``))).toEqual([])
  for (const word of ['reached_since', 'caught_up', 'end_of_data', 'timeout', 'cancelled', 'max_pages', 'error'])
    expect(guide).toContain(word)
})
