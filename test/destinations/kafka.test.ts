import { afterAll, describe, expect, test } from 'vitest'
import { createKafkaDestination } from '../../src/destinations/kafka/create-destination.ts'
import { TopicReader } from '../../src/destinations/kafka/topic-reader.ts'
import { connectCluster } from '../../src/sources/kafka/connect.ts'
import { describeDestination, runDestinationCase } from '../../src/testing/describe-destination.ts'
import { destinationCases } from '../../src/testing/destination-cases/cases.ts'
import type { DestinationHarness } from '../../src/testing/destination-cases/harness.ts'
import { hasKafka, startKafka } from '../setup/kafka-cluster.ts'
import { openKafkaHarness, PARTITIONS, RETRY, toRows, type ReceivedMessage } from './kafka-harness.ts'

describeDestination('Kafka', () => openKafkaHarness(), { runner: { describe, test } })

const findCase = (title: string) => {
  const [found, ...others] = destinationCases.filter(({ name }) => name.startsWith(title))
  expect(others).toEqual([])
  return found!
}

describe('without transactions, for a reader that drops repeated sequences', () => {
  test.each([
    'a new destination is loaded',
    'append: every change',
    'a crash between any two statements of a batch',
    'a lost answer',
    'two appliers',
    'a destination behind',
    'a requested load during a load',
    'any run of changes',
  ])('%s', async (title) => {
    const open = () => openKafkaHarness({ transactions: false })
    expect(await runDestinationCase(findCase(title), open)).toBeNull()
  })
})

describe.skipIf(!hasKafka)('without transactions, on the mock cluster of librdkafka', () => {
  let cases = 0
  const cluster = hasKafka ? startKafka() : null
  afterAll(async () => (await cluster)?.stop())

  /** Topics of its own. The mock creates none on request. */
  async function openMockHarness(): Promise<DestinationHarness> {
    const mock = await cluster!
    const prefix = `case${cases++}.`
    await mock.createTopic(`${prefix}things`, PARTITIONS)
    await mock.createTopic(`_tidemark.${prefix}things`, 1)
    const brokers = [...mock.brokers]
    const destination = createKafkaDestination(
      { brokers, topic: prefix, transactions: false, createTopics: false },
      RETRY,
    )
    const mode = { value: 'mirror' }
    return {
      destination: {
        ...destination,
        async open(context) {
          const session = await destination.open(context)
          return {
            position: (database) => session.position(database),
            prepare: (schema) => session.prepare(schema),
            apply(batch, step) {
              mode.value = batch.schema.mode
              return session.apply(batch, step)
            },
            remove: (database) => session.remove(database),
            close: () => session.close(),
          }
        },
      },
      rows: async () => toRows(await readAll(brokers, `${prefix}things`), mode.value, true),
      close: async () => {},
    }
  }

  test.each([
    'a new destination is loaded',
    'every value is kept exactly',
    'append: every change',
    'two appliers',
    'a destination behind',
    'a requested load during a load',
  ])('%s', async (title) => {
    expect(await runDestinationCase(findCase(title), openMockHarness)).toBeNull()
  })
})

async function readAll(brokers: string[], topic: string): Promise<ReceivedMessage[]> {
  const cluster = await connectCluster({ brokers, clientId: 'reader' })
  try {
    const reader = new TopicReader(cluster)
    const found: ReceivedMessage[] = []
    for (const [partition, bounds] of (await reader.bounds(topic)).entries())
      for await (const messages of reader.read(topic, partition, bounds))
        for (const { offset, key, value, headers } of messages)
          found.push({
            partition,
            offset: Number(offset),
            key: String(key),
            value: value === null ? null : String(value),
            headers: Object.fromEntries(Object.entries(headers ?? {}).map(([name, text]) => [name, String(text)])),
          })
    return found
  } finally {
    await cluster.disconnect()
  }
}
