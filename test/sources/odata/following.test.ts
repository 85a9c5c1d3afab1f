import { afterEach, describe, expect, test } from 'vitest'
import type { OdataOptions } from '../../../simulators/src/odata/simulator.ts'
import { ODataFixture } from './odata-fixture.ts'

const opened: ODataFixture[] = []
afterEach(() => Promise.all(opened.splice(0).map((desk) => desk.close())))
const open = async (version: 2 | 4 = 4, options: Partial<OdataOptions> = {}): Promise<ODataFixture> => {
  const desk = await ODataFixture.open(version, options)
  opened.push(desk)
  return desk
}

describe.each([4, 2] as const)('version %i', (version) => {
  test('R13 R16 R46 R50 a whole cycle: all at first, then what changed, and nothing older', async () => {
    const desk = (await open(version)).follow('Orders', { pageSize: 4 })
    desk.orders(10, 1_000)
    expect(await desk.stage.delta()).toMatchObject({ stopReason: 'complete', counts: { created: 10 } })
    expect(await desk.rows()).toEqual(desk.truth())
    desk.order(3, 'changed')
    desk.order(11, 'new')
    // Changed without the cursor: a reader of older data would see it.
    desk.order(4, 'unseen', { at: desk.moment(desk.now - 400_000) })
    expect(await desk.stage.delta()).toMatchObject({ counts: { created: 1, updated: 1 } })
    expect(await desk.rows()).toMatchObject({ 3: { Name: 'changed' }, 4: { Name: 'n4' }, 11: { Name: 'new' } })
    desk.asked()
    expect(await desk.stage.delta()).toMatchObject({ counts: { created: 0, updated: 0, unchanged: 0 } })
    expect(desk.asked()).toHaveLength(1)
  })

  test('F4 XC7 R29 R47 rows that share a moment are not lost at a border of pages, also when they fill several', async () => {
    for (const pageSize of [1, 2, 3, 4, 9, 10]) {
      const desk = (await open(version)).follow('Orders', { pageSize })
      desk.orders(4)
      for (let id = 5; id <= 9; id++) desk.order(id, 'later', { at: desk.moment(desk.now - 50_000) })
      expect(await desk.stage.delta()).toMatchObject({ stopReason: 'complete', counts: { created: 9 } })
      expect(await desk.rows()).toEqual(desk.truth())
    }
  })

  test('a wrong empty answer inside a tie skips none of it', async () => {
    for (let at = 1; at <= 8; at++) {
      const desk = (await open(version)).follow('Orders', { pageSize: 2 })
      desk.orders(7)
      let requests = 0
      await desk.stage.delta({
        spoil: (body, url) => {
          if (!url.pathname.endsWith('/Orders') || ++requests !== at) return body
          return 'd' in body ? { d: { results: [] } } : { value: [] }
        },
      })
      await desk.stage.delta()
      expect(await desk.rows(), `request ${at}`).toEqual(desk.truth())
    }
  })

  test('moments that differ by less than an answer shows are all read', async () => {
    for (const pageSize of [1, 2, 3, 5]) {
      const desk = (await open(version)).follow('Orders', { pageSize })
      // The smallest keys last: paging by "the same millisecond and a greater key" loses them.
      for (let n = 0; n < 9; n++)
        desk.order(9 - n, `n${n}`, { at: desk.moment(desk.now - 60_000 + Math.floor(n / 4), 1 + n) })
      expect(await desk.stage.delta()).toMatchObject({ stopReason: 'complete', error: null })
      expect(await desk.rows()).toEqual(desk.truth())
    }
  })

  test('R37 what is younger than the lag waits for the next cycle, with whatever becomes visible below it', async () => {
    const desk = (await open(version)).follow('Orders', { lagMs: 30_000 })
    await desk.stage.delta()
    desk.order(1, 'late', { afterMs: 20_000 })
    desk.stage.pass(5_000)
    desk.order(2, 'at once')
    await desk.stage.delta({ afterMs: 1_000 })
    expect(await desk.rows()).toEqual({})
    await desk.stage.delta({ afterMs: 60_000 })
    expect(await desk.rows()).toEqual(desk.truth())
  })

  test('R37 a page asked later in a cycle reads no further than its first', async () => {
    const desk = (await open(version)).follow('Orders', { pageSize: 2, lagMs: 0 })
    desk.orders(5, 1_000)
    await desk.stage.delta({
      onRequest: (request) => {
        desk.stage.pass(10_000)
        desk.order(100 + request, 'while it is read')
      },
    })
    expect(Object.keys(await desk.rows())).toEqual(['1', '2', '3', '4', '5'])
    await desk.stage.delta()
    expect(await desk.rows()).toEqual(desk.truth())
  })

  test('R38 R49 a safety window is read again in every cycle, and does not move the position back', async () => {
    const desk = (await open(version)).follow('Orders', { safetyWindow: 'PT5M' })
    desk.order(1, 'a', { at: desk.moment(desk.now) })
    await desk.stage.delta({ afterMs: 600_000 })
    const { cursorTimestamp } = await desk.stage.state()
    desk.order(2, 'behind', { at: desk.moment(desk.now - 840_000) })
    desk.order(3, 'too far behind', { at: desk.moment(desk.now - 1_200_000) })
    await desk.stage.delta()
    expect(Object.keys(await desk.rows())).toEqual(['1', '2'])
    expect(await desk.stage.state()).toMatchObject({ cursorTimestamp })
  })

  test('the backfill and then the delta: what changes while the backfill reads is in one of them', async () => {
    const desk = (await open(version)).follow('Orders', { pageSize: 3 })
    desk.orders(20, 1_000)
    await desk.stage.backfill({
      onRequest: (request) => {
        desk.stage.pass(1_000)
        desk.order(request, 'changed meanwhile')
        desk.order(200 - request, 'added meanwhile')
      },
    })
    await desk.stage.delta()
    expect(await desk.rows()).toEqual(desk.truth())
  })

  test('keys of several parts', async () => {
    const desk = (await open(version)).follow('Lines', { pageSize: 2 })
    for (const order of ["O'Neil", 'a+b&c', '%20', 'ü#?/'])
      for (const no of [9, 10])
        desk.service.put('Lines', {
          Order: order,
          No: no,
          Name: 'x',
          At: `${desk.moment(desk.now - 60_000).replace('Z', '')}Z`,
        })
    expect(await desk.stage.delta()).toMatchObject({ stopReason: 'complete', counts: { created: 8 } })
    expect(await desk.rows()).toEqual(desk.truth('Lines'))
    // And by key alone.
    expect(await desk.stage.backfill()).toMatchObject({
      stopReason: 'complete',
      counts: { created: 0, unchanged: 8, swept: 0 },
    })
  })

  test('keys that are GUIDs', async () => {
    const desk = (await open(version)).follow('Items', { pageSize: 2 })
    for (let n = 0; n < 7; n++)
      desk.service.put('Items', {
        Id: `${String((n * 5) % 7)}a0a0a0a-0000-4000-8000-00000000000${n}`,
        Name: 'x',
        At: `${desk.moment(desk.now - 60_000).replace('Z', '')}Z`,
      })
    expect(await desk.stage.delta()).toMatchObject({ stopReason: 'complete', counts: { created: 7 } })
    expect(await desk.stage.backfill()).toMatchObject({ stopReason: 'complete', counts: { unchanged: 7 } })
  })

  test('a property that says that the row is gone makes it a deletion', async () => {
    const desk = (await open(version)).follow('Orders', { deleted: 'Gone' })
    desk.orders(3)
    await desk.stage.delta()
    desk.order(2, 'n2', { gone: true })
    expect(await desk.stage.delta()).toMatchObject({ counts: { deleted: 1 } })
    expect(Object.keys(await desk.rows())).toEqual(['1', '3'])
  })

  test('`select` and `filter` hold in every question; what is needed to read is selected besides', async () => {
    const desk = (await open(version)).follow('Orders', {
      select: ['Name'],
      filter: "Name ne 'n2' or Gone eq true",
      pageSize: 2,
    })
    desk.orders(5, 1_000)
    await desk.stage.delta()
    await desk.stage.backfill()
    expect(await desk.rows()).toEqual(
      Object.fromEntries(
        Object.entries(desk.truth())
          .filter(([id]) => id !== '2')
          .map(([id, row]) => {
            const { Id, Name, At } = row as Record<string, unknown>
            return [id, { Id, Name, At }]
          }),
      ),
    )
    for (const url of desk.asked())
      expect(url).toMatch(
        /\$filter=(?:\(Name ne 'n2' or Gone eq true\) and |Name ne 'n2' or Gone eq true&).*&\$select=Id,At,Name$/,
      )
  })

  test('R28 values are exact: 64-bit integers, decimals, moments', async () => {
    const desk = (await open(version)).follow('Orders')
    desk.service.put('Orders', {
      Id: '9007199254740993',
      Name: null,
      Price: '12345678901234567890.10',
      Gone: null,
      At: desk.moment(desk.now - 60_000, 4_567),
    })
    await desk.stage.delta()
    const { At, ...row } = desk.truth()['9007199254740993'] as Record<string, unknown>
    expect(await desk.rows()).toEqual({ '9007199254740993': { ...row, At } })
    expect(At).toMatch(version === 4 ? /\.\d{3}4567Z$/ : /T[\d:]{8}(?:\.\d{3})?Z$/)
    const [entry] = await desk.stage.scene.feed()
    expect(entry).toMatchObject({ key: '9007199254740993', cursor: At })
  })
})

