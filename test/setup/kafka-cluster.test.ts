import { Kafka, logLevel, Partitioners, type KafkaMessage } from 'kafkajs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hasKafka, startKafka, type KafkaCluster } from './kafka-cluster.ts'

describe.skipIf(!hasKafka)('the mock Kafka cluster', () => {
  let cluster: KafkaCluster
  beforeAll(async () => {
    cluster = await startKafka(2)
  })
  afterAll(() => cluster?.stop())

  const connect = () =>
    new Kafka({
      brokers: [...cluster.brokers],
      logLevel: logLevel.NOTHING,
      retry: { initialRetryTime: 20, retries: 8 },
    })

  async function produce(topic: string, partition: number, values: readonly string[]): Promise<void> {
    const producer = connect().producer({ createPartitioner: Partitioners.DefaultPartitioner })
    await producer.connect()
    await producer.send({ topic, messages: values.map((value) => ({ key: 'k', value, partition })) })
    await producer.disconnect()
  }

  /** Up to `count` messages of partition 0, from an offset. */
  async function consume(topic: string, offset: string, count: number): Promise<KafkaMessage[]> {
    const consumer = connect().consumer({
      groupId: `g-${topic}-${offset}`,
      sessionTimeout: 6_000,
      maxWaitTimeInMs: 100,
    })
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    const seen: KafkaMessage[] = []
    await new Promise<void>((resolve, reject) => {
      consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
      void consumer.run({
        autoCommit: false,
        eachMessage: ({ message }) => {
          seen.push(message)
          if (seen.length === count) resolve()
          return Promise.resolve()
        },
      })
      consumer.seek({ topic, partition: 0, offset })
    })
    await consumer.disconnect()
    return seen
  }

  const textsOf = (messages: readonly KafkaMessage[]) =>
    messages.map((message) => `${message.offset}:${String(message.value)}`)

  async function endOf(topic: string, partition: number): Promise<{ low: string; high: string }> {
    const admin = connect().admin()
    await admin.connect()
    try {
      const found = (await admin.fetchTopicOffsets(topic)).find((entry) => entry.partition === partition)!
      return { low: found.low, high: found.high }
    } finally {
      await admin.disconnect()
    }
  }

  test('has the partitions it was given, and kafkajs produces, consumes and seeks', async () => {
    await cluster.createTopic('orders', 3)
    await produce('orders', 0, ['a', 'b', 'c', 'd'])
    expect(await endOf('orders', 0)).toEqual({ low: '0', high: '4' })
    expect(await endOf('orders', 2)).toEqual({ low: '0', high: '0' })
    expect(textsOf(await consume('orders', '0', 4))).toEqual(['0:a', '1:b', '2:c', '3:d'])
    expect(textsOf(await consume('orders', '2', 2))).toEqual(['2:c', '3:d'])
  })

  test('fails the next requests as configured, once each', async () => {
    await cluster.createTopic('failing', 1)
    await cluster.failNext('produce', 'notLeaderForPartition', 2)
    await produce('failing', 0, ['after two refusals'])
    await cluster.failNext('fetch', 'disconnect')
    expect(textsOf(await consume('failing', '0', 1))).toEqual(['0:after two refusals'])

    await cluster.failNext('listOffsets', 'topicAuthorizationFailed', 20)
    await expect(endOf('failing', 0)).rejects.toMatchObject({ type: 'TOPIC_AUTHORIZATION_FAILED' })
    await cluster.failNoMore('listOffsets')
    expect(await endOf('failing', 0)).toEqual({ low: '0', high: '1' })
  })

  test('a broker that is down answers no client until it is up; its partitions move only on request', async () => {
    await cluster.createTopic('moving', 1)
    await cluster.setLeader('moving', 0, 1)
    await produce('moving', 0, ['first'])
    await cluster.down(1)
    const once = new Kafka({
      brokers: [cluster.brokers[0]!],
      logLevel: logLevel.NOTHING,
      retry: { retries: 0 },
    }).admin()
    await expect(once.connect()).rejects.toThrow()
    await cluster.setLeader('moving', 0, 2)
    await produce('moving', 0, ['second'])
    await cluster.up(1)
    await once.connect()
    await once.disconnect()
    expect(await endOf('moving', 0)).toEqual({ low: '0', high: '2' })
  })

  test('a partition keeps its newest 5 MiB: its low end moves up, and a request below it is refused', async () => {
    await cluster.createTopic('long', 1)
    const megabyte = 'x'.repeat(900_000)
    for (let i = 0; i < 8; i++) await produce('long', 0, [megabyte])
    const { low, high } = await endOf('long', 0)
    expect(high).toBe('8')
    expect(Number(low)).toBeGreaterThan(0)
    // kafkajs answers OFFSET_OUT_OF_RANGE by a jump to its default: the low end here.
    expect((await consume('long', '0', 1))[0]!.offset).toBe(low)
  })

  test('refuses unknown requests', async () => {
    await expect(cluster.setLeader('orders', 0, 99)).rejects.toThrow('BROKER_NOT_AVAILABLE')
  })

  test('a stopped cluster accepts no command', async () => {
    const other = await startKafka()
    await other.stop()
    await expect(other.createTopic('late', 1)).rejects.toThrow('has ended')
  })
})
