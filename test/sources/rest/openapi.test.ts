import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { stringify } from 'yaml'
import { writeOpenApiProject, type OpenApiProject } from '../../../src/cli/kit/openapi-project.ts'
import { buildWorker } from '../../../src/config/manifest/manifest.ts'
import { parseOpenApi } from '../../../src/sources/rest/openapi/document.ts'
import { planOpenApi, type PlannedStream } from '../../../src/sources/rest/openapi/plan.ts'
import { runCycle } from '../../../src/worker/run-cycle.ts'
import { EngineFixture } from '../../engine/engine-fixture.ts'
import { json, serve } from '../kit/loopback.ts'

let folder: string
let scene: EngineFixture
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tidemark-openapi-'))
  scene = await EngineFixture.open()
})
afterEach(async () => {
  await scene.close()
  rmSync(folder, { recursive: true })
})

const string = { type: 'string' }
const integer = { type: 'integer' }
const time = { type: 'string', format: 'date-time' }
const query = (name: string, schema: object = string, more: object = {}): object => ({
  name,
  in: 'query',
  schema,
  ...more,
})
const inPath = (name: string): object => ({ name, in: 'path', required: true, schema: string })
const objectOf = (properties: object): object => ({ type: 'object', properties })
const listOf = (item: object): object => ({ type: 'array', items: item })
const answers = (schema: object, headers: object = {}): object => ({
  200: { description: 'ok', headers, content: { 'application/json': { schema } } },
})
const get = (schema: object, parameters: object[] = [], more: object = {}): object => ({
  get: { parameters, responses: answers(schema), ...more },
})
const RECORD = objectOf({ id: integer, updated_at: time })

const describeApi = (paths: object, more: object = {}): Record<string, unknown> => ({
  openapi: '3.0.3',
  info: { title: 'Shop', version: '1.2' },
  servers: [{ url: 'https://shop.example/v1/' }],
  paths,
  ...more,
})

const plan = (paths: object, more: object = {}, given: Record<string, string> = {}) =>
  planOpenApi(parseOpenApi(JSON.stringify(describeApi(paths, more)), 'api.json'), given)
const only = (paths: object, more: object = {}): PlannedStream => plan(paths, more).streams[0] as PlannedStream

async function write(document: object, given: Record<string, string> = {}, name = 'shop'): Promise<OpenApiProject> {
  writeFileSync(join(folder, 'api.yaml'), stringify(document))
  return writeOpenApiProject(join(folder, name), join(folder, 'api.yaml'), { given, force: false })
}

/** Runs syncs of the written manifest against the server, and returns the keys of each database. */
async function run(syncs: readonly string[]): Promise<Record<string, string[]>> {
  const worker = await buildWorker(join(folder, 'shop/tidemark.yaml'), 'tidemark.yaml', {})
  const { store } = scene
  const secrets = { get: (name: string) => `secret of ${name}` }
  for (const name of syncs) {
    const result = await runCycle(worker, name, { store, secrets })
    expect([name, result.stopReason, result.error]).toEqual([name, 'complete', null])
  }
  return Object.fromEntries(
    await Promise.all(
      worker.manifest.databases.map(async ({ name }) => [name, (await scene.keys(name)).toSorted()] as const),
    ),
  )
}

