import type { JsonValue } from '../contract/index.ts'
import { stringifyJson } from '../values/json.ts'

/** Limits a result to what an agent can read at once. */
export const RESPONSE_CHARACTERS_MAX = 40_000
const VALUE_CHARACTERS_MAX = 4_000

/** Keeps the items that fit. If `truncated`, the caller must request fewer items or the next ones. */
export interface FitResult {
  readonly items: JsonValue[]
  readonly truncated: boolean
}

export function fitItems(items: readonly unknown[], roomMax = RESPONSE_CHARACTERS_MAX): FitResult {
  const fitting: JsonValue[] = []
  let room = roomMax
  for (const item of items) {
    const cut = clipItem(item as JsonValue)
    room -= stringifyJson(cut).length + 1
    // The first item is always returned, clipped: an empty result would make the agent repeat the call forever.
    if (room < 0 && fitting.length > 0) return { items: fitting, truncated: true }
    fitting.push(cut)
  }
  return { items: fitting, truncated: false }
}

/** Cuts fields that are too long and marks the cut. */
function clipItem(value: JsonValue): JsonValue {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return clipValue(value)
  const clipped: Record<string, JsonValue> = {}
  let room = RESPONSE_CHARACTERS_MAX
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue
    const cut = name === 'record' && typeof member === 'object' ? clipItem(member) : clipValue(member)
    room -= name.length + stringifyJson(cut).length + 4
    if (room < 0) {
      clipped['…'] = 'more fields were left out'
      break
    }
    Object.defineProperty(clipped, name, { value: cut, enumerable: true, configurable: true, writable: true })
  }
  return clipped
}

function clipValue(value: JsonValue): JsonValue {
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean' || value === null)
    return value
  const text = typeof value === 'string' ? value : stringifyJson(value)
  if (text.length <= VALUE_CHARACTERS_MAX) return value
  return `${text.slice(0, VALUE_CHARACTERS_MAX).toWellFormed()}… (${text.length - VALUE_CHARACTERS_MAX} more characters)`
}
