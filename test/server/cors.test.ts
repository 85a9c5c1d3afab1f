import { expect, test } from 'vitest'
import { createServer } from '../../src/server/server.ts'
import { upsert } from '../../src/testing/store-cases/harness.ts'
import { openHarness } from '../stores/sqlite-harness.ts'
import { ServerFixture } from './server-fixture.ts'

const APP = 'https://app.example.com'
const ASK = { 'access-control-request-method': 'GET', 'access-control-request-headers': 'authorization' }

async function open(corsOrigins?: readonly string[]): Promise<ServerFixture> {
  const stand = await ServerFixture.open(openHarness, corsOrigins === undefined ? {} : { corsOrigins })
  await (await stand.driver()).cycle(Array.from({ length: 60 }, (_, n) => upsert(`k${n}`, { text: 'x'.repeat(100) })))
  return stand
}

function granted(headers: Headers): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control')))
}

test('pages of another origin get no access unless their origin is allowed', async () => {
  const stand = await open()
  for (const init of [{ headers: { origin: APP } }, { method: 'OPTIONS', headers: { origin: APP, ...ASK } }]) {
    const { headers } = await stand.get('/agents/v1/changes', init)
    expect([granted(headers), (headers.get('vary') ?? '').includes('rigin')]).toEqual([{}, false])
  }
  expect(
    (await stand.get('/agents/v1/changes', { method: 'OPTIONS', key: null, headers: { origin: APP, ...ASK } })).status,
  ).toBe(405)
})

test('a page of an allowed origin may send requests with its key and reads the headers a client needs; others may not', async () => {
  const stand = await open([APP])
  const preflight = await stand.get('/agents/v1/changes', {
    method: 'OPTIONS',
    key: null,
    headers: { origin: APP, ...ASK },
  })
  expect([preflight.status, preflight.text, granted(preflight.headers)]).toEqual([
    204,
    '',
    {
      'access-control-allow-origin': APP,
      'access-control-allow-methods': 'GET, HEAD, POST, PATCH, DELETE',
      'access-control-max-age': '600',
      'access-control-allow-headers': 'Authorization, X-Agents-Token, Content-Type, Last-Event-ID, If-None-Match',
      'access-control-expose-headers': expect.stringContaining('X-RateLimit-Reset'),
    },
  ])
  // Rejected, compressed and cached responses are readable by the page too.
  const {
    body: { page },
  } = await stand.get('/agents/v1/changes?limit=10')
  const hot = `/agents/v1/changes?limit=10&cursor=${page.nextCursor}`
  await stand.get(hot)
  for (const [path, key, status] of [
    [hot, stand.key, 200],
    [hot, 'wrong', 401],
    ['/nowhere', null, 404],
    ['/agents/v1/things?limit=60', stand.key, 200],
  ] as const) {
    const { status: answered, headers } = await stand.get(path, {
      key,
      headers: { origin: APP, 'accept-encoding': 'gzip' },
    })
    expect([
      path,
      answered,
      granted(headers)['access-control-allow-origin'],
      headers.get('access-control-allow-credentials'),
    ]).toEqual([path, status, APP, null])
    expect(headers.get('vary')!.toLowerCase()).toContain('origin')
  }
  for (const origin of ['https://evil.example', `${APP}.evil.example`, 'null', 'http://app.example.com']) {
    expect(granted((await stand.get('/agents/v1/changes', { headers: { origin } })).headers)).toEqual({})
    expect(
      (await stand.get('/agents/v1/changes', { method: 'OPTIONS', key: null, headers: { origin, ...ASK } })).status,
    ).toBe(405)
  }
  // Keyless local access is for no page, allowed origin or not.
  expect((await stand.get('/api/syncs', { key: null, headers: { origin: APP } })).status).toBe(403)
})

test('an invalid origin is rejected when the server is created', async () => {
  const { store, close } = await openHarness()
  const make = (origin: string) => (): unknown =>
    createServer({ store, ports: {} as never, version: '0', corsOrigins: [origin] })
  for (const origin of ['app.example.com', 'https://app.example.com/', 'https://app.example.com/x', 'null', ''])
    expect(make(origin)).toThrow(/is not an origin/)
  await close()
})