describe('the manifest for an OpenAPI document reads the API that it describes', () => {
  const rows = (prefix: string, count: number): { id: string; updated_at: string }[] =>
    Array.from({ length: count }, (_, at) => ({ id: `${prefix}${at + 1}`, updated_at: '2026-01-01T00:00:00Z' }))
  const keys = (prefix: string, count: number): string[] =>
    rows(prefix, count)
      .map(({ id }) => id)
      .toSorted()

  test('with every kind of paging, children, a required parameter and an API key', async () => {
    const base = await serve((request, response) => {
      const { pathname, searchParams } = new URL(request.url, 'http://host')
      if (request.headers['x-key'] !== 'secret of SHOP_API_KEY') return json(response, {}, { status: 401 })
      const at = (name: string): number => Number(searchParams.get(name) ?? 0)
      const all = rows(pathname.split('/').at(-1)?.[0] ?? '', 5)
      if (pathname === '/api/tokens') {
        const start = at('cursor')
        return json(response, {
          data: all.slice(start, start + 2),
          meta: { next_cursor: start + 2 < 5 ? `${start + 2}` : null },
        })
      }
      if (pathname === '/api/lasts') {
        const start = searchParams.has('starting_after')
          ? all.findIndex(({ id }) => id === searchParams.get('starting_after')) + 1
          : 0
        return json(response, { data: all.slice(start, start + 2), has_more: start + 2 < 5 })
      }
      if (pathname === '/api/headers') {
        const start = at('from')
        const link = { link: `<${base}/api/headers?from=${start + 2}>; rel="next"` }
        return json(response, all.slice(start, start + 2), { headers: start + 2 < 5 ? link : {} })
      }
      if (pathname === '/api/bodies') {
        const start = at('from')
        return json(response, {
          items: all.slice(start, start + 2),
          links: { next: start + 2 < 5 ? `${base}/api/bodies?from=${start + 2}` : null },
        })
      }
      if (pathname === '/api/pages') {
        const size = at('per_page')
        return json(response, { results: all.slice((at('page') - 1) * size, at('page') * size), total: 5 })
      }
      if (pathname === '/api/offsets')
        return json(response, { rows: all.slice(at('offset'), at('offset') + at('limit')), total_count: 5 })
      if (pathname === '/api/wholes')
        return searchParams.get('kind') === 'all' ? json(response, all) : json(response, {}, { status: 400 })
      const child = /^\/api\/wholes\/(\w+)\/notes$/.exec(pathname)?.[1]
      return child === undefined
        ? json(response, {}, { status: 404 })
        : json(response, [{ id: `${child}-n`, updated_at: '2026-01-01T00:00:00Z' }])
    })
    const item = { $ref: '#/components/schemas/Item' }
    const list = (member: string, more: object = {}): object => objectOf({ [member]: listOf(item), ...more })
    const nullable = { type: 'string', nullable: true }
    const project = await write({
      ...describeApi({
        '/tokens': get(list('data', { meta: objectOf({ next_cursor: nullable }) }), [query('cursor')]),
        '/lasts': get(list('data', { has_more: { type: 'boolean' } }), [query('starting_after')]),
        '/headers': { get: { responses: answers(listOf(item), { Link: { schema: string } }) } },
        '/bodies': get(list('items', { links: objectOf({ next: { type: 'string', format: 'uri' } }) })),
        '/pages': get(list('results', { total: integer }), [
          query('page', { type: 'integer', default: 1 }),
          query('per_page', { type: 'integer', maximum: 2 }),
        ]),
        '/offsets': get(list('rows', { total_count: integer }), [
          query('offset', integer),
          query('limit', { type: 'integer', maximum: 2 }),
        ]),
        '/wholes': get(listOf(item), [query('kind', { type: 'string', enum: ['all'] }, { required: true })]),
        '/wholes/{wholeId}/notes': get(listOf(item), [inPath('wholeId')]),
      }),
      servers: [{ url: `${base}/{area}`, variables: { area: { default: 'api' } } }],
      security: [{ key: [] }],
      components: {
        securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'X-Key' } },
        schemas: {
          Item: { allOf: [{ $ref: '#/components/schemas/Base' }, objectOf({ updated_at: time })] },
          Base: objectOf({ id: string }),
        },
      },
    })
    expect(project).toMatchObject({
      written: ['tidemark.yaml', '.env', '.gitignore'],
      missing: ['SHOP_API_KEY'],
      leftOut: [],
    })
    expect(project.notes).toEqual(['the variable `area` of the server was set to its default, api'])
    const ids = project.streams.map(({ id }) => id)
    expect(await run(ids)).toEqual({
      tokens: keys('t', 5),
      lasts: keys('l', 5),
      headers: keys('h', 5),
      bodies: keys('b', 5),
      pages: keys('p', 5),
      offsets: keys('o', 5),
      wholes: keys('w', 5),
      notes: keys('w', 5).map((id) => `${id}-n`),
    })
  })

  test('follows changes by a time filter, with deletions, in 3.1 with types beside null', async () => {
    const items = [{ id: 'a', updatedAt: '2026-02-01T00:00:00Z', deletedAt: null as string | null }]
    const asked: (string | null)[] = []
    const base = await serve((request, response) => {
      const { searchParams } = new URL(request.url, 'http://host')
      asked.push(searchParams.get('updatedSince'))
      const since = searchParams.get('updatedSince') ?? ''
      if (request.headers.authorization !== 'Bearer secret of SHOP_TOKEN') return json(response, {}, { status: 401 })
      return json(response, { nextPageToken: null, values: items.filter(({ updatedAt }) => updatedAt >= since) })
    })
    const item = objectOf({
      id: string,
      updatedAt: { type: ['string', 'null'], format: 'date-time' },
      deletedAt: { type: ['string', 'null'] },
    })
    const project = await write({
      ...describeApi({
        '/things': get(
          objectOf({ values: { type: ['array', 'null'], items: item }, nextPageToken: { type: ['string', 'null'] } }),
          [query('updatedSince', time), query('pageToken')],
        ),
      }),
      openapi: '3.1.0',
      servers: [{ url: base }],
      security: [{ login: [] }],
      components: { securitySchemes: { login: { type: 'http', scheme: 'bearer' } } },
    })
    expect(project.streams).toEqual([
      {
        id: 'things',
        operation: 'GET /things',
        notes: ['`deletedAt` is assumed to mark deleted records, also in answers to `updatedSince`'],
      },
    ])
    expect(await run(['things', 'things-backfill', 'things'])).toEqual({ things: ['a'] })
    const now = new Date().toISOString()
    items[0] = { id: 'a', updatedAt: now, deletedAt: now }
    items.push({ id: 'b', updatedAt: now, deletedAt: null })
    asked.length = 0
    expect(await run(['things'])).toEqual({ things: ['b'] })
    expect(asked.every((since) => since !== null)).toBe(true)
  })

  test('is the same text each time, says what is unknown in comments, and shows no given secret', async () => {
    const document = describeApi(
      {
        '/orders': get(listOf(RECORD)),
        '/reports': get(objectOf({ rows: listOf(objectOf({ total: integer })) })),
        '/files\n- x': get(listOf(string)),
      },
      { security: [{ basic: [] }], components: { securitySchemes: { basic: { type: 'http', scheme: 'basic' } } } },
    )
    await write(document, { user: 'canary', password: 'canary' })
    await write(document, {}, 'again/shop')
    const text = readFileSync(join(folder, 'shop/tidemark.yaml'), 'utf8')
    expect(text).toBe(readFileSync(join(folder, 'again/shop/tidemark.yaml'), 'utf8'))
    expect(text).not.toContain('canary')
    expect(readFileSync(join(folder, 'shop/.env'), 'utf8')).toContain('SHOP_PASSWORD=canary')
    expect(text).toContain('# it has no paging, so a response is assumed to be the complete list')
    expect(text).toContain('#   GET /reports: the schema of its records has no field that looks like a primary key')
    expect(text.split('\n').filter((line) => line.startsWith('- x'))).toEqual([])
    await expect(write(document)).rejects.toThrow(/already exists/)
  })
})

