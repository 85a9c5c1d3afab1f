import { connect } from 'node:net'
import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../src/platform/clock.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { parseApiKey } from '../../src/server/api-key.ts'
import { SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { openHarness } from '../stores/sqlite-harness.ts'
import { Stream } from './feed-cases.ts'
import { WEBHOOK } from './route-samples.ts'
import { addKey, ServerFixture, toNextMinute, type Answer } from './server-fixture.ts'

async function filled(options: Parameters<typeof ServerFixture.open>[1] = {}): Promise<ServerFixture> {
  const stand = await ServerFixture.open(openHarness, options)
  await (await stand.driver()).cycle([upsert('a', { n: 1 }), upsert('b', { n: 2 }, { database: 'people' })])
  return stand
}

describe('keys', () => {
  test('A23 AX7 Z43 a missing, wrong or ended key: 401, in one shape; a wrong and an ended key get the same response', async () => {
    const stand = await filled()
    const ended = await addKey(stand.store, ['admin'], { endsAt: Date.now() - 1 })
    const wrong = `${stand.key.slice(0, -1)}${stand.key.endsWith('A') ? 'B' : 'A'}`
    const unknown = `tmk_${'0'.repeat(16)}_${'A'.repeat(43)}`
    const bodies = new Set<string>()
    const headersSeen = new Set<string>()
    const withoutKey = new Set<string>()
    for (const key of [null, ended, wrong, unknown, 'x', `${stand.key}x`, stand.key.slice(4)]) {
      for (const path of [
        '/agents/v1/changes',
        '/agents/v1/things',
        '/agents/v1/nothing',
        '/agents/v1/things/a',
        '/agents/v1/capabilities',
      ]) {
        const { status, body, headers } = await stand.get(path, { key })
        expect([
          status,
          headers.get('www-authenticate'),
          headers.get('x-request-id'),
          headers.get('cache-control'),
        ]).toEqual([401, 'Bearer', body.requestId, 'no-store'])
        expect(Object.keys(body)).toEqual(['error', 'message', 'status', 'requestId'])
        const told = key === null ? withoutKey : bodies
        told.add(JSON.stringify({ ...body, requestId: '' }))
        // Time and request id need only exist. Guesses are counted, so a count may differ.
        if (key !== null)
          headersSeen.add(
            JSON.stringify(
              [...headers].map(([name, value]) =>
                /^(?:date|x-request-id|content-length)$/.test(name) ? name : [name, value],
              ),
            ),
          )
      }
    }
    expect([...headersSeen]).toHaveLength(1)
    expect([...withoutKey].map((text) => JSON.parse(text) as object)).toEqual([
      { error: 'UNAUTHORIZED', message: expect.stringMatching(/tidemark keys create/), status: 401, requestId: '' },
    ])
    expect([...bodies]).toEqual([
      JSON.stringify({
        error: 'UNAUTHORIZED',
        message: 'The key is invalid, expired or revoked.',
        status: 401,
        requestId: '',
      }),
    ])
    expect(
      (await stand.get('/agents/v1/changes', { key: null, headers: { 'x-agents-token': stand.key } })).status,
    ).toBe(200)
    expect(
      (await stand.get('/agents/v1/changes', { key: null, headers: { authorization: 'Basic eDp5' } })).status,
    ).toBe(401)
  })

  test('A23 Z43 a scope allows exactly what it names', async () => {
    const stand = await filled()
    const paths = [
      '/agents/v1/changes',
      '/agents/v1/things',
      '/agents/v1/people',
      '/agents/v1/nothing',
      '/api/syncs',
      '/metrics',
    ]
    const statuses = async (scopes: string[]): Promise<number[]> => {
      const key = await addKey(stand.store, scopes)
      const answers: Answer[] = []
      for (const path of paths) answers.push(await stand.get(path, { key }))
      answers.push(await stand.post('/api/syncs/crm/delta/resume', { key }))
      for (const { status, body } of answers.filter((answer) => answer.status === 403))
        expect(body).toMatchObject({
          error: 'FORBIDDEN',
          message: expect.stringMatching(/lacks the scope `.+`/),
          status,
        })
      return answers.map(({ status }) => status)
    }
    expect(await statuses([])).toEqual([403, 403, 403, 403, 403, 403, 403])
    expect(await statuses(['changes:read'])).toEqual([200, 403, 403, 403, 403, 403, 403])
    expect(await statuses(['things:read'])).toEqual([403, 200, 403, 403, 403, 403, 403])
    expect(await statuses(['*:read'])).toEqual([200, 200, 200, 404, 403, 403, 403])
    expect(await statuses(['sync:write'])).toEqual([403, 403, 403, 403, 200, 200, 200])
    expect(await statuses(['sync:read'])).toEqual([403, 403, 403, 403, 200, 200, 403])
    expect(await statuses(['admin'])).toEqual([200, 200, 200, 404, 200, 200, 200])
  })

  test('A24 XF18 Z43 a rate-limited caller learns when to retry; others are not affected', async () => {
    const stand = await filled()
    stand.shift.ms = toNextMinute()
    const noisy = await addKey(stand.store, ['*:read'], { rateLimit: 3 })
    const statuses: number[] = []
    for (let n = 0; n < 6; n++) {
      const { status, headers, body } = await stand.get('/agents/v1/things', { key: noisy })
      statuses.push(status)
      expect(headers.get('x-ratelimit-limit')).toBe('3')
      expect(headers.get('x-ratelimit-remaining')).toBe(String(Math.max(0, 2 - n)))
      expect(Number(headers.get('x-ratelimit-reset'))).toBe(
        (Math.floor((Date.now() + stand.shift.ms) / 60_000) + 1) * 60,
      )
      if (status === 429)
        expect([body.error, Number(headers.get('retry-after')) > 0]).toEqual(['RATE_LIMIT_EXCEEDED', true])
    }
    expect(statuses).toEqual([200, 200, 200, 429, 429, 429])
    expect((await stand.get('/agents/v1/things')).status).toBe(200)
    stand.shift.ms += 60_000
    expect((await stand.get('/agents/v1/things', { key: noisy })).status).toBe(200)
  })

  test('Z43 an address that guesses keys is rate limited, without filling the store', async () => {
    const stand = await filled()
    stand.shift.ms = toNextMinute()
    const statuses = new Set<number>()
    for (let n = 0; n < 320; n++) {
      const { status, headers } = await stand.get('/agents/v1/things', {
        key: `tmk_${String(n).padStart(16, '0')}_${'A'.repeat(43)}`,
      })
      statuses.add(status)
      const waitS = Number(headers.get('retry-after'))
      if (status === 429) expect([waitS > 0, waitS <= 60]).toEqual([true, true])
    }
    expect([...statuses]).toEqual([401, 429])
    // Callers behind the same address with valid keys are not affected.
    expect((await stand.get('/agents/v1/things')).status).toBe(200)
    // Counts are written in request order: once the valid key is stored, guesses would be too.
    const counted = (): Promise<unknown[]> => stand.harness.supports!.select!('tidemark_requests')
    await expect.poll(async () => (await counted()).length).toBeGreaterThan(0)
    expect(await counted()).toHaveLength(1)
    stand.shift.ms += 60_000
    expect((await stand.get('/agents/v1/things', { key: 'x' })).status).toBe(401)
  })

  test('Z43 a revoked key is rejected within a second, and its stream ends', async () => {
    const stand = await filled()
    const key = await addKey(stand.store, ['*:read'])
    const stream = await Stream.open(stand, '/agents/v1/changes', {}, key)
    await stream.take(2)
    await stand.store.revokeApiKey(parseApiKey(key)!.id, Date.now(), { actor: 'test', at: 0 })
    stand.shift.ms = 1_001
    expect((await stand.get('/agents/v1/things', { key })).status).toBe(401)
    await (await SyncDriver.acquire(stand.store, { sync: 'later' })).cycle([upsert('c', {})])
    expect((await stream.next()).value).toMatchObject({ event: 'error', data: { error: 'UNAUTHORIZED' } })
    expect((await stream.next()).done).toBe(true)
  })

  test('AX10 a key can query its owner and scopes', async () => {
    const stand = await filled()
    const key = await addKey(stand.store.forTenant('acme'), ['people:read', 'changes:read'], {
      rateLimit: 77,
      endsAt: 4_000_000_000_000,
    })
    expect((await stand.get('/agents/v1/auth/whoami', { key })).body.data).toEqual({
      tenant: 'acme',
      id: parseApiKey(key)!.id,
      name: 'test',
      scopes: ['people:read', 'changes:read'],
      requestsPerMinute: 77,
      endsAt: '2096-10-02T07:06:40.000Z',
    })
  })

  test('Z43 a database named sync is not readable with the scope for syncs', async () => {
    const stand = await filled()
    await (await SyncDriver.acquire(stand.store, { sync: 'later' })).cycle([upsert('x', {}, { database: 'sync' })])
    const status = async (...scopes: string[]): Promise<number> =>
      (await stand.get('/agents/v1/sync/x', { key: await addKey(stand.store, scopes) })).status
    expect([
      await status('sync:read'),
      await status('sync:write'),
      await status('*:read'),
      await status('admin'),
    ]).toEqual([403, 403, 200, 200])
  })

  test('XF16 Z43 a key appears in no response, log line or metric, and not in the store', async () => {
    const lines: string[] = []
    const note = (message: string, fields?: object): void =>
      void lines.push(`${message} ${inspect(fields, { depth: null, maxStringLength: null })}`)
    const stand = await filled({
      ports: { clock: systemClock, random: systemRandom, log: { debug: note, info: note, warn: note, error: note } },
    })
    const admin = await addKey(stand.store, ['admin'])
    const secret = admin.slice(21)
    const select = stand.harness.supports!.select!
    const said = [JSON.stringify(await stand.store.apiKeys())]
    for (const path of [
      '/agents/v1/changes',
      '/agents/v1/capabilities',
      '/api/syncs',
      '/metrics',
      '/openapi.json',
      `/agents/v1/${admin}`,
      `/agents/v1/things/${admin}x?cursor=1`,
      '/agents/v1/changes?cursor=x',
    ])
      said.push((await stand.get(path, { key: admin })).text.replaceAll(`/agents/v1/${admin}`, ''))
    said.push((await stand.get('/agents/v1/changes', { key: `${admin}x` })).text)
    // All tables of the store, once all requests are counted.
    await expect.poll(async () => (await select('tidemark_requests')).length).toBeGreaterThan(0)
    const tables = (await select('sqlite_schema'))
      .filter(({ type }) => type === 'table')
      .map(({ name }) => String(name))
    expect(tables).toContain('tidemark_api_keys')
    for (const table of tables)
      said.push(inspect(await select(table), { depth: null, maxArrayLength: null, maxStringLength: null }))
    expect(lines.length).toBeGreaterThan(0)
    said.push(...lines)
    const found = said.filter((text) => text.includes(secret))
    // A response may repeat the caller's own path, and nothing else.
    expect(found.filter((text) => !text.includes('not found. /agents'))).toEqual([])
  })

  test('AX7 one shape for every error, including malformed HTTP and unknown paths', async () => {
    const stand = await filled()
    const shapes = [
      await stand.get('/nowhere'),
      await stand.get('/agents/v1/%zz'),
      await stand.get('/agents/v1/changes?limit=x'),
      await stand.get('/agents/v1/things/none'),
      await stand.post('/health'),
      await stand.get(`/${'x'.repeat(20_000)}`),
    ]
    expect(shapes.map(({ status }) => status)).toEqual([404, 400, 400, 404, 405, 431])
    for (const { status, body, headers } of shapes)
      expect(body).toMatchObject({
        error: expect.stringMatching(/^[A-Z_]+$/),
        message: expect.stringMatching(/\.$/),
        status,
        requestId: headers.get('x-request-id'),
      })
    const { hostname, port } = new URL(stand.url)
    const nonsense = await new Promise<string>((resolve, reject) => {
      const socket = connect(Number(port), hostname, () => socket.write('NONSENSE\r\n\r\n'))
      let text = ''
      socket
        .on('data', (data) => (text += String(data)))
        .on('end', () => resolve(text))
        .on('error', reject)
    })
    expect(nonsense).toMatch(/^HTTP\/1\.1 400 [\s\S]*"error":"INVALID_REQUEST"/)
  })
})

describe('control', () => {
  test('on this machine it needs no key, except for cross-site pages', async () => {
    const stand = await filled()
    expect((await stand.get('/api/syncs', { key: null })).body.data).toMatchObject([
      { worker: 'crm', sync: 'delta', health: 'HEALTHY' },
    ])
    const { port } = new URL(stand.url)
    for (const headers of [
      { origin: 'https://evil.example' },
      { 'sec-fetch-site': 'cross-site' },
      { origin: `http://localhost:1` },
    ] as Record<string, string>[]) {
      expect((await stand.post('/api/syncs/crm/delta/pause', { key: null, headers })).status).toBe(403)
    }
    const rebound = await stand.server.app.inject({ url: '/api/syncs', headers: { host: `evil.example:${port}` } })
    expect(rebound.statusCode).toBe(403)
    expect((await stand.get('/api/syncs', { key: 'wrong' })).status).toBe(401)
  })

  test('beyond this machine it needs one', async () => {
    const stand = await filled({ host: '0.0.0.0' })
    stand.server.app.server.unref()
    const { port } = new URL(stand.url)
    const ask = (headers: Record<string, string> = {}): Promise<Response> =>
      fetch(`http://127.0.0.1:${port}/api/syncs`, { headers })
    expect((await ask()).status).toBe(401)
    expect((await ask({ authorization: `Bearer ${await addKey(stand.store, ['sync:write'])}` })).status).toBe(200)
  })

  test('syncs, cycles, audit, quarantine and databases are shown; trigger, pause and resume are audited', async () => {
    const stand = await filled()
    const of = (path: string): Promise<Answer> => stand.get(path, { key: null })
    expect((await of('/api/syncs/crm/delta')).body.data).toMatchObject({
      worker: 'crm',
      sync: 'delta',
      version: 1,
      paused: false,
      lastCycle: { stopReason: 'complete', counts: { created: 2 } },
    })
    expect((await of('/api/syncs/crm/delta/cycles')).body.data).toHaveLength(1)
    expect((await of('/api/cycles?limit=1')).body.data).toHaveLength(1)
    expect(
      (await of('/api/databases')).body.data.map(({ name, rows }: { name: string; rows: number }) => [name, rows]),
    ).toEqual([
      ['people', 1],
      ['things', 1],
    ])
    expect((await of('/api/quarantine')).body.data).toEqual([])
    expect((await stand.post('/api/syncs/crm/delta/pause', { key: null })).body.data).toMatchObject({
      paused: true,
      health: 'PAUSED',
    })
    expect((await stand.post('/api/syncs/crm/delta/resume', { key: null })).body.data).toMatchObject({ paused: false })
    expect((await stand.post('/api/syncs/crm/delta/trigger', { key: null })).body.data).toMatchObject({
      triggeredAt: expect.any(String),
    })
    expect(
      (await of('/api/syncs/crm/delta/audit')).body.data.map(({ action, actor }: { action: string; actor: string }) => [
        action,
        actor,
      ]),
    ).toEqual([
      ['resume', 'api:local'],
      ['pause', 'api:local'],
      ['complete', 'engine'],
    ])
    expect((await of('/api/syncs/crm/delta/audit')).text).not.toContain('"state"')
    expect((await of('/api/syncs/crm/nobody')).status).toBe(404)
    expect((await stand.post('/api/syncs/crm/nobody/trigger', { key: null })).status).toBe(404)
  })
})

describe('the server', () => {
  test('AX10 health and readiness are open; readiness follows the store', async () => {
    const stand = await filled()
    expect((await stand.get('/health', { key: null })).body).toEqual({ status: 'ok' })
    expect((await stand.get('/readiness', { key: null })).body).toEqual({ status: 'ready' })
    await stand.store.close()
    expect((await stand.get('/health', { key: null })).status).toBe(200)
    const { status, body } = await stand.get('/readiness', { key: null })
    expect([status, body.error]).toEqual([503, 'SERVICE_UNAVAILABLE'])
  })

  test('AX10 metrics have few labels, whatever is requested', async () => {
    const stand = await filled()
    for (let n = 0; n < 30; n++) await stand.get(`/agents/v1/things/${n}?x=${n}`)
    for (let n = 0; n < 30; n++) await stand.get(`/${n}`)
    const { text } = await stand.get('/metrics', { key: null })
    const series = text.split('\n').filter((line) => line.startsWith('tidemark_http_requests_total'))
    expect(series.toSorted()).toEqual([
      'tidemark_http_requests_total{route="/agents/v1/:database/:key",status="4xx"} 30',
      'tidemark_http_requests_total{route="none",status="4xx"} 30',
    ])
    expect(text).toContain('tidemark_syncs{health="HEALTHY"} 1')
    expect(text).toContain('tidemark_feed_sequence 2')
    // Another tenant sees only its own metrics.
    const foreign = await stand.get('/metrics', { key: await addKey(stand.store.forTenant('acme'), ['admin']) })
    expect([foreign.text.includes('http_requests'), foreign.text.includes('tidemark_feed_sequence 0')]).toEqual([
      false,
      true,
    ])
  })

  test('AX10 metrics report the state of webhooks, without naming one', async () => {
    const stand = await filled()
    const place = (sequence: number): { sequence: number; floor: number } => ({ sequence, floor: 0 })
    for (const [id, position] of [
      ['wh_1', 2],
      ['wh_2', 1],
      ['wh_3', 0],
    ] as const)
      await stand.store.putWebhook({ ...WEBHOOK, id }, place(position))
    const claim = (await stand.store.claimWebhook('wh_2', { holder: 'h', ttlMs: 60_000, at: Date.now() }))!
    const delivery = {
      messageId: 'm',
      database: 'things',
      key: 'a',
      body: '',
      attempts: 1,
      firstAt: 1,
      nextAt: 1,
      lastStatus: null,
      lastResponse: null,
    }
    await stand.store.recordDeliveries(claim, {
      progress: { ...claim.webhook, failureStreak: 3 },
      delivered: [],
      undelivered: [
        { ...delivery, sequence: 1, failed: false },
        { ...delivery, sequence: 2, failed: true },
      ],
    })
    await stand.store.setWebhookDisabled('wh_3', 'enough', { actor: 'test', at: 0 })
    const { text } = await stand.get('/metrics', { key: null })
    expect(text.split('\n').filter((line) => line.startsWith('tidemark_webhook'))).toEqual([
      'tidemark_webhooks{state="enabled"} 1',
      'tidemark_webhooks{state="failing"} 1',
      'tidemark_webhooks{state="disabled"} 1',
      'tidemark_webhook_deliveries{state="waiting"} 1',
      'tidemark_webhook_deliveries{state="failed"} 1',
      'tidemark_webhook_behind 2',
    ])
  })

  test('large responses are compressed on request, and stay the same', async () => {
    const stand = await filled()
    await (
      await SyncDriver.acquire(stand.store, { sync: 'later' })
    ).cycle(Array.from({ length: 100 }, (_, n) => upsert(`k${n}`, { text: 'x'.repeat(100) })))
    const plain = await stand.get('/agents/v1/things?limit=200', { headers: { 'accept-encoding': 'identity' } })
    for (const encoding of ['gzip', 'br']) {
      const packed = await stand.get('/agents/v1/things?limit=200', { headers: { 'accept-encoding': encoding } })
      expect([packed.headers.get('content-encoding'), packed.text]).toEqual([encoding, plain.text])
    }
    expect(plain.headers.get('content-encoding')).toBe(null)
  })

  test('closing ends streams and long polls at once', async () => {
    const stand = await filled()
    const stream = await Stream.open(stand, '/agents/v1/changes')
    await stream.take(2)
    const { body } = await stand.get('/agents/v1/changes')
    const waiting = stand.get(`/agents/v1/changes?wait=60&cursor=${body.page.nextCursor}`).catch(() => null)
    await new Promise((resolve) => setTimeout(resolve, 100))
    await stand.server.close()
    expect((await stream.next()).done).toBe(true)
    expect((await waiting)?.body.data ?? []).toEqual([])
  })
})
