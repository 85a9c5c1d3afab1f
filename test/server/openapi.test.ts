import { Ajv2020 } from 'ajv/dist/2020.js'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { OpenAPIClientAxios } from 'openapi-client-axios'
import { describe, expect, test } from 'vitest'
import { openApiDocument } from '../../src/server/openapi.ts'
import { ROUTES } from '../../src/server/server.ts'
import { remove, SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { openHarness } from '../stores/sqlite-harness.ts'
import { BODIES, pathOf, WEBHOOK } from './route-samples.ts'
import { addKey, Stand, type Body } from './stand.ts'

async function filled(): Promise<Stand> {
  const stand = await Stand.open(openHarness)
  await (await stand.driver()).cycle([upsert('a', { n: 1 }), upsert('b', { n: 2 })])
  await (await SyncDriver.take(stand.store, { sync: 'later' })).cycle([remove('a')])
  return stand
}

describe('AX10 A31 the OpenAPI document', () => {
  test('passes a public linter with its recommended rules', async () => {
    const stand = await filled()
    const { text } = await stand.get('/openapi.json', { key: null })
    const problems = await lintFromString({ source: text, absoluteRef: 'openapi.json', config: await createConfig({ extends: ['recommended'] }) })
    expect(problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer}`)).toEqual([])
    // It is able to find: without its operations' answers it would not pass.
    const broken = JSON.parse(text) as Body
    delete broken.paths['/agents/v1/changes'].get.responses
    expect(await lintFromString({ source: JSON.stringify(broken), absoluteRef: 'openapi.json', config: await createConfig({ extends: ['recommended'] }) })).not.toEqual([])
  })

  test('drives a client that knows nothing else', async () => {
    const stand = await filled()
    const definition = (await stand.get('/openapi.json', { key: null })).body
    const api = new OpenAPIClientAxios({ definition: definition as never, withServer: { url: stand.url }, axiosConfigDefaults: { headers: { authorization: `Bearer ${stand.key}` } } })
    const client = await api.init() as unknown as Record<string, (parameters?: object) => Promise<{ data: Body }>>
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
  }, 60_000)

  test('every answer is of the shape it promises, errors too', async () => {
    const stand = await filled()
    const key = await addKey(stand.store, ['admin'])
    await stand.store.putWebhook(WEBHOOK, { position: 0, floor: 0 })
    const document = openApiDocument(ROUTES, '0.0.0') as Body
    const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true })
    ajv.addSchema({ $id: 'doc', ...document })
    const check = (pointer: string, value: unknown, what: string): void => {
      const validate = ajv.compile({ $ref: `doc#${pointer}` })
      expect([validate(value), validate.errors], what).toEqual([true, null])
    }
    for (const route of ROUTES) {
      const { id, path, method, media, rawBytesMax } = route
      // Those that take a signed body are asked by test/webhooks.
      if (media !== undefined || rawBytesMax !== undefined) continue
      const url = pathOf(route)
      const { status, body } = await stand.get(url, { key, method, ...(BODIES[id] && { body: JSON.stringify(BODIES[id]), headers: { 'content-type': 'application/json' } }) })
      expect(status, url).toBe(200)
      const escaped = path.replaceAll(/:(\w+)/g, '{$1}').replaceAll('/', '~1')
      check(`/paths/${encodeURIComponent(escaped)}/${method.toLowerCase()}/responses/200/content/application~1json/schema`, body, url)
    }
    for (const url of ['/agents/v1/changes?limit=0', '/agents/v1/changes?cursor=x', '/agents/v1/none', '/nowhere']) check('/components/schemas/Error', (await stand.get(url)).body, url)
  })
})
