import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { CycleResult } from '../../../src/engine/cycle-options.ts'
import { rest, type ListedStream, type RestStream, type TrackedStream } from '../../../src/sources/rest/source.ts'
import { EngineFixture, MINUTE, planOf, SECOND } from '../../engine/engine-fixture.ts'
import { Api, BASE, type Handler } from './api.ts'

let scene: EngineFixture
beforeEach(async () => {
  scene = await EngineFixture.open()
})
afterEach(() => scene.close())

type Stream = Partial<RestStream>

const open = (stream: Stream): ListedStream | TrackedStream =>
  rest({
    baseUrl: BASE,
    streams: [{ path: '/items', key: 'id', page: { kind: 'none' }, ...stream, name: 'items' }],
  }).items

async function list(handler: Handler, stream: Stream, allowDeletes = false): Promise<CycleResult> {
  const source = open(stream)
  const execute = 'execute' in source ? source.execute : source.backfill
  const api = new Api(scene.clock, { '/items': handler })
  return scene.run(planOf({ mode: 'replace', execute, limits: { retriesMax: 0 } }), { fetch: api.fetch, allowDeletes })
}

async function follow(handler: Handler, stream: Stream): Promise<CycleResult> {
  const api = new Api(scene.clock, { '/items': handler })
  const { delta } = open({ deletes: 'ignore', ...stream }) as TrackedStream
  return scene.run(planOf({ execute: delta, limits: { retriesMax: 0 } }), { fetch: api.fetch })
}

const TOKEN = { kind: 'token', parameter: 'after', next: 'next' } as const

/** Three pages of one record; records what was sent. */
function pages(sent: unknown[], read: (url: URL, init: RequestInit | undefined) => unknown): Handler {
  return (url, init) => {
    sent.push(read(url, init))
    const at = Number(/c(\d)/.exec(`${url.search} ${String(init?.body)}`)?.[1] ?? 0) + 1
    return { items: [{ id: `r${at}` }], next: at < 3 ? `c${at}` : null }
  }
}

