import type { JsonObject, JsonValue } from '../../../contract/index.ts'

/** A component of a manifest: its type, its fields, and the `$parameters` that reach it. */
export interface Component extends JsonObject {
  type: string
}

export function isRecord(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function isComponent(value: JsonValue | undefined): value is Component {
  return isRecord(value) && typeof value.type === 'string'
}

export function components(value: JsonValue | undefined): Component[] {
  return Array.isArray(value) ? value.filter(isComponent) : []
}

export function texts(value: JsonValue | undefined): string[] {
  return Array.isArray(value) ? value.map(String) : []
}

export function textOf(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined
}
