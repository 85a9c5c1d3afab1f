import { SyncError } from '../../contract/index.ts'
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
 * A page as it fills with what brokers answer. Of every partition the last message read is remembered by its timestamp, and
 * is asked for again with the next page: where another one stands in its place, the topic was deleted and made anew.
 */
export class LogPage {
  readonly messages: LogMessage[] = []
  readonly #until: PartitionOffsets
  readonly #limits: LogPageLimits
  readonly #next: Record<string, string>
  readonly #marks: Record<string, string>
  /** Partitions whose mark is still to be compared. */
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
    return Object.keys(this.#next).filter((partition) => BigInt(this.#next[partition]!) < BigInt(this.#until[partition]!)).map(Number)
  }

  get answer(): OffsetsAnswer<LogMessage> {
    return { messages: this.messages, next: this.#next, marks: this.#marks }
  }

  /** Where to ask: one before, where a mark is to be compared. */
  getFetchOffset(partition: number): string {
    const next = this.#next[partition]!
    return this.#unverified.has(String(partition)) ? String(BigInt(next) - 1n) : next
  }

  /** What the marks stand for is no longer kept, though what follows may be. */
  skipVerification(): void {
    this.#unverified = new Set()
  }

  /** Whether it led anywhere. */
  addPartition(answer: FetchedPartition): boolean {
    const { partition } = answer
    const isProof = this.#verifyMark(answer)
    const [first, end] = [BigInt(this.#next[partition]!), BigInt(this.#until[partition]!)]
    let reached = getEndOffset(answer) ?? first
    for (const message of filterCommitted(answer)) {
      const offset = BigInt(message.offset)
      // A batch comes whole, also where it was read from its middle.
      if (offset < first) continue
      if (offset >= end || this.isFull) {
        reached = offset
        break
      }
      this.messages.push({ ...message, partition })
      this.#bytes += (message.key?.length ?? 0) + (message.value?.length ?? 0)
    }
    if (reached <= first) return isProof
    this.#advanceTo(partition, reached < end ? reached : end, answer)
    return true
  }

  /** Nothing is left between here and the end. */
  skipToEnd({ partition }: FetchedPartition): void {
    this.#next[partition] = this.#until[partition]!
    delete this.#marks[partition]
  }

  #advanceTo(partition: number, reached: bigint, { messages }: FetchedPartition): void {
    this.#next[partition] = String(reached)
    const last = messages.findLast(({ offset }) => BigInt(offset) < reached)
    if (last !== undefined && BigInt(last.offset) === reached - 1n) this.#marks[partition] = last.timestamp
    else delete this.#marks[partition]
  }

  #verifyMark({ partition, messages }: FetchedPartition): boolean {
    // Without any message the answer says nothing of it either.
    if (messages.length === 0 || !this.#unverified.delete(String(partition))) return false
    const place = String(BigInt(this.#next[partition]!) - 1n)
    const there = messages.find(({ offset }) => offset === place)
    // Compaction may have taken it; then nothing is known.
    if (there === undefined || there.timestamp === this.#marks[partition]) return true
    throw new SyncError('HISTORY_LOST', `Partition ${partition} has another message at ${place} than the one that was read there: the topic was deleted, and made anew.`)
  }
}
