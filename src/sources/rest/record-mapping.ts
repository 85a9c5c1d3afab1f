import type { Change, JsonObject, JsonValue } from '../../contract/index.ts'
import { getAtPath, type FieldPath } from './field-path.ts'

/** How a source writes moments: RFC 3339, or milliseconds or seconds since 1970. */
export type TimeFormat = 'iso' | 'ms' | 's'

export interface RecordMapping {
  /** One member, or several that make the key together. */
  readonly key: string | readonly FieldPath[]
  /** When the record was last changed. */
  readonly updatedAt?: FieldPath | undefined
  readonly time?: TimeFormat | undefined
  /** True, or anything but null, false, 0 and the empty text, in a record that is gone. */
  readonly deleted?: FieldPath | undefined
}

export function toChange(record: JsonValue, shape: RecordMapping): Change {
  const at = shape.updatedAt === undefined ? undefined : readInstant(record, shape.updatedAt, shape.time)
  const stamp = at === undefined ? {} : { upstreamUpdatedAt: at }
  const key = buildKey(record, shape.key)
  const isDeleted = shape.deleted !== undefined && Boolean(getAtPath(record, shape.deleted))
  // What is no object is quarantined by the engine, with the reason.
  return isDeleted ? { type: 'delete', key, ...stamp } : { type: 'upsert', key, record: record as JsonObject, ...stamp }
}

export function toDelete(record: JsonValue, shape: RecordMapping): Change {
  const at = shape.updatedAt === undefined ? undefined : readInstant(record, shape.updatedAt, shape.time)
  return { type: 'delete', key: buildKey(record, shape.key), ...(at !== undefined && { upstreamUpdatedAt: at }) }
}

/** Never "null", "undefined" or "[object Object]": what cannot be a key becomes the empty one, which the engine quarantines. */
export function buildKey(record: JsonValue, key: string | readonly FieldPath[]): string {
  if (typeof key === 'string') return formatKeyPart(getAtPath(record, key))
  const parts = key.map((pointer) => formatKeyPart(getAtPath(record, pointer)))
  // As a list, so that no two keys of several parts can ever read the same.
  return parts.includes('') ? '' : JSON.stringify(parts)
}

function formatKeyPart(value: JsonValue | undefined): string {
  return typeof value === 'string' || typeof value === 'bigint' || (typeof value === 'number' && Number.isFinite(value)) ? String(value) : ''
}

/** RFC 3339, or whatever stands there for the engine to judge; undefined when nothing does. */
export function readInstant(record: JsonValue, pointer: FieldPath, form: TimeFormat = 'iso'): string | undefined {
  const value = getAtPath(record, pointer)
  if (value === undefined || value === null) return undefined
  if (form === 'iso') return typeof value === 'string' ? value : INVALID_TIME
  const ms = Number(value) * (form === 's' ? 1_000 : 1)
  return value !== '' && Math.abs(ms) <= DATE_MS_MAX ? new Date(ms).toISOString() : INVALID_TIME
}

/** Refused by whoever gets it, with the reason. */
const INVALID_TIME = 'not a time'

/** The furthest moment a Date can hold. */
const DATE_MS_MAX = 8.64e15

/** A moment as the source wants to be asked with it: never a later one. */
export function formatTime(instant: string, form: TimeFormat = 'iso'): string | number {
  if (form === 'iso') return instant
  return form === 'ms' ? Date.parse(instant) : Math.floor(Date.parse(instant) / 1_000)
}
