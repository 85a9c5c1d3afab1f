import { SyncError, type Change, type JsonObject } from '../../contract/index.ts'
import { canonicalizeInstant } from '../../values/instant.ts'
import { required } from '../../values/required.ts'
import { isComparableType } from './literals.ts'
import type { ODataMetadata, ODataProperty, StructuredType } from './metadata.ts'
import { toRecord } from './record.ts'
import type { EntitySetOptions } from './source.ts'

/** How to read one entity set, from the service's current metadata. */
export interface EntitySetPlan {
  readonly set: string
  readonly metadata: ODataMetadata
  readonly type: StructuredType
  readonly key: readonly ODataProperty[]
  readonly cursor: ODataProperty | null
  /**
   * Whether responses contain every digit of the cursor. Version 2 truncates to milliseconds but compares and sorts by
   * all digits, so "the same timestamp and a greater key" cannot be expressed.
   */
  readonly hasExactCursor: boolean
  /** The selected properties; null for all. */
  readonly select: readonly string[] | null
  /** Applies to every query. */
  readonly filter: string | null
  /** The property that marks an entity as deleted. */
  readonly deletedProperty: string | null
}

export interface EntityRow {
  readonly record: JsonObject
  /** The parts of the key, in key order. */
  readonly keyParts: readonly string[]
  readonly key: string
  /** The cursor as an instant; the last instant of the day for a date, '' without a cursor. */
  readonly timestamp: string
}

const INSTANT_TYPES = ['Edm.DateTimeOffset', 'Edm.DateTime']

export function isCursorType(type: string): boolean {
  return INSTANT_TYPES.includes(type) || type === 'Edm.Date'
}

export function buildPlan(
  set: string,
  metadata: ODataMetadata,
  options: EntitySetOptions & { readonly cursor?: string; readonly exactCursor?: boolean },
): EntitySetPlan {
  const type = metadata.entitySets.get(set)
  if (type === undefined)
    throw new SyncError(
      'SOURCE_NOT_FOUND',
      `The service has no entity set "${set}". Check the name against \`$metadata\`.`,
    )
  const property = (name: string): ODataProperty => {
    const found = type.properties.get(name)
    if (found === undefined)
      throw new SyncError('SOURCE_NOT_FOUND', `${set} has no property "${name}". Check the name against \`$metadata\`.`)
    return found
  }
  const names = options.key ?? type.key
  if (names.length === 0)
    throw new SyncError(
      'SYNC_INVALID',
      `The service declares no key for ${set}. Set \`key\` to the properties that identify an entity.`,
    )
  const key = names.map(property)
  const incomparable = key.find((part) => !isComparableType(part.type))
  if (incomparable !== undefined)
    throw new SyncError(
      'SYNC_INVALID',
      `${set}: "${incomparable.name}" (${incomparable.type}) cannot be compared, so pages cannot be read by key. Set \`key\` to comparable properties.`,
    )
  const cursor = options.cursor === undefined ? null : property(options.cursor)
  if (cursor !== null && !isCursorType(cursor.type)) {
    throw new SyncError(
      'SYNC_INVALID',
      `${set}: "${cursor.name}" (${cursor.type}) cannot be a cursor, which must be a timestamp or a date. Use \`listing\` for a full refresh.`,
    )
  }
  const extra = [
    ...names,
    ...(cursor === null ? [] : [cursor.name]),
    ...(options.deleted === undefined ? [] : [property(options.deleted).name]),
  ]
  return {
    set,
    metadata,
    type,
    key,
    cursor,
    hasExactCursor: options.exactCursor ?? (metadata.version === 4 || (cursor?.precision ?? 7) <= 3),
    select:
      options.select === undefined
        ? null
        : [...new Set([...extra, ...options.select.map((name) => property(name).name)])],
    filter: options.filter ?? null,
    deletedProperty: options.deleted ?? null,
  }
}

export function toRow(entity: JsonObject, { set, metadata, type: entityType, key, cursor }: EntitySetPlan): EntityRow {
  const record = toRecord(entity, entityType, metadata)
  const parts = key.map(({ name, type }) => {
    const value = record[name]
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint')
      return normalizeKeyPart(String(value), type)
    throw new SyncError('SOURCE_INVALID', `An entity of ${set} has no string or number in its key property "${name}".`)
  })
  const value = cursor === null ? null : record[cursor.name]
  const timestamp = typeof value !== 'string' ? '' : cursor?.type === 'Edm.Date' ? endOfDay(value) : value
  return { record, keyParts: parts, key: formatKey(parts), timestamp }
}

/** GUIDs are case-insensitive. */
export function normalizeKeyPart(text: string, type: string): string {
  return type === 'Edm.Guid' ? text.toLowerCase() : text
}

/** Serializes several parts as a list, so composite keys are unambiguous. */
export function formatKey(parts: readonly string[]): string {
  const [first, ...rest] = parts
  return first !== undefined && rest.length === 0 ? first : JSON.stringify(parts)
}

export function requireCursor({ cursor, set }: EntitySetPlan): ODataProperty {
  return required(cursor, `the cursor of ${set}`)
}

export function parseKey(text: string, plan: EntitySetPlan): readonly string[] {
  return plan.key.length === 1 ? [text] : checkKeyParts(parseJsonOrNull(text), plan)
}

/** The parts come from a state, which may have been edited by hand. */
export function checkKeyParts(parts: unknown, { set, key }: EntitySetPlan): readonly string[] {
  if (Array.isArray(parts) && parts.length === key.length && parts.every((part) => typeof part === 'string'))
    return parts
  throw new SyncError('CURSOR_REJECTED', `The stored state does not match the key of ${set}.`)
}

/** Returns null if the text is not JSON. */
export function parseJsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

export function toChange({ record, key, timestamp }: EntityRow, { cursor, deletedProperty }: EntitySetPlan): Change {
  const value = cursor === null ? null : record[cursor.name]
  const cursorField = typeof value === 'string' ? { cursor: value } : {}
  // A date is too coarse to order two versions.
  const time =
    cursor !== null && INSTANT_TYPES.includes(cursor.type) && canonicalizeInstant(timestamp) !== null
      ? { upstreamUpdatedAt: timestamp }
      : {}
  const mark = deletedProperty === null ? null : record[deletedProperty]
  const isDeleted = mark !== null && mark !== undefined && mark !== false && mark !== '' && mark !== 0
  return isDeleted ? { type: 'delete', key, ...time } : { type: 'upsert', key, record, ...cursorField, ...time }
}

/** An entity may change until its day is over. */
function endOfDay(day: string): string {
  return `${day}T23:59:59.999999Z`
}
