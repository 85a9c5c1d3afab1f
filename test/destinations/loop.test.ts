import { describe, expect, test } from 'vitest'
import { Worker } from '../../src/index.ts'
import { SyncError, type Destination, type DestinationStatus, type DestinationToken } from '../../src/contract/index.ts'
import { decideStart, type LogFacts } from '../../src/destinations/loop/decide-start.ts'
import { isDestinationDue } from '../../src/destinations/loop/destination-due.ts'
import { DestinationBench } from '../../src/testing/destination-cases/harness.ts'
import { OPERATOR } from '../../src/testing/store-cases/harness.ts'
import { openMemoryDestination } from './memory-destination.ts'

const TOKEN: DestinationToken = { storeId: 's', epoch: 3, sequence: 50, committedAt: 7, after: null }
const LOG: LogFacts = { storeId: 's', epoch: 4, headSequence: 60, floor: 10, committedAt: async () => 7 }

describe('decideStart', () => {
  const decide = (
    live: DestinationToken | null,
    loading: DestinationToken | null = null,
    log: Partial<LogFacts> = {},
  ) => decideStart({ live, loading }, { ...LOG, ...log }, undefined, false)

  test('follows from the token, and resumes an unfinished load first', async () => {
    expect(await decide(TOKEN)).toMatchObject({ kind: 'follow', isRestored: false })
    expect(await decide(TOKEN, { ...TOKEN, after: 'k' })).toMatchObject({ kind: 'resume', token: { after: 'k' } })
  })

  test('loads a database that is missing, or behind the kept history', async () => {
    expect(await decide(null)).toMatchObject({ kind: 'load', reason: 'new' })
    expect(await decide({ ...TOKEN, sequence: 9 })).toMatchObject({ kind: 'load', reason: 'behind' })
    expect(await decide({ ...TOKEN, sequence: 10 })).toMatchObject({ kind: 'follow' })
    expect(await decide(null, { ...TOKEN, sequence: 9 })).toMatchObject({ kind: 'load', reason: 'behind' })
  })

  test('a log that was restored or replaced is refused, whatever the token', async () => {
    await expect(decide({ ...TOKEN, sequence: 61 })).rejects.toMatchObject({ code: 'DESTINATION_AHEAD' })
    await expect(decide(TOKEN, null, { committedAt: async () => 8 })).rejects.toMatchObject({
      code: 'DESTINATION_AHEAD',
    })
    await expect(decide({ ...TOKEN, epoch: 5 })).rejects.toMatchObject({ code: 'DESTINATION_AHEAD' })
    await expect(decide({ ...TOKEN, storeId: 'x' })).rejects.toMatchObject({ code: 'DESTINATION_FOREIGN' })
    await expect(decide(null, { ...TOKEN, storeId: 'x' })).rejects.toMatchObject({ code: 'DESTINATION_FOREIGN' })
  })
})

describe('isDestinationDue', () => {
  const following = { database: 'a', state: 'following', readSequence: 5 } as DestinationStatus['databases'][number]
  const status = {
    isPaused: false,
    retryAt: null,
    triggeredAt: null,
    resync: [],
    error: null,
    startedAt: 0,
    databases: [following],
  } as unknown as DestinationStatus
  const isDue = (given: Partial<DestinationStatus>, headSequence = 5, kind: 'continuous' | 'manual' = 'continuous') =>
    isDestinationDue({ databases: ['a'] }, { kind }, { ...status, ...given }, { now: 100, since: 0, headSequence })

  test('a continuous destination is due when the log has grown, and never while it is paused or waits', () => {
    expect(isDue({})).toBe(false)
    expect(isDue({}, 6)).toBe(true)
    expect(isDue({ databases: [] })).toBe(true)
    expect(isDue({ isPaused: true }, 6)).toBe(false)
    expect(isDue({ retryAt: 101 }, 6)).toBe(false)
  })

  test('a manual destination runs on request only', () => {
    expect(isDue({}, 6, 'manual')).toBe(false)
    expect(isDue({ triggeredAt: 1 }, 6, 'manual')).toBe(true)
    expect(isDue({ resync: ['a'] }, 6, 'manual')).toBe(true)
  })
})

