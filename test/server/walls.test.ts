import { expect, test } from 'vitest'
import type { Ports, Store } from '../../src/contract/index.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { createServer, ROUTES } from '../../src/server/server.ts'
import { SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { openHarness } from '../stores/sqlite-harness.ts'
import { addKey, ServerFixture } from './server-fixture.ts'

const SECRET = 'heron-5512'

async function twoTenants(): Promise<{ stand: ServerFixture; key: string }> {
  const stand = await ServerFixture.open(openHarness)
  await (
    await SyncDriver.acquire(stand.store)
  ).cycle([upsert('ours', { text: SECRET }), upsert('ours', { text: SECRET }, { database: 'private' })])
  const acme = stand.store.forTenant('acme')
  await (await SyncDriver.acquire(acme)).cycle([upsert('theirs', { n: 1 })])
  return { stand, key: await addKey(acme, ['*:read', 'changes:read', 'admin']) }
}

test('Z8 the tenant is that of the key: no parameter, header, body or part of the path names another', async () => {
  const { stand, key } = await twoTenants()
  const plain = await stand.get('/agents/v1/things', { key })
  expect(plain.text).toContain('theirs')
  const same = async (path: string, headers: Record<string, string> = {}): Promise<void> => {
    const answer = await stand.get(path, { key, headers })
    expect({ path, status: answer.status, items: answer.body['items'] }).toEqual({
      path,
      status: 200,
      items: plain.body['items'],
    })
  }
  for (const name of ['tenant', 'tenant_id', 'tenantId']) await same(`/agents/v1/things?${name}=default`)
  for (const name of ['x-tenant', 'x-tenant-id', 'tidemark-tenant', 'x-scope-orgid'])
    await same('/agents/v1/things', { [name]: 'default' })
  for (const path of [
    '/agents/v1/default/things',
    '/default/agents/v1/things',
    '/agents/v1/default.things',
    '/tenants/default/things',
  ]) {
    expect([path, (await stand.get(path, { key })).status]).toEqual([path, 404])
  }
  const asked = await stand.post('/api/syncs/crm/delta/pause', {
    key,
    body: JSON.stringify({ tenant: 'default' }),
    headers: { 'content-type': 'application/json' },
  })
  expect(asked.text).not.toContain(SECRET)
  expect((await stand.store.readCheckpoint({ worker: 'crm', sync: 'delta' })).paused).toBe(false)
})

test('Z15 data of another tenant is indistinguishable from missing data: the same status, message and queries to the store', async () => {
  const { stand, key } = await twoTenants()
  const asks: string[] = []
  const watched = (store: Store): Store =>
    new Proxy(store, {
      get(of, name: keyof Store) {
        const value = of[name]
        if (name === 'forTenant') return (tenant: string) => watched(of.forTenant(tenant))
        return typeof value !== 'function'
          ? value
          : (...args: never[]) => {
              asks.push(name)
              return (value as (...given: never[]) => unknown).apply(of, args)
            }
      },
    })
  const silent = (): void => {}
  const ports = {
    clock: systemClock,
    random: systemRandom,
    log: { debug: silent, info: silent, warn: silent, error: silent },
  } satisfies Ports
  const { app, close } = createServer({ store: watched(stand.store), ports, version: '0' })
  await app.ready()
  const ask = async (url: string): Promise<object> => {
    asks.length = 0
    const { statusCode, body } = await app.inject({ url, headers: { authorization: `Bearer ${key}` } })
    return { statusCode, body: body.replace(/"requestId":"[^"]*"/, ''), asks: [...asks] }
  }
  for (const [theirs, nobodys] of [
    ['things/ours', 'things/none'],
    ['private', 'nothing'],
    ['private/ours', 'nothing/ours'],
  ] as const) {
    // A first request, because the caller is looked up only once.
    await ask(`/agents/v1/${nobodys}`)
    const foreign = await ask(`/agents/v1/${theirs}`)
    expect(foreign).toMatchObject({ statusCode: 404 })
    expect(
      JSON.stringify(foreign)
        .replaceAll(theirs.split('/').at(-1)!, nobodys.split('/').at(-1)!)
        .replaceAll('private', 'nothing'),
    ).toEqual(JSON.stringify(await ask(`/agents/v1/${nobodys}`)))
  }
  await close()
})

test('Z19 an internal error has a code, a message, a status and a request id, and nothing else', async () => {
  const harness = await openHarness()
  const key = await addKey(harness.store, ['*:read', 'changes:read', 'admin'])
  const TEXT = `select * from tidemark_log where key = '${SECRET}' at Object.<anonymous> (/srv/app/${SECRET}.ts:1:1)`
  const thrown = [
    new Error(TEXT),
    Object.assign(new Error(TEXT), { code: '42P01', statusCode: 418, detail: TEXT, stack: TEXT }),
    TEXT,
    null,
    { message: TEXT },
  ]
  let nth = 0
  // Only authentication works; every other call fails.
  const broken: Store = new Proxy(harness.store, {
    get: (of, name: keyof Store) => {
      if (name === 'tenant') return of.tenant
      if (name === 'forTenant') return () => broken
      if (name === 'apiKey' || name === 'close') return of[name].bind(of)
      return () => Promise.reject(thrown[nth++ % thrown.length])
    },
  })
  const lines: string[] = []
  const note = (message: string, fields?: object): void => void lines.push(JSON.stringify({ message, ...fields }))
  const ports = {
    clock: systemClock,
    random: systemRandom,
    log: { debug: note, info: note, warn: note, error: note },
  } satisfies Ports
  const { app, close } = createServer({ store: broken, ports, version: '0' })
  await app.ready()
  let failed = 0
  for (const { method, path } of ROUTES) {
    for (let n = 0; n < thrown.length; n++) {
      const { statusCode, body, headers } = await app.inject({
        method: method as 'GET',
        url: path.replaceAll(/:\w+/g, 'things'),
        headers: { authorization: `Bearer ${key}` },
      })
      expect(`${body}${JSON.stringify(headers)}`, `${method} ${path}`).not.toMatch(/heron|select \*|\/srv\/|at Object/)
      if (statusCode < 500 || !body.startsWith('{"error"')) continue
      failed++
      const answer = JSON.parse(body) as Record<string, unknown>
      expect(Object.keys(answer).filter((name) => name !== 'details')).toEqual([
        'error',
        'message',
        'status',
        'requestId',
      ])
      expect(headers['x-request-id']).toBe(answer['requestId'])
    }
  }
  expect(failed).toBeGreaterThan(20)
  await close()
  await harness.close()
})
