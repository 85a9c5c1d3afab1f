import type { Cluster } from 'kafkajs'
import { isSyncError, SyncError, type SyncContext } from '../../contract/index.ts'
import type { PartitionOffsets, OffsetsAnswer, OffsetsQuery } from '../../strategies/offsets.ts'
import { required } from '../../values/required.ts'
import type { FetchedPartition } from './committed-messages.ts'
import { toSyncError } from './failures.ts'
import { LogPage, type LogMessage, type LogPageLimits } from './log-page.ts'

/** Approximate size limit of a broker response, plus one batch. */
const FETCH_BYTES = 1_000_000
/** How often an empty response is repeated, each time with four times the size limit. */
const EMPTY_FETCHES_MAX = 3
/** Messages received within this time are committed. */
const PAGE_MS = 10_000
const FETCH_WAIT_MS = 200
const READ_COMMITTED = 1
/** The response of a broker if every message of a partition is older. */
const NO_OFFSET = '-1'

/** Reads a topic from any offset, without a consumer group. */
export class TopicLog {
  readonly #cluster: Cluster
  readonly #topic: string

  constructor(cluster: Cluster, topic: string) {
    this.#cluster = cluster
    this.#topic = topic
  }

  /** The end is the last stable offset: transactions after it cannot be read yet. */
  async bounds(): Promise<Record<string, { low: string; end: string }>> {
    const topic = this.#topic
    try {
      await this.#cluster.addTargetTopic(topic)
      await this.#cluster.refreshMetadata()
      const partitions = this.#cluster
        .findTopicPartitionMetadata(topic)
        .map(({ partitionId }) => ({ partition: partitionId }))
      const lows =
        (await this.#cluster.fetchTopicsOffset([{ topic, partitions, fromBeginning: true }]))[0]?.partitions ?? []
      const ends =
        (await this.#cluster.fetchTopicsOffset([{ topic, partitions, fromBeginning: false }]))[0]?.partitions ?? []
      const low = new Map(lows.map(({ partition, offset }) => [partition, offset]))
      return Object.fromEntries(
        ends
          .toSorted((a, b) => a.partition - b.partition)
          .map(({ partition, offset }) => [
            partition,
            { low: required(low.get(partition), `the low offset of partition ${partition}`), end: offset },
          ]),
      )
    } catch (error) {
      throw toSyncError(error, `topic ${topic}`)
    }
  }

  /** The offset of the first message of each partition at or after the time; a partition without one is absent. */
  async offsetsSince(ms: number): Promise<Record<string, string>> {
    const topic = this.#topic
    try {
      await this.#cluster.addTargetTopic(topic)
      const partitions = this.#cluster
        .findTopicPartitionMetadata(topic)
        .map(({ partitionId }) => ({ partition: partitionId }))
      const found = await this.#cluster.fetchTopicsOffset([{ topic, partitions, fromTimestamp: ms }])
      return Object.fromEntries(
        (found[0]?.partitions ?? []).flatMap(({ partition, offset }) =>
          offset === NO_OFFSET ? [] : [[String(partition), offset]],
        ),
      )
    } catch (error) {
      throw toSyncError(error, `topic ${topic}`)
    }
  }

  async read(
    query: OffsetsQuery,
    limits: LogPageLimits,
    { clock, signal }: SyncContext,
  ): Promise<OffsetsAnswer<LogMessage>> {
    const page = new LogPage(query, limits)
    const deadline = clock.now() + PAGE_MS
    let emptyFetches = 0
    while (page.unreadPartitions.length > 0 && !page.isFull) {
      const isOverdue = clock.now() >= deadline
      if (isOverdue && page.messages.length > 0) break
      const answers = await this.#fetch(page, FETCH_BYTES * 4 ** emptyFetches)
      signal.throwIfAborted()
      if (answers.map((answer) => page.addPartition(answer)).includes(true)) {
        emptyFetches = 0
        continue
      }
      if (isOverdue) throw this.#noMessagesError(answers, query.until)
      // If the full range was requested and the broker has it, compaction has removed all its messages.
      if (emptyFetches === EMPTY_FETCHES_MAX)
        answers.filter((answer) => coversRange(answer, query.until)).forEach((answer) => page.skipToEnd(answer))
      else emptyFetches++
      await clock.sleep(FETCH_WAIT_MS, signal)
    }
    return page.answer
  }

  async #fetch(page: LogPage, maxBytes: number): Promise<FetchedPartition[]> {
    try {
      return await this.#fetchFromLeaders(page, maxBytes)
    } catch (thrown) {
      const error = toSyncError(thrown, `topic ${this.#topic}`)
      if (page.isVerified || !isSyncError(error) || error.code !== 'HISTORY_LOST') throw error
      page.skipVerification()
      return this.#fetch(page, maxBytes)
    }
  }

  async #fetchFromLeaders(page: LogPage, maxBytes: number): Promise<FetchedPartition[]> {
    const topic = this.#topic
    // Already known, except on the first page of a resumed cycle.
    await this.#cluster.addTargetTopic(topic)
    const leaders = Object.entries(this.#cluster.findLeaderForPartitions(topic, page.unreadPartitions))
    const answers = await Promise.all(
      leaders.map(async ([nodeId, partitionIds]) => {
        const broker = await this.#cluster.findBroker({ nodeId })
        const partitions = partitionIds.map((partition) => ({
          partition,
          fetchOffset: page.getFetchOffset(partition),
          maxBytes,
        }))
        const { responses } = (await broker.fetch({
          isolationLevel: READ_COMMITTED,
          maxWaitTime: FETCH_WAIT_MS,
          minBytes: 1,
          maxBytes,
          topics: [{ topic, partitions }],
        })) as { responses: { partitions: FetchedPartition[] }[] }
        return responses.flatMap((response) => response.partitions)
      }),
    )
    // Sorted, so that a page does not depend on which broker answers first.
    return answers.flat().toSorted((a, b) => a.partition - b.partition)
  }

  #noMessagesError(answers: readonly FetchedPartition[], until: PartitionOffsets): SyncError {
    const behind = answers.find((answer) => !coversRange(answer, until))
    if (behind === undefined)
      return new SyncError(
        'SOURCE_UNAVAILABLE',
        `topic ${this.#topic}: the brokers returned no messages for ${PAGE_MS} ms.`,
      )
    return new SyncError(
      'HISTORY_LOST',
      `topic ${this.#topic}: partition ${behind.partition} reached ${until[behind.partition] ?? 'its end'} when the cycle began, but now ends at ${getReadableEnd(behind)}: it was recreated or truncated.`,
    )
  }
}

/** Whether the broker has the whole range of this cycle; after a leader change it may lag behind. */
function coversRange(answer: FetchedPartition, until: PartitionOffsets): boolean {
  return (
    getReadableEnd(answer) >= BigInt(required(until[answer.partition], `the limit of partition ${answer.partition}`))
  )
}

function getReadableEnd({ highWatermark, lastStableOffset }: FetchedPartition): bigint {
  return BigInt(lastStableOffset === undefined || lastStableOffset === '-1' ? highWatermark : lastStableOffset)
}
