import type { SimulatorPorts } from '../kit/simulator.ts'
import { Broker } from './broker.ts'
import { Cluster } from './cluster.ts'
import { KafkaFaults } from './kafka-faults.ts'
import { Topics } from './topics.ts'

/** Options of `KafkaSimulator`. */
export interface KafkaOptions {
  /** Number of brokers; one by default. Their ids are 1, 2, 3… */
  readonly brokers?: number
  /** `connections.max.idle.ms`: idle connections are closed after this long. Ten minutes by default. */
  readonly idleMs?: number
  /** Called before each request, so that due writes can be made. */
  readonly beforeRead?: () => void
}

/** A message as a producer writes it. */
export interface KafkaMessage {
  readonly key: string | Buffer | null
  /** Null for a tombstone. */
  readonly value: string | Buffer | null
  /** Milliseconds; now by default. */
  readonly timestamp?: number
  readonly headers?: readonly (readonly [name: string, value: string | Buffer | null])[]
}

/**
 * A Kafka cluster on local ports that any client can use through the real protocol: it serves topics, offsets and
 * records, accepts new ones, also of idempotent and transactional producers, and creates topics. Unsupported features
 * are missing from its API versions: consumer groups, other administration, compression, TLS and SASL. Compaction,
 * deletion, and transactions without a producer are simulated through `topics.log(…)`.
 */
export class KafkaSimulator implements AsyncDisposable {
  readonly topics: Topics
  readonly faults = new KafkaFaults()
  readonly #cluster: Cluster
  readonly #brokers: readonly Broker[]

  constructor(
    { clock }: Pick<SimulatorPorts, 'clock'>,
    { brokers = 1, idleMs = 600_000, beforeRead: onLook = () => {} }: KafkaOptions = {},
  ) {
    const ids = Array.from({ length: brokers }, (_, at) => at + 1)
    this.topics = new Topics(ids)
    this.#cluster = new Cluster({ topics: this.topics, faults: this.faults, clock, beforeRead: onLook })
    this.#cluster.brokers = this.#brokers = ids.map((id) => new Broker(id, this.#cluster, { idleMs }))
  }

  /** Starts the cluster; returns its brokers as `host:port`. */
  async listen(): Promise<string[]> {
    await Promise.all(this.#brokers.map((broker) => broker.start()))
    return this.#brokers.map(({ port }) => `127.0.0.1:${port}`)
  }

  /** Delays the markers of transactions: a commit is answered before readers see it. Zero by default. */
  set markersLate(requests: number) {
    this.#cluster.transactions.markersLate = requests
  }

  broker(id: number): Broker {
    const broker = this.#brokers.find((candidate) => candidate.id === id)
    if (broker === undefined) throw new Error(`There is no broker ${id}.`)
    return broker
  }

  /**
   * Appends one batch in this order; returns the offset of its first message. With `transactionOf`, a producer's
   * number, it is part of a transaction until `endTransaction`.
   */
  append(
    topic: string,
    partition: number,
    messages: readonly KafkaMessage[],
    { transactionOf }: { readonly transactionOf?: number } = {},
  ): number {
    const now = this.#cluster.clock.now()
    const records = messages.map(({ key, value, timestamp = now, headers = [] }) => ({
      key: toBuffer(key),
      value: toBuffer(value),
      timestamp,
      headers: headers.map(([name, text]) => [name, toBuffer(text)] as const),
    }))
    const offset = this.topics.log(topic, partition).appendRecords(records, transactionOf)
    this.#cluster.notifyAppend()
    return offset
  }

  endTransaction(topic: string, partition: number, producer: number, how: 'commit' | 'abort'): void {
    this.topics.log(topic, partition).endTransaction(producer, how, this.#cluster.clock.now())
    this.#cluster.notifyAppend()
  }

  async close(): Promise<void> {
    await Promise.all(this.#brokers.map((broker) => broker.stop()))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

function toBuffer(value: string | Buffer | null): Buffer | null {
  return typeof value === 'string' ? Buffer.from(value) : value
}
