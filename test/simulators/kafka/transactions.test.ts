import { Kafka, logLevel, Partitioners } from 'kafkajs'
import { describe, expect, test } from 'vitest'
import { KafkaSimulator } from '../../../simulators/src/index.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { WireClient } from './wire-client.ts'

async function open() {
  const simulator = new KafkaSimulator({ clock: systemClock }, { brokers: 2 })
  simulator.topics.create('t', 2)
  const brokers = await simulator.listen()
  const kafka = new Kafka({ brokers, logLevel: logLevel.NOTHING, retry: { initialRetryTime: 10, retries: 4 } })
  const opened: { disconnect(): Promise<void> }[] = []
  return {
    simulator,
    brokers,
    kafka,
    async producer(transactionalId?: string) {
      const producer = kafka.producer({
        maxInFlightRequests: 1,
        createPartitioner: Partitioners.DefaultPartitioner,
        ...(transactionalId === undefined ? { idempotent: true } : { transactionalId }),
      })
      await producer.connect()
      opened.push(producer)
      return producer
    },
    values: () =>
      [0, 1].flatMap((partition) =>
        simulator.topics
          .log('t', partition)
          .committedRecords()
          .map(({ value }) => String(value)),
      ),
    async [Symbol.asyncDispose]() {
      await Promise.all(opened.map((one) => one.disconnect()))
      await simulator.close()
    },
  }
}

const messages = (...values: string[]) => values.map((value, partition) => ({ value, partition }))

describe('transactions of kafkajs', () => {
  test('are visible in every partition when they are committed, and never when they are aborted', async () => {
    await using opened = await open()
    const producer = await opened.producer('tx')
    const first = await producer.transaction()
    await first.send({ topic: 't', messages: messages('a', 'b') })
    expect(opened.values()).toEqual([])
    await first.commit()
    expect(opened.values()).toEqual(['a', 'b'])
    const second = await producer.transaction()
    await second.send({ topic: 't', messages: messages('c', 'd') })
    await second.abort()
    expect(opened.values()).toEqual(['a', 'b'])
    const third = await producer.transaction()
    await third.send({ topic: 't', messages: messages('e') })
    await third.commit()
    expect(opened.values()).toEqual(['a', 'e', 'b'])
  })

  test('a second producer with the same id aborts the transaction of the first and fences it off', async () => {
    await using opened = await open()
    const [first, second] = [await opened.producer('tx'), await opened.producer('tx')]
    const old = await first.transaction()
    await old.send({ topic: 't', messages: messages('old') })
    const young = await second.transaction()
    const fenced = { type: 'INVALID_PRODUCER_EPOCH' }
    await expect(old.send({ topic: 't', messages: messages('late') })).rejects.toMatchObject(fenced)
    await expect(old.commit()).rejects.toMatchObject(fenced)
    await young.send({ topic: 't', messages: messages('young') })
    await young.commit()
    expect(opened.values()).toEqual(['young'])
  })

  test('a repeated end is answered again, and another end refused', async () => {
    await using opened = await open()
    const client = await WireClient.connect(opened.brokers[0]!)
    const { producerId, producerEpoch } = await client.ask('InitProducerId', 1, {
      transactionalId: 'tx',
      transactionTimeout: 1_000,
    })
    const identity = { transactionalId: 'tx', producerId, producerEpoch }
    const end = async (transactionResult: boolean, given: object = identity): Promise<number> =>
      (await client.ask('EndTxn', 1, { ...given, transactionResult })).errorCode
    expect(await end(true)).toBe(48)
    await client.ask('AddPartitionsToTxn', 1, { ...identity, topics: [{ topic: 't', partitions: [0] }] })
    expect(await end(true, { ...identity, producerId: '9' })).toBe(49)
    expect(await end(true, { ...identity, producerEpoch: producerEpoch + 1 })).toBe(47)
    expect([await end(true), await end(true), await end(false)]).toEqual([0, 0, 48])
    client[Symbol.dispose]()
  })
})

describe('idempotent producers', () => {
  test('a message whose response was lost is appended once', async () => {
    await using opened = await open()
    const producer = await opened.producer()
    opened.simulator.faults.plan({ kind: 'cut', where: 'inside' }, { api: 'produce' })
    await producer.send({ topic: 't', messages: messages('a') })
    await producer.send({ topic: 't', messages: messages('b') })
    expect(opened.values()).toEqual(['a', 'b'])
  })

  test('sequences out of order, unknown producers and partitions outside the transaction are refused', async () => {
    await using opened = await open()
    const client = await WireClient.connect(opened.brokers[0]!)
    const init = (transactionalId: string | null) =>
      client.ask('InitProducerId', 1, { transactionalId, transactionTimeout: 1_000 }) as Promise<{
        producerId: string
        producerEpoch: number
      }>
    const produce = async (producer: object, firstSequence: number, transactionalId: string | null = null) => {
      const { topics } = await client.ask('Produce', 7, {
        acks: -1,
        timeout: 1_000,
        transactionalId,
        ...producer,
        topicData: [
          { topic: 't', partitions: [{ partition: 0, firstSequence, messages: [{ key: 'k', value: 'v' }] }] },
        ],
      })
      return topics[0].partitions[0] as { errorCode: number; baseOffset: string }
    }
    const one = await init(null)
    expect(await produce(one, 1)).toMatchObject({ errorCode: 45 })
    expect(await produce(one, 0)).toMatchObject({ errorCode: 0, baseOffset: '0' })
    expect(await produce(one, 1)).toMatchObject({ errorCode: 0, baseOffset: '1' })
    // A duplicate is acknowledged with its first offset.
    expect(await produce(one, 0)).toMatchObject({ errorCode: 0, baseOffset: '0' })
    expect(await produce(one, 5)).toMatchObject({ errorCode: 45 })
    expect(await produce({ ...one, producerEpoch: 3 }, 2)).toMatchObject({ errorCode: 47 })
    expect(await produce({ producerId: '1', producerEpoch: 0 }, 0)).toMatchObject({ errorCode: 59 })
    const other = await init('tx')
    expect(await produce(other, 0, 'tx')).toMatchObject({ errorCode: 48 })
    expect(opened.simulator.topics.log('t', 0).end).toBe(2)
    client[Symbol.dispose]()
  })
})

test('topics are created, described and deleted by the controller', async () => {
  await using opened = await open()
  const admin = opened.kafka.admin()
  await admin.connect()
  const configEntries = [{ name: 'cleanup.policy', value: 'compact' }]
  expect(await admin.createTopics({ topics: [{ topic: 'new', numPartitions: 3, configEntries }] })).toBe(true)
  expect(await admin.createTopics({ topics: [{ topic: 'new' }] })).toBe(false)
  await expect(admin.createTopics({ topics: [{ topic: 'a b' }] })).rejects.toThrow('creation')
  const described = await admin.describeConfigs({
    includeSynonyms: false,
    resources: [{ type: 2, name: 'new', configNames: ['cleanup.policy'] }],
  })
  expect(described.resources[0]!.configEntries).toMatchObject([
    { configName: 'cleanup.policy', configValue: 'compact' },
  ])
  expect(opened.simulator.topics.partitions('new')).toHaveLength(3)
  await admin.deleteTopics({ topics: ['new'] })
  expect(await admin.listTopics()).toEqual(['t'])
  await admin.disconnect()
})
