import { afterEach, describe, expect, test } from 'vitest'
import { planOf } from '../../engine/engine-fixture.ts'
import type { OdataOptions } from '../../../simulators/src/odata/simulator.ts'
import { ODataFixture, URL_OF_SERVICE } from './odata-fixture.ts'

const opened: ODataFixture[] = []
afterEach(() => Promise.all(opened.splice(0).map((desk) => desk.close())))
const open = async (options: Partial<OdataOptions> = {}, version: 2 | 4 = 4): Promise<ODataFixture> => {
  const desk = await ODataFixture.open(version, options)
  opened.push(desk)
  desk.stage.track(desk.source.tracked('Orders', { pageSize: 3 }))
  return desk
}

describe.each<[string, Partial<OdataOptions>]>([
  ['as of 4.01', {}],
  ['as of 4.0', { removedAs: '$deletedEntity' }],
  ['with relative links', { relativeLinks: true }],
])('delta links %s', (_, options) => {
  test('by themselves: all at first, then every change, deletions and second lives included', async () => {
    const desk = await open(options)
    desk.orders(10, 1_000)
    expect(await desk.stage.delta()).toMatchObject({ stopReason: 'complete', counts: { created: 10 } })
    expect(desk.asked()[0]).toBe('/Orders')
    desk.order(3, 'changed')
    desk.service.remove('Orders', { Id: '4' })
    desk.service.remove('Orders', { Id: '5' })
    desk.order(5, 'again')
    desk.order(11, 'new')
    expect(await desk.stage.delta()).toMatchObject({ counts: { created: 1, updated: 2, deleted: 1 } })
    expect(await desk.rows()).toEqual(desk.truth())
    expect(await desk.stage.delta()).toMatchObject({
      stopReason: 'complete',
      pages: 1,
      counts: { created: 0, updated: 0, unchanged: 0 },
    })
  })

  test('what changes while the first cycle reads is in the next', async () => {
    const desk = await open(options)
    desk.orders(12, 1_000)
    await desk.stage.delta({
      onRequest: (request) => {
        if (request < 3) return
        desk.order(1, `changed ${request}`)
        desk.order(100 + request, 'new')
        desk.service.remove('Orders', { Id: String(request) })
      },
    })
    await desk.stage.delta()
    expect(await desk.rows()).toEqual(desk.truth())
  })

  test('keys of several parts are read from the id of the removed entity', async () => {
    const desk = await ODataFixture.open(4, options)
    opened.push(desk)
    desk.stage.track(desk.source.tracked('Lines'))
    const put = (order: string): void =>
      desk.service.put('Lines', { Order: order, No: 7, Name: 'x', At: desk.moment() })
    const names = ["O'Neil", 'a,b=(c)', '%20', "'x,No=8'"]
    for (const name of [...names, 'stays']) put(name)
    await desk.stage.delta()
    for (const name of names) desk.service.remove('Lines', { Order: name, No: 7 })
    expect(await desk.stage.delta()).toMatchObject({ counts: { deleted: 4 } })
    expect(await desk.rows()).toEqual(desk.truth('Lines'))
  })
})

test('what changes or is deleted behind the back of a backfill is in the delta, whose place was taken before', async () => {
  const desk = await open()
  desk.orders(12, 1_000)
  await desk.stage.backfill({
    onRequest: (request) => {
      if (request !== 6) return
      desk.service.remove('Orders', { Id: '1' })
      desk.order(2, 'changed')
    },
  })
  expect(Object.keys(await desk.rows())).toContain('1')
  await desk.stage.delta()
  expect(await desk.rows()).toEqual(desk.truth())
})

test('XC12 a next link to its own page is requested once more, and loses nothing', async () => {
  const desk = await open()
  desk.orders(9, 1_000)
  desk.service.repeatNextLinks(1)
  expect(await desk.stage.delta()).toMatchObject({ stopReason: 'complete', error: null })
  expect(await desk.rows()).toEqual(desk.truth())
})

