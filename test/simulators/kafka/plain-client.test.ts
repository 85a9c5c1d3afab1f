import { Kafka, logLevel, Partitioners, type Producer } from 'kafkajs'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/platform/clock.ts'
import { KafkaSimulator, type KafkaOptions } from '../../../simulators/src/index.ts'

async function open(options: KafkaOptions = {}) {
  const simulator = new KafkaSimulator({ clock: systemClock }, options)
  simulator.topics.create('orders', 3)
  const kafka = new Kafka({
    brokers: await simulator.listen(),
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 20, retries: 8 },
  })
  const [admin, producer] = [kafka.admin(), kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })]
  await Promise.all([admin.connect(), producer.connect()])
  return {
    simulator,
    admin,
    producer,
    async [Symbol.asyncDispose]() {
      await Promise.all([admin.disconnect(), producer.disconnect()])
      await simulator.close()
    },
  }
}

const send = (producer: Producer, key: string, value: string | null) =>
  producer.send({ topic: 'orders', messages: [{ key, value, partition: 1 }] })
const bytesIn = (simulator: KafkaSimulator) =>
  simulator.topics
    .log('orders', 1)
    .read(0, { maxBytes: 1_000_000, atLeastOneBatch: true, until: Infinity })
    .toString('latin1')

describe('kafkajs with default settings', () => {
  test('finds topics, partitions and leaders of every broker', async () => {
    await using opened = await open({ brokers: 3 })
    expect(await opened.admin.listTopics()).toEqual(['orders'])
    const { topics } = await opened.admin.fetchTopicMetadata({ topics: ['orders'] })
    expect(topics[0]!.partitions.map(({ partitionId, leader }) => [partitionId, leader])).toEqual([
      [0, 1],
      [1, 2],
      [2, 3],
    ])
    expect((await opened.admin.describeCluster()).brokers.map(({ nodeId }) => nodeId)).toEqual([1, 2, 3])
    await expect(opened.admin.fetchTopicMetadata({ topics: ['none'] })).rejects.toMatchObject({
      type: 'UNKNOWN_TOPIC_OR_PARTITION',
    })
  })

  test('sends, receives the offset, and finds it again by offset and by time', async () => {
    await using opened = await open({ brokers: 3 })
    const { admin, producer, simulator } = opened
    expect(await send(producer, 'a', '1')).toMatchObject([{ partition: 1, errorCode: 0, baseOffset: '0' }])
    expect(
      await producer.send({ topic: 'orders', messages: [{ key: 'a', value: null, partition: 1, timestamp: '1000' }] }),
    ).toMatchObject([{ baseOffset: '1' }])
    expect((await admin.fetchTopicOffsets('orders')).map(({ partition, low, high }) => [partition, low, high])).toEqual(
      [
        [0, '0', '0'],
        [1, '0', '2'],
        [2, '0', '0'],
      ],
    )
    simulator.topics.log('orders', 1).deleteBefore(1)
    expect((await admin.fetchTopicOffsets('orders')).find(({ partition }) => partition === 1)).toMatchObject({
      low: '1',
      high: '2',
    })
    expect(
      (await admin.fetchTopicOffsetsByTimestamp('orders', 500)).find(({ partition }) => partition === 1),
    ).toMatchObject({ offset: '1' })
  })

  test('retries where allowed, also at the next leader; a lost response duplicates a message, as with any broker', async () => {
    await using opened = await open({ brokers: 3 })
    const { producer, simulator } = opened
    simulator.faults.plan({ kind: 'error', error: 'NOT_LEADER_OR_FOLLOWER' }, { api: 'produce', times: 2 })
    await send(producer, 'a', 'refused twice')
    simulator.topics.log('orders', 1).setLeader(3)
    await send(producer, 'a', 'to another')
    simulator.faults.plan({ kind: 'cut', where: 'inside' }, { api: 'produce' })
    await send(producer, 'a', 'not heard of')
    simulator.faults.plan({ kind: 'slow', ms: 50 }, { api: 'produce' })
    await send(producer, 'a', 'slow')
    expect(simulator.topics.log('orders', 1).end).toBe(5)
    expect(bytesIn(simulator).match(/refused twice|to another|not heard of|slow/g)).toEqual([
      'refused twice',
      'to another',
      'not heard of',
      'not heard of',
      'slow',
    ])
  })

  test('is refused unsupported requests, and continues', async () => {
    await using opened = await open()
    const { admin, producer } = opened
    await expect(
      producer.send({ topic: 'orders', compression: 1, messages: [{ value: 'x', partition: 1 }] }),
    ).rejects.toMatchObject({ type: 'UNSUPPORTED_COMPRESSION_TYPE' })
    await expect(admin.listGroups()).rejects.toThrow('does not support')
    expect(await send(producer, 'a', '1')).toMatchObject([{ errorCode: 0 }])
  })
})
