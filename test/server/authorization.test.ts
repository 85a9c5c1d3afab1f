import { describe, expect, test } from 'vitest'
import type { Route } from '../../src/server/route.ts'
import { ROUTES, type ServerOptions } from '../../src/server/server.ts'
import { makeQuarantined, upsert } from '../../src/testing/store-cases/harness.ts'
import { openHarness } from '../stores/sqlite-harness.ts'
import { addConnection, addDestination, API_KEY, BODIES, pathOf, SELECT, WEBHOOK } from './route-samples.ts'
import { addKey, ServerFixture } from './server-fixture.ts'

const ALL_SCOPES = ['changes:read', '*:read', 'things:read', 'sync:read', 'sync:write', 'connections:write', 'admin']
const CANARY = 'canary'
const ROUTES_PER_SERVER = 40

class World {
  readonly stand: ServerFixture
  private constructor(stand: ServerFixture) {
    this.stand = stand
  }

  /** Two tenants; the first has data for every route. */
  static async open(options: Partial<ServerOptions> = { host: '0.0.0.0' }): Promise<World> {
    const stand = await ServerFixture.open(openHarness, { select: SELECT, ...options })
    await (await stand.driver()).cycle([upsert('b', { text: CANARY })])
    await stand.store.putWebhook({ ...WEBHOOK, url: `${WEBHOOK.url}${CANARY}` }, { sequence: 0, floor: 0 })
    await stand.store.addApiKey(API_KEY)
    await addDestination(stand.store, CANARY)
    await addConnection(stand.store)
    return new World(stand)
  }

