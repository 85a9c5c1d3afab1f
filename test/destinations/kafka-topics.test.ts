import { describe, expect, onTestFinished, test } from 'vitest'
import type { DestinationSession, DestinationToken } from '../../src/contract/index.ts'
import { kafka } from '../../src/destinations/kafka/destination.ts'
import { findVanishedKeys } from '../../src/destinations/kafka/find-vanished-keys.ts'
import { hashKey, KeySet } from '../../src/destinations/kafka/key-set.ts'
import { createPartitionOf } from '../../src/destinations/kafka/partition-of.ts'
import { TopicReader } from '../../src/destinations/kafka/topic-reader.ts'
import { connectCluster } from '../../src/sources/kafka/connect.ts'
import { DestinationBench } from '../../src/testing/destination-cases/harness.ts'
import { OPERATOR } from '../../src/testing/store-cases/harness.ts'
import type { KafkaErrorName } from '../../simulators/src/index.ts'
import { openKafkaHarness, type KafkaHarness } from './kafka-harness.ts'

async function openBench(options: Parameters<typeof openKafkaHarness>[0] = {}) {
  const harness = await openKafkaHarness(options)
  const bench = await DestinationBench.open(harness)
  onTestFinished(async () => {
    await bench.store.close()
    await harness.close()
  })
  return { harness, bench }
}

const byKey = (rows: readonly { key: string }[]) => rows.toSorted((a, b) => (a.key < b.key ? -1 : 1))

async function expectMirror({ harness, bench }: { harness: KafkaHarness; bench: DestinationBench }) {
  expect(byKey(await harness.rows('things'))).toEqual(byKey(await bench.current()))
}

async function openSession({ destination }: KafkaHarness): Promise<DestinationSession> {
  const session = await destination.open({ tenant: 'default', signal: new AbortController().signal })
  onTestFinished(() => session.close())
  return session
}

const resync = (bench: DestinationBench) =>
  bench.store.signalDestination('copy', { kind: 'resync', databases: ['things'] }, OPERATOR)

describe('messages', () => {
  test('have the key of the row, the record and its headers; a delete is a tombstone', async () => {
    const { harness, bench } = await openBench()
    await bench.commit(['a', { n: 1, big: 12345678901234567890n }])
    await bench.run()
    await bench.commit(['a', null])
    await bench.run()
    const [created, deleted] = harness.messages('things')
    expect(created).toMatchObject({ key: 'a', value: '{"n":1,"big":12345678901234567890}' })
    expect(created!.headers).toEqual({
      sequence: '1',
      action: 'created',
      committed_at: expect.stringMatching(/^\d{13}$/) as string,
      load: '1',
      schema: expect.stringMatching(/^[0-9a-f]{16}$/) as string,
      store_id: 'store-1',
      epoch: '1',
    })
    expect(deleted).toMatchObject({ key: 'a', value: null, headers: { sequence: '2', action: 'deleted', epoch: '2' } })
  })

  test('the schema of a fingerprint is in the side topic, once', async () => {
    const { harness, bench } = await openBench()
    for (const fields of [{ n: 1 }, { n: 2 }, { n: 2, later: 'x' }, { n: 3 }]) {
      await bench.commit(['a', fields])
      await bench.run()
    }
    const schemas = harness.messages('_tidemark.things').filter(({ key }) => key.startsWith('schema:'))
    expect(schemas.map(({ value }) => (JSON.parse(value!) as { columns: unknown[] }).columns.length)).toEqual([1, 2])
    const used = new Set(harness.messages('things').map(({ headers }) => `schema:${headers['schema']}`))
    expect([...used].toSorted()).toEqual(schemas.map(({ key }) => key).toSorted())
  })

  test('a key has the partition that the default partitioner of Java chooses', async () => {
    const partitionOf = await createPartitionOf()
    // murmur2 of Kafka's own tests: "21" is -973932308, "foobar" is -790332482.
    expect(partitionOf('21', 1_000)).toBe((-973_932_308 & 0x7fffffff) % 1_000)
    expect(partitionOf('foobar', 7)).toBe((-790_332_482 & 0x7fffffff) % 7)
    expect(partitionOf('anything', 1)).toBe(0)
  })

  test('keys stay in their partitions when partitions are added', async () => {
    const { harness, bench } = await openBench()
    const keys = Array.from({ length: 20 }, (_, n) => `k${n}`)
    await bench.commit(...keys.map((key) => [key, { n: 1 }] as const))
    await bench.run()
    expect(new Set(harness.messages('things').map(({ partition }) => partition)).size).toBe(3)
    harness.simulator.topics.addPartition('things')
    await bench.commit(...keys.map((key) => [key, { n: 2 }] as const))
    await bench.run()
    await resync(bench)
    await bench.run()
    await expectMirror({ harness, bench })
    expect(harness.messages('things').every(({ partition }) => partition < 3)).toBe(true)
  })
})

