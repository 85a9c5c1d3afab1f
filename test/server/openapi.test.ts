import { Ajv2020 } from 'ajv/dist/2020.js'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { OpenAPIClientAxios } from 'openapi-client-axios'
import { describe, expect, test } from 'vitest'
import { buildOpenApiDocument } from '../../src/server/openapi.ts'
import { ROUTES } from '../../src/server/server.ts'
import { remove, SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { openHarness } from '../stores/sqlite-harness.ts'
import { addConnection, addDestination, API_KEY, BODIES, pathOf, SELECT, WEBHOOK } from './route-samples.ts'
import { addKey, ServerFixture, type Body } from './server-fixture.ts'

/** As a worker may declare it, with internal references. */
const PEOPLE = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  required: ['name'],
  $defs: { place: { type: 'object', properties: { city: { type: 'string' }, within: { $ref: '#/$defs/place' } } } },
  properties: {
    name: { type: 'string' },
    home: { $ref: '#/$defs/place' },
    kind: { const: { $ref: '#/not-a-reference' } },
  },
}

async function filled(): Promise<ServerFixture> {
  const stand = await ServerFixture.open(openHarness, { schemas: { people: PEOPLE }, select: SELECT })
  await (await stand.driver()).cycle([upsert('a', { n: 1 }), upsert('b', { n: 2, text: 'two' })])
  await (await SyncDriver.acquire(stand.store, { sync: 'later' })).cycle([remove('a')])
  return stand
}