test('a cycle that broke off goes on at its page', async () => {
  const desk = await open()
  desk.orders(10, 1_000)
  expect(await desk.stage.untilComplete('delta')).toBeGreaterThan(3)
  expect(await desk.rows()).toEqual(desk.truth())
})

describe('a delta link that has expired', () => {
  test('drops the state and requests the backfill, which finds the deletions; the delta then starts again', async () => {
    const desk = await open()
    desk.orders(6, 1_000)
    await desk.stage.delta()
    desk.service.remove('Orders', { Id: '2' })
    desk.order(3, 'changed')
    desk.service.expireDeltaLinks()
    expect(await desk.stage.delta()).toMatchObject({ stopReason: 'error', error: { code: 'HISTORY_LOST' } })
    expect(await desk.stage.state()).toBeNull()
    expect(await desk.stage.scene.checkpoint('sync-backfill')).toMatchObject({ backfillNeeded: expect.any(Object) })
    await desk.stage.backfill()
    expect(await desk.rows()).toEqual(desk.truth())
    desk.order(4, 'after that')
    await desk.stage.delta()
    desk.service.remove('Orders', { Id: '5' })
    await desk.stage.delta()
    expect(await desk.rows()).toEqual(desk.truth())
  })

  test('so does a next link that expired in the middle of a cycle', async () => {
    const desk = await open()
    desk.orders(9, 1_000)
    await desk.stage.delta({ pagesMax: 1 })
    desk.service.faults.plan({ kind: 'expired-token' })
    expect(await desk.stage.delta()).toMatchObject({ stopReason: 'error', error: { code: 'HISTORY_LOST' } })
    await desk.stage.delta()
    expect(await desk.rows()).toEqual(desk.truth())
  })
})

describe('what is no tracking is refused', () => {
  test('a service that passes the preference over', async () => {
    const desk = await open({ tracksChanges: false })
    desk.orders(2)
    expect(await desk.stage.delta()).toMatchObject({
      stopReason: 'error',
      error: { code: 'SOURCE_INVALID', message: expect.stringContaining('no delta link') },
    })
    expect(await desk.rows()).toEqual({})
  })

  test('version 2', async () => {
    const desk = await open({}, 2)
    expect(await desk.stage.delta()).toMatchObject({
      stopReason: 'error',
      error: { code: 'SYNC_INVALID', message: expect.stringContaining('version 2') },
    })
  })
})