describe('a request with a body', () => {
  test('is sent as JSON, and a placeholder without a value leaves its member out', async () => {
    const sent: unknown[] = []
    const handler = pages(sent, (url, init) => [init?.method, url.search, JSON.parse(String(init?.body))])
    const body = { json: { filter: { type: 'a' }, page: { after: '{after}', size: '{size}' }, note: 'from {after}' } }
    const page = { ...TOKEN, size: { parameter: 'size', value: 1 } }
    expect(await list(handler, { body, records: 'items', page })).toMatchObject({ stopReason: 'complete' })
    expect(sent.slice(0, 2)).toEqual([
      ['POST', '', { filter: { type: 'a' }, page: { size: 1 } }],
      ['POST', '', { filter: { type: 'a' }, page: { after: 'c1', size: 1 }, note: 'from c1' }],
    ])
    expect(await scene.keys()).toEqual(expect.arrayContaining(['r1', 'r2', 'r3']))
  })

  test('may be a form, and parameters that no placeholder names are in the query', async () => {
    const sent: unknown[] = []
    const handler = pages(sent, (url, init) => [
      url.search,
      String(init?.body),
      new Headers(init?.headers).get('content-type'),
    ])
    const page = { ...TOKEN, size: { parameter: 'limit', value: 1 } }
    await list(handler, { body: { form: { kind: 'x y', after: '{after}' } }, records: 'items', page })
    expect(sent.slice(0, 2)).toEqual([
      ['?limit=1', 'kind=x+y', 'application/x-www-form-urlencoded'],
      ['?limit=1', 'kind=x+y&after=c1', 'application/x-www-form-urlencoded'],
    ])
  })

  test('may be a text, whose placeholders need a value or a default', async () => {
    const sent: unknown[] = []
    const handler = pages(sent, (_, init) => [String(init?.body), new Headers(init?.headers).get('content-type')])
    const body = { text: '<q after="{after}"/>', type: 'application/xml' }
    await list(handler, { body, defaults: { after: 'start' }, records: 'items', page: TOKEN })
    expect(sent.slice(0, 2)).toEqual([
      ['<q after="start"/>', 'application/xml'],
      ['<q after="c1"/>', 'application/xml'],
    ])
    const missing = await list(handler, { body, records: 'items', page: TOKEN })
    expect(missing.error).toMatchObject({ code: 'SYNC_INVALID' })
  })

  test.each([
    ['a placeholder that names nothing', { body: { json: { a: '{aftr}' } }, page: TOKEN }, /\{aftr\}.*"after"/],
    ['a body with GET', { method: 'GET', body: { json: {} } }, /GET request has no body/],
    ['a body and GraphQL', { body: { json: {} }, graphql: { query: '{ a }' } }, /not both/],
    ['a field that does not exist', { body: { jsn: {} } }, /unknown field `body\.jsn`/],
  ])('with %s is refused when it is declared', (_, stream, message) => {
    expect(() => open(stream as never)).toThrow(message)
  })

  test('a window is sent in the body, with the bounds as placeholders', async () => {
    const sent: Array<Record<string, unknown>> = []
    const handler: Handler = (_, init) => {
      sent.push(JSON.parse(String(init?.body)) as Record<string, unknown>)
      return [{ id: 'a', at: new Date(scene.clock.now() - 5 * MINUTE).toISOString() }]
    }
    const stream: Stream = {
      updatedAt: 'at',
      time: 'ms',
      body: { json: { range: { from: '{since}', to: '{until}' } } },
      follow: { kind: 'window', since: 'since', until: 'until', page: { kind: 'none' } },
    }
    await follow(handler, { ...stream, updatedAt: 'none' })
    await scene.clock.drive(scene.clock.sleep(MINUTE))
    await follow(handler, { ...stream, updatedAt: 'none' })
    // A window with rows is asked for twice.
    const [first, again, second] = sent as Array<{ range: { from?: number; to: number } }>
    expect(first!.range).toEqual({ to: expect.any(Number) })
    expect(again).toEqual(first)
    expect(second!.range.from).toBeLessThanOrEqual(first!.range.to)
  })
})

describe('GraphQL', () => {
  const graphql = { query: 'query($after: String, $first: Int) { people { id } }', variables: { team: 't1' } }
  const page = { kind: 'relay', size: { parameter: 'first', value: 2 } } as const
  const people = Array.from({ length: 5 }, (_, n) => ({ id: `p${n}` }))
  const connection =
    (shape: 'nodes' | 'edges', sent: unknown[] = []): Handler =>
    (_, init) => {
      const { variables } = JSON.parse(String(init?.body)) as { variables: { after?: string; first: number } }
      sent.push(variables)
      const start = variables.after === undefined ? 0 : people.findIndex(({ id }) => id === variables.after) + 1
      const found = people.slice(start, start + variables.first)
      const pageInfo = { hasNextPage: start + found.length < people.length, endCursor: found.at(-1)?.id ?? null }
      return {
        data: {
          people: { pageInfo, ...(shape === 'nodes' ? { nodes: found } : { edges: found.map((node) => ({ node })) }) },
        },
      }
    }

  test.each(['nodes', 'edges'] as const)('reads a connection with %s to its end', async (shape) => {
    const sent: unknown[] = []
    const result = await list(connection(shape, sent), { graphql, page, records: 'data.people' })
    expect(result).toMatchObject({ stopReason: 'complete', counts: { created: 5 } })
    expect(sent.slice(0, 2)).toEqual([
      { team: 't1', first: 2 },
      { team: 't1', first: 2, after: 'p1' },
    ])
  })

  test('errors with status 200 are failures, even with data', async () => {
    const handler: Handler = (url, init) => ({
      ...(connection('nodes')(url, init) as object),
      errors: [{ message: 'x' }],
    })
    const result = await list(handler, { graphql, page, records: 'data.people' })
    expect(result.error).toMatchObject({ code: 'SOURCE_INVALID' })
    expect(await scene.keys()).toEqual([])
  })

  test.each([
    ['no pageInfo', { data: { people: { nodes: people } } }],
    ['more pages without a cursor', { data: { people: { nodes: people, pageInfo: { hasNextPage: true } } } }],
    ['no connection', { data: { people: null } }],
  ])('a response with %s ends nothing', async (_, answer) => {
    expect((await list(() => answer, { graphql, page, records: 'data.people' })).error).toMatchObject({
      code: 'SOURCE_INVALID',
    })
  })
})

