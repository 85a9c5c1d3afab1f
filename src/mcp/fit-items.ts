import type { JsonValue } from '../contract/index.ts'
import { stringifyJson } from '../values/json.ts'

/** An answer fits into what an agent can read at once. */
export const RESPONSE_CHARACTERS_MAX = 40_000
const VALUE_CHARACTERS_MAX = 4_000

/** What of the items fits. `truncated`: ask for fewer, or for what comes after. */
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
    // One item is always told: it was clipped, and an empty answer would be asked for for ever.
    if (room < 0 && fitting.length > 0) return { items: fitting, truncated: true }
    fitting.push(cut)
  }
  return { items: fitting, truncated: false }
}

/** Members that are too long are cut, and say so. */
function clipItem(value: JsonValue): JsonValue {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return clipValue(value)
  const clipped: Record<string, JsonValue> = {}
  let room = RESPONSE_CHARACTERS_MAX
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue
    const cut = name === 'record' && typeof member === 'object' ? clipItem(member) : clipValue(member)
    room -= name.length + stringifyJson(cut).length + 4
    if (room < 0) {
      clipped['…'] = 'more members were left out'
      break
    }
    Object.defineProperty(clipped, name, { value: cut, enumerable: true, configurable: true, writable: true })
  }
  return clipped
}

function clipValue(value: JsonValue): JsonValue {
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean' || value === null) return value
  const text = typeof value === 'string' ? value : stringifyJson(value)
  if (text.length <= VALUE_CHARACTERS_MAX) return value
  return `${text.slice(0, VALUE_CHARACTERS_MAX).toWellFormed()}… (${text.length - VALUE_CHARACTERS_MAX} more characters)`
}
