import { SyncError, type Change, type JsonObject } from '../../contract/index.ts'
import { canonicalizeInstant } from '../../values/instant.ts'
import { isComparableType } from './literals.ts'
import type { ODataMetadata, ODataProperty, StructuredType } from './metadata.ts'
import { toRecord } from './record.ts'
import type { EntitySetOptions } from './source.ts'

/** How one entity set is read, as the service describes it now. */
export interface EntitySetPlan {
  readonly set: string
  readonly metadata: ODataMetadata
  readonly type: StructuredType
  readonly key: readonly ODataProperty[]
  readonly cursor: ODataProperty | null
  /**
   * Whether an answer shows all digits of the cursor. Version 2 cuts them after the milliseconds, but compares and sorts by
   * all of them: then nobody can ask for "the same moment and a greater key".
   */
  readonly hasExactCursor: boolean
  /** What is asked for; null for everything. */
  readonly select: readonly string[] | null
  /** Holds for all that is asked for. */
  readonly filter: string | null
  /** The property that says that an entity is gone. */
  readonly deletedProperty: string | null
}

/** An entity, and where it stands. */
export interface EntityRow {
  readonly record: JsonObject
  /** Of its key, in its order. */
  readonly keyParts: readonly string[]
  readonly key: string
  /** Of its cursor: an instant, for a day its last; '' without one. */
  readonly timestamp: string
}

const INSTANT_TYPES = ['Edm.DateTimeOffset', 'Edm.DateTime']

export function isCursorType(type: string): boolean {
  return INSTANT_TYPES.includes(type) || type === 'Edm.Date'
}

export function buildPlan(set: string, metadata: ODataMetadata, options: EntitySetOptions & { readonly cursor?: string; readonly exactCursor?: boolean }): EntitySetPlan {
  const type = metadata.entitySets.get(set)
  if (type === undefined) throw new SyncError('SOURCE_NOT_FOUND', `The service has no entity set "${set}".`)
  const property = (name: string): ODataProperty => {
    const found = type.properties.get(name)
    if (found === undefined) throw new SyncError('SOURCE_NOT_FOUND', `${set} has no property "${name}".`)
    return found
  }
  const names = options.key ?? type.key
  if (names.length === 0) throw new SyncError('SYNC_INVALID', `The service names no key of ${set}: say with \`key\` which properties tell its entities apart.`)
  const key = names.map(property)
  const unfit = key.find((part) => !isComparableType(part.type))
  if (unfit !== undefined) throw new SyncError('SYNC_INVALID', `${set}: "${unfit.name}" (${unfit.type}) cannot be compared, so its entities cannot be read page by page. Say with \`key\` what else tells them apart.`)
  const cursor = options.cursor === undefined ? null : property(options.cursor)
  if (cursor !== null && !isCursorType(cursor.type)) {
    throw new SyncError('SYNC_INVALID', `${set}: "${cursor.name}" (${cursor.type}) cannot order changes; a cursor is a moment or a day. Use \`listing\` for a full refresh.`)
  }
  const extra = [...names, ...(cursor === null ? [] : [cursor.name]), ...(options.deleted === undefined ? [] : [property(options.deleted).name])]
  return {
    set, metadata, type, key, cursor,
    hasExactCursor: options.exactCursor ?? (metadata.version === 4 || (cursor?.precision ?? 7) <= 3),
    select: options.select === undefined ? null : [...new Set([...extra, ...options.select.map((name) => property(name).name)])],
    filter: options.filter ?? null,
    deletedProperty: options.deleted ?? null,
  }
}

export function toRow(entity: JsonObject, { set, metadata, type: own, key, cursor }: EntitySetPlan): EntityRow {
  const record = toRecord(entity, own, metadata)
  const parts = key.map(({ name, type }) => {
    const value = record[name]
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint') return normalizeKeyPart(String(value), type)
    throw new SyncError('SOURCE_INVALID', `An entity of ${set} has no plain value in "${name}", which is part of its key.`)
  })
  const at = cursor === null ? null : record[cursor.name]
  const stamp = typeof at !== 'string' ? '' : cursor!.type === 'Edm.Date' ? endOfDay(at) : at
  return { record, keyParts: parts, key: formatKey(parts), timestamp: stamp }
}

/** A GUID is the same in capitals. */
export function normalizeKeyPart(text: string, type: string): string {
  return type === 'Edm.Guid' ? text.toLowerCase() : text
}

/** As a list, so that no two keys of several parts can ever read the same. */
export function formatKey(parts: readonly string[]): string {
  return parts.length === 1 ? parts[0]! : JSON.stringify(parts)
}

export function parseKey(text: string, plan: EntitySetPlan): readonly string[] {
  return plan.key.length === 1 ? [text] : checkKeyParts(parseJsonOrNull(text), plan)
}

/** Of a state, which may have been set by hand. */
export function checkKeyParts(parts: unknown, { set, key }: EntitySetPlan): readonly string[] {
  if (Array.isArray(parts) && parts.length === key.length && parts.every((part) => typeof part === 'string')) return parts
  throw new SyncError('CURSOR_REJECTED', `The stored position is not one of ${set}.`)
}

/** Null when it is no JSON. */
export function parseJsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

export function toChange({ record, key, timestamp: stamp }: EntityRow, { cursor, deletedProperty: deleted }: EntitySetPlan): Change {
  const at = cursor === null ? null : record[cursor.name]
  const position = typeof at === 'string' ? { cursor: at } : {}
  // A day is too coarse to say which of two facts is the newer.
  const time = cursor !== null && INSTANT_TYPES.includes(cursor.type) && canonicalizeInstant(stamp) !== null ? { upstreamUpdatedAt: stamp } : {}
  const mark = deleted === null ? null : record[deleted]
  const isDeleted = mark !== null && mark !== undefined && mark !== false && mark !== '' && mark !== 0
  return isDeleted ? { type: 'delete', key, ...time } : { type: 'upsert', key, record, ...position, ...time }
}

/** A row of a day may change until the day is over. */
function endOfDay(day: string): string {
  return `${day}T23:59:59.999999Z`
}
