import type { JsonObject, JsonValue } from '../../contract/index.ts'
import { parseJson } from '../../values/json.ts'

/** The messages of the Singer protocol, one per line. */
export type SingerMessage =
  /** `schema` is parsed with JavaScript numbers: it is not committed. */
  | {
      readonly type: 'SCHEMA'
      readonly stream: string
      readonly schema: JsonObject
      readonly key: readonly string[]
      readonly cursor: string | undefined
    }
  | { readonly type: 'RECORD'; readonly stream: string; readonly record: JsonObject }
  /** Covers all records before it: the tap can resume from here. */
  | { readonly type: 'STATE'; readonly value: JsonValue }
  /** The records of this version are the complete stream. */
  | { readonly type: 'ACTIVATE_VERSION'; readonly stream: string; readonly version: JsonValue }
  | { readonly type: 'BATCH'; readonly stream: string }

/** Returns null for any other line. */
export function parseMessage(line: string): SingerMessage | null {
  let message: JsonValue
  try {
    message = parseJson(line)
  } catch {
    return null
  }
  if (!isObject(message)) return null
  const { type, stream } = message
  if (type === 'STATE') return message['value'] === undefined ? null : { type, value: message['value'] }
  if (typeof stream !== 'string') return null
  switch (type) {
    case 'RECORD':
      return isObject(message['record']) ? { type, stream, record: message['record'] } : null
    case 'SCHEMA':
      if (!isObject(message['schema'])) return null
      return {
        type,
        stream,
        schema: (JSON.parse(line) as { schema: JsonObject }).schema,
        key: toStringList(message['key_properties']),
        cursor: toStringList(message['bookmark_properties'])[0],
      }
    case 'ACTIVATE_VERSION':
      return message['version'] === undefined ? null : { type, stream, version: message['version'] }
    case 'BATCH':
      return { type, stream }
    default:
      return null
  }
}

/** Accepts a list of names, or a single name. */
export function toStringList(value: JsonValue | undefined): string[] {
  return [value].flat().filter((item) => typeof item === 'string')
}

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
