import type { JsonValue } from '../../contract/index.ts'
import { stringifyJson } from '../../values/json.ts'

/** A value whose field names are not converted, such as a record or a state. */
export class RawJson {
  readonly value: unknown

  constructor(value: unknown) {
    this.value = value
  }
}

/** Serializes a document for `--json`: one line, with field names in snake_case. */
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
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [snakeCaseName(name), toSnakeCase(field)]))
}

function snakeCaseName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
