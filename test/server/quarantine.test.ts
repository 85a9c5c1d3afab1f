import { expect, test } from 'vitest'
import { Worker } from '../../src/worker/worker.ts'
import type { LeaseAcquired } from '../../src/contract/store.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { listDeclaredSyncs } from '../../src/runner/declared-sync.ts'
import { makeQuarantined } from '../../src/testing/store-cases/harness.ts'
import { openHarness } from '../stores/sqlite-harness.ts'
import { addKey, ServerFixture } from './server-fixture.ts'

test('quarantined records that pass now are committed over HTTP, with the write scope, and not while the sync runs', async () => {
  const worker = new Worker({ name: 'crm' })
  worker.sync('delta', {
    database: worker.database('things', { schema: { type: 'object', properties: { n: { type: 'integer' } } } }),
    mode: 'incremental',
    execute: async () => ({ changes: [], hasMore: false }),
  })
  const stand = await ServerFixture.open(openHarness, { syncs: listDeclaredSyncs(worker) })
  const driver = await stand.driver()
  const text = (n: unknown): string => JSON.stringify({ key: 'x', record: { n } })
  await driver.cycle([], {
    quarantined: [
      makeQuarantined('a', { code: 'SCHEMA_MISMATCH', text: text(1) }),
      makeQuarantined('b', { code: 'SCHEMA_MISMATCH', text: text('one') }),
      makeQuarantined('c'),
    ],
  })
  const replay = (key: string | null) => stand.post('/api/syncs/crm/delta/quarantine/replay', { key })
  await driver.release()
  const taken = await stand.store.acquire(driver.ref, { holder: 'runner', ttlMs: 60_000, at: systemClock.now() })
  expect(await replay(null)).toMatchObject({
    status: 503,
    body: { message: 'The sync is running. Retry in a few seconds.' },
  })
  await stand.store.release((taken as LeaseAcquired).lease)
  expect((await replay(await addKey(stand.store, ['sync:read']))).status).toBe(403)
  expect(await replay(await addKey(stand.store, ['sync:write'], { name: 'console' }))).toMatchObject({
    status: 200,
    body: { data: { landed: 1, refused: 1, superseded: 0, lost: 1 } },
  })
  expect((await stand.store.row('things', 'a'))!.text).toBe('{"n":1}')
  expect((await stand.get('/api/quarantine', { key: null })).body['data']).toMatchObject([
    { key: 'c' },
    { key: 'b', message: 'n: must be integer' },
  ])
  expect((await stand.get('/api/syncs/crm/delta/audit', { key: null })).body['data'][0]).toMatchObject({
    action: 'replay',
    actor: 'api:console',
    reason: '1 replayed from quarantine',
  })
})
