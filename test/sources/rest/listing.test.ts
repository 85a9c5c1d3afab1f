import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { rest, type ListedStream, type ListPaging, type RestStream } from '../../../src/sources/rest/source.ts'
import { counts, planOf, EngineFixture } from '../../engine/engine-fixture.ts'
import type { CycleResult } from '../../../src/engine/cycle-options.ts'
import { Api, BASE, type Handler } from './api.ts'

let scene: EngineFixture
beforeEach(async () => {
  scene = await EngineFixture.open()
})
afterEach(() => scene.close())

const row = (id: number): { id: number; name: string } => ({ id, name: `row ${id}` })
const rows = (from: number, to: number): Array<{ id: number }> =>
  Array.from({ length: to - from + 1 }, (_, index) => row(from + index))
const keys = (from: number, to: number): string[] =>
  rows(from, to)
    .map(({ id }) => String(id))
    .toSorted()

/** Runs one replace cycle of a stream `/items`. */
async function run(api: Api, page: ListPaging, stream: Partial<RestStream> = {}): Promise<CycleResult> {
  const { items } = rest({ baseUrl: BASE, streams: [{ path: '/items', key: 'id', page, ...stream, name: 'items' }] })
  const { mode, execute } = items as ListedStream
  return scene.run(planOf({ mode, execute, limits: { retriesMax: 0 } }), { fetch: api.fetch })
}

const api = (handler: Handler): Api => new Api(scene.clock, { '/items': handler })

describe('N85: a list without pages', () => {
  test('is one batch, and records missing from it are swept', async () => {
    let list = rows(1, 3)
    const source = api(() => list)
    expect(await run(source, { kind: 'none' })).toMatchObject({ stopReason: 'complete', pages: 1 })
    list = rows(2, 4)
    expect((await run(source, { kind: 'none' })).counts).toEqual(counts({ created: 1, swept: 1, unchanged: 2 }))
    expect(await scene.keys()).toEqual(['2', '3', '4'])
  })

  test.each([
    ['an error with status 200', { error: 'canary' }],
    ['another shape', { data: { items: { id: 1 } } }],
    ['null', null],
    ['nothing', ''],
    ['a text', '"x"'],
  ])('XD6: %s is no empty list, and sweeps nothing', async (_, answer) => {
    let body: unknown = { data: { items: rows(1, 3) } }
    const source = api(() =>
      body === null || body === ''
        ? new Response(String(body), { headers: { 'content-type': 'application/json' } })
        : body,
    )
    await run(source, { kind: 'none' }, { records: 'data.items' })
    body = answer
    const result = await run(source, { kind: 'none' }, { records: 'data.items' })
    expect(result.error).toMatchObject({ code: 'SOURCE_INVALID' })
    expect(result.error!.message).not.toContain('canary')
    expect(await scene.keys()).toEqual(['1', '2', '3'])
  })

  test('XD5: that does not exist ends its cycle at once', async () => {
    const source = new Api(scene.clock, {})
    expect((await run(source, { kind: 'none' })).error).toMatchObject({
      code: 'CONNECTOR_FAILED',
      message: expect.stringMatching(/^GET \/items answered 404/),
    })
    expect(source.asked).toHaveLength(1)
  })
})