describe('fencing', () => {
  const batchOf = (sequence: number) => ({
    schema: { database: 'things', mode: 'mirror' as const, columns: [] },
    target: 'live' as const,
    isFirst: false,
    isLast: false,
    changes: [{ key: 'z', action: 'created' as const, sequence, committedAt: 1, record: {}, text: '{}' }],
  })
  const after = (previous: DestinationToken, sequence: number) => ({ previous, next: { ...previous, sequence } })

  test('a process that was replaced is refused by the brokers, and none of its messages is committed', async () => {
    const { harness, bench } = await openBench()
    await bench.commit(['a', { n: 1 }])
    await bench.run()
    const [old, young] = [await openSession(harness), await openSession(harness)]
    const { live } = await old.position('things')
    await young.position('things')
    const before = harness.messages('things')
    // The old process has not seen that another one took over: only the brokers know.
    expect(await old.apply(batchOf(50), after(live!, 50))).toBe('refused')
    expect(harness.messages('things')).toEqual(before)
    expect(await young.apply(batchOf(51), after(live!, 51))).toBe('applied')
    expect(harness.messages('things')).toHaveLength(before.length + 1)
  })

  test('without transactions, a process that has not seen the batch of another one is refused', async () => {
    const { harness, bench } = await openBench({ transactions: false })
    await bench.commit(['a', { n: 1 }])
    await bench.run()
    const [one, two] = [await openSession(harness), await openSession(harness)]
    const { live } = await one.position('things')
    await two.position('things')
    expect(await one.apply(batchOf(50), after(live!, 50))).toBe('applied')
    expect(await two.apply(batchOf(51), after(live!, 51))).toBe('refused')
    expect(harness.messages('things').map(({ headers }) => headers['sequence'])).toEqual(['1', '50'])
  })

  test('an unfinished transaction of a crashed process is aborted before the position is read', async () => {
    const { harness, bench } = await openBench()
    await bench.commit(['a', { n: 1 }])
    await bench.run()
    const crashed = await openSession(harness)
    const { live } = await crashed.position('things')
    // The commit never arrives, and the process does not even abort.
    harness.simulator.faults.decide = (api) => (api === 'endTxn' ? { kind: 'cut', where: 'before' } : undefined)
    await expect(crashed.apply(batchOf(50), after(live!, 50))).rejects.toMatchObject({ code: 'COMMIT_UNKNOWN' })
    harness.simulator.faults.decide = null
    const log = harness.simulator.topics.partitions('things')!
    expect(log.some(({ stableEnd, end }) => stableEnd < end)).toBe(true)
    const next = await openSession(harness)
    expect((await next.position('things')).live?.sequence).toBe(live?.sequence)
    expect(log.every(({ stableEnd, end }) => stableEnd === end)).toBe(true)
    await bench.commit(['b', { n: 1 }])
    await bench.run()
    await expectMirror({ harness, bench })
  })

  test('a position behind an open transaction of another producer is not read', async () => {
    const { harness, bench } = await openBench()
    await bench.commit(['a', { n: 1 }])
    await bench.run()
    harness.simulator.append('_tidemark.things', 0, [{ key: 'x', value: '{}' }], { transactionOf: 7 })
    await bench.commit(['a', { n: 2 }])
    expect((await bench.run()).report?.error).toMatchObject({
      code: 'DESTINATION_UNAVAILABLE',
      message: expect.stringContaining('open transaction') as string,
    })
    harness.simulator.endTransaction('_tidemark.things', 0, 7, 'commit')
    expect((await bench.run()).report?.error).toBeNull()
    await expectMirror({ harness, bench })
  })
})

