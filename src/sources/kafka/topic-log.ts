import type { Broker, Cluster } from 'kafkajs'
import { SyncError, type SyncContext } from '../../contract/index.ts'
import { committedOf, endOf, type FetchedMessage, type FetchedPartition } from './committed.ts'
import { failureOf } from './failures.ts'

export interface Message extends FetchedMessage {
  readonly partition: number
}

export interface PageLimits {
  readonly pageSize: number
  readonly pageBytes: number
}

/** One answer of a broker holds at most about so much, and one batch. */
const FETCH_BYTES = 1_000_000
/** An answer without a message is asked for again with four times as much room, so often. */
const EMPTY_MAX = 3
/** What has come by then is landed. */
const PAGE_MS = 10_000
const WAIT_MS = 200
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
      throw failureOf(error, `topic ${topic}`)
    }
  }

  async read({ from, until }: { readonly from: Readonly<Record<string, string>>; readonly until: Readonly<Record<string, string>> }, { pageSize, pageBytes }: PageLimits, context: SyncContext): Promise<{ messages: Message[]; next: Record<string, string> }> {
    const { clock, signal } = context
    const next: Record<string, string> = { ...from }
    const messages: Message[] = []
    const lateAt = clock.now() + PAGE_MS
    let bytes = 0
    let empties = 0
    const isFull = (): boolean => messages.length >= pageSize || bytes >= pageBytes
    for (;;) {
      const unread = Object.keys(next).filter((partition) => BigInt(next[partition]!) < BigInt(until[partition]!)).map(Number)
      if (unread.length === 0 || isFull() || (messages.length > 0 && clock.now() >= lateAt)) return { messages, next }
      const answers = await this.#answers(unread, next, FETCH_BYTES * 4 ** empties)
      signal.throwIfAborted()
      if (answers.every((answer) => answer.messages.length === 0)) {
        if (clock.now() >= lateAt) throw this.#nothing(answers, until)
        // Where all of it was asked for and the broker has it, there is nothing left in it: compaction took it.
        if (++empties > EMPTY_MAX) for (const answer of answers) if (reachOf(answer) >= BigInt(until[answer.partition]!)) next[answer.partition] = until[answer.partition]!
        empties = Math.min(empties, EMPTY_MAX)
        await clock.sleep(WAIT_MS, signal)
        continue
      }
      empties = 0
      for (const answer of answers) {
        const { partition } = answer
        const [first, end] = [BigInt(next[partition]!), BigInt(until[partition]!)]
        let reached = endOf(answer) ?? first
        for (const message of committedOf(answer)) {
          const offset = BigInt(message.offset)
          // A batch comes whole, also where it was read from its middle.
          if (offset < first) continue
          if (offset >= end || isFull()) {
            reached = offset
            break
          }
          messages.push({ ...message, partition })
          bytes += (message.key?.length ?? 0) + (message.value?.length ?? 0)
        }
        next[partition] = String(reached > end ? end : reached < first ? first : reached)
      }
    }
  }

  async #answers(partitions: readonly number[], next: Readonly<Record<string, string>>, maxBytes: number): Promise<FetchedPartition[]> {
    const topic = this.#topic
    try {
      // Known already but for the first page of a cycle that is taken up again.
      await this.#cluster.addTargetTopic(topic)
      const leaders = Object.entries(this.#cluster.findLeaderForPartitions(topic, [...partitions]))
      const answers = await Promise.all(leaders.map(async ([nodeId, led]) => {
        const broker = await this.#cluster.findBroker({ nodeId })
        const asked = led.map((partition) => ({ partition, fetchOffset: next[partition]!, maxBytes }))
        return await ask(broker, topic, asked, maxBytes)
      }))
      // Always in the same order, so that a page is a page of the log and not of whoever answered first.
      return answers.flat().toSorted((a, b) => a.partition - b.partition)
    } catch (error) {
      throw failureOf(error, `topic ${topic}`)
    }
  }

  #nothing(answers: readonly FetchedPartition[], until: Readonly<Record<string, string>>): SyncError {
    const short = answers.find((answer) => reachOf(answer) < BigInt(until[answer.partition]!))
    if (short === undefined) return new SyncError('SOURCE_UNAVAILABLE', `topic ${this.#topic}: the brokers answered without messages for ${PAGE_MS} ms.`)
    return new SyncError('HISTORY_LOST', `topic ${this.#topic}: partition ${short.partition} reached ${until[short.partition]!} when the cycle began, and now ends at ${reachOf(short)}: it was made anew, or has lost its end.`)
  }
}

async function ask(broker: Broker, topic: string, partitions: { partition: number; fetchOffset: string; maxBytes: number }[], maxBytes: number): Promise<FetchedPartition[]> {
  const { responses } = (await broker.fetch({ isolationLevel: READ_COMMITTED, maxWaitTime: WAIT_MS, minBytes: 1, maxBytes, topics: [{ topic, partitions }] })) as { responses: { partitions: FetchedPartition[] }[] }
  return responses.flatMap((response) => response.partitions)
}

function reachOf({ highWatermark, lastStableOffset }: FetchedPartition): bigint {
  return BigInt(lastStableOffset === undefined || lastStableOffset === '-1' ? highWatermark : lastStableOffset)
}