describe('N85: an opaque token', () => {
  const pages: Record<string, { data: unknown[]; paging?: { next: string | null } }> = {
    '': { data: rows(1, 2), paging: { next: 'b/b+ =' } },
    'b/b+ =': { data: rows(3, 3), paging: { next: '' } },
  }

  test('leads from page to page until the last', async () => {
    const source = api((url) => pages[url.searchParams.get('after') ?? ''])
    expect(
      await run(
        source,
        { kind: 'token', parameter: 'after', next: 'paging.next', size: { parameter: 'limit', value: 2 } },
        { records: 'data', query: { sort: 'id' } },
      ),
    ).toMatchObject({ stopReason: 'complete', pages: 2 })
    expect(source.taken()).toEqual([
      { sort: 'id', limit: '2' },
      { sort: 'id', limit: '2', after: 'b/b+ =' },
    ])
    expect(await scene.keys()).toEqual(keys(1, 3))
  })

  test.each([400, 410])('that the source rejects with %i is CURSOR_REJECTED', async (status) => {
    const source = api((url) =>
      url.searchParams.has('after') ? Response.json({}, { status }) : { data: rows(1, 2), next: 7 },
    )
    expect(
      (await run(source, { kind: 'token', parameter: 'after', next: 'next' }, { records: 'data' })).error,
    ).toMatchObject({ code: 'CURSOR_REJECTED' })
  })

  test('may be in the last record, with a flag for more pages', async () => {
    const source = api((url) => {
      const after = Number(url.searchParams.get('starting_after') ?? 0)
      return { data: rows(after + 1, Math.min(3, after + 2)), has_more: after < 2 }
    })
    await run(
      source,
      { kind: 'token', parameter: 'starting_after', next: { last: 'id' }, more: 'has_more' },
      { records: 'data' },
    )
    expect(await scene.keys()).toEqual(keys(1, 3))
    expect(source.taken()).toEqual([{}, { starting_after: '2' }])
  })

  test.each([
    ['more without a position', { data: [], has_more: true }],
    ['no word at all', { data: [] }],
    ['a token that is no text', { data: [{ id: { a: 1 } }], has_more: true }],
  ])('NX7: %s fails instead of ending', async (_, answer) => {
    const source = api(() => answer)
    expect(
      (
        await run(
          source,
          { kind: 'token', parameter: 'after', next: { last: 'id' }, more: 'has_more' },
          { records: 'data' },
        )
      ).error,
    ).toMatchObject({ code: 'SOURCE_INVALID' })
  })
})

describe('a link to the next page', () => {
  test('in a header is followed unchanged', async () => {
    const source = api((url) =>
      url.searchParams.has('page')
        ? rows(3, 3)
        : Response.json(rows(1, 2), {
            headers: {
              link: `<${BASE}/items?page=1&f=a,b>; rel="prev first", </items?page=2&f=a%2Cb>; rel="last next"`,
            },
          }),
    )
    await run(source, { kind: 'link', size: { parameter: 'n', value: 2 } })
    expect(source.taken()).toEqual([{ n: '2' }, { page: '2', f: 'a,b' }])
    expect(await scene.keys()).toEqual(keys(1, 3))
  })

  test('in the body is followed unchanged', async () => {
    const source = api((url) =>
      url.searchParams.has('skip')
        ? { value: rows(3, 3) }
        : { value: rows(1, 2), '@odata.nextLink': `${BASE}/items?$skip=2&skip=2` },
    )
    await run(source, { kind: 'link', next: ['@odata.nextLink'] }, { records: 'value' })
    expect(await scene.keys()).toEqual(keys(1, 3))
  })

  test.each([
    'http://169.254.169.254/latest/meta-data',
    'https://evil.example/items',
    '//evil.example/items',
    'https://api.example.com.evil.example/items',
    'file:///etc/passwd',
  ])('NX8, Z36: to %s is not requested', async (next) => {
    const source = api(() => ({ value: rows(1, 2), next }))
    const result = await run(source, { kind: 'link', next: 'next' }, { records: 'value' })
    expect(result.error).toMatchObject({ code: 'SOURCE_INVALID' })
    expect(source.asked).toHaveLength(1)
    expect(await scene.keys()).toEqual([])
  })

  test('NX7: to itself ends the cycle as a loop', async () => {
    const source = api(() => ({ value: rows(1, 2), next: '/items?page=1' }))
    expect((await run(source, { kind: 'link', next: 'next' }, { records: 'value' })).error!.code).toMatch(/^CURSOR_/)
  })
})

