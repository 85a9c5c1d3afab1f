import type { Change, JsonObject, JsonValue } from '../../contract/index.ts'
import { getAtPath, type FieldPath } from './field-path.ts'

/** The time format of a source: RFC 3339, or milliseconds or seconds since 1970. */
export type TimeFormat = 'iso' | 'ms' | 's'

export interface RecordMapping {
  /** One field, or the paths of a composite key. */
  readonly key: string | readonly FieldPath[]
  /** The path of the modification time. */
  readonly updatedAt?: FieldPath | undefined
  readonly time?: TimeFormat | undefined
  /** The path of a field that is truthy in a deleted record. */
  readonly deleted?: FieldPath | undefined
}

export function toChange(record: JsonValue, mapping: RecordMapping): Change {
  const at = mapping.updatedAt === undefined ? undefined : readInstant(record, mapping.updatedAt, mapping.time)
  const stamp = at === undefined ? {} : { upstreamUpdatedAt: at }
  const key = buildKey(record, mapping.key)
  const isDeleted = mapping.deleted !== undefined && Boolean(getAtPath(record, mapping.deleted))
  // The engine quarantines a record that is not an object.
  return isDeleted ? { type: 'delete', key, ...stamp } : { type: 'upsert', key, record: record as JsonObject, ...stamp }
}

export function toDelete(record: JsonValue, mapping: RecordMapping): Change {
  const at = mapping.updatedAt === undefined ? undefined : readInstant(record, mapping.updatedAt, mapping.time)
  return { type: 'delete', key: buildKey(record, mapping.key), ...(at !== undefined && { upstreamUpdatedAt: at }) }
}

/** A value that cannot be a key becomes the empty key, which the engine quarantines; never "null" or "[object Object]". */
export function buildKey(record: JsonValue, key: string | readonly FieldPath[]): string {
  if (typeof key === 'string') return formatKeyPart(getAtPath(record, key))
  const parts = key.map((path) => formatKeyPart(getAtPath(record, path)))
  // A JSON list, so that two composite keys never collide.
  return parts.includes('') ? '' : JSON.stringify(parts)
}

function formatKeyPart(value: JsonValue | undefined): string {
  return typeof value === 'string' || typeof value === 'bigint' || (typeof value === 'number' && Number.isFinite(value))
    ? String(value)
    : ''
}

/** Returns RFC 3339, or an invalid time that the engine rejects; undefined if the field is missing. */
export function readInstant(record: JsonValue, path: FieldPath, format: TimeFormat = 'iso'): string | undefined {
  const value = getAtPath(record, path)
  if (value === undefined || value === null) return undefined
  if (format === 'iso') return typeof value === 'string' ? value : INVALID_TIME
  const ms = Number(value) * (format === 's' ? 1_000 : 1)
  return value !== '' && Math.abs(ms) <= DATE_MS_MAX ? new Date(ms).toISOString() : INVALID_TIME
}

/** Rejected by the strategy or the engine, with a reason. */
const INVALID_TIME = 'not a time'

/** The largest time value of a Date. */
const DATE_MS_MAX = 8.64e15

/** Formats a time for a query parameter. Rounds down, never up. */
export function formatTime(instant: string, format: TimeFormat = 'iso'): string | number {
  if (format === 'iso') return instant
  return format === 'ms' ? Date.parse(instant) : Math.floor(Date.parse(instant) / 1_000)
}