  async ask(
    route: Route,
    key: string | null,
    headers: Record<string, string> = {},
  ): Promise<{ status: number; text: string }> {
    const body = BODIES[route.id]
    const { port } = new URL(this.stand.url)
    const response = await fetch(`http://127.0.0.1:${port}${pathOf(route)}`, {
      method: route.method,
      headers: {
        ...(key !== null && { authorization: `Bearer ${key}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: response.status, text: await response.text() }
  }

  /** Everything that a route could have changed. */
  async state(): Promise<string> {
    const { store } = this.stand
    return JSON.stringify([
      await store.webhooks(),
      await store.readCheckpoint({ worker: 'crm', sync: 'delta' }),
      await store.headSequence(),
      await store.apiKeys(),
      await store.destinations(),
      await store.connections(),
    ])
  }
}

const closed = ROUTES.filter(({ access }) => access.kind !== 'public' && access.kind !== 'open')
const scoped = closed.filter(({ access }) => access.kind !== 'key')

describe('Z43 every route', () => {
  test('shows the content of records only to a key that may read their database, quarantined or committed', async () => {
    const world = await World.open()
    const driver = await world.stand.driver('other')
    await driver.cycle([], {
      quarantined: [makeQuarantined(`key-${CANARY}`, { message: `not a ${CANARY}`, text: `{"text":"${CANARY}"}` })],
    })
    const readers = new Map([
      ['changes:read', ['listChanges', 'consoleChanges']],
      ['things:read', null],
      ['*:read', null],
      ['admin', null],
    ])
    const leaks: string[] = []
    for (const scope of [...ALL_SCOPES, 'others:read']) {
      for (const scopes of [[scope], [scope, 'sync:read']]) {
        const key = await addKey(world.stand.store, scopes)
        for (const route of closed.filter(({ method }) => method === 'GET')) {
          const mayRead = readers.has(scope) && (readers.get(scope) ?? [route.id]).includes(route.id)
          const { text } = await world.ask(route, key)
          if (!mayRead && text.includes(CANARY)) leaks.push(`${route.id} with ${scopes.join(', ')}`)
        }
      }
    }
    expect(leaks).toEqual([])
    // The search can find: a caller that may read the database sees its quarantined records.
    const quarantine = ROUTES.find(({ id }) => id === 'listQuarantine')!
    expect((await world.ask(quarantine, await addKey(world.stand.store, ['sync:read', 'things:read']))).text).toContain(
      `key-${CANARY}`,
    )
    expect(
      JSON.parse((await world.ask(quarantine, await addKey(world.stand.store, ['sync:read', 'others:read']))).text),
    ).toMatchObject({ data: [{ database: 'things', key: null, text: null, code: 'RECORD_INVALID' }] })
  })

  test('is in this table: public routes are listed', () => {
    expect(
      ROUTES.filter(({ access }) => access.kind === 'public')
        .map(({ id }) => id)
        .toSorted(),
    ).toEqual([
      'getHealth',
      'getReadiness',
      'openConnectPage',
      'readConnectDoneScript',
      'readConnectResult',
      'readConnectScript',
      'readConnectStyle',
      'receiveConnectCallback',
      'receiveWebhook',
      'receiveWebhookOfTenant',
      'submitConnectPage',
    ])
    expect(ROUTES.filter(({ access }) => access.kind === 'open').map(({ id }) => id)).toEqual(['getOpenApi'])
    for (const { id, body } of ROUTES) if (body?.['required'] !== undefined) expect(BODIES, id).toHaveProperty(id)
  })

  test('rejects a missing, wrong or ended key, and changes nothing', async () => {
    // A server limits failed attempts, so each asks for some of the routes.
    for (let from = 0; from < closed.length; from += ROUTES_PER_SERVER) {
      const world = await World.open()
      const ended = await addKey(world.stand.store, ALL_SCOPES, { endsAt: Date.now() - 1 })
      const before = await world.state()
      for (const route of closed.slice(from, from + ROUTES_PER_SERVER)) {
        for (const key of [null, ended, `${ended}x`, `tmk_${'0'.repeat(16)}_${'A'.repeat(43)}`]) {
          const { status, text } = await world.ask(route, key)
          expect([route.id, status, text.includes(CANARY)]).toEqual([route.id, 401, false])
        }
      }
      expect(await world.state()).toBe(before)
    }
  })

  test('rejects every key without its scope, whatever its other scopes, and changes nothing', async () => {
    const world = await World.open()
    const keys = new Map<string, string>()
    for (const scope of [...ALL_SCOPES, 'others:read']) keys.set(scope, await addKey(world.stand.store, [scope]))
    const before = await world.state()
    for (const route of scoped) {
      const needed = neededBy(route)
      for (const [scope, key] of keys) {
        if (needed.includes(scope)) continue
        const { status, text } = await world.ask(route, key)
        expect([route.id, scope, status, text.includes(CANARY)]).toEqual([route.id, scope, 403, false])
      }
    }
    expect(await world.state()).toBe(before)
  })

  test('invariant 10 shows and changes nothing of another tenant', async () => {
    const world = await World.open()
    const foreign = await addKey(world.stand.store.forTenant('acme'), ALL_SCOPES)
    const before = await world.state()
    for (const route of closed) {
      const { status, text } = await world.ask(route, foreign)
      expect([route.id, text.includes(CANARY)]).toEqual([route.id, false])
      if (/:(?:database|sync|destination|connection|webhook|apiKey)/.test(route.path))
        expect([route.id, status]).toEqual([route.id, 404])
      else expect([route.id, status]).toEqual([route.id, 200])
    }
    expect(await world.state()).toBe(before)
  })

  test('responds to a caller with the scope', async () => {
    const world = await World.open()
    const key = await addKey(world.stand.store, ['admin'])
    for (const route of closed) expect([route.id, (await world.ask(route, key)).status]).toEqual([route.id, 200])
  })

  test('requires a key on this machine too, if configured', async () => {
    const world = await World.open({ host: '127.0.0.1', keysOnly: true })
    const key = await addKey(world.stand.store, ['admin'])
    const before = await world.state()
    for (const route of closed) expect([route.id, (await world.ask(route, null)).status]).toEqual([route.id, 401])
    expect(await world.state()).toBe(before)
    for (const route of closed.filter(({ method }) => method === 'GET').slice(0, 3))
      expect([route.id, (await world.ask(route, key)).status]).toEqual([route.id, 200])
  })

  test('for control is open to programs on this machine only, and to no cross-site page', async () => {
    const world = await World.open({ host: '127.0.0.1' })
    for (const route of closed) {
      const expected = route.access.kind === 'control' ? [200, 403, 403, 403, 403, 401] : [401, 401, 401, 401, 401, 401]
      const before = await world.state()
      const refused = [
        await world.ask(route, null, { origin: 'https://evil.example' }),
        await world.ask(route, null, { 'sec-fetch-site': 'cross-site' }),
        await world.ask(route, null, { 'sec-fetch-site': 'same-site' }),
        await world.ask(route, null, { 'x-forwarded-for': '1.2.3.4' }),
        await world.ask(route, 'wrong'),
      ].map(({ status }) => status)
      expect(await world.state()).toBe(before)
      // DNS rebinding: another host name that resolves to this machine.
      const rebound = await world.stand.server.app.inject({
        method: route.method,
        url: route.path,
        headers: { host: 'evil.example' },
      })
      expect([route.id, rebound.statusCode]).toEqual([route.id, route.access.kind === 'control' ? 403 : 401])
      expect([route.id, [(await world.ask(route, null)).status, ...refused]]).toEqual([route.id, expected])
    }
  })
})

/** The scopes above that grant access. */
function neededBy({ access }: Route): string[] {
  if (access.kind !== 'scope' && access.kind !== 'control') return ALL_SCOPES
  switch (access.scope) {
    case 'changes:read':
      return ['changes:read', '*:read', 'admin']
    case ':database:read':
      return ['things:read', '*:read', 'admin']
    case 'connections:read':
      return ['connections:write', 'admin']
    case 'sync:read':
      return ['sync:read', 'sync:write', 'admin']
    default:
      return [access.scope, 'admin']
  }
}
