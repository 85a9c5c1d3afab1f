import { Kafka, logLevel, Partitioners, type IHeaders, type Producer } from 'kafkajs'
import { hasKafka, startKafka, type KafkaCluster } from '../../setup/kafka-cluster.ts'
import { startSimulated } from './simulated-cluster.ts'

/** The cases hold for both: two independent implementations of the same protocol. */
export const CLUSTERS = [
  { cluster: 'the mock of librdkafka', isHere: hasKafka, hasGroups: true, start: startKafka },
  { cluster: 'the simulator', isHere: true, hasGroups: false, start: startSimulated },
] as const

/** As a test writes it; null for a tombstone. */
export type Value = object | string | Buffer | null

/** A cluster with a producer, which remembers the last value of every key. */
export class BrokerFixture {
  readonly cluster: KafkaCluster
  readonly kafka: Kafka
  readonly #producer: Producer
  readonly #truth = new Map<string, Map<string, object>>()

  private constructor(cluster: KafkaCluster, kafka: Kafka, producer: Producer) {
    this.cluster = cluster
    this.kafka = kafka
    this.#producer = producer
  }

  static async open(
    brokerCount = 1,
    start: (brokerCount: number) => Promise<KafkaCluster> = startKafka,
  ): Promise<BrokerFixture> {
    const cluster = await start(brokerCount)
    const kafka = new Kafka({
      brokers: [...cluster.brokers],
      logLevel: logLevel.NOTHING,
      retry: { initialRetryTime: 20, retries: 8 },
    })
    const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
    await producer.connect()
    return new BrokerFixture(cluster, kafka, producer)
  }

  get brokers(): string[] {
    return [...this.cluster.brokers]
  }

  /** Values by key. Each is a message, in this order, in partition `key % partitions` by default. */
  async produce(
    topic: string,
    messages: readonly {
      key: string | Buffer | null
      value: Value
      partition?: number
      headers?: IHeaders
      timestamp?: string
    }[],
  ): Promise<void> {
    const truth = this.#truth.get(topic) ?? new Map<string, object>()
    this.#truth.set(topic, truth)
    for (const { key, value } of messages) {
      if (typeof key !== 'string') continue
      if (value === null) truth.delete(key)
      else if (typeof value === 'object' && !Buffer.isBuffer(value)) truth.set(key, value)
    }
    const sent = messages.map(({ value, ...message }) => ({
      partition: 0,
      ...message,
      value: value === null || typeof value === 'string' || Buffer.isBuffer(value) ? value : JSON.stringify(value),
    }))
    await this.#producer.send({ topic, messages: sent })
  }

  /** The last value of every key that has one. */
  truth(topic: string): Record<string, object> {
    return Object.fromEntries(this.#truth.get(topic) ?? [])
  }

  async close(): Promise<void> {
    await this.#producer.disconnect()
    await this.cluster.stop()
  }
}
