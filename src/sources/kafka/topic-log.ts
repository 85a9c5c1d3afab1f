import type { Cluster } from 'kafkajs'
import { isSyncError, SyncError, type SyncContext } from '../../contract/index.ts'
import type { PartitionOffsets, OffsetsAnswer, OffsetsQuery } from '../../strategies/offsets.ts'
import type { FetchedPartition } from './committed-messages.ts'
import { toSyncError } from './failures.ts'
import { LogPage, type LogMessage, type LogPageLimits } from './log-page.ts'

/** One answer of a broker holds at most about so much, and one batch. */
const FETCH_BYTES = 1_000_000
/** An answer without a message is asked for again with four times as much room, so often. */
const EMPTY_FETCHES_MAX = 3
/** What has come by then is landed. */
const PAGE_MS = 10_000
const FETCH_WAIT_MS = 200
const READ_COMMITTED = 1

/** A topic as brokers hold it: read from any offset, by nobody's leave. */
export class TopicLog {
  readonly #cluster: Cluster
  readonly #topic: string

  constructor(cluster: Cluster, topic: string) {
    this.#cluster = cluster
    this.#topic = topic
  }

  /** The end is where every transaction has ended, for no further can be read. */
  async bounds(): Promise<Record<string, { low: string; end: string }>> {
    const topic = this.#topic
    try {
      await this.#cluster.addTargetTopic(topic)
      await this.#cluster.refreshMetadata()
      const partitions = this.#cluster.findTopicPartitionMetadata(topic).map(({ partitionId }) => ({ partition: partitionId }))
      const lows = (await this.#cluster.fetchTopicsOffset([{ topic, partitions, fromBeginning: true }]))[0]?.partitions ?? []
      const ends = (await this.#cluster.fetchTopicsOffset([{ topic, partitions, fromBeginning: false }]))[0]?.partitions ?? []
      const low = new Map(lows.map(({ partition, offset }) => [partition, offset]))
      return Object.fromEntries(ends.toSorted((a, b) => a.partition - b.partition).map(({ partition, offset }) => [partition, { low: low.get(partition)!, end: offset }]))
    } catch (error) {
      throw toSyncError(error, `topic ${topic}`)
    }
  }

  async read(query: OffsetsQuery, limits: LogPageLimits, { clock, signal }: SyncContext): Promise<OffsetsAnswer<LogMessage>> {
    const page = new LogPage(query, limits)
    const lateAt = clock.now() + PAGE_MS
    let empties = 0
    while (page.unreadPartitions.length > 0 && !page.isFull) {
      const isLate = clock.now() >= lateAt
      if (isLate && page.messages.length > 0) break
      const answers = await this.#fetch(page, FETCH_BYTES * 4 ** empties)
      signal.throwIfAborted()
      if (answers.map((answer) => page.addPartition(answer)).includes(true)) {
        empties = 0
        continue
      }
      if (isLate) throw this.#noMessagesError(answers, query.until)
      // Where all of it was asked for and the broker has it, there is nothing left in it: compaction took it.
      if (empties === EMPTY_FETCHES_MAX) answers.filter((answer) => coversRange(answer, query.until)).forEach((answer) => page.skipToEnd(answer))
      else empties++
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
    // Known already but for the first page of a cycle that is taken up again.
    await this.#cluster.addTargetTopic(topic)
    const leaders = Object.entries(this.#cluster.findLeaderForPartitions(topic, page.unreadPartitions))
    const answers = await Promise.all(leaders.map(async ([nodeId, led]) => {
      const broker = await this.#cluster.findBroker({ nodeId })
      const partitions = led.map((partition) => ({ partition, fetchOffset: page.getFetchOffset(partition), maxBytes }))
      const { responses } = (await broker.fetch({ isolationLevel: READ_COMMITTED, maxWaitTime: FETCH_WAIT_MS, minBytes: 1, maxBytes, topics: [{ topic, partitions }] })) as { responses: { partitions: FetchedPartition[] }[] }
      return responses.flatMap((response) => response.partitions)
    }))
    // Always in the same order, so that a page is a page of the log and not of whoever answered first.
    return answers.flat().toSorted((a, b) => a.partition - b.partition)
  }

  #noMessagesError(answers: readonly FetchedPartition[], until: PartitionOffsets): SyncError {
    const short = answers.find((answer) => !coversRange(answer, until))
    if (short === undefined) return new SyncError('SOURCE_UNAVAILABLE', `topic ${this.#topic}: the brokers answered without messages for ${PAGE_MS} ms.`)
    return new SyncError('HISTORY_LOST', `topic ${this.#topic}: partition ${short.partition} reached ${until[short.partition]!} when the cycle began, and now ends at ${getReadableEnd(short)}: it was made anew, or has lost its end.`)
  }
}

/** Whether the broker has all of what this cycle reads; after another became the leader, it may lag behind. */
function coversRange(answer: FetchedPartition, until: PartitionOffsets): boolean {
  return getReadableEnd(answer) >= BigInt(until[answer.partition]!)
}

function getReadableEnd({ highWatermark, lastStableOffset }: FetchedPartition): bigint {
  return BigInt(lastStableOffset === undefined || lastStableOffset === '-1' ? highWatermark : lastStableOffset)
}
