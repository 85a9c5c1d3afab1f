import { describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/platform/clock.ts'
import { kafka, type KafkaStream, type TopicOptions } from '../../../src/sources/kafka/source.ts'
import { RandomStream } from '../../../src/testing/index.ts'
import { KafkaSimulator, realOrSimulated, type KafkaOptions } from '../../../simulators/src/index.ts'
import { contextOf } from '../sql/cases.ts'
import { DatabaseFixture } from '../sql/database-fixture.ts'

/** Features that the mock lacks on the wire: transactions, compaction, deletion up to an offset, leader elections. */
async function open(options: KafkaOptions = {}) {
  const simulator = new KafkaSimulator({ clock: systemClock }, options)
  const brokers = await simulator.listen()
  simulator.topics.create('orders', 2)
  const stage = await DatabaseFixture.open()
  return {
    simulator,
    stage,
    log: simulator.topics.log('orders', 0),
    streamOf: (given: TopicOptions = {}) => kafka({ brokers }).topic('orders', given),
    put: (rows: Record<string, number | null>, transactionOf?: number) =>
      simulator.append(
        'orders',
        0,
        Object.entries(rows).map(([key, n]) => ({ key, value: n === null ? null : JSON.stringify({ n }) })),
        transactionOf === undefined ? {} : { transactionOf },
      ),
    async [Symbol.asyncDispose]() {
      await stage.close()
      await simulator.close()
    },
  }
}

const numbers = (rows: Record<string, { n: number }>) =>
  Object.fromEntries(Object.entries(rows).map(([key, { n }]) => [key, n]))

describe('against the simulator', () => {
  test('an open transaction holds back the messages after it; no message of an aborted one lands', async () => {
    await using opened = await open()
    const { simulator, stage, put } = opened
    stage.sync('orders', 'incremental', opened.streamOf({ pageSize: 2 }).delta)
    put({ a: 1 })
    put({ a: 2, b: 2 }, 7)
    put({ c: 3 })
    put({ c: 4, d: 4 }, 8)
    await stage.complete('orders')
    expect(numbers(await stage.rows('orders'))).toEqual({ a: 1 })
    simulator.endTransaction('orders', 0, 7, 'abort')
    await stage.complete('orders')
    expect(numbers(await stage.rows('orders'))).toEqual({ a: 1, c: 3 })
    simulator.endTransaction('orders', 0, 8, 'commit')
    await stage.complete('orders')
    expect(numbers(await stage.rows('orders'))).toEqual({ a: 1, c: 4, d: 4 })
    expect((await stage.state('orders')).offsets).toEqual({ 0: '8', 1: '0' })
    expect((await stage.complete('orders')).counts).toMatchObject({ created: 0, updated: 0, deleted: 0, unchanged: 0 })
  })

  test('a log that compaction made holes into is read to its end, by who was away and by who begins', async () => {
    await using opened = await open()
    const { stage, put, log } = opened
    const { delta } = opened.streamOf({ pageSize: 2 })
    stage.sync('orders', 'incremental', delta).sync('late', 'incremental', delta)
    put({ a: 1, b: 1, c: 1 })
    await stage.complete('orders')
    for (let n = 2; n < 9; n++) put({ a: n, b: n })
    put({ b: null })
    put({ a: 9 })
    put({ d: 9 })
    log.compact({ tombstones: 'keep' })
    for (const sync of ['orders', 'late']) {
      await stage.complete(sync)
      expect(numbers(await stage.rows(sync))).toEqual({ a: 9, c: 1, d: 9 })
    }
    expect(
      (await stage.store.changes({ after: 0, limit: 100 })).filter(
        ({ database, key }) => database === 'late' && key === 'a',
      ),
    ).toHaveLength(1)
  })

  test('XC32 messages that were deleted up to an offset before they were read are reported exactly', async () => {
    await using opened = await open()
    const { stage, put, log } = opened
    stage.sync('orders', 'incremental', opened.streamOf().delta)
    put({ a: 1, b: 1 })
    await stage.complete('orders')
    put({ c: 1 })
    put({ d: 1 })
    log.deleteBefore(2)
    await stage.complete('orders')
    put({ e: 1 })
    put({ f: 1 })
    log.deleteBefore(5)
    expect((await stage.run('orders')).error).toMatchObject({
      code: 'HISTORY_LOST',
      message: expect.stringContaining('read up to offset 4, but now begins at 5') as string,
    })
  })

  test('a topic whose leader is being elected is asked for again, and a topic that gets a partition is read with it', async () => {
    await using opened = await open()
    const { simulator, stage, put } = opened
    stage.sync('orders', 'incremental', opened.streamOf().delta)
    simulator.faults.plan({ kind: 'error', error: 'LEADER_NOT_AVAILABLE' }, { api: 'metadata' })
    put({ a: 1 })
    await stage.complete('orders')
    simulator.topics.addPartition('orders')
    simulator.append('orders', 2, [{ key: 'b', value: '{"n":2}' }])
    await stage.complete('orders')
    expect(numbers(await stage.rows('orders'))).toEqual({ a: 1, b: 2 })
  })

  test('answers that are cut, refused, late or half there, at any request: tried again, and nothing is lost or doubled', async () => {
    await using opened = await open({ brokers: 2 })
    const { simulator, stage, put } = opened
    const chance = new RandomStream(5, 'faults')
    stage.sync('orders', 'incremental', opened.streamOf({ pageSize: 3 }).delta, { retriesMax: 5 })
    const truth: Record<string, number> = {}
    let retries = 0
    for (let n = 0; n < 12; n++) {
      for (const key of ['a', 'b', 'c', 'd', 'e']) put({ [key]: (truth[key] = chance.int(0, 1_000)) })
      const gone = chance.pick(['a', 'b', 'c', 'd', 'e'])
      put({ [gone]: null })
      delete truth[gone]
      const fault = chance.pick([
        { kind: 'cut', where: 'before' },
        { kind: 'cut', where: 'inside' },
        { kind: 'error', error: 'NOT_LEADER_OR_FOLLOWER' },
        { kind: 'slow', ms: 20 },
      ] as const)
      simulator.faults.plan(fault, {
        api: fault.kind === 'error' ? 'fetch' : chance.pick(['fetch', 'listOffsets', 'metadata', 'apiVersions']),
        times: 1,
      })
      retries += (await stage.complete('orders')).retries
      expect(numbers(await stage.rows('orders'))).toEqual(truth)
    }
    expect(retries).toBeGreaterThan(0)
  })
})

describe('a range', () => {
  test('reads from the first message at its start to the end of the topic, and refuses an end', async () => {
    await using opened = await open()
    const { stage, simulator } = opened
    for (let n = 1; n <= 6; n++)
      simulator.append('orders', 0, [
        { key: `k${n % 4}`, value: JSON.stringify({ n }), timestamp: Date.UTC(2026, 0, n) },
      ])
    const { backfill } = opened.streamOf()
    stage.sync('range', 'replace', backfill.range!({ from: '2026-01-03T00:00:00.000000Z' }))
    await stage.complete('range')
    expect(numbers(await stage.rows('range'))).toEqual({ k0: 4, k1: 5, k2: 6, k3: 3 })
    const from = opened.streamOf({ since: '2026-01-05' }).backfill.range!({ from: '2026-01-03T00:00:00.000000Z' })
    stage.sync('limited', 'replace', from)
    await stage.complete('limited')
    expect(numbers(await stage.rows('limited'))).toEqual({ k1: 5, k2: 6 })
    expect(() => backfill.range!({ to: '2026-01-03T00:00:00.000000Z' })).toThrow('Leave out `to`')
  })
})

describe('the orders that a new project reads', () => {
  test('a reader that follows them for an hour has the same rows as one that reads from the beginning, each with its own cluster', async () => {
    const [since, opened] = ['2026-01-31T12:00:00Z', Date.parse('2026-01-31T12:00:00Z')]
    const at = { minute: 0 }
    const clock = { ...systemClock, now: () => opened + at.minute * 60_000 }
    /** A process of its own each time. */
    const streamOf = (): KafkaStream =>
      realOrSimulated('kafka', { unless: 'KAFKA_BROKERS', since })(
        kafka({ brokers: 'KAFKA_BROKERS' }).topic('orders', { pageSize: 50 }),
      )
    const secrets = { get: () => '' }
    const stage = await DatabaseFixture.open()
    stage.sync('followed', 'incremental', (state, context) =>
      streamOf().delta(state as never, { ...context, clock, secrets }),
    )
    stage.sync('read', 'incremental', (state, context) =>
      streamOf().delta(state as never, { ...context, clock, secrets }),
    )
    const total = { created: 0, updated: 0, deleted: 0 }
    for (at.minute of [0, 1, 2, 7, 60]) {
      const { counts } = await stage.complete('followed')
      for (const kind of ['created', 'updated', 'deleted'] as const) total[kind] += counts[kind]
    }
    expect(total.created).toBeGreaterThan(200)
    expect(total.updated).toBeGreaterThan(50)
    expect(total.deleted).toBeGreaterThan(10)
    await stage.complete('read')
    const rows = await stage.rows('read')
    expect(await stage.rows('followed')).toEqual(rows)
    expect(Object.values(rows)[0]).toEqual({
      id: expect.stringMatching(/^O-\d+$/) as string,
      item: expect.any(String) as string,
      quantity: expect.any(Number) as number,
      status: expect.any(String) as string,
      updatedAt: expect.stringMatching(/^2026-01/) as string,
    })
    await stage.close()
  })

  test('the real ones are asked as soon as they are named', async () => {
    const { delta } = realOrSimulated('kafka', { unless: 'KAFKA_BROKERS', since: '2026-01-31T12:00:00Z' })(
      kafka({ brokers: 'KAFKA_BROKERS' }).topic('orders'),
    )
    await expect(delta(undefined, { ...contextOf(), secrets: { get: () => '127.0.0.1:1' } })).rejects.toMatchObject({
      code: 'SOURCE_UNAVAILABLE',
      message: expect.stringContaining('127.0.0.1:1') as string,
    })
  })
})
