import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Page, Store, SyncContext } from '../../src/contract/index.ts'
import { watchTenants } from '../../src/runner/watch-tenants.ts'
import { generateSecret, serializeSecrets } from '../../src/webhooks/secrets.ts'
import { TenantDeliverers } from '../../src/webhooks/tenant-deliverers.ts'
import { declare, MINUTE, ref, RunnerFixture, SECOND } from './runner-fixture.ts'

let scene: RunnerFixture
beforeEach(async () => void (scene = await RunnerFixture.open()))
afterEach(() => scene.close())

const asked: string[] = []
beforeEach(() => void (asked.length = 0))
const execute = async (_: unknown, { secrets }: SyncContext): Promise<Page> => {
  asked.push(secrets.get('WHO'))
  return { changes: [{ type: 'upsert', key: secrets.get('WHO'), record: {} }], hasMore: false }
}
const secrets = (tenant: string): { get: () => string } => ({ get: () => tenant })

describe('a tenant that appears while a runner runs', () => {
  test('has its syncs run from then on, and is subscribed to', async () => {
    const heard: string[] = []
    const store: Store = new Proxy(scene.store, {
      get: (target, name) =>
        name === 'subscribe'
          ? () => ({ addTenant: (tenant: string) => heard.push(tenant), close: async () => {} })
          : (Reflect.get(target, name) as unknown),
    })
    const runner = scene.runner(declare({ hourly: { schedule: '1h', execute } }), { store, secrets })
    await runner.start()
    await scene.time.advance(MINUTE)
    expect(asked).toEqual(['default'])
    runner.addTenant('acme')
    runner.addTenant('acme')
    await scene.time.advance(MINUTE)
    expect(asked).toEqual(['default', 'acme'])
    expect(heard).toEqual(['acme'])
    expect(runner.status().syncs.map(({ tenant }) => tenant)).toEqual(['default', 'acme'])
    await scene.time.advance(60 * MINUTE)
    expect(asked).toEqual(['default', 'acme', 'default', 'acme'])
    await scene.trigger('hourly', scene.store.forTenant('acme'))
    await scene.time.advance(MINUTE)
    expect(asked.at(-1)).toBe('acme')
  })

  test('Z14 and is erased meanwhile does not return by its schedule, only by a trigger', async () => {
    const acme = scene.store.forTenant('acme')
    const runner = scene.runner(declare({ hourly: { schedule: '1h', execute } }), { secrets, tenants: ['acme'] })
    await runner.start()
    await scene.time.advance(MINUTE)
    expect(asked).toEqual(['acme'])
    expect(await acme.eraseTenant({ actor: 'ana', at: scene.time.now() })).toMatchObject({ kind: 'erased', syncs: 1 })
    await scene.time.advance(3 * 60 * MINUTE)
    // Nor by a runner that is started later.
    await scene.runner(declare({ hourly: { schedule: '1h', execute } }), { secrets, tenants: ['acme'] }).start()
    await scene.time.advance(MINUTE)
    expect([asked, await acme.syncs(), await acme.databases()]).toEqual([['acme'], [], []])
    expect(scene.events.filter((event) => event.kind === 'store').map(({ code }) => code)).toContain('TENANT_ERASED')
    await scene.trigger('hourly', acme)
    await scene.time.advance(10 * MINUTE)
    expect(asked).toEqual(['acme', 'acme'])
  })

  test('is reported once, when it has data; an erased tenant is not reported', async () => {
    const told: string[] = []
    const stopping = new AbortController()
    await scene.trigger('delta', scene.store.forTenant('known'))
    await scene.trigger('delta', scene.store.forTenant('erased'))
    await scene.store.forTenant('erased').eraseTenant({ actor: 'ana', at: scene.time.now() })
    const watching = watchTenants(scene.store, scene.ports(), (tenant) => told.push(tenant), stopping.signal)
    await scene.time.advance(20 * SECOND)
    expect(told).toEqual(['known'])
    await scene.store
      .forTenant('later')
      .addApiKey({ id: 'k', name: '', hash: '', scopes: [], rateLimit: 1, createdAt: 0, endsAt: null })
    await scene.time.advance(20 * SECOND)
    expect(told).toEqual(['known', 'later'])
    await scene.trigger('delta', scene.store.forTenant('erased'))
    await scene.time.advance(20 * SECOND)
    expect(told).toEqual(['known', 'later', 'erased'])
    stopping.abort(new Error('enough'))
    await watching
  })

  test('a store that cannot list tenants for a while is retried', async () => {
    const told: string[] = []
    const stopping = new AbortController()
    let failures = 2
    const store: Store = {
      ...scene.store,
      tenants: async () => (failures-- > 0 ? Promise.reject(new Error('gone')) : scene.store.tenants()),
    }
    await scene.trigger('delta', scene.store.forTenant('acme'))
    const watching = watchTenants(store, scene.ports(), (tenant) => told.push(tenant), stopping.signal)
    await scene.time.advance(20 * SECOND)
    expect(told).toEqual(['acme'])
    stopping.abort(new Error('enough'))
    await watching
  })
})

test('webhooks of every tenant are delivered, each with its own changes, including tenants that appear later', async () => {
  const sent: Array<readonly [string, string]> = []
  const runner = scene.runner(declare({ once: { schedule: '1d', execute } }), {
    tenants: ['default', 'acme', 'late'],
    secrets,
  })
  for (const tenant of ['default', 'acme', 'late']) {
    await scene.store.forTenant(tenant).putWebhook(
      {
        id: 'w',
        url: `https://${tenant}.example`,
        databases: null,
        actions: null,
        allow: [],
        secrets: serializeSecrets([{ secret: generateSecret(), endsAt: null }]),
        createdAt: 0,
      },
      { sequence: 0, floor: 0 },
    )
  }
  const deliverers = new TenantDeliverers({
    store: scene.store,
    ports: scene.ports(),
    holder: 'process',
    send: async ({ url, body }) => {
      sent.push([new URL(url).host, (JSON.parse(body) as { resourceId: string }).resourceId])
      return { kind: 'delivered', status: 200, response: null, retryAfterMs: null }
    },
  })
  deliverers.add('acme')
  deliverers.start()
  await runner.start()
  await scene.time.advance(10 * SECOND)
  expect(Object.fromEntries(sent)).toEqual({ 'acme.example': 'acme', 'default.example': 'default' })
  deliverers.add('late')
  await scene.time.advance(10 * SECOND)
  expect(sent.at(-1)).toEqual(['late.example', 'late'])
  await Promise.all([deliverers.stop({ graceMs: 1 }), scene.time.advance(SECOND)])
  await scene.store.signalSync(ref('once'), { kind: 'trigger', actor: 'test', at: scene.time.now() })
  await scene.time.advance(10 * SECOND)
  expect(sent).toHaveLength(3)
})
