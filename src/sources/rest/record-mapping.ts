import { SyncError, type Change, type JsonObject, type JsonValue } from '../../contract/index.ts'
import { parseDurationMs } from '../../values/duration.ts'
import { getAtPath, type FieldPath } from './field-path.ts'

/** The time format of a source: RFC 3339, milliseconds or seconds since 1970, or a date in UTC such as 2026-01-31. */
export type TimeFormat = 'iso' | 'ms' | 's' | 'date'

/** The granularity of each format. */
export const TIME_UNITS_MS = { iso: 1, ms: 1, s: 1_000, date: 86_400_000 } as const satisfies Record<TimeFormat, number>

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
  if (format === 'date')
    return typeof value === 'string' && /^\d{4}-\d\d-\d\d$/.test(value) ? `${value}T00:00:00Z` : INVALID_TIME
  const ms = Number(value) * (format === 's' ? 1_000 : 1)
  return value !== '' && Math.abs(ms) <= DATE_MS_MAX ? new Date(ms).toISOString() : INVALID_TIME
}

/** Rejected by the strategy or the engine, with a reason. */
const INVALID_TIME = 'not a time'

/** The largest time value of a Date. */
const DATE_MS_MAX = 8.64e15

/** Formats a time for a parameter. Rounds down, never up. */
export function formatTime(instant: string, format: TimeFormat = 'iso'): string | number {
  if (format === 'iso') return instant
  const ms = Date.parse(instant)
  if (format === 'date') return new Date(ms).toISOString().slice(0, 10)
  return format === 'ms' ? ms : Math.floor(ms / 1_000)
}

/**
 * Formats an upper bound. In a coarse format it is the next unit, so that a bound includes the instant whether the source
 * reads it as inclusive or not.
 */
export function formatTimeAfter(instant: string, format: TimeFormat = 'iso'): string | number {
  const unitMs = TIME_UNITS_MS[format]
  return unitMs === 1
    ? formatTime(instant, format)
    : formatTime(new Date(Date.parse(instant) + unitMs).toISOString(), format)
}

/** The milliseconds of a duration such as `P30D`. */
export function requireStep(stream: string, step: string): number {
  const ms = parseDurationMs(step)
  if (ms === null || ms < 1_000)
    throw new SyncError(
      'SYNC_INVALID',
      `Stream "${stream}": \`step\` is ${JSON.stringify(step)}. Write a duration of at least a second, such as P30D or PT6H.`,
    )
  return ms
}
