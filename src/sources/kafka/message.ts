import type { Change, JsonObject, JsonValue } from '../../contract/index.ts'
import { parseJson } from '../../values/json.ts'
import type { LogMessage } from './log-page.ts'

/** What a record can have besides the value, under `_kafka`. */
export type MetadataField = 'partition' | 'offset' | 'timestamp' | 'headers'

export interface MessageOptions {
  /** Nothing unless given. */
  readonly include?: readonly MetadataField[]
  /** What the value's bytes say; JSON unless given. What it throws becomes the reason why the message is put aside. */
  readonly decode?: (value: Buffer) => unknown
}

/** A null value is a tombstone; without a key there is nothing for it to delete. */
export function toChange(topic: string, message: LogMessage, options: MessageOptions): Change | null {
  const place = `${topic}/${message.partition}/${message.offset}`
  const { key: bytes, value } = message
  const key = bytes === null ? place : bytesToText(bytes)
  if (value === null) return bytes === null ? null : { type: 'delete', key }
  return { type: 'upsert', key, record: toRecord(value, place, message, options) }
}

/** The engine puts an Error in place of a record aside, with its message as the reason. */
function toRecord(value: Buffer, place: string, message: LogMessage, { include = [], decode = decodeJson }: MessageOptions): JsonObject {
  let decoded: unknown
  try {
    decoded = decode(value)
  } catch (error) {
    return new Error(`${place}: ${(error as Error).message}`) as unknown as JsonObject
  }
  if (typeof decoded !== 'object' || decoded === null || Array.isArray(decoded)) return new Error(`${place}: the value is no object`) as unknown as JsonObject
  return include.length === 0 ? (decoded as JsonObject) : { ...(decoded as JsonObject), _kafka: buildMetadata(message, include) }
}

/** Not with the words of the parser: they quote the value. */
function decodeJson(value: Buffer): JsonValue {
  if (value[0] === 0 && value.length > 5) throw new Error('the value begins as those of a schema registry do, and is no JSON; give `decode`')
  let text: string
  try {
    text = utf8.decode(value)
  } catch {
    throw new Error('the value is not UTF-8')
  }
  try {
    return parseJson(text)
  } catch {
    throw new Error('the value is no JSON')
  }
}

function buildMetadata({ partition, offset, timestamp, headers = {} }: LogMessage, include: readonly MetadataField[]): JsonObject {
  const fields: Record<MetadataField, () => JsonValue> = {
    partition: () => partition,
    offset: () => BigInt(offset),
    timestamp: () => (timestamp === '-1' ? null : new Date(Number(timestamp)).toISOString()),
    headers: () => Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, isList(value) ? value.map(formatHeader) : formatHeader(value)])),
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

/** Bytes that are no text a database can keep, or would be taken for such, are written in base64: no two keys become one. */
function bytesToText(bytes: Buffer): string {
  try {
    const text = utf8.decode(bytes)
    if (text !== '' && !text.includes('\0') && !text.startsWith(BASE64_PREFIX)) return text
  } catch {
    // No UTF-8.
  }
  return `${BASE64_PREFIX}${bytes.toString('base64')}`
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