describe('a response', () => {
  const binary = (bytes: Uint8Array | string, type = 'application/octet-stream'): Response =>
    new Response(typeof bytes === 'string' ? bytes : new Uint8Array(bytes), { headers: { 'content-type': type } })

  test.each([
    ['ndjson', '{"id":"a"}\n{"id":"b","n":9007199254740993}\n\n', 'ndjson', ''],
    ['CSV', '\ufeffid,name\na,"x, y"\nb,\n', 'csv', ''],
    ['CSV without a header line', 'a;x\nb;y\n', { kind: 'csv', delimiter: ';', columns: ['id', 'name'] }, ''],
    ['XML', '<?xml version="1.0"?><r><i k="1"><id>a</id></i><i><id><![CDATA[b]]></id></i></r>', 'xml', 'r.i'],
    ['JSON as text', '[{"id":"a"},{"id":"b"}]', 'json', ''],
  ] as const)('in %s is read, compressed or not', async (_, text, decode, records) => {
    for (const bytes of [text, gzipSync(text)]) {
      const result = await list(() => binary(bytes, 'text/plain'), { decode, records })
      expect(result.error).toBe(null)
      expect(await scene.keys()).toEqual(['a', 'b'])
    }
  })

  test('in XML keeps attributes, texts and repeated elements', async () => {
    const xml = '<r><i id="a&amp;b"><tag>1</tag><tag>2</tag>text &#65;</i><i id="c"/></r>'
    await list(() => binary(xml), { decode: 'xml', records: 'r.i', key: '@id' })
    expect(await scene.rows()).toEqual({
      'a&b': { '@id': 'a&b', tag: ['1', '2'], '#text': 'text A' },
      c: { '@id': 'c' },
    })
  })

  test.each([
    ['a line that is cut off', '{"id":"a"}\n{"id":', 'ndjson'],
    ['a row with too few fields', 'id,name\na,b\nc\n', 'csv'],
    ['no header line', '', 'csv'],
    ['a column named twice', 'id,id\na,b\n', 'csv'],
    ['a quote that is not closed', 'id\n"a\n', 'csv'],
    ['XML that is cut off', '<r><i><id>a</id></i>', 'xml'],
    ['XML with a document type', '<!DOCTYPE r [<!ENTITY x "y">]><r><i/></r>', 'xml'],
    ['damaged gzip', gzipSync('id\na\n').subarray(0, 12), 'csv'],
    ['bytes that are not UTF-8', Buffer.from([0x69, 0x64, 0x0a, 0xff, 0x0a]), 'csv'],
  ] as const)('with %s lands nothing and deletes nothing', async (_, bytes, decode) => {
    await list(() => binary('id,name\nold,x\n'), { decode: 'csv' })
    const result = await list(() => binary(bytes as string), { decode, records: decode === 'xml' ? 'r.i' : '' })
    expect(result.error).toMatchObject({ code: 'SOURCE_INVALID' })
    expect(await scene.keys()).toEqual(['old'])
  })

  test('that grows beyond the limit when it is decompressed is refused', async () => {
    const { items } = rest({
      baseUrl: BASE,
      limits: { bodyBytesMax: 10_000 },
      streams: [{ name: 'items', path: '/items', key: 'id', page: { kind: 'none' }, decode: 'ndjson' }],
    })
    const api = new Api(scene.clock, { '/items': () => binary(gzipSync('{"id":"a"}\n'.repeat(100_000))) })
    const result = await scene.run(planOf({ mode: 'replace', execute: items.execute, limits: { retriesMax: 0 } }), {
      fetch: api.fetch,
    })
    expect(result.error?.message).toContain('holds more than 10000 bytes')
  })
})

