/** A message as fetched from a broker, before transactions are resolved. */
export interface FetchedMessage {
  readonly offset: string
  /** Milliseconds; -1 if unset. */
  readonly timestamp: string
  readonly key: Buffer | null
  readonly value: Buffer | null
  /** A repeated header is a list. */
  readonly headers?: Readonly<Record<string, Buffer | null | readonly (Buffer | null)[]>>
  readonly isControlRecord?: boolean
  /** Missing in message formats before Kafka 0.11. */
  readonly batchContext?: {
    readonly producerId: string
    readonly inTransaction: boolean
    readonly firstOffset: string
    readonly lastOffsetDelta: number
  }
}

export interface FetchedPartition {
  readonly partition: number
  readonly highWatermark: string
  /** Every transaction before this offset has ended; -1 if the broker does not report it. */
  readonly lastStableOffset?: string
  readonly abortedTransactions?: readonly { readonly producerId: string; readonly firstOffset: string }[]
  readonly messages: readonly FetchedMessage[]
}

/** Returns messages outside transactions or of committed ones, without control records. */
export function filterCommitted({ messages, abortedTransactions = [] }: FetchedPartition): FetchedMessage[] {
  const starts = abortedTransactions.toSorted((a, b) => (BigInt(a.firstOffset) < BigInt(b.firstOffset) ? -1 : 1))
  const aborted = new Set<string>()
  return messages.filter(({ offset, key, isControlRecord, batchContext }) => {
    // Several transactions may have begun before the first message of the response.
    for (let [next] = starts; next !== undefined && BigInt(next.firstOffset) <= BigInt(offset); [next] = starts) {
      aborted.add(next.producerId)
      starts.shift()
    }
    if (isControlRecord === true) {
      if (batchContext !== undefined && key?.equals(ABORT_MARKER_KEY) === true) aborted.delete(batchContext.producerId)
      return false
    }
    return !(batchContext?.inTransaction === true && aborted.has(batchContext.producerId))
  })
}

/** Returns the offset after the response. A compacted batch extends beyond its remaining messages. */
export function getEndOffset({ messages }: FetchedPartition): bigint | null {
  const last = messages.at(-1)
  if (last === undefined) return null
  const { offset, batchContext: batch } = last
  const end = batch === undefined ? BigInt(offset) : BigInt(batch.firstOffset) + BigInt(batch.lastOffsetDelta)
  return (end > BigInt(offset) ? end : BigInt(offset)) + 1n
}

/** The key of an abort marker: version and type. */
const ABORT_MARKER_KEY = Buffer.from([0, 0, 0, 0])
