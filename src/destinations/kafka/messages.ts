import { hash } from 'node:crypto'
import type { Message } from 'kafkajs'
import type { DestinationChange, DestinationSchema, DestinationToken } from '../../contract/index.ts'

/** The headers that all messages of a batch share. */
export interface BatchHeaders {
  readonly schema: string
  readonly load: number
  readonly token: DestinationToken
}

/** The value is the record, or null for a delete: a tombstone in a compacted topic. */
export function toMessage(change: DestinationChange, { schema, load, token }: BatchHeaders): Message {
  return {
    key: change.key,
    value: change.text,
    headers: {
      sequence: String(change.sequence),
      action: change.action,
      committed_at: String(change.committedAt),
      load: String(load),
      schema,
      store_id: token.storeId,
      epoch: String(token.epoch),
    },
  }
}

/** A key of the topic that the store no longer has. */
export function toTombstone(key: string, headers: BatchHeaders): Message {
  const { sequence, committedAt } = headers.token
  return toMessage({ key, action: 'deleted', sequence, committedAt, record: null, text: null }, headers)
}

export function serializeSchema({ database, mode, columns }: DestinationSchema): { text: string; fingerprint: string } {
  const text = JSON.stringify({ database, mode, columns })
  return { text, fingerprint: hash('sha256', text, 'hex').slice(0, 16) }
}

const HEADER_BYTES = 200

/**
 * Groups messages for requests: below the size that brokers accept for one batch, and in small numbers, because the
 * client groups the messages of a request by partition in quadratic time.
 */
export function* chunkMessages<Item extends Message>(
  messages: Iterable<Item>,
  bytesMax: number,
  countMax = 1_000,
): Generator<Item[]> {
  let chunk: Item[] = []
  let bytes = 0
  for (const message of messages) {
    const size = measureMessage(message)
    if (chunk.length > 0 && (bytes + size > bytesMax || chunk.length === countMax)) {
      yield chunk
      chunk = []
      bytes = 0
    }
    chunk.push(message)
    bytes += size
  }
  if (chunk.length > 0) yield chunk
}

/** About the size in a batch. */
export function measureMessage({ key, value }: Message): number {
  return HEADER_BYTES + sizeOf(key) + sizeOf(value)
}

function sizeOf(value: string | Buffer | null | undefined): number {
  return value === null || value === undefined ? 0 : Buffer.byteLength(value)
}
