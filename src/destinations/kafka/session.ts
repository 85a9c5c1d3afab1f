import type { Admin, Cluster, Kafka } from 'kafkajs'
import {
  SyncError,
  type DestinationBatch,
  type DestinationPosition,
  type DestinationSchema,
  type DestinationSession,
  type TokenStep,
} from '../../contract/index.ts'
import { connectCluster, loadKafkajs, type KafkaClientConfig } from '../../sources/kafka/connect.ts'
import { tableNameOf } from '../kit/table-names.ts'
import { toDestinationError } from './failures.ts'
import { createPartitionOf, type PartitionOf } from './partition-of.ts'
import { ensureTopics, type TopicLayout } from './topic-admin.ts'
import { TopicProducer } from './topic-producer.ts'
import { TopicReader } from './topic-reader.ts'
import { TopicWriter } from './topic-writer.ts'

export interface KafkaSessionOptions {
  readonly config: KafkaClientConfig
  readonly where: string
  readonly topicOf: (name: string) => string
  readonly isTransactional: boolean
  readonly createsTopics: boolean
  readonly layout: TopicLayout
  readonly limit: { bytesMax: number }
  readonly retry: { readonly retries: number; readonly initialRetryTime: number }
}

const TOPIC_PATTERN = /^[A-Za-z0-9._-]{1,239}$/

/** One writer per database. Errors leave it as SyncErrors. */
export class KafkaSession implements DestinationSession {
  readonly #options: KafkaSessionOptions
  readonly #tenant: string
  readonly #kafka: Kafka
  #cluster: Cluster
  readonly #partitionOf: PartitionOf
  readonly #writers = new Map<string, TopicWriter>()
  #admin: Admin | null = null

  private constructor(
    options: KafkaSessionOptions,
    tenant: string,
    { kafka, cluster, partitionOf }: { kafka: Kafka; cluster: Cluster; partitionOf: PartitionOf },
  ) {
    this.#options = options
    this.#tenant = tenant
    this.#kafka = kafka
    this.#cluster = cluster
    this.#partitionOf = partitionOf
  }

  static async open(options: KafkaSessionOptions, tenant: string): Promise<KafkaSession> {
    const { config, retry, where } = options
    const { Kafka, logLevel } = await loadKafkajs()
    try {
      const cluster = await connectCluster(config)
      const kafka = new Kafka({ ...config, logLevel: logLevel.NOTHING, connectionTimeout: 5_000, retry: { ...retry } })
      return new KafkaSession(options, tenant, { kafka, cluster, partitionOf: await createPartitionOf() })
    } catch (error) {
      throw toDestinationError(error, where)
    }
  }

  position(database: string): Promise<DestinationPosition> {
    return this.#run(async () => (await this.#writer(database)).position)
  }

  prepare(schema: DestinationSchema): Promise<void> {
    return this.#run(async () => {
      const writer = await this.#writer(schema.database)
      await writer.prepare(schema)
      const { createsTopics, layout } = this.#options
      if (createsTopics) await ensureTopics(await this.#openAdmin(), { ...writer.topics, mode: schema.mode }, layout)
    })
  }

  apply(batch: DestinationBatch, step: TokenStep): Promise<'applied' | 'refused'> {
    return this.#run(async () => (await this.#writer(batch.schema.database)).apply(batch, step))
  }

  /** Topics without a state of ours are not deleted. */
  remove(database: string): Promise<void> {
    return this.#run(async () => {
      const writer = await this.#writer(database)
      const reader = new TopicReader(this.#cluster)
      const { topic, sideTopic } = writer.topics
      const topics: string[] = []
      if (writer.hasState) for (const name of [topic, sideTopic]) if (await reader.exists(name)) topics.push(name)
      if (topics.length === 0) return
      await (await this.#openAdmin()).deleteTopics({ topics })
      // The clients would ask for the deleted topics again.
      await this.#disconnect()
      this.#cluster = await connectCluster(this.#options.config)
    })
  }

  close(): Promise<void> {
    return this.#disconnect()
  }

  async #disconnect(): Promise<void> {
    const open = [...this.#writers.values()]
    const admin = this.#admin
    this.#writers.clear()
    this.#admin = null
    await Promise.allSettled([
      ...open.map((writer) => writer.close()),
      this.#cluster.disconnect(),
      ...(admin === null ? [] : [admin.disconnect()]),
    ])
  }

  async #writer(database: string): Promise<TopicWriter> {
    const known = this.#writers.get(database)
    if (known !== undefined) return known
    const { topicOf, isTransactional, limit } = this.#options
    const topic = topicOf(tableNameOf(this.#tenant, database))
    if (!TOPIC_PATTERN.test(topic) || topic === '.' || topic === '..')
      throw new SyncError('DESTINATION_INVALID', `${database}: ${JSON.stringify(topic)} is not a name of a topic.`)
    const client = this.#kafka.producer({
      allowAutoTopicCreation: !this.#options.createsTopics,
      maxInFlightRequests: 1,
      retry: { ...this.#options.retry },
      ...(isTransactional && { transactionalId: `tidemark.${topic}`, transactionTimeout: 60_000 }),
    })
    const producer = await TopicProducer.open(client, isTransactional, limit)
    try {
      const reader = new TopicReader(this.#cluster)
      const writer = await TopicWriter.open(topic, {
        reader,
        producer,
        isTransactional,
        partitionOf: this.#partitionOf,
      })
      this.#writers.set(database, writer)
      return writer
    } catch (error) {
      await producer.close().catch(() => {})
      throw error
    }
  }

  async #openAdmin(): Promise<Admin> {
    if (this.#admin !== null) return this.#admin
    const admin = this.#kafka.admin()
    await admin.connect()
    return (this.#admin = admin)
  }

  async #run<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      throw toDestinationError(error, this.#options.where)
    }
  }
}
