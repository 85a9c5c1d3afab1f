import type { JsonValue } from '../../contract/index.ts'
import { stringifyJson } from '../../values/json.ts'

/** A value whose members are somebody else's: a record, a state. Its names stay as they are. */
export class RawJson {
  readonly value: unknown

  constructor(value: unknown) {
    this.value = value
  }
}

/** What `--json` prints, on one line: snake_case members, as everywhere on the wire. */
export function toJson(document: object): string {
  return stringifyJson(toSnakeCase(document) as JsonValue)
}

export function isoTime(ms: number): string
export function isoTime(ms: number | null): string | null
export function isoTime(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}

function toSnakeCase(value: unknown): unknown {
  if (value instanceof RawJson) return value.value
  if (Array.isArray(value)) return value.map(toSnakeCase)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [snakeCaseName(name), toSnakeCase(member)]))
}

function snakeCaseName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