describe('AX10 A31 the OpenAPI document', () => {
  test('passes a public linter with its recommended rules', async () => {
    const stand = await filled()
    const { text } = await stand.get('/openapi.json', { key: null })
    const problems = await lintFromString({
      source: text,
      absoluteRef: 'openapi.json',
      config: await createConfig({ extends: ['recommended'] }),
    })
    expect(problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer}`)).toEqual([])
    // The linter can find errors: without the description of a response the document does not pass.
    const broken = JSON.parse(text) as Body
    delete broken.paths['/agents/v1/changes'].get.responses[200].description
    expect(
      await lintFromString({
        source: JSON.stringify(broken),
        absoluteRef: 'openapi.json',
        config: await createConfig({ extends: ['recommended'] }),
      }),
    ).not.toEqual([])
  })

  test('describes the records of the databases that the key may read, as declared or derived from columns; to no other caller', async () => {
    const stand = await filled()
    const records = ({ components, paths }: Body): unknown => [
      Object.keys(components.schemas).filter((name) => name.startsWith('Record_')),
      Object.keys(paths).filter((path) => /people|things/.test(path)),
    ]
    const whole = (await stand.get('/openapi.json')).body
    expect(records(whole)).toEqual([
      ['Record_people', 'Record_things'],
      ['/agents/v1/people', '/agents/v1/people/{key}', '/agents/v1/things', '/agents/v1/things/{key}'],
    ])
    expect(whole.components.schemas.Record_things).toMatchObject({
      type: 'object',
      properties: { n: { type: ['integer', 'null'] } },
    })
    expect(whole.components.schemas.Record_people).toEqual({
      type: 'object',
      required: ['name'],
      $defs: {
        place: {
          type: 'object',
          properties: { city: { type: 'string' }, within: { $ref: '#/components/schemas/Record_people/$defs/place' } },
        },
      },
      properties: {
        name: { type: 'string' },
        home: { $ref: '#/components/schemas/Record_people/$defs/place' },
        kind: { const: { $ref: '#/not-a-reference' } },
      },
    })
    // On loopback also without a key.
    expect(records((await stand.get('/openapi.json', { key: null })).body)).toEqual(records(whole))
    expect(
      records((await stand.get('/openapi.json', { key: null, headers: { origin: 'https://evil.example' } })).body),
    ).toEqual([[], []])
    expect(
      records((await stand.get('/openapi.json', { key: await addKey(stand.store, ['things:read']) })).body),
    ).toEqual([['Record_things'], ['/agents/v1/things', '/agents/v1/things/{key}']])
    expect(
      records((await stand.get('/openapi.json', { key: await addKey(stand.store.forTenant('acme'), ['admin']) })).body),
    ).toEqual([[], []])
    expect((await stand.get('/openapi.json', { key: 'wrong' })).status).toBe(401)
    const open = await ServerFixture.open(openHarness, { host: '0.0.0.0', schemas: { people: PEOPLE } })
    expect(
      records((await (await fetch(`http://127.0.0.1:${new URL(open.url).port}/openapi.json`)).json()) as Body),
    ).toEqual([[], []])
    expect((await stand.get('/agents/v1/schema')).body.data).toEqual([
      { name: 'people', from: 'schema', schema: PEOPLE },
      { name: 'things', from: 'columns', schema: whole.components.schemas.Record_things },
    ])
    expect(
      (await stand.get('/agents/v1/schema', { key: await addKey(stand.store.forTenant('acme'), ['admin']) })).body.data,
    ).toEqual([])
  })

  test('drives a client that knows nothing else', async () => {
    const stand = await filled()
    const definition = (await stand.get('/openapi.json', { key: null })).body
    const api = new OpenAPIClientAxios({
      definition: definition as never,
      withServer: { url: stand.url },
      axiosConfigDefaults: { headers: { authorization: `Bearer ${stand.key}` } },
    })
    const client = (await api.init()) as unknown as Record<string, (parameters?: object) => Promise<{ data: Body }>>
    const seen: string[] = []
    for (let cursor: string | undefined, more = true; more;) {
      const { data } = await client['listChanges']!({ limit: 1, ...(cursor !== undefined && { cursor }) })
      seen.push(...data.data.map(({ resourceId, action }: Body) => `${resourceId} ${action}`))
      cursor = data.page.nextCursor
      more = data.page.hasMore
    }
    expect(seen).toEqual(['a created', 'b created', 'a deleted'])
    expect((await client['listRows']!({ database: 'things' })).data.data).toMatchObject([{ id: 'b', record: { n: 2 } }])
    expect((await client['getRow']!({ database: 'things', key: 'b' })).data.data).toMatchObject({ id: 'b' })
    expect((await client['listRows_things']!()).data.data).toMatchObject([{ id: 'b', record: { n: 2 } }])
    expect((await client['getRow_things']!({ key: 'b' })).data.data).toMatchObject({ id: 'b' })
  })

  test('every response has its documented shape, errors too', async () => {
    const stand = await filled()
    const key = await addKey(stand.store, ['admin'])
    await stand.store.putWebhook(WEBHOOK, { sequence: 0, floor: 0 })
    await stand.store.addApiKey(API_KEY)
    await addDestination(stand.store, 'here')
    await addConnection(stand.store)
    const document = buildOpenApiDocument(ROUTES, '0.0.0') as Body
    const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true })
    ajv.addSchema({ $id: 'doc', ...document })
    const check = (pointer: string, value: unknown, what: string): void => {
      const validate = ajv.compile({ $ref: `doc#${pointer}` })
      expect([validate(value), validate.errors], what).toEqual([true, null])
    }
    for (const route of ROUTES) {
      const { id, path, method, mediaType: media, rawBytesMax } = route
      // Routes with a signed body are covered by test/webhooks.
      if (media !== undefined || rawBytesMax !== undefined) continue
      const url = pathOf(route)
      if (id === 'getCheckpoint') await stand.post(url, { key })
      const { status, body } = await stand.get(url, {
        key,
        method,
        ...(BODIES[id] && { body: JSON.stringify(BODIES[id]), headers: { 'content-type': 'application/json' } }),
      })
      expect(status, url).toBe(200)
      const escaped = path.replaceAll(/:(\w+)/g, '{$1}').replaceAll('/', '~1')
      check(
        `/paths/${encodeURIComponent(escaped)}/${method.toLowerCase()}/responses/200/content/application~1json/schema`,
        body,
        url,
      )
    }
    for (const url of ['/agents/v1/changes?limit=0', '/agents/v1/changes?cursor=x', '/agents/v1/none', '/nowhere'])
      check('/components/schemas/Error', (await stand.get(url)).body, url)
  })
})

test('every array of the document declares its items', () => {
  const without: string[] = []
  const look = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null) return
    const { type, items } = value as { type?: unknown; items?: unknown }
    if ([type].flat().includes('array') && items === undefined) without.push(path)
    for (const [name, member] of Object.entries(value)) look(member, `${path}/${name}`)
  }
  look(buildOpenApiDocument(ROUTES, '0.0.0'), '')
  expect(without).toEqual([])
})
