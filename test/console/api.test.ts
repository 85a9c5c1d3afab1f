import { describe, expect, test } from 'vitest'
import type { Lease, Store } from '../../src/contract/index.ts'
import { Worker } from '../../src/index.ts'
import type { Schedule } from '../../src/config/schedule.ts'
import { addConnection } from '../../src/connections/manage-connections.ts'
import { listDeclaredSyncs } from '../../src/runner/declared-sync.ts'
import { computeLateAt } from '../../src/runner/late.ts'
import type { ActivityDocument, FleetDocument, ProviderDocument } from '../../src/server/console/documents.ts'
import { SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { addKey, ServerFixture } from '../server/server-fixture.ts'
import { openHarness } from '../stores/sqlite-harness.ts'
import { ports } from './console-fixture.ts'

const SECRET = 'secret-cursor'

async function filled(options: Parameters<typeof ServerFixture.open>[1] = {}): Promise<ServerFixture> {
  const stand = await ServerFixture.open(openHarness, options)
  await (await stand.driver()).cycle([upsert('a', { n: 1 })], { state: JSON.stringify({ cursor: SECRET }) })
  return stand
}

describe('the console API', () => {
  test('invariant 10 Z43 states are shown as digests; revealing one requires the scope admin and is logged', async () => {
    const stand = await filled({ host: '0.0.0.0' })
    const reader = await addKey(stand.store, ['sync:write', '*:read'])
    for (const path of [
      '/console/api/overview',
      '/console/api/syncs/crm/delta',
      '/console/api/syncs/crm/delta/checkpoints',
    ]) {
      const { text, status } = await stand.get(path, { key: reader })
      expect([path, status, text.includes(SECRET)]).toEqual([path, 200, false])
    }
    expect((await stand.get('/console/api/syncs/crm/delta/checkpoints', { key: reader })).body.data[0].state).toEqual({
      digest8: expect.stringMatching(/^[0-9a-f]{8}$/),
      bytes: 26,
    })
    const refused = await stand.get('/console/api/syncs/crm/delta/checkpoints?reveal=true', { key: reader })
    expect([refused.status, refused.text.includes(SECRET)]).toEqual([403, false])
    const shown = await stand.get('/console/api/syncs/crm/delta/checkpoints?reveal=true', {
      key: await addKey(stand.store, ['admin']),
    })
    expect(shown.body.data[0].state.value).toEqual({ cursor: SECRET })
    expect(stand.lines.filter((line) => line.includes('revealed'))).toEqual([expect.stringContaining('"sync":"delta"')])
    expect(stand.lines.join()).not.toContain(SECRET)
  })

  test('invariant 10 a local caller without a key sees no state: revealing requires a key with the scope admin', async () => {
    const stand = await filled()
    const path = '/console/api/syncs/crm/delta/checkpoints?reveal=true'
    const anonymous = await stand.get(path, { key: null })
    expect([anonymous.status, anonymous.text.includes(SECRET)]).toEqual([403, false])
    expect((await stand.get(path, { key: await addKey(stand.store, ['sync:write']) })).status).toBe(403)
    expect((await stand.get(path, { key: await addKey(stand.store, ['admin']) })).text).toContain(SECRET)
  })

  test('Z43 a cross-site page cannot write without a key, even from this machine: a custom header is required', async () => {
    const stand = await filled()
    const origin = stand.url
    for (const path of [
      '/api/syncs/crm/delta/pause',
      '/console/api/syncs/crm/delta/reset',
      '/api/webhooks/x/pause',
      '/console/api/keys',
    ]) {
      expect((await stand.post(path, { key: null, headers: { origin } })).status, path).toBe(403)
      expect((await stand.post(path, { key: null, headers: { 'sec-fetch-site': 'none' } })).status, path).toBe(403)
    }
    expect((await stand.store.readCheckpoint({ worker: 'crm', sync: 'delta' })).paused).toBe(false)
    expect(
      (await stand.post('/api/syncs/crm/delta/pause', { key: null, headers: { origin, 'x-tidemark-console': '1' } }))
        .status,
    ).toBe(200)
    // A program sends no origin, and reading needs no header.
    expect((await stand.post('/api/syncs/crm/delta/resume', { key: null })).status).toBe(200)
    expect((await stand.get('/console/api/overview', { key: null, headers: { origin } })).status).toBe(200)
  })

  test('a reset without a version only plans; with one it applies to exactly that version, under the lease', async () => {
    const stand = await filled()
    const reset = (body: object) =>
      stand.post('/console/api/syncs/crm/delta/reset', {
        key: null,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    const before = await stand.store.readCheckpoint({ worker: 'crm', sync: 'delta' })
    expect((await reset({})).body.data).toEqual({
      isDone: false,
      version: 1,
      forgets: { digest8: expect.any(String), bytes: 26 },
      givesUp: null,
      heldBy: expect.any(String),
      nextCycle: expect.any(String),
      needsBackfill: null,
    })
    expect((await reset({ version: 1, reason: ' ' })).status).toBe(400)
    const taken = await stand.store.acquire(
      { worker: 'crm', sync: 'delta' },
      { holder: 'another', ttlMs: 60_000, at: Date.now() },
    )
    expect(await reset({ version: 1, reason: 'try' })).toMatchObject({
      status: 409,
      body: { error: 'CONFLICT', message: expect.stringMatching(/is run by another/) },
    })
    expect(await stand.store.readCheckpoint({ worker: 'crm', sync: 'delta' })).toMatchObject({
      version: 1,
      committed: before.committed,
    })
    await stand.store.release((taken as { lease: Lease }).lease)
    expect(await reset({ version: 0, reason: 'try' })).toMatchObject({
      status: 409,
      body: { message: expect.stringMatching(/is at version 1, not 0/) },
    })
    expect((await reset({ version: 1, reason: 'a new account' })).body.data).toMatchObject({ isDone: true, version: 2 })
    expect(await stand.store.readCheckpoint({ worker: 'crm', sync: 'delta' })).toMatchObject({
      version: 2,
      committed: null,
      heldBy: null,
    })
    expect((await stand.store.audit({ worker: 'crm', sync: 'delta' }))[0]).toMatchObject({
      action: 'set',
      actor: 'console:local',
      reason: 'a new account',
    })
  })

  test('invariant 10 the tenants of the store are listed for an admin of the worker’s own tenant; others see only themselves', async () => {
    const stand = await filled({ host: '0.0.0.0' })
    await stand.store
      .forTenant('acme')
      .signalSync({ worker: 'w', sync: 's' }, { kind: 'pause', actor: 'ana', at: Date.now() })
    const tenants = async (key: string) => (await stand.get('/console/api/tenants', { key })).body.data
    const own = stand.store.tenant
    expect(await tenants(await addKey(stand.store, ['admin']))).toEqual({
      isCut: false,
      tenants: expect.arrayContaining([
        { tenant: 'acme', syncs: 1, databases: 0, rows: 0, changes: 0 },
        expect.objectContaining({ tenant: own, rows: 1, changes: 1 }),
      ]),
    })
    expect(await tenants(await addKey(stand.store.forTenant('acme'), ['admin']))).toEqual({
      isCut: false,
      tenants: [{ tenant: 'acme', syncs: 1, databases: 0, rows: 0, changes: 0 }],
    })
    expect(
      (await stand.get('/console/api/tenants', { key: await addKey(stand.store, ['sync:write', '*:read']) })).status,
    ).toBe(403)
  })

  test('invariant 10 why a key is missing: the source is queried only for the tenant of the worker', async () => {
    const asked: string[] = []
    const worker = new Worker({ name: 'crm' })
    worker.sync('delta', {
      database: worker.database('people'),
      mode: 'incremental',
      schedule: 'manual',
      execute: async () => ({ changes: [], hasMore: false, nextState: {} }),
      lookup: async (key) => {
        asked.push(key)
        return { type: 'upsert', key, record: {} }
      },
    })
    const outside = { ports, fetch: () => Promise.reject(new TypeError('nothing leaves')), secrets: { get: () => '' } }
    const stand = await filled({ host: '0.0.0.0', syncs: listDeclaredSyncs(worker), sourceRuntime: outside })
    const post = async (store: Store, scopes: string[], database = 'people') =>
      stand.post(`/console/api/databases/${database}/rows/x/why-not`, { key: await addKey(store, scopes) })
    expect(await post(stand.store, ['people:read'])).toMatchObject({
      status: 200,
      body: {
        data: { verdict: expect.stringMatching(/never_read|left_out|not_yet/), source: { kind: 'has', sync: 'delta' } },
      },
    })
    expect(asked).toEqual(['x'])
    expect(await post(stand.store.forTenant('acme'), ['people:read'])).toMatchObject({
      status: 200,
      body: { data: { source: { kind: 'unasked' } } },
    })
    expect((await post(stand.store, ['orders:read'])).status).toBe(403)
    expect((await post(stand.store, ['*:read'], 'nothing')).status).toBe(404)
    expect(asked).toEqual(['x'])
  })

  test('the overview is sent again only after a change', async () => {
    const stand = await filled()
    const first = await stand.get('/console/api/overview', { key: null })
    const tag = first.headers.get('etag')!
    stand.shift.ms = 3_600_000
    expect((await stand.get('/console/api/overview', { key: null, headers: { 'if-none-match': tag } })).status).toBe(
      304,
    )
    await stand.store.signalSync({ worker: 'crm', sync: 'delta' }, { kind: 'pause', actor: 'ana', at: Date.now() })
    expect(
      (await stand.get('/console/api/overview', { key: null, headers: { 'if-none-match': tag } })).body.data.syncs[0]
        .health,
    ).toBe('PAUSED')
  })

  test('rows are read in pages, and none is lost between two responses', async () => {
    const stand = await ServerFixture.open(openHarness)
    const driver = await stand.driver()
    await driver.cycle(
      Array.from({ length: 6_200 }, (_, n) =>
        upsert(`k${String(n).padStart(5, '0')}`, { n, even: n % 2 === 0, name: n % 100 === 7 ? 'Needle' : 'hay' }),
      ),
    )
    const all = async (query: string): Promise<{ keys: string[]; asked: number }> => {
      const keys: string[] = []
      let [next, asked] = ['', 0]
      do {
        const { body } = await stand.get(
          `/console/api/databases/things/rows?limit=40${query}${next === '' ? '' : `&after=${next}`}`,
          { key: null },
        )
        keys.push(...body.data.map(({ key }: { key: string }) => key))
        next = body.next ?? ''
        asked++
      } while (next !== '')
      return { keys, asked }
    }
    const found = await all('&search=needle')
    expect(found.keys).toEqual(Array.from({ length: 62 }, (_, n) => `k${String(n * 100 + 7).padStart(5, '0')}`))
    expect((await all('&search=K0000')).keys).toHaveLength(10)
    expect((await all('&search=nowhere')).asked).toBe(1)
    expect((await all('')).keys).toHaveLength(6_200)
    expect((await stand.get('/console/api/databases/nothing/rows', { key: null })).status).toBe(404)
  })

  test('static files have a strict content security policy, and no other file is reachable', async () => {
    const stand = await filled()
    const page = await stand.get('/console/syncs/any/thing', { key: null })
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    expect(page.headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; script-src 'self'; .*frame-ancestors 'none'$/,
    )
    const [, script] = /src="(\/console\/assets\/[^"]+\.js)"/.exec(page.text)!
    const asset = await stand.get(script!, { key: null, headers: { 'accept-encoding': 'br' } })
    expect([asset.status, asset.headers.get('content-encoding'), asset.headers.get('cache-control')]).toEqual([
      200,
      'br',
      'public, max-age=31536000, immutable',
    ])
    for (const path of ['/console/assets/none.js', '/console/assets/..%2f..%2fpackage.json', '/console/api/nothing'])
      expect((await stand.get(path, { key: null })).status, path).toBe(404)
    const outside = await stand.get('/console/..%2f..%2fpackage.json', { key: null })
    expect(outside.text).not.toContain('"dependencies"')
    const root = await fetch(`${stand.url}/`, { redirect: 'manual' })
    expect([root.status, root.headers.get('location')]).toEqual([302, '/console/'])
  })
})

const HOUR_MS = 3_600_000

describe('the activity of the console', () => {
  test('is computed from all stored cycles of the range: rows, failures and, for one sync, its lag', async () => {
    const stand = await ServerFixture.open(openHarness)
    const now = Date.now()
    const cycle = async (sync: string, hoursAgo: number, rows: number, isFailed = false): Promise<void> => {
      const driver = await SyncDriver.acquire(stand.store, { sync })
      const at = now - hoursAgo * HOUR_MS
      await driver.begin({ at })
      const landings = Array.from({ length: rows }, (_, n) => upsert(`${sync}-${hoursAgo}-${n}`, { n }))
      const error = { code: 'SOURCE_TIMEOUT', message: 'no answer' } as const
      if (isFailed) await driver.release({ endedAt: at + 1_000, stopReason: 'error', error })
      else {
        await driver.complete(landings, { at: at + 1_000 })
        await driver.release()
      }
    }
    await cycle('slow', 100, 5)
    await cycle('slow', 20, 7)
    await cycle('slow', 19.5, 0, true)
    await cycle('quick', 0.2, 3)
    const read = async (query: string) =>
      (await stand.get(`/console/api/activity?${query}`, { key: null })).body.data as ActivityDocument
    const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
    const facts = async (query: string) => {
      const { rows, cycles, failed } = await read(query)
      return [sum(rows), sum(cycles), sum(failed)]
    }
    expect(await facts('range=1h')).toEqual([3, 1, 0])
    expect(await facts('range=24h')).toEqual([10, 3, 1])
    expect(await facts('range=7d')).toEqual([15, 4, 1])
    expect(await facts('range=7d&worker=crm&sync=slow')).toEqual([12, 3, 1])
    expect((await read('range=24h')).lagMs).toBeNull()
    const { lagMs, stepMs, from } = await read('range=24h&worker=crm&sync=slow')
    // Known from the complete cycle before the range on, and reset by the next complete one alone.
    const stepOf = (hoursAgo: number): number => Math.floor((now - hoursAgo * HOUR_MS - Date.parse(from)) / stepMs)
    expect(lagMs![stepOf(20) - 1]! / HOUR_MS).toBeCloseTo(80, 0)
    expect(lagMs![stepOf(20)]! / stepMs).toBeLessThanOrEqual(1)
    expect(lagMs!.at(-1)! / HOUR_MS).toBeCloseTo(20, 1)
    expect((await stand.get('/console/api/activity?range=1y', { key: null })).status).toBe(400)
  })

  test('invariant 10 the activity and the details of a sync are those of the caller’s tenant', async () => {
    const stand = await filled({ host: '0.0.0.0' })
    const theirs = await addKey(stand.store.forTenant('acme'), ['sync:read'])
    const ours = await addKey(stand.store, ['sync:read'])
    const rows = async (key: string) =>
      ((await stand.get('/console/api/activity?range=7d', { key })).body.data as ActivityDocument).rows.length
    expect([await rows(theirs), await rows(ours)]).toEqual([84, 84])
    const path = '/console/api/syncs/crm/delta/details'
    expect((await stand.get(path, { key: theirs })).status).toBe(404)
    expect((await stand.get(path, { key: ours })).body.data).toMatchObject({ pacers: [], isCut: false })
  })
})

describe('the syncs of all tenants', () => {
  async function open(options: Parameters<typeof ServerFixture.open>[1] = {}) {
    const worker = new Worker({ name: 'crm' })
    worker.sync('delta', {
      database: worker.database('people'),
      mode: 'incremental',
      schedule: '1h',
      execute: async () => ({ changes: [], hasMore: false, nextState: {} }),
    })
    const stand = await ServerFixture.open(openHarness, {
      host: '0.0.0.0',
      syncs: listDeclaredSyncs(worker),
      isServedTenant: (tenant) => tenant !== 'foreign',
      ...options,
    })
    for (const tenant of ['acme', 'foreign'])
      for (const sync of ['delta', 'hidden']) {
        const driver = await SyncDriver.acquire(stand.store.forTenant(tenant), { sync })
        await driver.begin()
        await driver.page([upsert('a', { n: 1 })], { state: JSON.stringify({ cursor: SECRET }) })
        await driver.release({
          stopReason: 'error',
          error: { code: 'AUTH_REJECTED', message: `https://${SECRET}.example answered 401.` },
        })
      }
    return stand
  }

  test('invariant 10 are listed for an admin of the worker’s own tenant alone', async () => {
    const stand = await open()
    const status = async (store: Store, scopes: string[]) =>
      (await stand.get('/console/api/fleet', { key: await addKey(store, scopes) })).status
    expect(await status(stand.store, ['sync:write', '*:read'])).toBe(403)
    const theirs = await stand.get('/console/api/fleet', {
      key: await addKey(stand.store.forTenant('acme'), ['admin']),
    })
    expect(new Set((theirs.body.data as FleetDocument).syncs.map(({ tenant }) => tenant))).toEqual(new Set(['acme']))
    expect(await status(stand.store, ['admin'])).toBe(200)
    const session = async (store: Store, scopes: string[]) =>
      (await stand.get('/console/api/session', { key: await addKey(store, scopes) })).body.data.tenants
    expect(await session(stand.store.forTenant('acme'), ['admin'])).toBe(1)
    expect(await session(stand.store, ['sync:read'])).toBe(1)
    expect(await session(stand.store, ['admin'])).toBeGreaterThan(1)
  })

  test('invariant 10 have no message, state or reason of another tenant, and only declared syncs of served tenants', async () => {
    const stand = await open()
    const answer = await stand.get('/console/api/fleet', { key: await addKey(stand.store, ['admin']) })
    const { syncs } = answer.body.data as FleetDocument
    expect(syncs.map(({ tenant, sync }) => `${tenant}/${sync}`).toSorted()).toEqual([
      'acme/delta',
      `${stand.store.tenant}/delta`,
    ])
    expect(answer.text).not.toContain(SECRET)
    expect(syncs.find(({ tenant }) => tenant === 'acme')).toMatchObject({
      health: 'ERROR',
      failures: 1,
      lastError: { code: 'AUTH_REJECTED', advice: expect.stringContaining('tidemark resume delta') },
      heldBy: null,
      state: null,
      tidemark: null,
    })
  })
})

describe('a late sync', () => {
  const START = Date.parse('2026-03-01T00:00:00Z')
  const checkpoint = { completeSince: START, lastSuccessAt: START, paused: false } as never
  const cycle = (ms: number) => [{ stopReason: 'complete', startedAt: START, endedAt: START + ms }] as never
  const late = (schedule: Schedule, ms = 0, change: object = {}) =>
    computeLateAt({ schedule }, { checkpoint: { ...(checkpoint as object), ...change } as never, recent: cycle(ms) })

  test('has missed two slots of its schedule, and twice the time of its last cycle', () => {
    const hourly = { kind: 'interval', intervalMs: HOUR_MS } as const
    expect(late(hourly)).toBe(START + 2 * HOUR_MS + 600_000)
    expect(late(hourly, HOUR_MS)).toBe(START + 4 * HOUR_MS)
    expect(late({ kind: 'continuous' })).toBe(START + 600_000)
    expect(late({ kind: 'cron', cron: '0 6 * * *', zone: 'UTC' })).toBe(START + 30 * HOUR_MS + 600_000)
    expect(late({ kind: 'manual' })).toBeNull()
    expect(late(hourly, 0, { paused: true })).toBeNull()
    expect(late(hourly, 0, { lastSuccessAt: null })).toBeNull()
    expect(late(hourly, 0, { completeSince: null })).toBeNull()
    const connection = { name: 'x', status: 'disabled', statusReason: null, updatedAt: 0 } as const
    expect(computeLateAt({ schedule: hourly }, { checkpoint, recent: [], connection })).toBeNull()
  })
})

describe('the connections of the console', () => {
  test('a link to authorize again is for the host of the connect flow, and for the caller’s own connections', async () => {
    const stand = await ServerFixture.open(openHarness, { host: '0.0.0.0' })
    const credentials = { kind: 'api_key', key: 'k', fields: {} } as const
    const by = { actor: 'test', at: 1 }
    await addConnection(stand.store, { name: 'kraken', provider: 'kraken', credentials }, by)
    const key = await addKey(stand.store, ['connections:write'])
    const path = '/console/api/connections/kraken/authorize'
    const elsewhere = await stand.post(path, { key })
    expect(elsewhere.body.data).toEqual({ url: null, why: expect.stringContaining('https://app.example.com') })
    expect(elsewhere.headers.get('set-cookie')).toBeNull()
    const reader = await addKey(stand.store, ['connections:read'])
    expect((await stand.post(path, { key: reader })).status).toBe(403)
    const theirs = await addKey(stand.store.forTenant('acme'), ['connections:write'])
    expect((await stand.post(path, { key: theirs })).status).toBe(404)
    const link = await stand.server.app.inject({
      method: 'POST',
      url: path,
      headers: { host: 'app.example.com', authorization: `Bearer ${key}` },
    })
    expect([link.statusCode, link.headers['set-cookie']]).toEqual([200, expect.stringContaining('HttpOnly')])
    expect(link.json()).toEqual({
      data: { url: expect.stringMatching(/^https:\/\/app\.example\.com\/connect\//), why: null },
    })
  })

  test('the forms of providers name their secrets as credentials do', async () => {
    const stand = await ServerFixture.open(openHarness)
    const { data } = (await stand.get('/console/api/providers', { key: null })).body as { data: ProviderDocument[] }
    const find = (name: string) => data.find((provider) => provider.name === name)!
    expect(find('servicenow').form).toMatchObject({
      kind: 'basic',
      secrets: [
        { name: 'user', isSecret: false },
        { name: 'password', isSecret: true, isRequired: true },
      ],
    })
    expect(find('kraken')).toMatchObject({ canAuthorize: true, form: { kind: 'api_key' } })
    expect(find('stripe').canAuthorize).toBe(false)
  })
})
