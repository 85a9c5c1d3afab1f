import { describe, expect, test } from 'vitest'
import type { CycleRecord, Lease, Store } from '../../src/contract/index.ts'
import { Worker } from '../../src/index.ts'
import { listDeclaredSyncs } from '../../src/runner/declared-sync.ts'
import { computeActivity } from '../../src/server/console/activity.ts'
import { counts, upsert } from '../../src/testing/store-cases/harness.ts'
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

describe('activity over time', () => {
  const NOW = Date.UTC(2026, 0, 1, 12)
  const cycle = (given: Partial<CycleRecord>): CycleRecord => ({
    worker: 'w',
    sync: 's',
    cycle: 1,
    mode: 'incremental',
    trigger: 'schedule',
    startedAt: NOW - 60_000,
    startSequence: 0,
    endedAt: NOW - 30_000,
    stopReason: 'complete',
    endReason: null,
    pages: 1,
    counts: counts({ created: 30 }),
    retries: 0,
    waitedMs: 0,
    error: null,
    ...given,
  })

  test('rows are spread over the duration of a cycle, and none is lost', () => {
    const { rows, stepMs } = computeActivity([cycle({})], NOW, () => true)
    expect(rows.reduce((sum, value) => sum + value, 0)).toBe(30)
    expect(stepMs).toBe(3_000)
    expect(rows.filter((value) => value > 0)).toHaveLength(10)
  })

  test('a failure counts at its time, and one before the shown range is not counted', () => {
    const error = { code: 'SOURCE_TIMEOUT', message: '' } as const
    const { errors } = computeActivity(
      [
        cycle({ error, stopReason: 'error', endedAt: NOW - 1 }),
        cycle({ error, stopReason: 'error', startedAt: NOW - 200 * 3_600_000, endedAt: NOW - 100 * 3_600_000 }),
      ],
      NOW,
      () => true,
    )
    expect(errors.reduce((sum, value) => sum + value, 0)).toBe(1)
  })

  test('lag is that of the sync that is furthest behind, and drops when it completes', () => {
    const cycles = [
      cycle({ sync: 'quick', startedAt: NOW - 10_000, endedAt: NOW - 9_000 }),
      cycle({ sync: 'slow', startedAt: NOW - 90_000, endedAt: NOW - 80_000 }),
      cycle({ sync: 'manual', startedAt: NOW - 100_000, endedAt: NOW - 99_000 }),
    ]
    const { lagMs } = computeActivity(cycles, NOW, ({ sync }) => sync !== 'manual')
    expect(lagMs[0]).toBeNull()
    expect(lagMs.at(-1)).toBe(90_000)
    expect(
      computeActivity(
        [...cycles, cycle({ sync: 'slow', startedAt: NOW - 5_000, endedAt: NOW - 4_000 })],
        NOW,
        ({ sync }) => sync !== 'manual',
      ).lagMs.at(-1),
    ).toBe(10_000)
  })
})
