import { describe, expect, onTestFinished, test } from 'vitest'
import {
  SyncError,
  type Destination,
  type DestinationEvent,
  type ErrorCode,
  type Store,
} from '../../src/contract/index.ts'
import { runDestination } from '../../src/destinations/loop/run-destination.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { OPERATOR, SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { EVENT_ACTIONS } from '../../src/webhooks/manage-webhooks.ts'
import { DeliveryFixture } from '../webhooks/delivery-fixture.ts'
import { Receiver } from '../webhooks/receiver.ts'
import { openMemoryDestination } from './memory-destination.ts'

/** A destination with one place per database, whose writes fail on request, and the events of its runs. */
async function openWorld() {
  const store = await openSqliteStore({ file: ':memory:' })
  onTestFinished(() => store.close())
  const fixture = new Failing(store)
  return { store, fixture, driver: await SyncDriver.acquire(store) }
}

class Failing {
  readonly events: DestinationEvent[] = []
  /** By database: the error of every write. */
  readonly codes = new Map<string, ErrorCode>()
  beforeWrite: (database: string) => unknown = () => {}
  readonly #store: Store
  readonly #places = new Map(['things', 'others'].map((name) => [name, openMemoryDestination().destination]))

  constructor(store: Store) {
    this.#store = store
  }

  async run(databases = ['things', 'others'], options: { holder?: string; signal?: AbortSignal } = {}) {
    const { report } = await runDestination(
      { name: 'copy', destination: this.#destination, databases, mode: 'mirror' },
      {
        store: this.#store,
        ports: {
          clock: {
            now: () => systemClock.now(),
            sleep: async (ms, signal) => (ms < 15_000 ? undefined : systemClock.sleep(ms, signal)),
          },
          random: { next: () => 0.5 },
          log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
        },
        holder: 'one',
        signal: new AbortController().signal,
        newStoreId: () => 'the-store',
        onEvent: (event) => void this.events.push(event),
        ...options,
      },
    )
    return report
  }

  /** The events since the last call. */
  take(): DestinationEvent[] {
    return this.events.splice(0)
  }

  get #destination(): Destination {
    const [first] = this.#places.values()
    return {
      ...first!,
      open: async (context) => {
        const of = (database: string) => this.#places.get(database)!.open(context)
        return {
          position: async (database) => (await of(database)).position(database),
          prepare: async (schema) => (await of(schema.database)).prepare(schema),
          apply: async (batch, step) => {
            this.beforeWrite(batch.schema.database)
            const code = this.codes.get(batch.schema.database)
            if (code !== undefined) throw new SyncError(code, 'It was not applied.')
            return (await of(batch.schema.database)).apply(batch, step)
          },
          remove: async (database) => (await of(database)).remove(database),
          close: async () => {},
        }
      },
    }
  }
}