test('version 2: a page all of which moves on while its moment is read is asked for again, and not gone on from', async () => {
  const desk = (await open(2, { pageSizeMax: 1, skipToken: 'offset' })).follow('Orders', { pageSize: 2 })
  desk.orders(3, 1_000)
  await desk.stage.delta({ retriesMax: 2, onRequest: (request) => request === 3 && desk.order(1, 'moved on') })
  expect(Object.keys(await desk.rows())).toEqual(['2', '3'])
  await desk.stage.delta()
  expect(await desk.rows()).toEqual(desk.truth())
})

test('a cursor that is a day is read up to the last day that is over', async () => {
  const desk = (await open()).follow('Days', { pageSize: 2, lagMs: 0 })
  const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10)
  const today = desk.now
  for (let id = 1; id <= 5; id++) desk.service.put('Days', { Id: id, Name: 'x', On: day(today - 86_400_000) })
  desk.service.put('Days', { Id: 6, Name: 'x', On: day(today) })
  await desk.stage.delta({ afterMs: 3_600_000 })
  expect(Object.keys(await desk.rows())).toEqual(['1', '2', '3', '4', '5'])
  desk.service.put('Days', { Id: 7, Name: 'later that day', On: day(today) })
  await desk.stage.delta({ afterMs: 86_400_000 })
  expect(await desk.rows()).toEqual(desk.truth('Days'))
  expect(desk.asked().at(-1)).toMatch(
    /^\/Days\?\$filter=\(On gt [\d-]{10} or \(On eq [\d-]{10} and Id gt \d\)\) and On lt [\d-]{10}&\$orderby=On asc,Id asc&\$top=2$/,
  )
})

