import { expect, test } from 'vitest'
import type { Clock, Store } from '../../src/contract/index.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { parseApiKey } from '../../src/server/api-key.ts'
import { SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { openHarness } from '../stores/sqlite-harness.ts'
import { Stream } from './feed-cases.ts'
import { addKey, ServerFixture } from './server-fixture.ts'

const CANARY = 'canary'
/** No wait longer than this ends by itself: the response ends because access was lost. */
const SHORT_MS = 1_000

const clock: Clock & { shiftMs: number } = {
  shiftMs: 0,
  now: () => systemClock.now() + clock.shiftMs,
  sleep: (ms, signal) => systemClock.sleep(ms <= SHORT_MS ? Math.min(ms, 20) : 2_000_000_000, signal),
}

/** Every way in which a caller loses access to the feed. */
const LOSSES: ReadonlyArray<[string, (store: Store, key: string) => Promise<unknown>]> = [
  ['its key is revoked', (store, key) => store.revokeApiKey(idOf(key), clock.now(), { actor: 'test', at: 0 })],
  ['its key expires', async () => (clock.shiftMs += 120_000)],
  ['its tenant is erased', (store) => store.eraseTenant({ actor: 'test', at: clock.now() + 600_000 })],
  ['its key is replaced by one with other scopes', (store, key) => replaceScopes(store, key, ['others:read'])],
]

for (const [what, lose] of LOSSES) {
  test(`Z43 a long poll ends with 401 and a stream closes once ${what}, without waiting for a change`, async () => {
    const { stand, store, key } = await open()
    const head = await stand.get('/agents/v1/changes', { key })
    const poll = stand.get(`/agents/v1/changes?wait=60&cursor=${head.body['page'].nextCursor}`, { key })
    const stream = await Stream.open(stand, '/agents/v1/changes', {}, key)
    await stream.take(1)
    await lose(store, key)
    expect((await poll).status).toBe(401)
    expect((await stream.next()).value).toMatchObject({ event: 'error', data: { error: 'UNAUTHORIZED' } })
    expect((await stream.next()).done).toBe(true)
  })
}

test('Z43 changes committed right after a revocation reach neither an open long poll nor an open stream', async () => {
  const { stand, store, key } = await open()
  const head = await stand.get('/agents/v1/changes', { key })
  const poll = stand.get(`/agents/v1/changes?wait=60&cursor=${head.body['page'].nextCursor}`, { key })
  const stream = await Stream.open(stand, '/agents/v1/changes', {}, key)
  await stream.take(1)
  await store.revokeApiKey(idOf(key), clock.now(), { actor: 'test', at: 0 })
  await (await SyncDriver.acquire(store, { sync: 'later' })).cycle([upsert('b', { text: CANARY })])
  const answer = await poll
  expect([answer.status, answer.text.includes(CANARY)]).toEqual([401, false])
  const rest: string[] = []
  for (let next = await stream.next(); next.done !== true; next = await stream.next())
    rest.push(JSON.stringify(next.value))
  expect(rest.join()).not.toContain(CANARY)
})

async function open(): Promise<{ stand: ServerFixture; store: Store; key: string }> {
  clock.shiftMs = 0
  const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
  const stand = await ServerFixture.open(openHarness, { ports: { clock, random: systemRandom, log } })
  const store = stand.store.forTenant('acme')
  const driver = await SyncDriver.acquire(store)
  await driver.cycle([upsert('a', { n: 1 })])
  await driver.release()
  return { stand, store, key: await addKey(store, ['changes:read'], { endsAt: clock.now() + 60_000 }) }
}

function idOf(key: string): string {
  return parseApiKey(key)!.id
}

async function replaceScopes(store: Store, key: string, scopes: string[]): Promise<void> {
  const found = (await store.apiKey(idOf(key)))!
  await store.eraseTenant({ actor: 'test', at: clock.now() + 600_000 })
  await store.addApiKey({ ...found, scopes })
}
