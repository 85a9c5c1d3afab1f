import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { SyncError, type Destination, type DestinationBatch } from '../../src/contract/index.ts'
import type { TidemarkEvents } from '../../src/embed/events.ts'
import { createTidemark } from '../../src/embed/index.ts'
import { openMemoryDestination } from '../destinations/memory-destination.ts'
import { openTidemark, PeopleFixture, storeUrl } from './embed-fixture.ts'

/** A worker with one destination in memory, that rejects every batch on request. */
function openWorld(schedule: 'manual' | 'continuous' = 'manual') {
  const fixture = new PeopleFixture()
  const memory = openMemoryDestination()
  const world = { fixture, isRejecting: false, batches: [] as DestinationBatch[], keys }
  const destination: Destination = {
    ...memory.destination,
    open: async (context) => {
      const session = await memory.destination.open(context)
      return {
        ...session,
        apply: async (batch, step) => {
          if (world.isRejecting) throw new SyncError('DESTINATION_REFUSED', 'The password is wrong.')
          world.batches.push(batch)
          return session.apply(batch, step)
        },
      }
    },
  }
  fixture.worker.destination('warehouse', destination, { schedule })
  return world

  async function keys(): Promise<string[]> {
    return (await memory.rows('people')).map(({ key }) => key).toSorted()
  }
}

const NAMES = ['destinationLoading', 'destinationFailing', 'destinationRecovered', 'destinationEnded'] as const

describe('the destinations of an instance', () => {
  test('run, fail, recover, pause and load again, with events; the list shows the same in another process', async () => {
    const world = openWorld()
    const store = storeUrl()
    const tidemark = openTidemark({ store, workers: [world.fixture.worker] })
    const events: Array<Partial<TidemarkEvents[(typeof NAMES)[number]]> & { name: string }> = []
    for (const name of NAMES) tidemark.on(name, (event) => void events.push({ name, ...event }))
    world.fixture.records.set('ada', { name: 'Ada' })
    await tidemark.run('people')
    expect(await tidemark.destinations.run('warehouse')).toEqual({
      destination: 'warehouse',
      ran: true,
      changes: 1,
      error: null,
    })
    expect(await world.keys()).toEqual(['ada'])
    const loading = { name: 'destinationLoading', tenant: 'default', destination: 'warehouse', database: 'people' }
    const ended = { name: 'destinationEnded', tenant: 'default', destination: 'warehouse' }
    expect(events.splice(0)).toMatchObject([
      { ...loading, reason: 'new' },
      { ...ended, changes: 1, error: null },
    ])

    world.isRejecting = true
    world.fixture.records.set('bob', { name: 'Bob' })
    await tidemark.run('people')
    expect(await tidemark.destinations.run('warehouse')).toMatchObject({ error: { code: 'DESTINATION_REFUSED' } })
    expect(events.splice(0)).toMatchObject([
      { name: 'destinationFailing', databases: ['people'], code: 'DESTINATION_REFUSED', isTemporary: false },
      { ...ended, error: { code: 'DESTINATION_REFUSED' } },
    ])
    const other = openTidemark({ store, workers: [world.fixture.worker] })
    expect(await other.destinations.list()).toMatchObject([
      { destination: 'warehouse', health: 'ERROR', behind: 1, error: { code: 'DESTINATION_REFUSED' } },
    ])
    world.isRejecting = false
    await tidemark.destinations.run('warehouse')
    expect(events.splice(0).map(({ name }) => name)).toEqual(['destinationRecovered', 'destinationEnded'])

    await other.destinations.pause('warehouse')
    expect(await tidemark.destinations.run('warehouse')).toMatchObject({ ran: false, changes: 0 })
    expect(events).toEqual([])
    await other.destinations.resume('warehouse')
    await other.destinations.resync('warehouse', { databases: ['people'] })
    await tidemark.destinations.run('warehouse')
    expect(events.splice(0)).toMatchObject([{ ...loading, reason: 'requested' }, ended])
    expect(await world.keys()).toEqual(['ada', 'bob'])
  })

  test('are removed with or without their rows', async () => {
    const world = openWorld()
    const tidemark = openTidemark({ workers: [world.fixture.worker] })
    world.fixture.records.set('ada', { name: 'Ada' })
    await tidemark.run('people')
    await tidemark.destinations.run('warehouse')
    await tidemark.destinations.remove('warehouse')
    expect(await world.keys()).toEqual(['ada'])
    expect(await tidemark.destinations.list()).toMatchObject([{ destination: 'warehouse', health: 'INITIALIZING' }])
    await tidemark.destinations.remove('warehouse', { dropRows: true })
    expect(await world.keys()).toEqual([])
  })

  test('an unknown name or database is answered with the closest one', async () => {
    const world = openWorld()
    const { destinations } = openTidemark({ workers: [world.fixture.worker] })
    for (const act of [
      () => destinations.run('warehose'),
      () => destinations.pause('warehose'),
      () => destinations.resync('warehose'),
      () => destinations.remove('warehose'),
    ])
      await expect(act()).rejects.toThrow('There is no destination "warehose". Did you mean "warehouse"')
    await expect(destinations.resync('warehouse', { databases: ['poeple'] })).rejects.toThrow('Did you mean "people"')
    expect(await destinations.list()).toMatchObject([{ resync: [] }])
  })

  test('a load of one database leaves the others', async () => {
    const world = openWorld()
    world.fixture.worker.database('others')
    const tidemark = openTidemark({ workers: [world.fixture.worker] })
    await tidemark.destinations.resync('warehouse', { databases: ['others'] })
    expect(await tidemark.destinations.list()).toMatchObject([{ resync: ['others'] }])
    await tidemark.destinations.resync('warehouse')
    expect(await tidemark.destinations.list()).toMatchObject([{ resync: ['others', 'people'] }])
  })
})

test('two instances of one process run every slot once between them, and neither evicts the other', async () => {
  const world = openWorld('continuous')
  const scheduled = new PeopleFixture({ name: 'hourly', schedule: '1h' })
  for (let n = 0; n < 4; n++) scheduled.records.set(`k${n}`, { name: `name ${n}` })
  const store = storeUrl()
  let running = 0
  let most = 0
  scheduled.beforePage = async () => {
    most = Math.max(most, ++running)
    await new Promise((resolve) => setTimeout(resolve, 100))
    running--
  }
  const instances = [1, 2].map(() =>
    createTidemark({ store, workers: [world.fixture.worker, scheduled.worker], log: 'silent' }),
  )
  onTestFinished(async () => void (await Promise.all(instances.map((instance) => instance.stop()))))
  const ended = vi.fn()
  for (const instance of instances) instance.on('cycleEnded', ended)
  world.fixture.records.set('ada', { name: 'Ada' })
  await instances[0]!.run('staff/people')
  ended.mockClear()
  await Promise.all(instances.map((instance) => instance.start()))
  await vi.waitFor(() => expect(ended).toHaveBeenCalled(), 20_000)
  // Both have polled since: the slot was not taken twice.
  await vi.waitFor(async () => expect(await world.keys()).toContain('ada'), 20_000)
  expect(ended).toHaveBeenCalledTimes(1)
  expect(scheduled.pages).toBe(4)
  expect(most).toBe(1)
  // One load, and one batch with its only row.
  expect(world.batches.flatMap(({ changes }) => changes)).toHaveLength(1)
})
