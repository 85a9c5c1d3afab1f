import type { JsonObject, JsonValue } from '../../contract/index.ts'
import { parseJson } from '../../values/json.ts'

/** What a tap may write, line by line. */
export type SingerMessage =
  /** `schema` with numbers as JavaScript has them: nothing of it lands. */
  | { readonly type: 'SCHEMA'; readonly stream: string; readonly schema: JsonObject; readonly key: readonly string[]; readonly cursor: string | undefined }
  | { readonly type: 'RECORD'; readonly stream: string; readonly record: JsonObject }
  /** Everything before it is told for good: this is where to go on from. */
  | { readonly type: 'STATE'; readonly value: JsonValue }
  /** The records of this version are all that there are. */
  | { readonly type: 'ACTIVATE_VERSION'; readonly stream: string; readonly version: JsonValue }
  | { readonly type: 'BATCH'; readonly stream: string }

/** Null for what is none of these. */
export function parseMessage(line: string): SingerMessage | null {
  let told: JsonValue
  try {
    told = parseJson(line)
  } catch {
    return null
  }
  if (!isObject(told)) return null
  const { type, stream } = told
  if (type === 'STATE') return told['value'] === undefined ? null : { type, value: told['value'] }
  if (typeof stream !== 'string') return null
  switch (type) {
    case 'RECORD':
      return isObject(told['record']) ? { type, stream, record: told['record'] } : null
    case 'SCHEMA':
      if (!isObject(told['schema'])) return null
      return { type, stream, schema: (JSON.parse(line) as { schema: JsonObject }).schema, key: toStringList(told['key_properties']), cursor: toStringList(told['bookmark_properties'])[0] }
    case 'ACTIVATE_VERSION':
      return told['version'] === undefined ? null : { type, stream, version: told['version'] }
    case 'BATCH':
      return { type, stream }
    default:
      return null
  }
}

/** A list of names, or one alone, as some write it. */
export function toStringList(value: JsonValue | undefined): string[] {
  return [value].flat().filter((item) => typeof item === 'string')
}

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
