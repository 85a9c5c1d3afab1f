import type { Change, JsonObject, JsonValue } from '../../contract/index.ts'
import { valueAt, type Pointer } from './pointer.ts'

/** How a source writes moments: RFC 3339, or milliseconds or seconds since 1970. */
export type TimeForm = 'iso' | 'ms' | 's'

export interface RecordShape {
  /** One member, or several that make the key together. */
  readonly key: string | readonly Pointer[]
  /** When the record was last changed. */
  readonly updatedAt?: Pointer | undefined
  readonly time?: TimeForm | undefined
  /** True, or anything but null, false, 0 and the empty text, in a record that is gone. */
  readonly deleted?: Pointer | undefined
}

export function changeOf(record: JsonValue, shape: RecordShape): Change {
  const at = shape.updatedAt === undefined ? undefined : instantAt(record, shape.updatedAt, shape.time)
  const stamp = at === undefined ? {} : { upstreamUpdatedAt: at }
  const key = keyOf(record, shape.key)
  const isDeleted = shape.deleted !== undefined && Boolean(valueAt(record, shape.deleted))
  // What is no object is quarantined by the engine, with the reason.
  return isDeleted ? { type: 'delete', key, ...stamp } : { type: 'upsert', key, record: record as JsonObject, ...stamp }
}

export function deleteOf(record: JsonValue, shape: RecordShape): Change {
  const at = shape.updatedAt === undefined ? undefined : instantAt(record, shape.updatedAt, shape.time)
  return { type: 'delete', key: keyOf(record, shape.key), ...(at !== undefined && { upstreamUpdatedAt: at }) }
}

/** Never "null", "undefined" or "[object Object]": what cannot be a key becomes the empty one, which the engine quarantines. */
export function keyOf(record: JsonValue, key: string | readonly Pointer[]): string {
  if (typeof key === 'string') return partOf(valueAt(record, key))
  const parts = key.map((pointer) => partOf(valueAt(record, pointer)))
  // As a list, so that no two keys of several parts can ever read the same.
  return parts.includes('') ? '' : JSON.stringify(parts)
}

function partOf(value: JsonValue | undefined): string {
  return typeof value === 'string' || typeof value === 'bigint' || (typeof value === 'number' && Number.isFinite(value)) ? String(value) : ''
}

/** RFC 3339, or whatever stands there for the engine to judge; undefined when nothing does. */
export function instantAt(record: JsonValue, pointer: Pointer, form: TimeForm = 'iso'): string | undefined {
  const value = valueAt(record, pointer)
  if (value === undefined || value === null) return undefined
  if (form === 'iso') return typeof value === 'string' ? value : NO_TIME
  const ms = Number(value) * (form === 's' ? 1_000 : 1)
  return value !== '' && Math.abs(ms) <= MS_MAX ? new Date(ms).toISOString() : NO_TIME
}

/** Refused by whoever gets it, with the reason. */
const NO_TIME = 'not a time'

/** The furthest moment a Date can hold. */
const MS_MAX = 8.64e15

/** A moment as the source wants to be asked with it: never a later one. */
export function momentFor(instant: string, form: TimeForm = 'iso'): string | number {
  if (form === 'iso') return instant
  return form === 'ms' ? Date.parse(instant) : Math.floor(Date.parse(instant) / 1_000)
}
