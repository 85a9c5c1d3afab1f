import type { Cluster } from '../cluster.ts'
import { ERROR_CODES, type KafkaErrorName } from '../error-codes.ts'
import type { PartitionLog } from '../partition-log.ts'
import type { WireReader } from '../wire-reader.ts'
import type { WireWriter } from '../wire-writer.ts'

/**
 * A kind of request, in the supported versions: those that know record batches and precede the "flexible" ones, which
 * encode lengths differently.
 */
export interface KafkaApi {
  readonly key: number
  readonly versions: readonly [least: number, most: number]
  /** Null where the client expects no response (acks=0). */
  respond(request: KafkaRequest): WireWriter | null | Promise<WireWriter | null>
}

export interface KafkaRequest {
  readonly version: number
  readonly body: WireReader
  /** The broker that received the request. */
  readonly broker: number
  readonly cluster: Cluster
  /** The error code for everything in the request, where a fault was planned. */
  readonly plannedError: KafkaErrorName | undefined
  /** Aborted with the connection. */
  readonly signal: AbortSignal
}

export interface TopicPartitions<Partition> {
  readonly topic: string
  readonly partitions: readonly Partition[]
}

/** Most requests are about partitions, grouped by topic, and so are the responses. */
export function readByTopic<Partition>(body: WireReader, partition: () => Partition): TopicPartitions<Partition>[] {
  return body.array(() => ({ topic: body.string(), partitions: body.array(partition) }))
}

export function writeByTopic<Partition>(
  writer: WireWriter,
  topics: readonly TopicPartitions<Partition>[],
  write: (partition: Partition) => unknown,
): WireWriter {
  return writer.nullableArray(topics, ({ topic, partitions }) =>
    writer.nullableString(topic).nullableArray(partitions, write),
  )
}

/** Answers each partition separately. */
export function mapByTopic<Partition, Answer>(
  topics: readonly TopicPartitions<Partition>[],
  answer: (topic: string, partition: Partition) => Answer,
): TopicPartitions<Answer>[] {
  return topics.map(({ topic, partitions }) => ({
    topic,
    partitions: partitions.map((partition) => answer(topic, partition)),
  }))
}

export function findLog(
  { cluster, broker, plannedError: refusal }: KafkaRequest,
  topic: string,
  partition: number,
  leaderEpoch?: number,
): PartitionLog | KafkaErrorName {
  return refusal ?? cluster.readTopics().findLedLog(broker, topic, partition, leaderEpoch)
}

export function errorCodeOf(outcome: PartitionLog | KafkaErrorName): number {
  return typeof outcome === 'string' ? ERROR_CODES[outcome] : ERROR_CODES.NONE
}
