import { describe, expect, test } from 'vitest'
import { upsert } from '../../src/testing/store-cases/harness.ts'
import { openMemoryDestination } from '../destinations/memory-destination.ts'
import { openHarness } from '../stores/sqlite-harness.ts'
import { addDestination } from './route-samples.ts'
import { addKey, ServerFixture } from './server-fixture.ts'

const DECLARED = {
  name: 'lake',
  destination: openMemoryDestination().destination,
  databases: ['things', 'others'],
  mode: 'mirror',
  schedule: { kind: 'continuous' },
} as const

async function open(): Promise<ServerFixture> {
  const stand = await ServerFixture.open(openHarness, { destinations: [DECLARED] })
  await (await stand.driver()).cycle([upsert('a', { n: 1 }), upsert('b', { n: 2 })])
  await addDestination(stand.store, 'fits')
  return stand
}

describe('destinations over HTTP', () => {
  test('lists declared destinations before the first run, and those that only the store knows', async () => {
    const stand = await open()
    const { body } = await stand.get('/api/destinations', { key: null })
    expect(body['data']).toMatchObject([
      {
        destination: 'lake',
        declared: true,
        health: 'INITIALIZING',
        lagMs: null,
        behind: null,
        next: { why: 'schedule' },
        databases: [{ database: 'things', state: 'new' }, { database: 'others' }],
      },
      {
        destination: 'copy',
        declared: false,
        health: 'ERROR',
        behind: 2,
        error: { message: 'no fits', advice: expect.stringContaining('`tidemark destinations run copy`') },
        databases: [{ state: 'failed', failure: { key: 'b fits', firstSequence: 1 } }],
      },
    ])
  })

  test('requests of an operator are stored and audited; an unknown name or database changes nothing', async () => {
    const stand = await open()
    const post = (path: string, body?: object) =>
      stand.post(`/api/destinations/${path}`, {
        key: null,
        ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
      })
    const stored = async () => (await stand.store.destinations()).find(({ name }) => name === 'lake')
    expect((await post('lake/pause')).body).toMatchObject({ data: { paused: true, health: 'PAUSED' } })
    expect((await post('lake/resume')).body).toMatchObject({ data: { paused: false } })
    expect((await post('lake/run')).body).toMatchObject({ data: { triggeredAt: expect.any(String) } })
    expect((await post('lake/resync', { databases: ['things'] })).body).toMatchObject({ data: { resync: ['things'] } })
    expect((await post('lake/resync')).body).toMatchObject({ data: { resync: ['others', 'things'] } })
    const { entries } = await stand.store.auditChain({ after: 0, limit: 100 })
    expect(entries.map(({ action, actor }) => `${actor} ${action}`)).toEqual(
      expect.arrayContaining(['pause', 'resume', 'resync'].map((kind) => `api:local ${kind}-destination`)),
    )
    const before = await stored()
    expect((await post('lake/resync', { databases: ['thing'] })).status).toBe(404)
    expect((await post('lake/resync', { database: 'things' })).status).toBe(400)
    expect((await post('sea/run')).status).toBe(404)
    expect(await stored()).toEqual(before)
    expect((await stand.store.destinations()).map(({ name }) => name)).toEqual(['copy', 'lake'])
  })

  test('a key that may not read the database learns the code, and neither the message nor the key', async () => {
    const stand = await open()
    const [, copy] = (await stand.get('/api/destinations', { key: await addKey(stand.store, ['sync:write']) })).body[
      'data'
    ]
    expect(copy).toMatchObject({ error: { code: 'DESTINATION_FAILED' }, databases: [{ failure: { key: null } }] })
    expect(JSON.stringify(copy)).not.toContain('fits')
  })

  test('the metrics have the health, the lag, the entries behind and the failures of each', async () => {
    const stand = await open()
    const claim = (await stand.store.claimDestination('lake', { holder: 'one', ttlMs: 60_000, at: 0 }))!
    const following = { state: 'following', sequence: 1, readSequence: 1, committedAt: 0, changes: 1 } as const
    await stand.store.recordDestination(claim, {
      kind: 'memory',
      location: 'memory',
      mode: 'mirror',
      startedAt: 1,
      endedAt: 2,
      failures: 0,
      retryAt: null,
      error: null,
      databases: ['things', 'others'].map((database) => ({ ...following, database, loadReason: null })),
      resynced: [],
    })
    const { text } = await stand.get('/metrics', { key: null })
    const lines = text.split('\n').filter((line) => line.startsWith('tidemark_destination'))
    const [change] = (await stand.store.feed({ after: 1, limit: 1, scanMax: 10 })).entries
    const lag = Number(lines.find((line) => line.startsWith('tidemark_destination_lag'))!.split(' ')[1])
    expect(Math.abs(lag - (Date.now() - change!.committedAt) / 1_000)).toBeLessThan(60)
    expect(lines.filter((line) => !line.startsWith('tidemark_destination_lag'))).toEqual([
      'tidemark_destinations{health="HEALTHY"} 1',
      'tidemark_destinations{health="INITIALIZING"} 0',
      'tidemark_destinations{health="WARNING"} 0',
      'tidemark_destinations{health="ERROR"} 1',
      'tidemark_destinations{health="PAUSED"} 0',
      'tidemark_destination_behind{destination="lake"} 1',
      'tidemark_destination_behind{destination="copy"} 2',
      'tidemark_destination_consecutive_failures{destination="lake"} 0',
      'tidemark_destination_consecutive_failures{destination="copy"} 1',
    ])
  })
})
