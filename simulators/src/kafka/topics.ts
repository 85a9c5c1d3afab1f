import type { KafkaErrorName } from './error-codes.ts'
import { PartitionLog } from './partition-log.ts'
import { required } from '../kit/required.ts'

interface TopicOptions {
  readonly retentionBytes?: number
  /** `max.message.bytes` is followed; `cleanup.policy` and others are only described. */
  readonly configs?: Readonly<Record<string, string>>
}

/** The topics of a cluster, and the leaders of their partitions. */
export class Topics {
  readonly #brokerIds: readonly number[]
  readonly #topics = new Map<string, PartitionLog[]>()
  readonly #configs = new Map<string, Readonly<Record<string, string>>>()

  constructor(brokerIds: readonly number[]) {
    this.#brokerIds = brokerIds
  }

  get names(): string[] {
    return [...this.#topics.keys()]
  }

  partitions(topic: string): readonly PartitionLog[] | undefined {
    return this.#topics.get(topic)
  }

  /** The settings that the topic was created with; undefined without the topic. */
  configs(topic: string): Readonly<Record<string, string>> | undefined {
    return this.#configs.get(topic)
  }

  /** Led by the brokers in turn. */
  create(topic: string, partitions: number, { retentionBytes, configs = {} }: TopicOptions = {}): void {
    if (this.#topics.has(topic)) throw new Error(`Topic ${topic} already exists.`)
    this.#configs.set(topic, configs)
    this.#topics.set(
      topic,
      Array.from({ length: partitions }, (_, at) => this.#log(at, retentionBytes)),
    )
  }

  addPartition(topic: string): void {
    const logs = this.#topics.get(topic)
    if (logs === undefined) throw new Error(`There is no topic ${topic}.`)
    logs.push(this.#log(logs.length))
  }

  delete(topic: string): void {
    this.#topics.delete(topic)
    this.#configs.delete(topic)
  }

  log(topic: string, partition: number): PartitionLog {
    const log = this.#topics.get(topic)?.[partition]
    if (log === undefined) throw new Error(`There is no partition ${partition} of ${topic}.`)
    return log
  }

  /** The partition as the requested broker sees it; `leaderEpoch` is the one the client knows, -1 for none. */
  findLedLog(broker: number, topic: string, partition: number, leaderEpoch = -1): PartitionLog | KafkaErrorName {
    const log = this.#topics.get(topic)?.[partition]
    if (log === undefined) return 'UNKNOWN_TOPIC_OR_PARTITION'
    if (log.leader !== broker) return 'NOT_LEADER_OR_FOLLOWER'
    if (leaderEpoch >= 0 && leaderEpoch !== log.leaderEpoch)
      return leaderEpoch < log.leaderEpoch ? 'FENCED_LEADER_EPOCH' : 'UNKNOWN_LEADER_EPOCH'
    return log
  }

  #log(at: number, retentionBytes?: number): PartitionLog {
    return new PartitionLog(required(this.#brokerIds[at % this.#brokerIds.length], 'brokerIds[…]'), retentionBytes)
  }
}
