import { afterEach, describe, expect, test } from 'vitest'
import type { ApiFault } from '../../../simulators/src/kit/api-faults.ts'
import type { OdataOptions } from '../../../simulators/src/odata/simulator.ts'
import { planOf } from '../../engine/engine-fixture.ts'
import { ODataFixture, URL_OF_SERVICE } from './odata-fixture.ts'

const opened: ODataFixture[] = []
afterEach(() => Promise.all(opened.splice(0).map((desk) => desk.close())))
const open = async (version: 2 | 4 = 4, options: Partial<OdataOptions> = {}): Promise<ODataFixture> => {
  const desk = await ODataFixture.open(version, options)
  opened.push(desk)
  return desk
}

const WAYS = ['delta', 'backfill', 'tracked'] as const
/** The set read one way, with rows of many moments and ties among them. */
async function prepared(
  version: 2 | 4,
  way: (typeof WAYS)[number],
  options: Partial<OdataOptions> = {},
): Promise<{ desk: ODataFixture; run: ODataFixture['stage']['delta'] }> {
  const desk = await open(version, options)
  for (let id = 1; id <= 17; id++)
    desk.order(id, `n${id}`, { at: desk.moment(desk.now - 60_000 + Math.floor(id / 3) * 1_000) })
  if (way === 'tracked') desk.stage.track(desk.source.tracked('Orders', { pageSize: 4 }))
  else desk.follow('Orders', { pageSize: 4 })
  return { desk, run: (choices) => (way === 'backfill' ? desk.stage.backfill(choices) : desk.stage.delta(choices)) }
}
const CASES = ([4, 2] as const).flatMap((version) =>
  WAYS.filter((way) => version === 4 || way !== 'tracked').map((way) => [version, way] as const),
)

describe.each(CASES)('version %i, %s', (version, way) => {
  test.each<[string, ApiFault, number]>([
    ['a rate limit', { kind: 'rate-limit', retryAfter: '7' }, 2],
    ['503', { kind: 'server-error', status: 503 }, 2],
    ['a body that breaks off', { kind: 'truncated', how: 'cut-off' }, 2],
    ['a body that ends early', { kind: 'truncated', how: 'short' }, 2],
    ['a login page', { kind: 'html' }, 2],
    ['a page shorter than asked for', { kind: 'short-page' }, 3],
    ['the answer before, again', { kind: 'duplicate-page' }, 1],
  ])('%s loses nothing', async (_, fault, times) => {
    // Before the backfill begins, the anchor is requested: a repeated response to that request is an empty list, which is not detected.
    for (const from of way === 'backfill' && fault.kind === 'duplicate-page' ? [2, 4] : [0, 2]) {
      const { desk, run } = await prepared(version, way)
      let seen = 0
      desk.service.faults.plan(fault, { times, on: ({ url }) => !url.includes('$metadata') && ++seen > from })
      const result = await run({ retriesMax: 5 })
      expect({ from, stopReason: result.stopReason, error: result.error }).toEqual({
        from,
        stopReason: 'complete',
        error: null,
      })
      expect(await desk.rows()).toEqual(desk.truth())
    }
  })

  test.each<[string, Partial<OdataOptions>]>([
    ['gives fewer at a time, with a link to the rest', { pageSizeMax: 3 }],
    ['gives fewer at a time, without one', { topMax: 2 }],
    ['gives one at a time, without a link', { topMax: 1 }],
    ['orders equal entities differently each time', { ties: 'shuffled' }],
    ['gives relative links', { pageSizeMax: 3, relativeLinks: true }],
    ['counts rows in its links', { pageSizeMax: 3, skipToken: 'offset' }],
  ])('a service that %s is read whole', async (_, options) => {
    // Links of version 2 are absolute. Paging by the service's own links requires a stable order.
    if ((version === 2 && options.relativeLinks === true) || (way === 'tracked' && options.ties === 'shuffled')) return
    const { desk, run } = await prepared(version, way, options)
    expect(await run()).toMatchObject({ stopReason: 'complete', error: null })
    expect(await desk.rows()).toEqual(desk.truth())
  })

  test('refused credentials stop it, and what landed stays', async () => {
    const { desk, run } = await prepared(version, way)
    let seen = 0
    desk.service.faults.plan({ kind: 'unauthorized' }, { on: ({ url }) => !url.includes('$metadata') && ++seen > 2 })
    expect(await run()).toMatchObject({ stopReason: 'error', error: { code: 'AUTH_REJECTED' } })
    expect(await run()).toMatchObject({ stopReason: 'complete' })
    expect(await desk.rows()).toEqual(desk.truth())
  })

  test('R34 a cycle that breaks off every few requests ends all the same, and nothing lands twice', async () => {
    const { desk, run } = await prepared(version, way)
    for (let runs = 0, isOver = false; !isOver; runs++) {
      const result = await run({
        onRequest: (request) => {
          if (request > 4) throw new Error('broken off')
        },
      })
      isOver = result.stopReason === 'complete'
      expect(runs).toBeLessThan(10)
      if (isOver) expect(runs).toBeGreaterThan(0)
    }
    expect(await desk.rows()).toEqual(desk.truth())
    expect(await desk.stage.scene.feed()).toHaveLength(17)
  })
})

