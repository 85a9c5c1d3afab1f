import { expect, test } from 'vitest'
import { Worker } from '../../src/config/worker.ts'
import type { Acquired } from '../../src/contract/store.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { syncsOf } from '../../src/runner/declared-sync.ts'
import { poison } from '../../src/testing/store-cases/harness.ts'
import { openHarness } from '../stores/sqlite-harness.ts'
import { addKey, Stand } from './stand.ts'

test('what passes now is landed over HTTP, by whoever may write, and not while the sync is at work', async () => {
  const worker = new Worker({ name: 'crm' })
  worker.sync('delta', { database: worker.database('things', { schema: { type: 'object', properties: { n: { type: 'integer' } } } }), mode: 'incremental', execute: async () => ({ changes: [], hasMore: false }) })
  const stand = await Stand.open(openHarness, { syncs: syncsOf(worker) })
  const driver = await stand.driver()
  const text = (n: unknown): string => JSON.stringify({ key: 'x', record: { n } })
  await driver.cycle([], { quarantined: [poison('a', { code: 'SCHEMA_MISMATCH', text: text(1) }), poison('b', { code: 'SCHEMA_MISMATCH', text: text('one') }), poison('c')] })
  const replay = (key: string | null) => stand.post('/api/syncs/crm/delta/quarantine/replay', { key })
  await driver.release()
  const taken = await stand.store.acquire(driver.ref, { holder: 'runner', ttlMs: 60_000, at: systemClock.now() })
  expect(await replay(null)).toMatchObject({ status: 503, body: { message: 'The sync is at work. Ask again in a few seconds.' } })
  await stand.store.release((taken as Acquired).lease)
  expect((await replay(await addKey(stand.store, ['sync:read']))).status).toBe(403)
  expect(await replay(await addKey(stand.store, ['sync:write'], { name: 'console' }))).toMatchObject({ status: 200, body: { data: { landed: 1, refused: 1, superseded: 0, lost: 1 } } })
  expect((await stand.store.row('things', 'a'))!.text).toBe('{"n":1}')
  expect((await stand.get('/api/quarantine', { key: null })).body['data']).toMatchObject([{ key: 'c' }, { key: 'b', message: 'n: must be integer' }])
  expect((await stand.get('/api/syncs/crm/delta/audit', { key: null })).body['data'][0]).toMatchObject({ action: 'replay', actor: 'api:console', reason: '1 out of quarantine' })
})
