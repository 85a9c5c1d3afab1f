import type { Cluster } from '../cluster.ts'
import { ERROR_CODES, type KafkaErrorName } from '../error-codes.ts'
import type { PartitionLog } from '../partition-log.ts'
import type { WireReader } from '../wire-reader.ts'
import type { WireWriter } from '../wire-writer.ts'

/** A kind of request, in the versions that are spoken: those that know record batches and come before the "flexible" ones, which write lengths another way. */
export interface KafkaApi {
  readonly key: number
  readonly versions: readonly [least: number, most: number]
  /** Null where the client wants no answer. */
  respond(request: KafkaRequest): WireWriter | null | Promise<WireWriter | null>
}

export interface KafkaRequest {
  readonly version: number
  readonly body: WireReader
  /** Who is asked. */
  readonly broker: number
  readonly cluster: Cluster
  /** What everything that is asked about is answered with, where a fault was planned. */
  readonly plannedError: KafkaErrorName | undefined
  /** Aborted with the connection. */
  readonly signal: AbortSignal
}

export interface TopicPartitions<Partition> {
  readonly topic: string
  readonly partitions: readonly Partition[]
}

/** Most requests are about partitions, grouped by their topics, and so are the answers. */
export function readByTopic<Partition>(body: WireReader, partition: () => Partition): TopicPartitions<Partition>[] {
  return body.array(() => ({ topic: body.string(), partitions: body.array(partition) }))
}

export function writeByTopic<Partition>(writer: WireWriter, topics: readonly TopicPartitions<Partition>[], write: (partition: Partition) => unknown): WireWriter {
  return writer.nullableArray(topics, ({ topic, partitions }) => writer.nullableString(topic).nullableArray(partitions, write))
}

/** Each partition, answered by itself. */
export function mapByTopic<Partition, Answer>(topics: readonly TopicPartitions<Partition>[], answer: (topic: string, partition: Partition) => Answer): TopicPartitions<Answer>[] {
  return topics.map(({ topic, partitions }) => ({ topic, partitions: partitions.map((partition) => answer(topic, partition)) }))
}

export function findLog({ cluster, broker, plannedError: refusal }: KafkaRequest, topic: string, partition: number, leaderEpoch?: number): PartitionLog | KafkaErrorName {
  return refusal ?? cluster.readTopics().findLedLog(broker, topic, partition, leaderEpoch)
}

export function errorCodeOf(outcome: PartitionLog | KafkaErrorName): number {
  return typeof outcome === 'string' ? ERROR_CODES[outcome] : ERROR_CODES.NONE
}
