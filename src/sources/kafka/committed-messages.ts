/** A message as a broker hands it out, before anybody looked at transactions. */
export interface FetchedMessage {
  readonly offset: string
  /** Milliseconds; -1 for none. */
  readonly timestamp: string
  readonly key: Buffer | null
  readonly value: Buffer | null
  /** One that is there several times is a list. */
  readonly headers?: Readonly<Record<string, Buffer | null | readonly (Buffer | null)[]>>
  readonly isControlRecord?: boolean
  /** None in the formats of before Kafka 0.11. */
  readonly batchContext?: { readonly producerId: string; readonly inTransaction: boolean; readonly firstOffset: string; readonly lastOffsetDelta: number }
}

export interface FetchedPartition {
  readonly partition: number
  readonly highWatermark: string
  /** Up to here every transaction has ended. -1 where the broker does not tell. */
  readonly lastStableOffset?: string
  readonly abortedTransactions?: readonly { readonly producerId: string; readonly firstOffset: string }[]
  readonly messages: readonly FetchedMessage[]
}

/** Those that count: of no transaction or of a committed one, and no marks of transactions. */
export function filterCommitted({ messages, abortedTransactions = [] }: FetchedPartition): FetchedMessage[] {
  const ahead = abortedTransactions.toSorted((a, b) => (BigInt(a.firstOffset) < BigInt(b.firstOffset) ? -1 : 1))
  const aborted = new Set<string>()
  return messages.filter(({ offset, key, isControlRecord, batchContext }) => {
    // Several may have begun before the first message of the answer.
    while (ahead.length > 0 && BigInt(ahead[0]!.firstOffset) <= BigInt(offset)) aborted.add(ahead.shift()!.producerId)
    if (isControlRecord === true) {
      if (key?.equals(ABORT_MARKER_KEY) === true) aborted.delete(batchContext!.producerId)
      return false
    }
    return !(batchContext?.inTransaction === true && aborted.has(batchContext.producerId))
  })
}

/** Behind everything in the answer. A compacted batch reaches further than the messages that are left of it. */
export function getEndOffset({ messages }: FetchedPartition): bigint | null {
  const last = messages.at(-1)
  if (last === undefined) return null
  const { offset, batchContext: batch } = last
  const end = batch === undefined ? BigInt(offset) : BigInt(batch.firstOffset) + BigInt(batch.lastOffsetDelta)
  return (end > BigInt(offset) ? end : BigInt(offset)) + 1n
}

/** The key of the mark that a transaction leaves: its version and its type. */
const ABORT_MARKER_KEY = Buffer.from([0, 0, 0, 0])