describe('events of a destination', () => {
  test('report a failure once, another database that fails later, and the recovery of all', async () => {
    const { fixture, driver } = await openWorld()
    await driver.cycle([upsert('secret-key', { n: 1 }), upsert('b', { n: 1 }, { database: 'others' })])
    await fixture.run()
    expect(fixture.take()).toMatchObject([
      { kind: 'destination.loading', database: 'things', reason: 'new' },
      { kind: 'destination.loading', database: 'others', reason: 'new' },
    ])
    await fixture.run()
    expect(fixture.take()).toEqual([])

    fixture.codes.set('things', 'DESTINATION_FAILED')
    await driver.cycle([upsert('secret-key', { n: 2 }), upsert('b', { n: 2 }, { database: 'others' })])
    await fixture.run()
    const [failing] = fixture.events
    expect(fixture.take()).toEqual([
      {
        kind: 'destination.failing',
        destination: 'copy',
        at: expect.any(Number),
        databases: ['things'],
        code: 'DESTINATION_FAILED',
        // Invariant 10: the status names the key of the record; the event does not.
        message: 'It was not applied.',
        isTemporary: false,
        retryAt: expect.any(Number),
      },
    ])
    expect(JSON.stringify(failing)).not.toContain('secret-key')
    await fixture.run()
    expect(fixture.take()).toEqual([])

    fixture.codes.set('others', 'DESTINATION_UNAVAILABLE')
    await driver.cycle([upsert('b', { n: 3 }, { database: 'others' })])
    await fixture.run()
    expect(fixture.take()).toMatchObject([
      { kind: 'destination.failing', databases: ['others'], code: 'DESTINATION_UNAVAILABLE', isTemporary: true },
    ])
    fixture.codes.delete('things')
    await fixture.run()
    expect(fixture.take()).toEqual([])
    fixture.codes.clear()
    await fixture.run()
    expect(fixture.take()).toMatchObject([{ kind: 'destination.recovered', destination: 'copy' }])
    await fixture.run()
    expect(fixture.take()).toEqual([])
  })

  test('report a load, and why: the destination is behind the kept history, lost its rows, or an operator asked', async () => {
    const { store, fixture, driver } = await openWorld()
    await driver.cycle([upsert('a', { n: 1 })])
    await fixture.run(['things'])
    fixture.take()
    await driver.cycle([upsert('a', { n: 2 })])
    await driver.cycle([upsert('a', { n: 3 })])
    while ((await store.compact({ before: Number.MAX_SAFE_INTEGER, scanMax: 1_000 })).hasMore);
    await fixture.run(['things'])
    expect(fixture.take()).toMatchObject([{ kind: 'destination.loading', database: 'things', reason: 'behind' }])
    await store.signalDestination('copy', { kind: 'resync', databases: ['things'] }, OPERATOR)
    await fixture.run(['things'])
    expect(fixture.take()).toMatchObject([{ kind: 'destination.loading', reason: 'requested' }])
  })

  test('a run that is stopped, or whose claim is lost, reports nothing', async () => {
    const { store, fixture, driver } = await openWorld()
    await driver.cycle([upsert('a', { n: 1 })])
    await fixture.run(['things'])
    fixture.take()
    await driver.cycle([upsert('a', { n: 2 })])
    fixture.codes.set('things', 'DESTINATION_FAILED')
    // The first database fails, then the run is stopped: the next complete run reports it.
    for (const isStoppedAtOnce of [false, true]) {
      const stopping = new AbortController()
      if (isStoppedAtOnce) stopping.abort(new Error('stop'))
      fixture.beforeWrite = (database) => database === 'others' && stopping.abort(new Error('stop'))
      await driver.cycle([upsert(`b${isStoppedAtOnce}`, { n: 1 }, { database: 'others' })])
      await fixture.run(['things', 'others'], { signal: stopping.signal })
      expect(fixture.take().filter(({ kind }) => kind !== 'destination.loading')).toEqual([])
    }
    fixture.beforeWrite = () => {}
    await fixture.run(['things', 'others'])
    expect(fixture.take().filter(({ kind }) => kind !== 'destination.loading')).toMatchObject([
      { kind: 'destination.failing', databases: ['things'] },
    ])
    await driver.cycle([upsert('a', { n: 3 })])
    const { claimDestination } = store
    store.claimDestination = async (...given) => {
      const claim = await claimDestination.apply(store, given)
      // Another process takes over at once.
      await claimDestination.call(store, 'copy', { holder: 'two', ttlMs: 60_000, at: Date.now(), evictHolder: 'one' })
      return claim
    }
    await fixture.run(['things'])
    expect(fixture.take()).toEqual([])
  })
})

test('a webhook receives the events that it names, signed, in order and each once, and changes as before', async () => {
  const store = await openSqliteStore({ file: ':memory:' })
  const delivery = await DeliveryFixture.open(async () => ({ store, close: () => store.close() }) as never)
  const [events, changes] = [await Receiver.open(), await Receiver.open()]
  await delivery.add(events, { actions: EVENT_ACTIONS })
  await delivery.add(changes)
  const fixture = new Failing(store)
  const driver = await SyncDriver.acquire(store)
  await driver.cycle([upsert('secret-key', { n: 1 })])
  await fixture.run(['things'])
  fixture.codes.set('things', 'DESTINATION_FULL')
  await driver.cycle([upsert('secret-key', { n: 2 })])
  await fixture.run(['things'])
  await fixture.run(['things'])
  fixture.codes.clear()
  await fixture.run(['things'])
  const deliverer = delivery.deliver()
  await delivery.until(({ sequence, waiting }) => sequence === 2 && waiting === 0)
  await delivery.until(({ sequence, waiting }) => sequence === 2 && waiting === 0, 1)
  await deliverer.stop({ graceMs: 0 })
  expect(events.received.map(({ item }) => [item['action'], item['snapshot']])).toEqual([
    ['destination.loading', { database: 'things', reason: 'new' }],
    [
      'destination.failing',
      {
        databases: ['things'],
        code: 'DESTINATION_FULL',
        message: 'It was not applied.',
        advice: expect.stringContaining('Free some space'),
        temporary: true,
        retryAt: expect.stringMatching(/Z$/),
      },
    ],
    ['destination.recovered', {}],
  ])
  expect(new Set(events.received.map(({ id }) => id)).size).toBe(3)
  expect(events.received[0]).toMatchObject({
    id: expect.stringMatching(/^msg_the-store_copy_\d+_1$/),
    item: { eventId: events.received[0]!.id, resourceType: 'tidemark.destination', resourceId: 'copy' },
  })
  expect(changes.received.map(({ item }) => item['action'])).toEqual(['created', 'updated'])
})
