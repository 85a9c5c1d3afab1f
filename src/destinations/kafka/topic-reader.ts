import type { Cluster } from 'kafkajs'
import { SyncError } from '../../contract/index.ts'
import { required } from '../../values/required.ts'
import {
  filterCommitted,
  getEndOffset,
  type FetchedMessage,
  type FetchedPartition,
} from '../../sources/kafka/committed-messages.ts'

const READ_COMMITTED = 1
const FETCH_BYTES = 1_000_000
const FETCH_WAIT_MS = 200
const EMPTY_FETCHES_MAX = 3

/** The readable offsets of a partition. */
export interface PartitionBounds {
  readonly low: bigint
  /** The last stable offset: open transactions begin here. */
  readonly end: bigint
}

/** Reads committed messages from any offset, without a consumer group. */
export class TopicReader {
  readonly #cluster: Cluster

  constructor(cluster: Cluster) {
    this.#cluster = cluster
  }

  /** Requesting a topic by name would create it on some clusters. */
  async exists(topic: string): Promise<boolean> {
    const { topicMetadata } = await this.#cluster.metadata()
    return topicMetadata.some((one) => one.topic === topic)
  }

  /** By partition. */
  async bounds(topic: string): Promise<PartitionBounds[]> {
    await this.#cluster.addTargetTopic(topic)
    await this.#cluster.refreshMetadata()
    const partitions = this.#cluster
      .findTopicPartitionMetadata(topic)
      .map(({ partitionId }) => ({ partition: partitionId }))
    const read = async (fromBeginning: boolean): Promise<Map<number, bigint>> => {
      const [found] = await this.#cluster.fetchTopicsOffset([{ topic, partitions, fromBeginning }])
      return new Map((found?.partitions ?? []).map(({ partition, offset }) => [partition, BigInt(offset)]))
    }
    const [lows, ends] = [await read(true), await read(false)]
    return Array.from(partitions, (_, at) => ({
      low: required(lows.get(at), `the first offset of partition ${at}`),
      end: required(ends.get(at), `the last offset of partition ${at}`),
    }))
  }

  /** The committed messages in a range of offsets, response by response. */
  async *read(
    topic: string,
    partition: number,
    { low, end }: PartitionBounds,
  ): AsyncGenerator<readonly FetchedMessage[]> {
    let offset = low
    for (let emptyFetches = 0; offset < end;) {
      const answer = await this.#fetch(topic, partition, offset, FETCH_BYTES * 4 ** emptyFetches)
      const next = getEndOffset(answer)
      if (next === null || next <= offset) {
        // Compaction may have removed every message up to the end.
        if (emptyFetches++ === EMPTY_FETCHES_MAX) return
        continue
      }
      emptyFetches = 0
      yield filterCommitted(answer).filter((message) => isBetween(BigInt(message.offset), offset, end))
      offset = next
    }
  }

  /**
   * The last committed message with the key in a partition that has one writer; null if there is none. Reads backwards, in
   * growing steps: the message is among the last ones.
   */
  async findLast(topic: string, partition: number, key: string): Promise<FetchedMessage | null> {
    const bounds = required((await this.bounds(topic))[partition], `partition ${partition} of ${topic}`)
    await this.#checkStable(topic, partition, bounds)
    for (let size = 64n, end = bounds.end; end > bounds.low; size *= 4n) {
      const low = end - size > bounds.low ? end - size : bounds.low
      let found: FetchedMessage | null = null
      for await (const messages of this.read(topic, partition, { low, end }))
        found = messages.findLast((message) => message.key?.toString('utf8') === key) ?? found
      if (found !== null) return found
      end = low
    }
    return null
  }

  /** Behind an open transaction of another producer there may be a newer message. */
  async #checkStable(topic: string, partition: number, { end }: PartitionBounds): Promise<void> {
    const { highWatermark } = await this.#fetch(topic, partition, end, 1)
    if (BigInt(highWatermark) > end)
      throw new SyncError(
        'DESTINATION_UNAVAILABLE',
        `The topic ${topic} has an open transaction of another producer, which hides the newest messages.`,
      )
  }

  async #fetch(topic: string, partition: number, offset: bigint, maxBytes: number): Promise<FetchedPartition> {
    const [leader] = Object.keys(this.#cluster.findLeaderForPartitions(topic, [partition]))
    const broker = await this.#cluster.findBroker({ nodeId: required(leader, `the leader of ${topic}`) })
    const { responses } = (await broker.fetch({
      isolationLevel: READ_COMMITTED,
      maxWaitTime: FETCH_WAIT_MS,
      minBytes: 0,
      maxBytes,
      topics: [{ topic, partitions: [{ partition, fetchOffset: String(offset), maxBytes }] }],
    })) as { responses: Array<{ partitions: FetchedPartition[] }> }
    return required(responses[0]?.partitions[0], `the response for ${topic}`)
  }
}

function isBetween(offset: bigint, low: bigint, end: bigint): boolean {
  return offset >= low && offset < end
}
