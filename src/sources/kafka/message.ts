import type { Change, JsonObject, JsonValue } from '../../contract/index.ts'
import { parseJson } from '../../values/json.ts'
import type { LogMessage } from './log-page.ts'

/** Metadata that a record may include, under `_kafka`. */
export type MetadataField = 'partition' | 'offset' | 'timestamp' | 'headers'

/** Describes how a Kafka message becomes a record. */
export interface MessageOptions {
  /** None by default. */
  readonly include?: readonly MetadataField[]
  /** Decodes the value; JSON by default. If it throws, the message is quarantined with the error as the reason. */
  readonly decode?: (value: Buffer) => unknown
}

/** A null value is a tombstone; without a key it deletes nothing. */
export function toChange(topic: string, message: LogMessage, options: MessageOptions): Change | null {
  const location = `${topic}/${message.partition}/${message.offset}`
  const { key: bytes, value } = message
  const key = bytes === null ? location : bytesToText(bytes)
  if (value === null) return bytes === null ? null : { type: 'delete', key }
  const invalid = (reason: string): Change => ({
    type: 'invalid',
    key,
    reason: `${location}: ${reason}`,
    raw: bytesToText(value.subarray(0, RAW_BYTES_MAX)),
  })
  const { include = [], decode = decodeJson } = options
  let decoded: unknown
  try {
    decoded = decode(value)
  } catch (error) {
    return invalid((error as Error).message)
  }
  if (typeof decoded !== 'object' || decoded === null || Array.isArray(decoded))
    return invalid('the value is not an object')
  const record = decoded as JsonObject
  return {
    type: 'upsert',
    key,
    record: include.length === 0 ? record : { ...record, _kafka: buildMetadata(message, include) },
  }
}

/** The engine keeps about as much of a quarantined record. */
const RAW_BYTES_MAX = 65_536

/** The parser's own message is dropped: it quotes the value. */
function decodeJson(value: Buffer): JsonValue {
  if (value[0] === 0 && value.length > 5)
    throw new Error('the value has a schema registry header and is not JSON; set `decode`')
  let text: string
  try {
    text = utf8.decode(value)
  } catch {
    throw new Error('the value is not UTF-8')
  }
  try {
    return parseJson(text)
  } catch {
    throw new Error('the value is not JSON')
  }
}

function buildMetadata(
  { partition, offset, timestamp, headers = {} }: LogMessage,
  include: readonly MetadataField[],
): JsonObject {
  const fields: Record<MetadataField, () => JsonValue> = {
    partition: () => partition,
    offset: () => BigInt(offset),
    timestamp: () => (timestamp === '-1' ? null : new Date(Number(timestamp)).toISOString()),
    headers: () =>
      Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [
          name,
          isList(value) ? value.map(formatHeader) : formatHeader(value),
        ]),
      ),
  }
  return Object.fromEntries(include.map((field) => [field, fields[field]()]))
}

function isList(value: Buffer | null | readonly (Buffer | null)[]): value is readonly (Buffer | null)[] {
  return Array.isArray(value)
}

function formatHeader(value: Buffer | null): JsonValue {
  return value === null ? null : bytesToText(value)
}

const BASE64_PREFIX = 'base64:'

/** Bytes that a database cannot store as text, or that look encoded, become base64, so distinct keys stay distinct. */
function bytesToText(bytes: Buffer): string {
  try {
    const text = utf8.decode(bytes)
    if (text !== '' && !text.includes('\0') && !text.startsWith(BASE64_PREFIX)) return text
  } catch {
    // Not UTF-8.
  }
  return `${BASE64_PREFIX}${bytes.toString('base64')}`
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