describe('error rules', () => {
  const failed = (status: number, body: unknown, headers: Record<string, string> = {}): Response =>
    typeof body === 'string' ? new Response(body, { status, headers }) : Response.json(body, { status, headers })

  test.each([
    ['a status', { status: [400], action: 'retry' }, () => failed(400, {}), 'SOURCE_UNAVAILABLE'],
    [
      'a field',
      { at: 'error.code', are: [17], action: 'unauthorized' },
      () => ({ error: { code: 17 } }),
      'AUTH_REJECTED',
    ],
    ['a text', { text: 'try later', action: 'retry' }, () => failed(403, '<p>Try later</p>'), 'SOURCE_UNAVAILABLE'],
    ['a text with status 200', { text: 'locked', action: 'fail' }, () => ({ message: 'Locked.' }), 'CONNECTOR_FAILED'],
    ['the presence of a field', { at: 'fault', action: 'retry' }, () => ({ fault: { a: 1 } }), 'SOURCE_UNAVAILABLE'],
  ] as const)('recognise %s', async (_, rule, handler, code) => {
    expect((await list(handler as Handler, { errors: [rule] })).error).toMatchObject({ code })
  })

  test.each([
    ['a header', { header: 'x-wait' }, {}, { 'x-wait': '45' }, 45 * SECOND],
    ['a field in ms', { at: 'wait', unit: 'ms' }, { wait: 1_500 }, {}, 1_500],
  ] as const)('wait as long as %s says', async (_, wait, body, headers, waitMs) => {
    const errors = [{ status: [420], action: 'rate-limited', wait }] as const
    let isLimited = true
    const handler: Handler = () => {
      if (!isLimited) return [{ id: 'a' }]
      isLimited = false
      return failed(420, body, headers)
    }
    const { execute } = open({ errors }) as ListedStream
    const started = scene.clock.now()
    const api = new Api(scene.clock, { '/items': handler })
    expect((await scene.run(planOf({ mode: 'replace', execute }), { fetch: api.fetch })).error).toBe(null)
    expect(scene.clock.now() - started).toBeGreaterThanOrEqual(waitMs)
  })

  test('an ignored 404 is an empty list', async () => {
    const errors = [{ status: [404], action: 'ignore' }] as const
    await list(() => [{ id: 'a' }], { errors })
    const result = await list(() => failed(404, {}), { errors }, true)
    expect(result).toMatchObject({ stopReason: 'complete', error: null })
    expect(await scene.keys()).toEqual([])
  })

  test('another ignored answer deletes rows only after a confirmation', async () => {
    const stream: Stream = {
      records: 'items',
      errors: [{ status: [403], action: 'ignore' }],
      page: { kind: 'pageNumber', parameter: 'page', more: 'more' },
    }
    const row = (n: number): { id: string } => ({ id: `r${n}` })
    let isForbidden = false
    const handler: Handler = ({ searchParams }) => {
      const page = Number(searchParams.get('page'))
      if (isForbidden && page === 8) return failed(403, {})
      return { items: [row(page)], more: page < 8 }
    }
    await list(handler, stream)
    expect(await scene.keys()).toHaveLength(8)
    isForbidden = true
    expect(await list(handler, stream)).toMatchObject({ stopReason: 'complete', endReason: 'incomplete' })
    expect(await list(handler, stream)).toMatchObject({ stopReason: 'complete', counts: { swept: 0 } })
    expect(await scene.keys()).toHaveLength(8)
    expect((await list(handler, stream, true)).error).toBe(null)
    expect(await scene.keys()).toHaveLength(7)
  })

  test('an expired cursor is not ignored: the list would end too early', async () => {
    const errors = [{ status: [404], action: 'ignore' }] as const
    const handler: Handler = ({ searchParams }) =>
      searchParams.has('after') ? failed(404, {}) : { items: [{ id: 'a' }], next: 'x' }
    const result = await list(handler, { errors, records: 'items', page: TOKEN })
    expect(result.error).toMatchObject({ code: 'CURSOR_REJECTED' })
  })
})