describe('runDestination', () => {
  test('a destination that stays down is recorded with the code and the time of the next attempt', async () => {
    const harness = openMemoryDestination()
    const bench = await DestinationBench.open(harness)
    await bench.commit(['a', { n: 1 }])
    const down = { ...harness.destination, open: async () => Promise.reject(new Error('no route')) }
    expect((await bench.run({ destination: down })).report).toMatchObject({
      failures: 1,
      error: { code: 'DESTINATION_FAILED', message: 'no route' },
    })
    const [status] = await bench.store.destinations()
    expect(status).toMatchObject({ failures: 1, error: { code: 'DESTINATION_FAILED' }, heldBy: null })
    expect(status!.retryAt).toBeGreaterThan(Date.now())
    expect((await bench.run()).report).toMatchObject({ failures: 0, error: null })
    await bench.store.close()
  })

  test('a process that was fenced off stops, and reports no newer epoch', async () => {
    const harness = openMemoryDestination()
    const bench = await DestinationBench.open(harness)
    await bench.commit(['a', { n: 1 }])
    let isTaken = false
    const slow = {
      ...harness.destination,
      open: async (context: Parameters<typeof harness.destination.open>[0]) => {
        const session = await harness.destination.open(context)
        return {
          ...session,
          apply: async (...args: Parameters<typeof session.apply>) => {
            // Another process takes over while this one is about to apply.
            if (!isTaken) {
              isTaken = true
              await bench.store.releaseDestination({ name: 'copy', epoch: 1 })
              await bench.run({ holder: 'two' })
            }
            return session.apply(...args)
          },
        }
      },
    }
    const { report } = await bench.run({ destination: slow })
    expect(report?.error?.code).toBe('LEASE_LOST')
    expect(await harness.rows('things')).toHaveLength(1)
    await bench.store.close()
  })
})

describe('worker.destination', () => {
  const { destination } = openMemoryDestination()

  test('has every database by default, a schedule and a mode', () => {
    const worker = new Worker()
    worker.destination('copy', destination)
    const people = worker.database('people')
    worker.destination('log', destination, { databases: [people], mode: 'append', schedule: '5m' })
    expect(worker.destinations()).toMatchObject([
      { name: 'copy', databases: ['people'], mode: 'mirror', schedule: { kind: 'continuous' } },
      { name: 'log', databases: ['people'], mode: 'append', schedule: { kind: 'interval' } },
    ])
  })

  test('refuses what is not a destination, an unknown option, database or mode, and a name twice', () => {
    const worker = new Worker()
    worker.database('people')
    worker.destination('copy', destination)
    const fails = (code: string, ...args: unknown[]) =>
      expect(() => Reflect.apply(worker.destination, worker, args)).toThrow(expect.objectContaining({ code }))
    fails('DESTINATION_INVALID', 'a', {})
    fails('DESTINATION_INVALID', 'a', destination, { databses: [] })
    fails('DESTINATION_INVALID', 'a', destination, { mode: 'upsert' })
    fails('SCHEDULE_INVALID', 'a', destination, { schedule: 'often' })
    fails('DATABASE_UNKNOWN', 'a', destination, { databases: ['peple'] })
    fails('NAME_TAKEN', 'copy', destination)
    fails('DESTINATION_INVALID', 'a', destination, { children: [] })
    fails('DESTINATION_INVALID', 'a', destination, { children: { people: 'lines' } })
    fails('DESTINATION_INVALID', 'a', destination, { children: { people: ['lines', 'Lines'] } })
    fails('DESTINATION_INVALID', 'a', destination, { children: { people: ['lines'] }, mode: 'append' })
    const flat = { ...destination, supports: { ...destination.supports, children: false } }
    fails('DESTINATION_INVALID', 'a', flat, { children: { people: ['lines'] } })
    expect(() => worker.destination('a', destination, { children: { peple: ['lines'] } })).toThrow('Did you mean')
  })
})

test('a requested load that fails before its first batch stays requested', async () => {
  const harness = openMemoryDestination()
  const bench = await DestinationBench.open(harness)
  await bench.commit(['a', { n: 1 }])
  await bench.run()
  await bench.store.signalDestination('copy', { kind: 'resync', databases: ['things'] }, OPERATOR)
  const { open } = harness.destination
  const failing: Destination = {
    ...harness.destination,
    open: async (context) => ({
      ...(await open(context)),
      apply: () => Promise.reject(new SyncError('DESTINATION_REFUSED', 'The role may not write.')),
    }),
  }
  expect((await bench.run({ destination: failing })).report?.error?.code).toBe('DESTINATION_REFUSED')
  expect((await bench.store.destinations())[0]?.resync).toEqual(['things'])
  expect((await bench.run()).report?.databases[0]?.loadReason).toBe('requested')
  expect((await bench.store.destinations())[0]?.resync).toEqual([])
  await bench.store.close()
})
