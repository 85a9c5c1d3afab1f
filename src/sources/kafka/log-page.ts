import { SyncError } from '../../contract/index.ts'
import { required } from '../../values/required.ts'
import type { PartitionOffsets, OffsetsAnswer, OffsetsQuery } from '../../strategies/offsets.ts'
import { filterCommitted, getEndOffset, type FetchedMessage, type FetchedPartition } from './committed-messages.ts'

export interface LogMessage extends FetchedMessage {
  readonly partition: number
}

export interface LogPageLimits {
  readonly pageSize: number
  readonly pageBytes: number
}

/**
 * Collects one page from broker responses. The timestamp of the last message of every partition is stored and compared
 * with the next page: if another message has that offset, the topic was deleted and recreated.
 */
export class LogPage {
  readonly messages: LogMessage[] = []
  readonly #until: PartitionOffsets
  readonly #limits: LogPageLimits
  readonly #next: Record<string, string>
  readonly #marks: Record<string, string>
  /** Partitions whose mark has not been compared yet. */
  #unverified: Set<string>
  #bytes = 0

  constructor({ from, until, marks = {} }: OffsetsQuery, limits: LogPageLimits) {
    this.#until = until
    this.#limits = limits
    this.#next = { ...from }
    this.#marks = Object.fromEntries(Object.entries(marks).filter(([partition]) => from[partition] !== undefined))
    this.#unverified = new Set(Object.keys(this.#marks))
  }

  get isFull(): boolean {
    return this.messages.length >= this.#limits.pageSize || this.#bytes >= this.#limits.pageBytes
  }

  get isVerified(): boolean {
    return this.#unverified.size === 0
  }

  get unreadPartitions(): number[] {
    return Object.entries(this.#next)
      .filter(([partition, offset]) => BigInt(offset) < BigInt(this.#getLimit(partition)))
      .map(([partition]) => Number(partition))
  }

  get answer(): OffsetsAnswer<LogMessage> {
    return { messages: this.messages, next: this.#next, marks: this.#marks }
  }

  /** Starts one message earlier while the partition's mark is not verified. */
  getFetchOffset(partition: number): string {
    const next = this.#getNext(partition)
    return this.#unverified.has(String(partition)) ? String(BigInt(next) - 1n) : next
  }

  /** The marked messages are no longer retained, but the following ones may be. */
  skipVerification(): void {
    this.#unverified = new Set()
  }

  /** Returns whether the response advanced the partition. */
  addPartition(answer: FetchedPartition): boolean {
    const { partition } = answer
    const isMarkVerified = this.#verifyMark(answer)
    const [first, end] = [BigInt(this.#getNext(partition)), BigInt(this.#getLimit(partition))]
    let reached = getEndOffset(answer) ?? first
    for (const message of filterCommitted(answer)) {
      const offset = BigInt(message.offset)
      // A batch is returned whole, even if it is read from its middle.
      if (offset < first) continue
      if (offset >= end || this.isFull) {
        reached = offset
        break
      }
      this.messages.push({ ...message, partition })
      this.#bytes += (message.key?.length ?? 0) + (message.value?.length ?? 0)
    }
    if (reached <= first) return isMarkVerified
    this.#advanceTo(partition, reached < end ? reached : end, answer)
    return true
  }

  /** No messages are left up to the end. */
  skipToEnd({ partition }: FetchedPartition): void {
    this.#next[partition] = this.#getLimit(partition)
    delete this.#marks[partition]
  }

  #getNext(partition: number): string {
    return required(this.#next[partition], `the offset of partition ${partition}`)
  }

  #getLimit(partition: number | string): string {
    return required(this.#until[partition], `the limit of partition ${partition}`)
  }

  #advanceTo(partition: number, reached: bigint, { messages }: FetchedPartition): void {
    this.#next[partition] = String(reached)
    const last = messages.findLast(({ offset }) => BigInt(offset) < reached)
    if (last !== undefined && BigInt(last.offset) === reached - 1n) this.#marks[partition] = last.timestamp
    else delete this.#marks[partition]
  }

  #verifyMark({ partition, messages }: FetchedPartition): boolean {
    // A response without messages does not verify the mark.
    if (messages.length === 0 || !this.#unverified.delete(String(partition))) return false
    const markedOffset = String(BigInt(this.#getNext(partition)) - 1n)
    const marked = messages.find(({ offset }) => offset === markedOffset)
    // Compaction may have removed the message; then it proves nothing.
    if (marked === undefined || marked.timestamp === this.#marks[partition]) return true
    throw new SyncError(
      'HISTORY_LOST',
      `Partition ${partition} has a different message at offset ${markedOffset} than the one read before: the topic was deleted and recreated.`,
    )
  }
}