describe('links', () => {
  test('one that leads elsewhere is not followed where it would have to be', async () => {
    const desk = await open(4, { linkOrigin: 'https://evil.example', pageSizeMax: 3 })
    desk.orders(9, 1_000)
    desk.stage.track(desk.source.tracked('Orders'))
    expect(await desk.stage.delta()).toMatchObject({
      stopReason: 'error',
      error: { code: 'SOURCE_INVALID', message: expect.stringContaining('The link was not followed') },
    })
    expect(desk.service.urls.filter((url) => !url.startsWith('/') && !url.startsWith('https://erp.example'))).toEqual(
      [],
    )
  })

  test.each([4, 2] as const)('version %i: and does not matter where the place is known without it', async (version) => {
    const desk = (await open(version, { linkOrigin: 'https://evil.example', pageSizeMax: 3 })).follow('Orders')
    desk.orders(9, 1_000)
    await desk.stage.delta()
    await desk.stage.backfill()
    expect(await desk.rows()).toEqual(desk.truth())
  })

  const METADATA =
    '<Edmx Version="4.0"><Schema Namespace="N"><EntityType Name="T"><Key><PropertyRef Name="Id"/></Key><Property Name="Id" Type="Edm.Int32"/><Property Name="At" Type="Edm.DateTimeOffset"/></EntityType><EntityContainer><EntitySet Name="Ts" EntityType="N.T"/></EntityContainer></Schema></Edmx>'

  /** Answers in the order given; a text is a next link on an empty page. */
  async function run(
    half: 'backfill' | 'delta' | 'strict',
    answers: (string | number[] | null)[],
    limits: object = {},
  ): Promise<{ asked: string[]; keys: string[]; result: unknown }> {
    const desk = await open()
    const asked: string[] = []
    const fetch = async (input: string | URL): Promise<Response> => {
      const path = decodeURIComponent(String(input).slice(URL_OF_SERVICE.length))
      if (path === '/$metadata')
        return new Response(METADATA, { headers: { 'content-type': 'text/xml;charset=utf-8' } })
      asked.push(path)
      const answer = answers[asked.length - 1] ?? null
      if (answer === null) return new Response(null, { status: 410 })
      return Response.json(
        typeof answer === 'string'
          ? { value: [], '@odata.nextLink': answer }
          : { value: answer.map((Id) => ({ Id, At: `2026-02-01T00:00:0${Id}Z` })) },
      )
    }
    const stream =
      half === 'strict'
        ? desk.source.entitySet('Ts', { cursor: 'At', strict: true, pageSize: 2 })
        : desk.source.entitySet('Ts', { cursor: 'At', pageSize: 2 })
    const execute = half === 'backfill' ? stream.backfill : stream.delta
    const { stopReason, error } = await desk.stage.scene.run(
      planOf({
        execute: execute as never,
        mode: half === 'backfill' ? 'replace' : 'incremental',
        limits: { retriesMax: 0, ...limits },
      }),
      { fetch },
    )
    return { asked, keys: await desk.stage.scene.keys(), result: { stopReason, error } }
  }

  test.each(['backfill', 'delta', 'strict'] as const)(
    'XC14 %s: an empty page with a link is gone on from, and by the question when the link has expired',
    async (half) => {
      const { asked, keys, result } = await run(half, [
        'Ts?n=1',
        'Ts?n=2',
        null,
        ...(half === 'strict' ? [[1]] : [[1, 2], [3], []]),
      ])
      expect(result).toEqual({ stopReason: 'complete', error: null })
      expect(asked.slice(1, 3)).toEqual(['/Ts?n=1', '/Ts?n=2'])
      expect(asked[3]).toBe(asked[0])
      expect(keys).toEqual(half === 'strict' ? ['1'] : ['1', '2', '3'])
    },
  )

  test.each(['backfill', 'delta'] as const)(
    'XC11 %s: a service that always links on from empty pages ends as an error',
    async (half) => {
      const { result } = await run(
        half,
        Array.from({ length: 50 }, (_, n) => `Ts?n=${n}`),
        { emptyPagesMax: 5 },
      )
      expect(result).toMatchObject({ stopReason: 'error', error: { code: 'EMPTY_PAGES' } })
    },
  )
})

test.each<[string, ApiFault]>([
  ['a rate limit', { kind: 'rate-limit' }],
  ['503', { kind: 'server-error', status: 503 }],
  ['half a description', { kind: 'truncated', how: 'short' }],
  ['a login page', { kind: 'html' }],
])('%s instead of what the service says of itself is waited out', async (_, fault) => {
  const desk = (await open()).follow('Orders')
  desk.orders(3)
  desk.service.faults.plan(fault, { times: 2, on: ({ url }) => url.includes('$metadata') })
  expect(await desk.stage.delta({ retriesMax: 3 })).toMatchObject({ stopReason: 'complete', counts: { created: 3 } })
})

test('an error beside some entities, under status 200, is none of the answer', async () => {
  const desk = (await open()).follow('Orders')
  desk.orders(3)
  const handle = desk.service.handle.bind(desk.service)
  desk.service.handle = async (request) => {
    const response = await handle(request)
    return request.url.includes('$metadata')
      ? response
      : Response.json({ ...((await response.json()) as object), '@odata.error': { code: 'x' } })
  }
  expect(await desk.stage.delta()).toMatchObject({ stopReason: 'error', error: { code: 'SOURCE_INVALID' } })
  expect(await desk.rows()).toEqual({})
})

test('XC4 rows that are deleted before the place do not hide others from a listing', async () => {
  for (const version of [4, 2] as const) {
    const desk = await open(version, { pageSizeMax: 3, skipToken: 'offset' })
    desk.orders(20, 1_000)
    desk.stage.list(desk.source.listing('Orders', { pageSize: 4 }))
    await desk.stage.backfill({
      onRequest: (request) => {
        if (request > 2 && request < 8) desk.service.remove('Orders', { Id: String(request - 2) })
      },
    })
    expect(Object.keys(await desk.rows())).toEqual(expect.arrayContaining(Object.keys(desk.truth())))
    await desk.stage.backfill()
    expect(await desk.rows()).toEqual(desk.truth())
  }
})
