import { expect, onTestFinished, test } from 'vitest'
import {
  SyncError,
  type Destination,
  type DestinationBatch,
  type DestinationSession,
  type JsonObject,
  type Store,
} from '../../src/contract/index.ts'
import { DestinationRunner } from '../../src/destinations/loop/destination-runner.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { START, SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { FakeClock } from '../engine/fake-clock.ts'
import { openMemoryDestination } from './memory-destination.ts'

const HOUR_MS = 3_600_000

/** A runner on a virtual clock, with one destination that keeps every database of every tenant apart. */
async function openWorld(databases: readonly string[]) {
  const clock = new FakeClock(new Date(START).toISOString())
  const store = await openSqliteStore({ file: ':memory:' })
  const places = new Map<string, ReturnType<typeof openMemoryDestination>>()
  const place = (id: string) => {
    const found = places.get(id) ?? openMemoryDestination()
    places.set(id, found)
    return found
  }
  const batches: Array<{ readonly id: string; readonly changes: number; readonly sequence: number }> = []
  let reject: ((id: string, batch: DestinationBatch) => boolean) | null = null
  const sample = openMemoryDestination().destination
  const destination: Destination = {
    ...sample,
    open: async (context) => {
      const session = (database: string): Promise<DestinationSession> =>
        place(`${context.tenant}/${database}`).destination.open(context)
      return {
        position: async (database) => (await session(database)).position(database),
        prepare: async () => {},
        apply: async (batch, step) => {
          const id = `${context.tenant}/${batch.schema.database}`
          if (reject?.(id, batch) === true) throw new SyncError('DESTINATION_FAILED', 'It does not fit.')
          batches.push({ id, changes: batch.changes.length, sequence: step.next.sequence })
          return (await session(batch.schema.database)).apply(batch, step)
        },
        remove: async (database) => (await session(database)).remove(database),
        close: async () => {},
      }
    },
  }
  const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
  const runner = new DestinationRunner({
    store,
    ports: { clock, random: { next: () => 0.5 }, log: silent },
    holder: 'one',
    newStoreId: () => crypto.randomUUID(),
    destinations: [{ name: 'copy', destination, databases, mode: 'mirror', schedule: { kind: 'continuous' } }],
  })
  onTestFinished(async () => {
    await runner.stop()
    await store.close()
  })
  runner.start()
  const drivers = new Map<string, SyncDriver>()
  return {
    clock,
    store,
    runner,
    batches,
    rejecting: (given: typeof reject) => void (reject = given),
    keys: async (id: string) => (await place(id).rows('')).map(({ key }) => key).toSorted(),
    status: async (own: Store = store) => (await own.destinations())[0]!,
    async commit(database: string, key: string, record: JsonObject = { n: 1 }, own: Store = store): Promise<void> {
      const driver = drivers.get(own.tenant) ?? (await SyncDriver.acquire(own))
      drivers.set(own.tenant, driver)
      await driver.begin({ databases: [database] })
      await driver.complete([upsert(key, record, { database })], { at: clock.now() })
    },
  }
}

test('every tenant has its own copy, and one that fails does not stop the other', async () => {
  const { clock, store, runner, rejecting, keys, status, commit } = await openWorld(['things'])
  const acme = store.forTenant('acme')
  await commit('things', 'mine')
  await commit('things', 'theirs', { n: 2 }, acme)
  runner.add('acme')
  runner.add('acme')
  await clock.advance(2_000)
  expect(await keys('default/things')).toEqual(['mine'])
  expect(await keys('acme/things')).toEqual(['theirs'])

  rejecting((id) => id.startsWith('acme/'))
  await commit('things', 'mine2')
  await commit('things', 'theirs2', { n: 2 }, acme)
  await clock.advance(2_000)
  expect(await keys('default/things')).toEqual(['mine', 'mine2'])
  expect(await keys('acme/things')).toEqual(['theirs'])
  expect(await status()).toMatchObject({ failures: 0, error: null })
  expect(await status(acme)).toMatchObject({ failures: 1, error: { code: 'DESTINATION_FAILED' } })
  expect(await store.storeId('x')).not.toBe(await acme.storeId('x'))
})

test('a database that fails does not delay the others of its destination, and continues once it is repaired', async () => {
  const { clock, batches, rejecting, keys, status, commit } = await openWorld(['things', 'others'])
  await commit('things', 'a')
  await commit('others', 'b')
  await clock.advance(2_000)
  rejecting((id) => id === 'default/things')
  await commit('things', 'a2')
  await clock.advance(2_000)
  expect(await status()).toMatchObject({ failures: 1, databases: [{ state: 'failed' }, { state: 'following' }] })
  const { retryAt } = await status()

  await commit('others', 'b2')
  await clock.advance(2_000)
  expect(await keys('default/others')).toEqual(['b', 'b2'])
  expect(await status()).toMatchObject({ failures: 1, retryAt, error: { code: 'DESTINATION_FAILED' } })

  const before = batches.length
  rejecting(null)
  await clock.advance(60_000)
  expect(batches.slice(before).map(({ id }) => id)).toContain('default/things')
  expect(await keys('default/things')).toEqual(['a', 'a2'])
  expect(await status()).toMatchObject({ failures: 0, error: null, retryAt: null })
})

test('an idle destination gets an empty batch once an hour, so that its token follows the log', async () => {
  const { clock, batches, commit } = await openWorld(['things'])
  await commit('things', 'a')
  await clock.advance(2_000)
  batches.length = 0
  for (let minute = 0; minute < 130; minute += 10) {
    await commit('others', `b${minute}`)
    await clock.advance(600_000)
  }
  expect(batches.map(({ changes }) => changes)).toEqual([0, 0])
  const [first, second] = batches
  // One entry of the other database every ten minutes.
  expect(second!.sequence - first!.sequence).toBe(HOUR_MS / 600_000)
})