describe('a load over existing rows', () => {
  test('deletes the keys that the store no longer has, and no others', async () => {
    const { harness, bench } = await openBench()
    await bench.commit(...Array.from({ length: 30 }, (_, n) => [`k${n}`, { n }] as const))
    await bench.run()
    await bench.commit(...Array.from({ length: 10 }, (_, n) => [`k${n}`, null] as const), ['new', { n: 1 }])
    while ((await bench.store.compact({ before: Number.MAX_SAFE_INTEGER, scanMax: 1_000 })).hasMore);
    const before = harness.messages('things').length
    expect((await bench.run()).report?.databases[0]?.loadReason).toBe('behind')
    await expectMirror({ harness, bench })
    const tombstones = harness.messages('things').filter(({ value }) => value === null)
    expect(byKey(tombstones).map(({ key }) => key)).toEqual(Array.from({ length: 10 }, (_, n) => `k${n}`).toSorted())
    expect(harness.messages('things')).toHaveLength(before + 21 + 10)
    for (const { headers } of tombstones)
      expect(headers).toMatchObject({ action: 'deleted', sequence: '41', load: '2' })
  })

  test('waits until its own messages are visible: a row that was just written is not deleted', async () => {
    const { harness, bench } = await openBench()
    await bench.commit(...Array.from({ length: 12 }, (_, n) => [`k${n}`, { n }] as const))
    await bench.run()
    harness.simulator.markersLate = 20
    for (let round = 0; round < 3; round++) {
      await bench.commit([`k${round}`, null], [`k${round + 5}`, { n: 100 + round }])
      await resync(bench)
      expect((await bench.run()).report?.error).toBeNull()
      harness.simulator.markersLate = 0
      // The markers of the last transaction are written with the next request for offsets.
      const session = await openSession(harness)
      await session.position('things')
      await expectMirror({ harness, bench })
      harness.simulator.markersLate = 20
    }
    const deleted = harness.messages('things').filter(({ value }) => value === null)
    expect(new Set(deleted.map(({ key }) => key))).toEqual(new Set(['k0', 'k1', 'k2']))
  })

  test('a topic with more keys than fit into memory is read in shares', async () => {
    const { harness } = await openBench()
    const { simulator, brokers } = harness
    simulator.topics.create('many', 2)
    const put = (keys: readonly number[], value: string | null) =>
      keys.forEach((n) => simulator.append('many', n % 2, [{ key: `k${n}`, value }]))
    const range = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => from + n)
    put(range(0, 40), '1')
    put(range(0, 5), null)
    const loadStart = simulator.topics.partitions('many')!.map(({ end }) => BigInt(end))
    put(range(20, 30), '2')
    const cluster = await connectCluster({ brokers, clientId: 'test' })
    onTestFinished(() => cluster.disconnect())
    for (const keysMax of [7, 1_000]) {
      const vanished: string[] = []
      for await (const keys of findVanishedKeys(new TopicReader(cluster), 'many', loadStart, keysMax))
        vanished.push(...keys)
      // Five of them were deleted before; deleting them again is harmless.
      expect(vanished.toSorted()).toEqual([...range(0, 20), ...range(30, 40)].map((n) => `k${n}`).toSorted())
    }
  })

  test('a set of keys has each key once', () => {
    const keys = new KeySet()
    for (let n = 0; n < 5_000; n++) expect(keys.add(hashKey(Buffer.from(`key ${n}`)))).toBe(true)
    for (let n = 0; n < 5_000; n += 7) expect(keys.add(hashKey(Buffer.from(`key ${n}`)))).toBe(false)
    expect(keys.size).toBe(5_000)
  })
})

describe('topics', () => {
  test('are created with the policy of the mode', async () => {
    const { harness, bench } = await openBench({ topic: (database) => `prefix-${database}`, partitions: 2 })
    await bench.commit(['a', { n: 1 }])
    await bench.run()
    const { topics } = harness.simulator
    expect(topics.names.toSorted()).toEqual(['_tidemark.prefix-things', 'prefix-things'])
    expect(topics.partitions('prefix-things')).toHaveLength(2)
    expect(topics.configs('prefix-things')).toEqual({ 'cleanup.policy': 'compact' })
    expect(topics.configs('_tidemark.prefix-things')).toMatchObject({ 'cleanup.policy': 'compact' })
  })

  test('an existing topic with messages, or with another policy, stops the destination and stays', async () => {
    const { harness, bench } = await openBench()
    const { simulator } = harness
    await bench.commit(['a', { n: 1 }])
    simulator.topics.create('things', 2)
    expect((await bench.run()).report?.error).toMatchObject({
      code: 'DESTINATION_INVALID',
      message: expect.stringContaining('cleanup.policy=delete') as string,
    })
    simulator.topics.delete('things')
    simulator.topics.create('things', 2, { configs: { 'cleanup.policy': 'compact' } })
    simulator.append('things', 0, [{ key: 'mine', value: '1' }])
    expect((await bench.run()).report?.error?.code).toBe('DESTINATION_FOREIGN')
    expect(harness.messages('things').map(({ key }) => key)).toEqual(['mine'])
  })

  test.each(['the topic was recreated', 'the topic was truncated'])('%s: it is loaded again', async (event) => {
    const { harness, bench } = await openBench()
    await bench.commit(...Array.from({ length: 9 }, (_, n) => [`k${n}`, { n }] as const))
    await bench.run()
    const { topics } = harness.simulator
    const restores = topics.partitions('things')!.map((log) => log.save())
    await bench.commit(['k1', { n: 11 }], ['k2', null], ['new', { n: 1 }])
    await bench.run()
    if (event === 'the topic was recreated') {
      topics.delete('things')
      topics.create('things', 3, { configs: { 'cleanup.policy': 'compact' } })
    } else restores.forEach((restore) => restore())
    await bench.commit(['k3', { n: 33 }])
    expect((await bench.run()).report?.databases[0]?.loadReason).toBe('missing')
    await expectMirror({ harness, bench })
  })

  test('of another mode are refused', async () => {
    const { bench } = await openBench()
    await bench.commit(['a', { n: 1 }])
    await bench.run()
    expect((await bench.run({ mode: 'append' })).report?.error).toMatchObject({
      code: 'DESTINATION_INVALID',
      message: expect.stringContaining('mode mirror') as string,
    })
  })

  test('are deleted on request, but not those of others', async () => {
    const { harness, bench } = await openBench()
    await bench.commit(['a', { n: 1 }])
    await bench.run()
    harness.simulator.topics.create('other', 1)
    const session = await openSession(harness)
    await session.remove('things')
    await session.remove('other')
    expect(harness.simulator.topics.names).toEqual(['other'])
  })
})