describe('N85: page numbers and offsets', () => {
  const all = rows(1, 5)
  const slice = (from: number, size = 2): unknown[] => all.slice(from, from + size)

  test.each<[string, ListPaging, (from: number) => object]>([
    ['a total', { kind: 'pageNumber', parameter: 'page', total: 'total' }, (from) => ({ data: slice(from), total: 5 })],
    [
      'a number of pages',
      { kind: 'pageNumber', parameter: 'page', pages: 'pages' },
      (from) => ({ data: slice(from), pages: 3 }),
    ],
    [
      'a word',
      { kind: 'pageNumber', parameter: 'page', more: 'more' },
      (from) => ({ data: slice(from), more: from < 4 }),
    ],
    ['an empty page', { kind: 'pageNumber', parameter: 'page' }, (from) => ({ data: slice(from) })],
  ])('pages end by %s', async (_, page, answer) => {
    const source = api((url) => answer((Number(url.searchParams.get('page')) - 1) * 2))
    expect((await run(source, page, { records: 'data' })).stopReason).toBe('complete')
    expect(await scene.keys()).toEqual(keys(1, 5))
  })

  test('pages may count from 0', async () => {
    const source = api((url) => ({ data: slice(Number(url.searchParams.get('page')) * 2), pages: 3, total: 5 }))
    await run(
      source,
      { kind: 'pageNumber', parameter: 'page', first: 0, pages: 'pages', total: 'total' },
      { records: 'data' },
    )
    expect(source.taken()).toEqual([{ page: '0' }, { page: '1' }, { page: '2' }])
  })

  test.each<[string, ListPaging]>([
    ['a total', { kind: 'offset', parameter: 'offset', size: { parameter: 'limit', value: 2 }, total: 'total' }],
    ['a word', { kind: 'offset', parameter: 'offset', size: { parameter: 'limit', value: 2 }, more: 'more' }],
    ['an empty page', { kind: 'offset', parameter: 'offset', size: { parameter: 'limit', value: 2 } }],
  ])('offsets end by %s', async (_, page) => {
    const source = api((url) => {
      const from = Number(url.searchParams.get('offset'))
      return { data: slice(from), total: 5, more: from < 4 }
    })
    expect((await run(source, page, { records: 'data' })).stopReason).toBe('complete')
    expect(await scene.keys()).toEqual(keys(1, 5))
    expect(source.asked[1]!.query).toEqual({ offset: '2', limit: '2' })
  })

  test('a total that is not a number is rejected', async () => {
    const source = api(() => ({ data: slice(0), total: 'many' }))
    expect(
      (
        await run(
          source,
          { kind: 'offset', parameter: 'offset', size: { parameter: 'limit', value: 2 }, total: 'total' },
          { records: 'data' },
        )
      ).error,
    ).toMatchObject({ code: 'SOURCE_INVALID' })
  })
})

