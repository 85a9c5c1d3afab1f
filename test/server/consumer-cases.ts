import { describe, expect, test } from 'vitest'
import { SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { addKey, ServerFixture, type Answer, type Body, type OpenHarness } from './server-fixture.ts'

const CHECKPOINT = '/agents/v1/sync-state/checkpoint'
const LAG = '/agents/v1/sync-state/lag'

export function describeConsumers(name: string, open: OpenHarness): void {
  describe(`AX9 consumers on ${name}`, () => {
    async function filled(): Promise<ServerFixture> {
      const stand = await ServerFixture.open(open)
      await (
        await stand.driver()
      ).cycle([upsert('a', { n: 1 }), upsert('b', { n: 2 }, { database: 'people' }), upsert('c', { n: 3 })])
      return stand
    }
    const put = (stand: ServerFixture, body: Body, key = stand.key): Promise<Answer> =>
      stand.post(CHECKPOINT, { key, body: JSON.stringify(body), headers: { 'content-type': 'application/json' } })

    test('a stored position is returned, and can be replaced and deleted', async () => {
      const stand = await filled()
      expect((await stand.get(CHECKPOINT)).body).toMatchObject({ status: 404, error: 'NOT_FOUND' })
      const {
        body: {
          page: { nextCursor: cursor },
        },
      } = await stand.get('/agents/v1/changes?limit=1')
      const told = await put(stand, { cursor, checkpointAt: '2026-01-31T12:00:00+01:00', metadata: { batch: 7 } })
      expect([told.status, told.body.data]).toEqual([
        200,
        {
          integrationKey: 'default',
          resourceType: 'changes',
          cursor,
          checkpointAt: '2026-01-31T11:00:00.000Z',
          reportedAt: expect.any(String),
          metadata: { batch: 7 },
        },
      ])
      expect((await stand.get(CHECKPOINT)).body).toEqual(told.body)
      const {
        body: { page },
      } = await stand.get(`/agents/v1/changes?cursor=${cursor}`)
      await put(stand, { cursor: page.nextCursor })
      expect((await stand.get(CHECKPOINT)).body.data).toMatchObject({ cursor: page.nextCursor, metadata: null })
      expect((await stand.get(`${CHECKPOINT}?integrationKey=other`)).status).toBe(404)
      expect((await stand.get(CHECKPOINT, { method: 'DELETE' })).status).toBe(200)
      expect((await stand.get(CHECKPOINT, { method: 'DELETE' })).status).toBe(404)
    })

    test('the lag is the age of the oldest unprocessed change of the consumer’s databases', async () => {
      const stand = await filled()
      const stands = async (ms: number): Promise<void> => {
        const [newest] = (await stand.store.changes({ after: 0, limit: 9 })).slice(-1)
        stand.shift.ms = newest!.committedAt - Date.now() + ms
      }
      await stands(1_000)
      const {
        body: { page: all },
      } = await stand.get('/agents/v1/changes')
      const {
        body: { page: list },
      } = await stand.get('/agents/v1/people')
      await put(stand, { integrationKey: 'whole', cursor: all.nextCursor })
      await put(stand, { integrationKey: 'people', resourceType: 'people', cursor: list.nextCursor })
      await put(stand, { integrationKey: 'start' })
      await put(stand, { integrationKey: 'future', updatedSince: '2099-01-01T00:00:00Z' })
      const lags = async (): Promise<unknown[]> =>
        (await stand.get(LAG)).body.data.map(({ integrationKey, behind, status }: Body) => [
          integrationKey,
          behind,
          status,
        ])
      expect(await lags()).toEqual([
        ['future', 0, 'healthy'],
        ['people', 0, 'healthy'],
        ['start', 3, 'healthy'],
        ['whole', 0, 'healthy'],
      ])
      await (await SyncDriver.acquire(stand.store, { sync: 'later' })).cycle([upsert('d', { n: 4 })])
      await stands(310_000)
      expect(await lags()).toEqual([
        ['future', 1, 'warning'],
        ['people', 1, 'healthy'],
        ['start', 4, 'warning'],
        ['whole', 1, 'warning'],
      ])
      await stands(1_810_000)
      const [, people, , whole] = (await stand.get(LAG)).body.data
      expect([people.status, people.lagSeconds, whole.status, whole.lagSeconds > 1_800]).toEqual([
        'healthy',
        0,
        'critical',
        true,
      ])
      const { text } = await stand.get('/metrics', { key: null })
      expect(text.split('\n').filter((line) => line.startsWith('tidemark_consumers'))).toEqual([
        'tidemark_consumers{status="healthy"} 1',
        'tidemark_consumers{status="warning"} 0',
        'tidemark_consumers{status="critical"} 3',
      ])
    })

    test('Z26 a position belongs to the name of its key: other keys neither see nor change it, and its cursor must match its resource', async () => {
      const stand = await filled()
      const {
        body: {
          page: { nextCursor: cursor },
        },
      } = await stand.get('/agents/v1/changes')
      await put(stand, { cursor })
      const foreign = await addKey(stand.store.forTenant('acme'), ['*:read', 'admin'])
      expect((await stand.get(CHECKPOINT, { key: foreign })).status).toBe(404)
      expect((await stand.get(LAG, { key: foreign })).body.data).toEqual([])
      expect((await put(stand, { cursor }, foreign)).body.details).toMatchObject({ reason: 'cursor_invalid' })
      const other = await addKey(stand.store, ['people:read'], { name: 'other' })
      expect((await stand.get(LAG, { key: other })).body.data).toEqual([])
      expect((await stand.get(CHECKPOINT, { key: other, method: 'DELETE' })).status).toBe(404)
      expect((await put(stand, {}, other)).status).toBe(403)
      expect((await put(stand, { resourceType: 'things' }, other)).status).toBe(403)
      expect((await put(stand, { resourceType: 'people' }, other)).status).toBe(200)
      expect(
        (await stand.get(LAG, { key: await addKey(stand.store, ['admin'], { name: 'boss' }) })).body.data.map(
          ({ owner, resourceType }: Body) => [owner, resourceType],
        ),
      ).toEqual([
        ['other', 'people'],
        ['test', 'changes'],
      ])
      for (const [body, reason] of [
        [{ cursor: 'x' }, 'cursor_invalid'],
        [{ resourceType: 'things', cursor }, 'cursor_misplaced'],
        [{ updatedSince: 'yesterday' }, 'time_invalid'],
        [{ checkpointAt: 'now' }, 'time_invalid'],
        [{ metadata: { text: 'x'.repeat(8_192) } }, 'metadata_too_large'],
        [{ metadata: 'text' }, 'parameter_invalid'],
        [{ curser: cursor }, 'parameter_invalid'],
      ] as const)
        expect([body, (await put(stand, body)).body]).toMatchObject([body, { status: 400, details: { reason } }])
      expect((await put(stand, { resourceType: 'nothing' })).status).toBe(404)
      stand.shift.ms = 8 * 86_400_000
      expect((await put(stand, { cursor })).body.details).toMatchObject({ reason: 'cursor_expired' })
    })

    test('a key has at most a hundred consumers', async () => {
      const stand = await filled()
      const kept = {
        owner: 'test',
        resource: 'changes',
        databases: null,
        sequence: 0,
        cursor: null,
        checkpointAt: 0,
        reportedAt: 0,
        metadata: null,
      }
      for (let n = 0; n < 99; n++) await stand.store.putConsumer({ ...kept, name: `c${n}` }, { ownedMax: 1_000 })
      expect((await put(stand, { integrationKey: 'c99' })).status).toBe(200)
      expect((await put(stand, { integrationKey: 'one more' })).body.details).toEqual({ reason: 'too_many_consumers' })
      expect((await put(stand, { integrationKey: 'c5' })).status).toBe(200)
    })
  })
}
