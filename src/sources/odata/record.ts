import type { JsonObject, JsonValue } from '../../contract/index.ts'
import { isObject } from '../kit/classify-response.ts'
import type { ODataMetadata, StructuredType } from './metadata.ts'

/**
 * Converts an entity to a record of its properties only. Annotations (types, ETags, links, formatted values) are
 * dropped: they differ between responses and would make every read a change. Version 2 dates become ISO 8601.
 */
export function toRecord(entity: JsonObject, type: StructuredType | undefined, metadata: ODataMetadata): JsonObject {
  const fields = Object.entries(entity).flatMap(([name, value]): [string, JsonValue][] => {
    if (
      value === undefined ||
      name.includes('@') ||
      (metadata.version === 2 && (name === '__metadata' || isDeferred(value)))
    )
      return []
    return [[name, toJsonValue(value, type?.properties.get(name)?.type, metadata)]]
  })
  return Object.fromEntries(fields)
}

function toJsonValue(value: JsonValue, type: string | undefined, metadata: ODataMetadata): JsonValue {
  if (Array.isArray(value))
    return value.map((item) => toJsonValue(item, type?.replace(/^Collection\((.*)\)$/, '$1'), metadata))
  if (isObject(value)) return toRecord(value, type === undefined ? undefined : metadata.getComplexType(type), metadata)
  return metadata.version === 2 && typeof value === 'string' && type !== 'Edm.String'
    ? (parseV2Date(value) ?? value)
    : value
}

/** A link to related entities that were not expanded. */
function isDeferred(value: JsonValue): boolean {
  return isObject(value) && Object.hasOwn(value, '__deferred')
}

/** `/Date(1759404045000+0060)/` is a UTC timestamp; the offset in minutes is only informational. */
function parseV2Date(text: string): string | null {
  const ms = /^\/Date\((-?\d{1,15})(?:[+-]\d{1,4})?\)\/$/.exec(text)?.[1]
  const date = new Date(Number(ms ?? Number.NaN))
  return Number.isNaN(date.getTime()) ? null : date.toISOString().replace('.000Z', 'Z')
}