describe('N85: a query by time', () => {
  const at = (second: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString()
  const tied = [1, 2, 3, 4, 5, 6, 7].map((id) => ({ id: `k${id}`, at: at(id === 1 ? 0 : id === 7 ? 9 : 5) }))

  test('N85: with ties, by time and id', async () => {
    const source = api(({ searchParams: query }) => {
      const after = query.get('after')
      return tied
        .filter((row) => after === null || row.at > after || (row.at === after && row.id > query.get('after_id')!))
        .slice(0, 2)
    })
    await run(
      source,
      { kind: 'keyset', after: 'after', afterId: 'after_id', size: { parameter: 'limit', value: 2 } },
      { updatedAt: 'at' },
    )
    expect(await scene.keys()).toEqual(tied.map(({ id }) => id))
  })

  test.each<['from' | 'above']>([['from'], ['above']])('N85: by time alone, the filter meaning %s', async (bound) => {
    const source = api(({ searchParams: query }) => {
      const since = query.get('since')
      return list.filter((row) => since === null || (bound === 'from' ? row.at >= since : row.at > since)).slice(0, 6)
    })
    // The first page ends between records with the same timestamp.
    const list = [{ id: 'k0', at: at(0) }, ...tied]
    await run(
      source,
      { kind: 'timestamp', since: 'since', bound, size: { parameter: 'limit', value: 6 } },
      { updatedAt: 'at' },
    )
    expect(await scene.keys()).toEqual(list.map(({ id }) => id))
  })

  test('N85: by time alone, a full page with one timestamp fails and leaves no gap', async () => {
    const source = api(({ searchParams: query }) =>
      tied.filter((row) => row.at >= (query.get('since') ?? '')).slice(0, 3),
    )
    const result = await run(
      source,
      { kind: 'timestamp', since: 'since', size: { parameter: 'limit', value: 3 } },
      { updatedAt: 'at' },
    )
    expect(result.error).toMatchObject({
      code: 'SOURCE_INVALID',
      message: expect.stringContaining('share one timestamp'),
    })
    expect((await scene.checkpoint()).committed).toBe(null)
  })

  test.each<['ms' | 's', number]>([
    ['ms', 1],
    ['s', 1_000],
  ])('in %s, the format of the source', async (time, unit) => {
    const list = [
      { id: 1, at: Date.parse(at(1)) / unit },
      { id: 2, at: Date.parse(at(2)) / unit },
    ]
    const source = api(({ searchParams: query }) => list.filter((row) => row.at >= Number(query.get('since') ?? 0)))
    await run(
      source,
      { kind: 'timestamp', since: 'since', size: { parameter: 'limit', value: 10 } },
      { updatedAt: 'at', time },
    )
    const [first, last] = [{ limit: '10' }, { limit: '10', since: String(Date.parse(at(2)) / unit) }]
    // Nothing proves that the first page is the first, nor that the last is the last.
    expect(source.taken()).toEqual([first, first, last, last])
    expect((await scene.feed()).map(({ upstreamAt }) => upstreamAt)).toEqual([
      '2026-01-01T00:00:01.000000Z',
      '2026-01-01T00:00:02.000000Z',
    ])
  })

  test.each([
    ['without records', () => []],
    ['of another page', (page: number) => list.slice(page === 1 ? 9 : 0, page === 1 ? 12 : 3)],
  ])('an answer %s deletes nothing', async (_, spoil) => {
    for (const nth of [1, 2, 3, 4, 5]) {
      let requests = 0
      const source = api(({ searchParams: query }) => {
        const page = list.filter((row) => row.at >= (query.get('since') ?? '')).slice(0, 4)
        return ++requests === nth ? spoil(nth) : page
      })
      const paging = { kind: 'timestamp', since: 'since', size: { parameter: 'limit', value: 4 } } as const
      requests = -1_000
      await run(source, paging, { updatedAt: 'at' })
      requests = 0
      await run(source, paging, { updatedAt: 'at' })
      expect(await scene.keys(), `request ${nth}`).toEqual(list.map(({ id }) => id).toSorted())
    }
  })
  const list = Array.from({ length: 12 }, (_, n) => ({ id: `k${n}`, at: at(n) }))

  test('out of order fails', async () => {
    const source = api(() => tied.toReversed())
    expect(
      (
        await run(
          source,
          { kind: 'timestamp', since: 'since', size: { parameter: 'limit', value: 10 } },
          { updatedAt: 'at' },
        )
      ).error,
    ).toMatchObject({ code: 'SOURCE_INVALID' })
  })
})

describe('a failing source', () => {
  const pages = (url: URL): unknown => {
    const after = Number(url.searchParams.get('after') ?? 0)
    return { data: rows(after + 1, Math.min(7, after + 2)), next: after < 6 ? after + 2 : null }
  }
  const { items } = rest({
    baseUrl: BASE,
    streams: [
      {
        name: 'items',
        path: '/items',
        key: 'id',
        records: 'data',
        page: { kind: 'token', parameter: 'after', next: 'next' },
      },
    ],
  })

  test('XD3: a burst of 503 costs time only', async () => {
    let burst = 3
    const source = api((url) =>
      url.searchParams.get('after') === '4' && burst-- > 0
        ? Response.json({}, { status: 503, headers: { 'retry-after': '20' } })
        : pages(url),
    )
    const before = scene.clock.now()
    expect(await scene.run(planOf({ mode: 'replace', execute: items.execute }), { fetch: source.fetch })).toMatchObject(
      { stopReason: 'complete', pages: 4, retries: 3 },
    )
    expect(scene.clock.now() - before).toBeGreaterThanOrEqual(60 * 1_000)
    expect(await scene.keys()).toEqual(keys(1, 7))
  })

  test('XD3: a lasting failure keeps the state at the last page, and the next cycle continues there', async () => {
    let isDown = true
    const source = api((url) =>
      isDown && url.searchParams.get('after') === '4' ? Response.json({}, { status: 500 }) : pages(url),
    )
    const plan = planOf({ mode: 'replace', execute: items.execute, limits: { retriesMax: 2 } })
    expect((await scene.run(plan, { fetch: source.fetch })).error).toMatchObject({ code: 'SOURCE_UNAVAILABLE' })
    expect(await scene.keys()).toEqual(keys(1, 4))
    isDown = false
    source.taken()
    expect((await scene.run(plan, { fetch: source.fetch })).stopReason).toBe('complete')
    expect(source.taken()).toEqual([{ after: '4' }, { after: '6' }])
    expect(await scene.keys()).toEqual(keys(1, 7))
  })

  test('XD1: a 429 is waited out', async () => {
    let isLimited = true
    const source = api((url) => {
      if (!isLimited) return pages(url)
      isLimited = false
      return Response.json({}, { status: 429, headers: { 'retry-after': '45' } })
    })
    const before = scene.clock.now()
    expect(
      (await scene.run(planOf({ mode: 'replace', execute: items.execute }), { fetch: source.fetch })).stopReason,
    ).toBe('complete')
    expect(scene.clock.now() - before).toBeGreaterThanOrEqual(45_000)
  })

  test('XD4: credentials rejected in the middle stop the cycle without a retry', async () => {
    const source = api((url) =>
      url.searchParams.get('after') === '4' ? Response.json({}, { status: 401 }) : pages(url),
    )
    expect(
      (await scene.run(planOf({ mode: 'replace', execute: items.execute }), { fetch: source.fetch })).error,
    ).toMatchObject({ code: 'AUTH_REJECTED' })
    expect(source.asked).toHaveLength(3)
    expect(await scene.keys()).toEqual(keys(1, 4))
  })

  test('XD9: a source that never responds and ignores the abort ends at the deadline', async () => {
    const result = await scene.run(
      planOf({ mode: 'replace', execute: items.execute, limits: { retriesMax: 0, deadlineMs: 30_000 } }),
      { fetch: () => new Promise(() => {}) },
    )
    expect(result.error).toMatchObject({ code: 'SOURCE_TIMEOUT' })
  })

  test('XD9: a body that never ends is cut off at the body deadline', async () => {
    const endless = new Response(new ReadableStream({ pull: () => new Promise(() => {}) }), {
      headers: { 'content-type': 'application/json' },
    })
    const result = await scene.run(planOf({ mode: 'replace', execute: items.execute, limits: { retriesMax: 0 } }), {
      fetch: async () => endless,
    })
    expect(result.error).toMatchObject({
      code: 'SOURCE_TIMEOUT',
      message: 'GET /items answered 200 took longer than 60000 ms to arrive.',
    })
  })
})

describe('a key', () => {
  test('of several parts never collides with another', async () => {
    const source = api(() => [
      { a: 'x', b: 'y,z' },
      { a: 'x,y', b: 'z' },
      { a: 1, b: 2 },
    ])
    await run(source, { kind: 'none' }, { key: ['a', 'b'] })
    expect(await scene.keys()).toEqual(['["1","2"]', '["x","y,z"]', '["x,y","z"]'])
  })

  test('XD16: that is invalid is quarantined, never converted to text', async () => {
    const source = api(() => [
      { id: null },
      {},
      { id: { a: 1 } },
      { id: [] },
      { id: true },
      { id: '' },
      { id: 1 },
      'text',
      null,
    ])
    expect((await run(source, { kind: 'none' })).counts).toMatchObject({ created: 1, quarantined: 8 })
    expect(await scene.keys()).toEqual(['1'])
  })

  test('XD17: beyond the range of a double stays exact', async () => {
    const source = api(
      () =>
        new Response('[{"id":9007199254740993},{"id":9007199254740992}]', {
          headers: { 'content-type': 'application/json' },
        }),
    )
    await run(source, { kind: 'none' })
    expect(await scene.keys()).toEqual(['9007199254740992', '9007199254740993'])
  })

  test('XD22: with a special name is read from own properties only', async () => {
    const source = api(
      () =>
        new Response('[{"constructor":"c","__proto__":"p"},{}]', { headers: { 'content-type': 'application/json' } }),
    )
    expect((await run(source, { kind: 'none' }, { key: 'constructor' })).counts).toMatchObject({
      created: 1,
      quarantined: 1,
    })
    expect(await scene.rows()).toEqual({ c: JSON.parse('{"constructor":"c","__proto__":"p"}') })
  })
})

describe('a declaration', () => {
  const stream = { name: 'items', path: '/items', key: 'id', page: { kind: 'none' } } as const

  test.each<[string, object[], string]>([
    ['a name given twice', [stream, stream], 'NAME_TAKEN'],
    ['a kind that there is not', [{ ...stream, page: { kind: 'magic' } }], 'SYNC_INVALID'],
    ['no page', [{ name: 'items', path: '/items', key: 'id' }], 'SYNC_INVALID'],
    [
      'a timestamp without one',
      [{ ...stream, page: { kind: 'timestamp', since: 's', size: { parameter: 'n', value: 5 } } }],
      'SYNC_INVALID',
    ],
    [
      'changes by page number',
      [
        {
          ...stream,
          deletes: 'ignore',
          follow: { kind: 'window', since: 's', page: { kind: 'pageNumber', parameter: 'p' } },
        },
      ],
      'SYNC_INVALID',
    ],
    [
      'a way to follow that there is not',
      [{ ...stream, deletes: 'ignore', follow: { kind: 'magic' } }],
      'SYNC_INVALID',
    ],
    [
      'N87: silence about deletions',
      [{ ...stream, updatedAt: 'at', follow: { kind: 'window', since: 's', page: { kind: 'none' } } }],
      'SYNC_INVALID',
    ],
  ])('with %s is refused at once', (_, streams, code) => {
    expect(() => rest({ baseUrl: BASE, streams: streams as RestStream[] })).toThrow(expect.objectContaining({ code }))
  })
})

describe('a stream declared in code', () => {
  const stream = {
    name: 'items',
    path: '/items',
    key: 'id',
    page: { kind: 'token', parameter: 'after', next: 'next' },
  } as const
  test.each([
    ['of the stream', { ...stream, recrods: 'data' }, '`recrods`'],
    ['of its page', { ...stream, page: { ...stream.page, sise: 5 } }, '`page.sise`'],
    [
      'of a size',
      { ...stream, page: { ...stream.page, size: { parameter: 'n', value: 5, max: 1 } } },
      '`page.size.max`',
    ],
    [
      'of what is followed',
      { ...stream, deletes: 'ignore', follow: { kind: 'window', since: 's', page: { kind: 'link', nxt: '' } } },
      '`follow.page.nxt`',
    ],
    ['of the deletions', { ...stream, deletes: { path: '/x', keys: 'id' } }, '`deletes.keys`'],
  ])('refuses a member %s that no reader knows', (_, given, member) => {
    expect(() => rest({ baseUrl: 'http://127.0.0.1', streams: [given as unknown as RestStream] })).toThrow(member)
  })
})
