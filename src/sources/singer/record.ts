import { createHash } from 'node:crypto'
import type { Change, JsonObject, JsonValue } from '../../contract/index.ts'
import { stringifyJson } from '../../values/json.ts'

export interface RecordMapping {
  /** The fields of the key; `hash` derives the key from the whole record. */
  readonly key: readonly string[] | 'hash'
  /** The replication key of the tap. */
  readonly cursor: string | undefined
  /** The field with the time of the last change. */
  readonly updatedAt: string | undefined
  readonly database: string | undefined
}

/** The field by which a tap marks a deleted record, with the time of deletion. */
const DELETED_AT_FIELD = '_sdc_deleted_at'

export function toChange(record: JsonObject, { key, cursor, updatedAt, database }: RecordMapping): Change {
  const changedAt = updatedAt === undefined ? undefined : record[updatedAt]
  const deletedAt = record[DELETED_AT_FIELD] ?? null
  const shared = {
    key: key === 'hash' ? hashRecord(record) : formatKey(record, key),
    ...(database !== undefined && { database }),
  }
  if (deletedAt !== null)
    return {
      type: 'delete',
      ...shared,
      ...(updatedAt !== undefined && typeof deletedAt === 'string' && { upstreamUpdatedAt: deletedAt }),
    }
  const cursorValue = cursor === undefined ? undefined : record[cursor]
  return {
    type: 'upsert',
    ...shared,
    record,
    ...(cursorValue !== undefined &&
      cursorValue !== null &&
      typeof cursorValue !== 'object' && { cursor: String(cursorValue) }),
    // An invalid time is rejected downstream, with the reason.
    ...(changedAt !== undefined && changedAt !== null && { upstreamUpdatedAt: changedAt as string }),
  }
}

/** A missing or invalid key becomes the empty string, which the engine quarantines. */
function formatKey(record: JsonObject, key: readonly string[]): string {
  const parts = key.map((name) => {
    const value = record[name]
    return value === null || value === undefined || typeof value === 'object' ? '' : String(value)
  })
  // Serialized as a list, so composite keys are unambiguous.
  const [first, ...rest] = parts
  if (first !== undefined && rest.length === 0) return first
  return parts.includes('') ? '' : JSON.stringify(parts)
}

function hashRecord(record: JsonObject): string {
  return createHash('sha256')
    .update(stringifyJson(sortFields(record)))
    .digest('hex')
    .slice(0, 32)
}

/** Sorts fields, so that equal records have equal text. */
function sortFields(value: JsonValue): JsonValue {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(sortFields)
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, field]) => [name, sortFields(field ?? null)]),
  )
}