describe('errors', () => {
  test.each<[KafkaErrorName, 'produce' | 'initProducerId', string]>([
    ['TOPIC_AUTHORIZATION_FAILED', 'produce', 'DESTINATION_REFUSED'],
    ['TRANSACTIONAL_ID_AUTHORIZATION_FAILED', 'initProducerId', 'DESTINATION_REFUSED'],
    ['KAFKA_STORAGE_ERROR', 'produce', 'DESTINATION_FULL'],
    ['NOT_LEADER_OR_FOLLOWER', 'produce', 'DESTINATION_UNAVAILABLE'],
    ['OUT_OF_ORDER_SEQUENCE_NUMBER', 'produce', 'DESTINATION_UNAVAILABLE'],
  ])('%s of %s is %s', async (error, api, code) => {
    const { harness, bench } = await openBench()
    await bench.commit(['a', { n: 1 }])
    harness.simulator.faults.plan({ kind: 'error', error }, { api, times: 1_000 })
    expect((await bench.run()).report?.error?.code).toBe(code)
    harness.simulator.faults.clear()
    expect((await bench.run()).report?.error).toBeNull()
    await expectMirror({ harness, bench })
  })

  test('brokers that are down are unavailable', async () => {
    const { bench } = await openBench()
    await bench.commit(['a', { n: 1 }])
    const { report } = await bench.run({ destination: kafka({ brokers: '127.0.0.1:1' }) })
    expect(report?.error?.code).toBe('DESTINATION_UNAVAILABLE')
  })

  test('messages that are too large are sent in smaller batches, until one alone is refused', async () => {
    const { harness, bench } = await openBench()
    const configs = { 'cleanup.policy': 'compact', 'max.message.bytes': '1000' }
    harness.simulator.topics.create('things', 1, { configs })
    await bench.commit(...Array.from({ length: 20 }, (_, n) => [`k${n}`, { text: 'x'.repeat(200) }] as const))
    expect((await bench.run({ limits: { rowsMax: 20, bytesMax: 1_000_000 } })).report?.error).toBeNull()
    await expectMirror({ harness, bench })
    await bench.commit(['large', { text: 'x'.repeat(1_000) }])
    expect((await bench.run()).report?.error).toMatchObject({
      code: 'DESTINATION_REFUSED',
      message: expect.stringContaining('max.message.bytes') as string,
    })
  })

  test('options are checked when the destination is declared', () => {
    const invalid = expect.objectContaining({ code: 'DESTINATION_INVALID' }) as Error
    for (const brokers of ['', 'host', 'user@host:1', ['a:1', 'b']]) expect(() => kafka({ brokers })).toThrow(invalid)
    expect(() => kafka({ brokers: 'a:1', partitions: 0 })).toThrow(invalid)
    expect(kafka({ brokers: 'a:1, b:2' }).location).toBe('Kafka at a:1, b:2')
  })

  test('a name that no topic can have is refused', async () => {
    const { bench, harness } = await openBench({ topic: () => 'a b' })
    await bench.commit(['a', { n: 1 }])
    expect((await bench.run()).report?.error?.code).toBe('DESTINATION_INVALID')
    expect(harness.simulator.topics.names).toEqual([])
  })
})