describe('what a document does not state', () => {
  test.each<[string, object, string]>([
    [
      'a page size without a next page',
      get(listOf(RECORD), [query('limit', integer)]),
      'no parameter or link for the next page',
    ],
    [
      'a cursor without its next value',
      get(listOf(RECORD), [query('cursor')]),
      'where the value of `cursor` for the next page is',
    ],
    [
      'a flag for more pages alone',
      get(objectOf({ data: listOf(RECORD), has_more: { type: 'boolean' } })),
      '`has_more`, but no parameter',
    ],
    [
      'an offset that counts from 1',
      get(listOf(RECORD), [query('start', { type: 'integer', minimum: 1 }), query('limit')]),
      'counts from 1',
    ],
    [
      'an offset without a size',
      get(listOf(RECORD), [query('offset', integer)]),
      'no parameter for the size of a page',
    ],
    ['several lists', get(objectOf({ a: listOf(RECORD), b: listOf(RECORD) })), 'several lists: `a`, `b`'],
    ['one record', get(objectOf({ id: string, tags: listOf(RECORD) })), 'one record'],
    ['no list', get(objectOf({ total: integer })), 'no list'],
    ['no schema', { get: { responses: { 200: { description: 'ok' } } } }, 'no response in JSON'],
    ['records that are texts', get(listOf(string)), 'not described as objects'],
    ['no key', get(listOf(objectOf({ total: integer }))), 'looks like a primary key'],
    [
      'a required parameter',
      get(listOf(RECORD), [query('account', string, { required: true })]),
      '--set account=<value>',
    ],
  ])('leaves an operation with %s out', (_, operation, reason) => {
    const { streams, leftOut } = plan({ '/things': operation })
    expect(streams).toEqual([])
    expect(leftOut).toEqual([{ operation: 'GET /things', reason: expect.stringContaining(reason) as string }])
  })

  test('leaves children out whose parents are not listed, and takes the values that are given', () => {
    const paths = {
      '/accounts/{account}/orders': get(listOf(RECORD), [inPath('account')]),
      '/shops': get(listOf(RECORD)),
      '/shops/{shop}/items/{item}/notes': get(listOf(RECORD), [inPath('shop'), inPath('item')]),
    }
    expect(plan(paths).leftOut.map(({ reason }) => reason)).toEqual([
      'no list gives the values of `account`. Add --set account=<value>',
      'its path has several parameters, and parents have no parents themselves. Add --set shop=<value> --set item=<value> to read one of each',
    ])
    const { streams } = plan(paths, {}, { account: 'a/b', item: '7' })
    expect(streams.map(({ id, options }) => [id, options['path']])).toEqual([
      ['orders', '/accounts/a%2Fb/orders'],
      ['shops', '/shops'],
      ['notes', '/shops/{parent.id}/items/7/notes'],
    ])
  })

  test.each([
    ['id', { id: integer, uuid: string }, 'id'],
    ['the parameter of the path of one record', { number: string, code: string }, 'number'],
    ['the name of the record', { order_id: string, name: string }, 'order_id'],
    ['a code', { code: string }, 'code'],
  ])('takes %s as the primary key', (_, properties, key) => {
    const stream = only({
      '/orders': get(listOf(objectOf(properties))),
      '/orders/{number}': get(objectOf({ order: objectOf(properties) }), [inPath('number')]),
    })
    expect(stream).toMatchObject({ key, options: { lookup: { path: '/orders/{key}', record: 'order' } } })
  })

  test('a time filter is used only where no record can be lost', () => {
    const since = query('modified_since', time)
    const numbered = only({
      '/a': get(listOf(RECORD), [
        since,
        query('page', { type: 'integer', default: 0 }),
        query('size', { type: 'integer', default: 50 }),
      ]),
    })
    expect(numbered.options).toEqual({
      path: '/a',
      page: { kind: 'page_number', parameter: 'page', first: 0, size: { parameter: 'size', value: 50 } },
    })
    expect(numbered.notes.join()).toContain('pages by number or offset lose records')
    const timeless = only({ '/a': get(listOf(objectOf({ id: string })), [since]) })
    expect(timeless.notes.join()).toContain('its records have no time of the last change')
    const swept = only({ '/a': get(listOf(RECORD), [since, query('modified_until', time)]) })
    expect(swept.options).toMatchObject({
      deletes: 'sweep',
      follow: { kind: 'window', since: 'modified_since', until: 'modified_until' },
    })
    expect(swept.notes.join()).toContain('how deletions are reported')
    const untyped = only({ '/a': get(listOf(objectOf({ id: string, updated: integer })), [since]) })
    expect(untyped.notes.join()).toContain('the format of its field `updated` (integer) is not stated')
  })

  test.each<[string, object, object, object | null, string]>([
    [
      'an API key in the query',
      { k: { type: 'apiKey', in: 'query', name: 'key' } },
      { k: [] },
      { kind: 'api_key', query: 'key', key: '${API_KEY}' },
      '',
    ],
    [
      'an API key in a cookie',
      { k: { type: 'apiKey', in: 'cookie', name: 'key' } },
      { k: [] },
      null,
      'cookie is not supported',
    ],
    [
      'client credentials',
      { o: { type: 'oauth2', flows: { clientCredentials: { tokenUrl: 'https://shop.example/token', scopes: {} } } } },
      { o: ['read', 'list'] },
      {
        kind: 'oauth',
        token_url: 'https://shop.example/token',
        client_id: '${CLIENT_ID}',
        client_secret: '${CLIENT_SECRET}',
        scope: 'read list',
      },
      '',
    ],
    [
      'an authorization code',
      {
        o: {
          type: 'oauth2',
          flows: {
            authorizationCode: { authorizationUrl: 'https://a.example', tokenUrl: 'https://shop.example/token' },
          },
        },
      },
      { o: [] },
      { kind: 'oauth', token_url: 'https://shop.example/token', refresh_token: '${REFRESH_TOKEN}' },
      'the refresh token of an authorization is expected',
    ],
    [
      'an implicit flow',
      { o: { type: 'oauth2', flows: { implicit: {} } } },
      { o: [] },
      { kind: 'bearer' },
      'none of its flows can run without a user',
    ],
    [
      'OpenID Connect',
      { o: { type: 'openIdConnect' } },
      { o: [] },
      { kind: 'bearer' },
      'OpenID Connect names no token endpoint',
    ],
    ['two schemes together', { a: {}, b: {} }, { a: [], b: [] }, null, 'a and b together are not supported'],
    [
      'a scheme that is not declared',
      {},
      { a: [] },
      null,
      'components.securitySchemes.a: its type is missing is not supported',
    ],
  ])('reads %s', (_, securitySchemes, requirement, auth, note) => {
    const found = plan({ '/a': get(listOf(RECORD)) }, { security: [requirement], components: { securitySchemes } }).auth
    if (auth === null) expect(found.auth).toBe(null)
    else expect(found.auth).toMatchObject(auth)
    expect(found.notes.join()).toContain(note)
  })
})

