import type { Message, Producer, RecordMetadata, Transaction } from 'kafkajs'
import { SyncError } from '../../contract/index.ts'
import { isFenced, isTooLarge } from './failures.ts'
import { chunkMessages, measureMessage } from './messages.ts'

/** Below the 1 MiB that brokers accept for one batch by default. */
export const BATCH_BYTES_MAX = 900_000

/** A message for a partition that was already chosen. */
export type PlacedMessage = Message & { readonly partition: number }

/** Messages for one topic. */
export interface TopicMessages<Messages extends Iterable<PlacedMessage> = PlacedMessage[]> {
  readonly topic: string
  readonly messages: Messages
}

/** `fenced`: another producer with the same transactional id took over, and nothing was committed. */
export type WriteResult =
  | { readonly kind: 'written'; readonly ends: ReadonlyMap<number, bigint> }
  | { readonly kind: 'fenced' }

/** Writes messages in transactions of one transactional id, or without transactions. */
export class TopicProducer {
  readonly #producer: Producer
  readonly #isTransactional: boolean
  /** Shared by the sessions of a destination: brokers that once refused a size refuse it again. */
  readonly #limit: { bytesMax: number }
  #transaction: Transaction | null = null

  private constructor(producer: Producer, isTransactional: boolean, limit: { bytesMax: number }) {
    this.#producer = producer
    this.#isTransactional = isTransactional
    this.#limit = limit
  }

  /**
   * A transactional producer is initialized at once: its older namesakes are fenced off from now on, and their open
   * transaction is aborted, so that the position can be read.
   */
  static async open(producer: Producer, isTransactional: boolean, limit: { bytesMax: number }): Promise<TopicProducer> {
    const opened = new TopicProducer(producer, isTransactional, limit)
    await producer.connect()
    if (isTransactional) opened.#transaction = await producer.transaction()
    return opened
  }

  /**
   * Writes the rows, then the state. In a transaction they become visible together; without one, a crash in between
   * leaves rows that are written again. Returns the offsets after the rows, by partition, to `toState`.
   */
  async write(
    rows: TopicMessages<Iterable<PlacedMessage>>,
    toState: (ends: ReadonlyMap<number, bigint>) => readonly TopicMessages[],
  ): Promise<WriteResult> {
    const transaction = this.#isTransactional ? (this.#transaction ?? (await this.#producer.transaction())) : null
    this.#transaction = null
    const ends = new Map<number, bigint>()
    try {
      for (const messages of chunkMessages(rows.messages, this.#limit.bytesMax)) {
        const sent = await this.#send(
          transaction ?? this.#producer,
          [{ topic: rows.topic, messages }],
          messages.length > 1,
        )
        addEnds(ends, sent, messages)
      }
      const state = toState(ends)
      if (state.length > 0) await this.#send(transaction ?? this.#producer, state, false)
    } catch (error) {
      if (isFenced(error)) return { kind: 'fenced' }
      // Readers are not blocked until the transaction times out.
      await transaction?.abort().catch(() => {})
      throw error
    }
    try {
      await transaction?.commit()
    } catch (error) {
      if (isFenced(error)) return { kind: 'fenced' }
      throw new SyncError('COMMIT_UNKNOWN', `${rows.topic}: the commit was sent, but the brokers did not answer.`, {
        cause: error,
      })
    }
    return { kind: 'written', ends }
  }

  async close(): Promise<void> {
    await this.#producer.disconnect()
  }

  async #send(
    sender: Pick<Producer, 'sendBatch'>,
    topicMessages: readonly TopicMessages[],
    isDivisible: boolean,
  ): Promise<RecordMetadata[]> {
    try {
      return await sender.sendBatch({ acks: -1, topicMessages: [...topicMessages] })
    } catch (error) {
      if (!isTooLarge(error)) throw error
      const topic = topicMessages[0]?.topic ?? ''
      if (!isDivisible)
        throw new SyncError(
          'DESTINATION_REFUSED',
          `The brokers refuse a message of this size. Raise \`max.message.bytes\` of the topic ${topic}.`,
          { cause: error },
        )
      const bytes = topicMessages[0]?.messages.reduce((sum, message) => sum + measureMessage(message), 0) ?? 0
      this.#limit.bytesMax = Math.ceil(Math.min(this.#limit.bytesMax, bytes) / 2)
      throw new SyncError(
        'DESTINATION_UNAVAILABLE',
        `The brokers refuse messages of this size for the topic ${topic}. They are sent again in smaller batches.`,
        { cause: error },
      )
    }
  }
}

/** The client sends one batch per partition and request, and reports the offset of its first message. */
function addEnds(ends: Map<number, bigint>, sent: readonly RecordMetadata[], messages: readonly PlacedMessage[]): void {
  for (const { partition, baseOffset } of sent) {
    const count = messages.filter((message) => message.partition === partition).length
    if (baseOffset !== undefined && count > 0) ends.set(partition, BigInt(baseOffset) + BigInt(count))
  }
}