describe('filters', () => {
  const filter = [
    { at: 'type', are: ['a'] },
    { at: 'state', not: ['draft', null] },
  ] as const

  test('leave out the other records of a list, and its pages are still counted in full', async () => {
    const rows = Array.from({ length: 10 }, (_, n) => ({
      id: `r${n}`,
      type: n % 2 ? 'a' : 'b',
      state: n < 8 ? 'on' : null,
    }))
    const handler: Handler = ({ searchParams }) => {
      const offset = Number(searchParams.get('offset'))
      return { items: rows.slice(offset, offset + 2), total: rows.length }
    }
    const page = {
      kind: 'offset',
      parameter: 'offset',
      size: { parameter: 'limit', value: 2 },
      total: 'total',
    } as const
    expect((await list(handler, { filter, page, records: 'items' })).error).toBe(null)
    expect(await scene.keys()).toEqual(['r1', 'r3', 'r5', 'r7'])
  })

  test('a changed record that no longer matches is deleted', async () => {
    const at = (): string => new Date(scene.clock.now() - MINUTE).toISOString()
    let rows = [{ id: 'x', type: 'a', state: 'on', at: at() }]
    const stream: Stream = {
      filter,
      updatedAt: 'at',
      follow: { kind: 'window', since: 'since', page: { kind: 'none' } },
    }
    await follow(() => rows, stream)
    expect(await scene.keys()).toEqual(['x'])
    await scene.clock.drive(scene.clock.sleep(5 * MINUTE))
    rows = [{ id: 'x', type: 'b', state: 'on', at: at() }]
    await follow(() => rows, stream)
    expect(await scene.keys()).toEqual([])
  })
})

describe('windows of a limited length', () => {
  test('are read one after the other, and a change at a border is not lost', async () => {
    const start = scene.clock.now()
    const rows = Array.from({ length: 40 }, (_, n) => ({
      id: `r${n}`,
      at: new Date(start + n * 3 * 60 * MINUTE).toISOString(),
    }))
    const lengths: number[] = []
    const handler: Handler = ({ searchParams: query }) => {
      const [since, until] = [query.get('since'), query.get('until')]
      if (since !== null) lengths.push(Date.parse(until!) - Date.parse(since))
      // The end is exclusive here.
      return rows.filter(
        ({ at }) => (since === null || at >= since) && at < until! && Date.parse(at) < scene.clock.now(),
      )
    }
    const stream: Stream = {
      updatedAt: 'at',
      follow: { kind: 'window', since: 'since', until: 'until', step: 'P1D', page: { kind: 'none' } },
    }
    await scene.clock.drive(scene.clock.sleep(MINUTE))
    await follow(handler, stream)
    await scene.clock.drive(scene.clock.sleep(7 * 24 * 60 * MINUTE))
    expect((await follow(handler, stream)).error).toBe(null)
    expect(await scene.keys()).toHaveLength(40)
    expect(lengths.length).toBeGreaterThan(6)
    expect(Math.max(...lengths)).toBeLessThanOrEqual(24 * 60 * MINUTE)
  })
})

test('a time that is a date is read and sent in whole days', async () => {
  const sent: string[] = []
  const handler: Handler = ({ search }) => {
    sent.push(search)
    return [{ id: 'a', at: new Date(scene.clock.now()).toISOString().slice(0, 10) }]
  }
  const stream: Stream = {
    updatedAt: 'at',
    time: 'date',
    follow: { kind: 'window', since: 'since', until: 'until', page: { kind: 'none' } },
  }
  await scene.clock.drive(scene.clock.sleep(60 * MINUTE))
  await follow(handler, stream)
  await follow(handler, stream)
  const day = (offset: number): string =>
    new Date(scene.clock.now() + offset * 24 * 60 * MINUTE).toISOString().slice(0, 10)
  // A window with rows is asked for twice.
  expect(sent.slice(0, 2)).toEqual([`?until=${day(1)}`, `?until=${day(1)}`])
  expect(sent[2]).toBe(`?since=${day(0)}&until=${day(1)}`)
})
