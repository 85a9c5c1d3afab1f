import { request } from 'node:http'
import { expect, test } from 'vitest'
import { parseApiKey } from '../../src/server/api-key.ts'
import { SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { openHarness } from '../stores/sqlite-harness.ts'
import { addKey, ServerFixture, type Body } from './server-fixture.ts'

/** With these headers only. */
function ask(
  stand: ServerFixture,
  path: string,
  headers: Record<string, string>,
): Promise<{ status: number; headers: Record<string, unknown>; body: Body }> {
  return new Promise((resolve, reject) => {
    request(`${stand.url}${path}`, { headers }, (response) => {
      let text = ''
      response
        .setEncoding('utf8')
        .on('data', (piece: string) => (text += piece))
        .on('end', () =>
          resolve({ status: response.statusCode!, headers: response.headers, body: JSON.parse(text) as Body }),
        )
    })
      .on('error', reject)
      .end()
  })
}

test('AD4 a cached page equals the original, for the same callers and no others', async () => {
  const stand = await ServerFixture.open(openHarness)
  await (await stand.driver()).cycle(Array.from({ length: 10 }, (_, n) => upsert(`k${n}`, { n })))
  const known = { authorization: `Bearer ${stand.key}` }
  // The first page is never cached: a compacted log must not be started with old cursors.
  const first = await ask(stand, '/agents/v1/changes?limit=4', known)
  const path = `/agents/v1/changes?limit=4&cursor=${first.body.page.nextCursor}`
  const cold = await ask(stand, path, known)
  // A second read would fail on the broken store, so the response is from the cache.
  const store = stand.store as unknown as { feed: unknown }
  const { feed } = store
  store.feed = () => Promise.reject(new Error('the store was asked'))
  const hot = await ask(stand, path, known)
  expect([hot.status, hot.body]).toEqual([200, cold.body])
  const names = (headers: Record<string, unknown>): string[] =>
    Object.keys(headers)
      .filter((name) => name !== 'date')
      .toSorted()
  expect(names(hot.headers)).toEqual(names(cold.headers))
  expect(hot.headers['x-request-id']).not.toBe(cold.headers['x-request-id'])
  expect(Number(hot.headers['x-ratelimit-remaining'])).toBe(Number(cold.headers['x-ratelimit-remaining']) - 1)

  const other = await addKey(stand.store.forTenant('acme'), ['*:read'])
  const lesser = await addKey(stand.store, ['things:read'])
  const poor = await addKey(stand.store, ['*:read'], { rateLimit: 2 })
  store.feed = feed
  for (let n = 0; n < 2; n++) expect((await ask(stand, path, { authorization: `Bearer ${other}` })).status).toBe(400)
  expect([
    (await ask(stand, path, {})).status,
    (await ask(stand, path, { authorization: `Bearer ${stand.key}x` })).status,
  ]).toEqual([401, 401])
  for (let n = 0; n < 2; n++) expect((await ask(stand, path, { authorization: `Bearer ${lesser}` })).status).toBe(403)
  const statuses: number[] = []
  for (let n = 0; n < 4; n++) statuses.push((await ask(stand, path, { authorization: `Bearer ${poor}` })).status)
  expect(statuses.slice(0, 2)).toEqual([200, 200])
  expect(statuses).toContain(429)
  await stand.store.revokeApiKey(parseApiKey(stand.key)!.id, Date.now(), { actor: 'test', at: 0 })
  stand.shift.ms = 1_001
  expect((await ask(stand, path, known)).status).toBe(401)
})

test('AD4 a cached page is compressed once per encoding, and stays the same', async () => {
  const stand = await ServerFixture.open(openHarness)
  await (
    await stand.driver()
  ).cycle(Array.from({ length: 60 }, (_, n) => upsert(`k${n}`, { n, text: 'über'.repeat(30) })))
  const { page } = (await stand.get('/agents/v1/changes?limit=20')).body
  const path = `/agents/v1/changes?limit=20&cursor=${page.nextCursor}`
  const as = async (
    encoding: string,
    accept = 'application/json',
  ): Promise<{ encoding: string | null; length: number; text: string }> => {
    const { headers, text } = await stand.get(path, { headers: { 'accept-encoding': encoding, accept } })
    return { encoding: headers.get('content-encoding'), length: Number(headers.get('content-length')), text }
  }
  const plain = await as('identity')
  expect(plain).toMatchObject({ encoding: null, length: Buffer.byteLength(plain.text) })
  const cases = [
    ['gzip', 'gzip'],
    ['br', 'br'],
    ['gzip, deflate, br', 'br'],
    ['br;q=0, gzip;q=0.5', 'gzip'],
    ['*', 'br'],
    ['br;q=0.0,gzip;q=0', null],
    ['deflate', null],
    ['', null],
    ['GZIP', 'gzip'],
  ] as const
  for (const [header, encoding] of cases)
    expect([header, await as(header)]).toMatchObject([header, { encoding, text: plain.text }])
  const lengths = new Set<number>()
  // Later callers are answered without the store, and without compressing again.
  const store = stand.store as unknown as { feed: unknown }
  store.feed = () => Promise.reject(new Error('the store was asked'))
  for (const accept of ['*/*', 'application/json'])
    for (const encoding of ['gzip', 'br']) lengths.add((await as(encoding, accept)).length)
  expect([lengths.size, [...lengths].every((length) => length < plain.length / 2)]).toEqual([2, true])
})

test('AD4 a page that may still grow is not cached', async () => {
  const stand = await ServerFixture.open(openHarness)
  const driver = await stand.driver()
  await driver.cycle([upsert('a', {})])
  const known = { authorization: `Bearer ${stand.key}` }
  expect((await ask(stand, '/agents/v1/changes?limit=1', known)).body.page.hasMore).toBe(false)
  expect((await ask(stand, '/agents/v1/changes?limit=5', known)).body.data).toHaveLength(1)
  await (await SyncDriver.acquire(stand.store, { sync: 'later' })).cycle([upsert('b', {})])
  expect((await ask(stand, '/agents/v1/changes?limit=1', known)).body.page.hasMore).toBe(true)
  expect((await ask(stand, '/agents/v1/changes?limit=5', known)).body.data).toHaveLength(2)
})