test('a cursor that is a day: the anchor of a backfill lies within one, and all of that day is read when it is over', async () => {
  const desk = (await open()).follow('Days')
  const put = (id: number): void =>
    desk.service.put('Days', { Id: id, Name: 'x', On: new Date(desk.now).toISOString().slice(0, 10) })
  put(1)
  await desk.stage.backfill({ afterMs: 36_000_000 })
  put(2)
  expect(await desk.stage.delta({ afterMs: 3_600_000 })).toMatchObject({
    stopReason: 'complete',
    counts: { created: 0 },
  })
  expect(await desk.stage.delta({ afterMs: 86_400_000 })).toMatchObject({
    stopReason: 'complete',
    error: null,
    counts: { created: 1 },
  })
  expect(await desk.rows()).toEqual(desk.truth('Days'))
})

describe('what cannot be followed is refused', () => {
  test.each([
    ['no such set', 'Nope', { cursor: 'At' }, 'SOURCE_NOT_FOUND'],
    ['no such property', 'Orders', { cursor: 'Changed' }, 'SOURCE_NOT_FOUND'],
    ['no such property selected', 'Orders', { cursor: 'At', select: ['Nope'] }, 'SOURCE_NOT_FOUND'],
    ['R2 a cursor that is no moment', 'Orders', { cursor: 'Price' }, 'SYNC_INVALID'],
    ['a key that cannot be compared', 'Orders', { cursor: 'At', key: ['Gone'] }, 'SYNC_INVALID'],
  ])('%s', async (_, set, options, code) => {
    const desk = await open()
    desk.stage.track(desk.source.entitySet(set, options))
    expect(await desk.stage.delta()).toMatchObject({ stopReason: 'error', error: { code } })
  })

  test('R38 a safety window that is no duration', async () => {
    const { source } = await open()
    expect(() => source.entitySet('Orders', { cursor: 'At', safetyWindow: '5m' })).toThrow(/PT5M/)
  })

  test('a position that was set by hand and is none of the set', async () => {
    const desk = (await open()).follow('Lines')
    const { delta } = desk.source.entitySet('Orders', { cursor: 'At' })
    desk.stage.list({
      mode: 'incremental',
      execute: (_, context) => delta({ cursorTimestamp: '2026-01-01T00:00:00Z', cursorId: "1' or true" }, context),
    })
    expect(await desk.stage.backfill()).toMatchObject({ stopReason: 'error', error: { code: 'CURSOR_REJECTED' } })
    expect(desk.asked()).toEqual([])
  })
})
