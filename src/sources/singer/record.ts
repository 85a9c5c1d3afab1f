import { createHash } from 'node:crypto'
import type { Change, JsonObject, JsonValue } from '../../contract/index.ts'
import { stringifyJson } from '../../values/json.ts'

export interface RecordMapping {
  /** The members that make the key together; `hash` makes it of the whole record. */
  readonly key: readonly string[] | 'hash'
  /** The member that the tap goes on from. */
  readonly cursor: string | undefined
  /** The member that says when the record was last changed. */
  readonly updatedAt: string | undefined
  readonly database: string | undefined
}

/** By this member a tap says that a record is gone, and since when. */
const DELETED_AT_FIELD = '_sdc_deleted_at'

export function toChange(record: JsonObject, { key, cursor, updatedAt, database }: RecordMapping): Change {
  const at = updatedAt === undefined ? undefined : record[updatedAt]
  const deletedAt = record[DELETED_AT_FIELD] ?? null
  const shared = { key: key === 'hash' ? hashRecord(record) : formatKey(record, key), ...(database !== undefined && { database }) }
  if (deletedAt !== null) return { type: 'delete', ...shared, ...(updatedAt !== undefined && typeof deletedAt === 'string' && { upstreamUpdatedAt: deletedAt }) }
  const place = cursor === undefined ? undefined : record[cursor]
  return {
    type: 'upsert', ...shared, record,
    ...(place !== undefined && place !== null && typeof place !== 'object' && { cursor: String(place) }),
    // What is no time is refused by whoever gets it, with the reason.
    ...(at !== undefined && at !== null && { upstreamUpdatedAt: at as string }),
  }
}

/** What cannot be a key becomes the empty one, which the engine quarantines. */
function formatKey(record: JsonObject, key: readonly string[]): string {
  const parts = key.map((name) => {
    const value = record[name]
    return value === null || value === undefined || typeof value === 'object' ? '' : String(value)
  })
  // As a list, so that no two keys of several parts can ever read the same.
  return parts.length === 1 ? parts[0]! : parts.includes('') ? '' : JSON.stringify(parts)
}

function hashRecord(record: JsonObject): string {
  return createHash('sha256').update(stringifyJson(sortMembers(record))).digest('hex').slice(0, 32)
}

/** Members in one order, so that the same record is the same text. */
function sortMembers(value: JsonValue): JsonValue {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(sortMembers)
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([name, member]) => [name, sortMembers(member ?? null)]))
}