describe('a document that cannot be read', () => {
  const ref = (reference: string): object =>
    describeApi(
      { '/a': get({ $ref: reference }) },
      { components: { schemas: { A: { $ref: '#/components/schemas/B' }, B: { $ref: '#/components/schemas/A' } } } },
    )

  test.each<[string, string, string]>([
    [
      'is a cycle of references',
      JSON.stringify(ref('#/components/schemas/A')),
      'GET /a: the reference #/components/schemas/A leads back to itself',
    ],
    [
      'refers to another file',
      JSON.stringify(ref('other.yaml#/A')),
      'GET /a: the reference other.yaml#/A leads to another document',
    ],
    ['refers to another host', JSON.stringify(ref('https://x.example/a.json')), 'leads to another document'],
    ['refers to nothing', JSON.stringify(ref('#/components/schemas/C')), 'points to nothing'],
    ['has no paths', JSON.stringify(describeApi({})), 'it has no `paths`'],
    ['is Swagger 2', '{"swagger": "2.0"}', 'it is Swagger 2.0. Convert it'],
    ['is another version', 'openapi: 4.0.0', 'its version is 4.0.0'],
    ['is no OpenAPI', 'connector: rest', 'it has no `openapi` version'],
    ['is a list', '- 1', 'it is not an object'],
    ['is not JSON', '{"openapi": ', 'it is not JSON'],
    ['is not YAML', 'openapi: "3.0', 'api.yaml:1:'],
    [
      'expands without end',
      `a: &a [x,x,x,x,x,x,x,x,x]\n${'bcdefg'.replace(/./g, (name, at: number) => `${name}: &${name} [${`*${'abcdef'[at]},`.repeat(9)}]\n`)}`,
      'No manifest was written',
    ],
    [
      'has no absolute server',
      JSON.stringify({ ...describeApi({ '/a': get(listOf(RECORD)) }), servers: [{ url: '/v1' }] }),
      '--set base_url=<url>',
    ],
  ])('because it %s is refused, and nothing is written', async (_, text, message) => {
    const file = join(folder, 'api.yaml')
    writeFileSync(file, text)
    await expect(writeOpenApiProject(join(folder, 'shop'), file, { given: {}, force: false })).rejects.toThrow(message)
    expect(existsSync(join(folder, 'shop'))).toBe(false)
  })

  test('is one without a list: the reasons are named', async () => {
    await expect(write(describeApi({ '/a': get(listOf(string)) }))).rejects.toThrow('No list could be derived from')
  })

  test('a schema that contains itself, and ten thousand paths, end', () => {
    const components = {
      schemas: {
        Node: {
          type: 'object',
          properties: {
            id: string,
            children: listOf({ $ref: '#/components/schemas/Node' }),
            parent: { $ref: '#/components/schemas/Node' },
            data: { allOf: [{ $ref: '#/components/schemas/Node' }] },
          },
        },
      },
    }
    const paths = Object.fromEntries(
      Array.from({ length: 10_000 }, (_, at) => [`/nodes${at}`, get(listOf({ $ref: '#/components/schemas/Node' }))]),
    )
    expect(plan(paths, { components }).streams).toHaveLength(10_000)
  })
})