describe('answers that only some services give', () => {
  const METADATA =
    '<edmx:Edmx Version="4.0" xmlns:edmx="x"><edmx:DataServices><Schema Namespace="N"><EntityType Name="T"><Key><PropertyRef Name="Id"/></Key><Property Name="Id" Type="Edm.Guid"/><Property Name="A" Type="Edm.String"/><Property Name="B" Type="Edm.String"/></EntityType><EntityContainer Name="C"><EntitySet Name="Ts" EntityType="N.T"/></EntityContainer></Schema></edmx:DataServices></edmx:Edmx>'
  const [one, two, three] = [
    '1111111a-0000-0000-0000-000000000001',
    '2222222b-0000-0000-0000-000000000002',
    '3333333c-0000-0000-0000-000000000003',
  ]

  async function run(
    answers: Record<string, unknown>,
    description = METADATA,
  ): Promise<{ asked: string[]; feed: unknown[]; desk: ODataFixture; error: unknown }> {
    const desk = await ODataFixture.open(4)
    opened.push(desk)
    const asked: string[] = []
    const fetch = async (input: string | URL): Promise<Response> => {
      const path = decodeURIComponent(String(input).slice(URL_OF_SERVICE.length))
      if (path === '/$metadata') return new Response(description, { headers: { 'content-type': 'application/xml' } })
      asked.push(path)
      const answer = answers[path]
      return answer === undefined ? new Response(null, { status: 404 }) : Response.json(answer)
    }
    const { delta } = desk.source.tracked('Ts')
    const result = await desk.stage.scene.run(planOf({ execute: delta, limits: { retriesMax: 0 } }), { fetch })
    const feed = await desk.stage.scene.feed()
    return {
      asked,
      desk,
      error: result.error,
      feed: feed.map(({ key, action, text }) => [key, action, text === null ? null : JSON.parse(text)]),
    }
  }
  const first = {
    value: [
      { Id: one, A: 'a', B: 'b' },
      { Id: two, A: 'a', B: 'b' },
      { Id: three, A: 'a', B: 'b' },
    ],
    '@odata.nextLink': 'Ts?n=1',
  }

  test('an entity with what changed alone is read whole; one that is gone by then is left for a later page', async () => {
    const { asked, feed } = await run({
      '/Ts': first,
      '/Ts?n=1': {
        value: [
          { Id: one, A: 'changed', '@odata.etag': 'x' },
          { Id: two, B: 'gone' },
        ],
        '@odata.deltaLink': 'Ts?d=1',
      },
      [`/Ts(${one})`]: { '@odata.context': '$metadata#Ts/$entity', Id: one, A: 'changed', B: 'and more' },
    })
    expect(asked).toEqual(['/Ts', '/Ts?n=1', `/Ts(${one})`, `/Ts(${two})`])
    expect(feed.slice(3)).toEqual([[one, 'updated', { Id: one, A: 'changed', B: 'and more' }]])
  })

  test('a removed entity is identified by its key, by an address, or by a bare id; links between entities are ignored', async () => {
    const context = 'https://erp.example/odata/$metadata#Ts'
    const { feed } = await run({
      '/Ts': first,
      '/Ts?n=1': {
        value: [
          { '@odata.context': `${context}/$deletedEntity`, id: one, reason: 'deleted' },
          { '@removed': { reason: 'changed' }, '@id': `https://erp.example/odata/Ts(${two})` },
          { '@removed': {}, Id: three },
          { '@odata.context': `${context}/$link`, source: `Ts(${one})`, relationship: 'Others', target: `Ts(${two})` },
          {
            '@odata.context': `${context}/$deletedLink`,
            source: `Ts(${one})`,
            relationship: 'Others',
            target: `Ts(${two})`,
          },
        ],
        '@odata.deltaLink': 'Ts?d=1',
      },
    })
    expect(feed.slice(3)).toEqual([
      [one, 'deleted', null],
      [two, 'deleted', null],
      [three, 'deleted', null],
    ])
  })

  test('a key that is called `id` is not taken for the id of what was removed, nor a GUID in capitals for another', async () => {
    const { feed } = await run(
      {
        '/Ts': { value: [one, two, three].map((id) => ({ id, A: 'a', B: 'b' })), '@odata.nextLink': 'Ts?n=1' },
        '/Ts?n=1': {
          value: [
            { '@odata.context': '#Ts/$deletedEntity', id: `Ts(${one})` },
            { '@odata.context': '#Ts/$deletedEntity', id: two!.toUpperCase() },
            { '@removed': {}, id: three!.toUpperCase() },
          ],
          '@odata.deltaLink': 'Ts?d=1',
        },
      },
      METADATA.replaceAll('Name="Id"', 'Name="id"'),
    )
    expect(feed.slice(3)).toEqual([
      [one, 'deleted', null],
      [two, 'deleted', null],
      [three, 'deleted', null],
    ])
  })

  test('an id that is made to be hard to read is read in no time', async () => {
    for (const id of [`Ts(${"'".repeat(99_999)}`, `Ts(${"''".repeat(50_000)}x'`, '('.repeat(100_000)]) {
      const { error } = await run({ '/Ts': { value: [{ '@removed': {}, '@id': id }], '@odata.deltaLink': 'Ts?d=1' } })
      expect(error).toMatchObject({ code: 'SOURCE_INVALID' })
    }
  })

  test('a removed entity whose key of a removed entity cannot be determined fails the page', async () => {
    const { error } = await run({ '/Ts': { value: [{ '@removed': {} }], '@odata.deltaLink': 'Ts?d=1' } })
    expect(error).toMatchObject({
      code: 'SOURCE_INVALID',
      message: expect.stringContaining('key of a removed entity cannot be determined'),
    })
  })
})
