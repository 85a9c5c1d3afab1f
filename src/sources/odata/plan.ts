import { SyncError, type Change, type JsonObject } from '../../contract/index.ts'
import { canonicalInstant } from '../../values/instant.ts'
import { isComparable } from './literals.ts'
import type { Metadata, Property, StructuredType } from './metadata.ts'
import { recordOf } from './record.ts'
import type { SetOptions } from './source.ts'

/** How one entity set is read, as the service describes it now. */
export interface SetPlan {
  readonly set: string
  readonly metadata: Metadata
  readonly type: StructuredType
  readonly key: readonly Property[]
  readonly cursor: Property | null
  /**
   * Whether an answer shows all digits of the cursor. Version 2 cuts them after the milliseconds, but compares and sorts by
   * all of them: then nobody can ask for "the same moment and a greater key".
   */
  readonly isExact: boolean
  /** What is asked for; null for everything. */
  readonly select: readonly string[] | null
  /** Holds for all that is asked for. */
  readonly filter: string | null
  /** The property that says that an entity is gone. */
  readonly deleted: string | null
}

/** An entity, and where it stands. */
export interface Row {
  readonly record: JsonObject
  /** Of its key, in its order. */
  readonly parts: readonly string[]
  readonly key: string
  /** Of its cursor: an instant, for a day its last; '' without one. */
  readonly stamp: string
}

const INSTANTS = ['Edm.DateTimeOffset', 'Edm.DateTime']

export function isCursorType(type: string): boolean {
  return INSTANTS.includes(type) || type === 'Edm.Date'
}

export function planOf(set: string, metadata: Metadata, options: SetOptions & { readonly cursor?: string; readonly exactCursor?: boolean }): SetPlan {
  const type = metadata.sets.get(set)
  if (type === undefined) throw new SyncError('SOURCE_NOT_FOUND', `The service has no entity set "${set}".`)
  const property = (name: string): Property => {
    const found = type.properties.get(name)
    if (found === undefined) throw new SyncError('SOURCE_NOT_FOUND', `${set} has no property "${name}".`)
    return found
  }
  const names = options.key ?? type.key
  if (names.length === 0) throw new SyncError('SYNC_INVALID', `The service names no key of ${set}: say with \`key\` which properties tell its entities apart.`)
  const key = names.map(property)
  const unfit = key.find((part) => !isComparable(part.type))
  if (unfit !== undefined) throw new SyncError('SYNC_INVALID', `${set}: "${unfit.name}" (${unfit.type}) cannot be compared, so its entities cannot be read page by page. Say with \`key\` what else tells them apart.`)
  const cursor = options.cursor === undefined ? null : property(options.cursor)
  if (cursor !== null && !isCursorType(cursor.type)) {
    throw new SyncError('SYNC_INVALID', `${set}: "${cursor.name}" (${cursor.type}) cannot order changes; a cursor is a moment or a day. Use \`listing\` for a full refresh.`)
  }
  const extra = [...names, ...(cursor === null ? [] : [cursor.name]), ...(options.deleted === undefined ? [] : [property(options.deleted).name])]
  return {
    set, metadata, type, key, cursor,
    isExact: options.exactCursor ?? (metadata.version === 4 || (cursor?.precision ?? 7) <= 3),
    select: options.select === undefined ? null : [...new Set([...extra, ...options.select.map((name) => property(name).name)])],
    filter: options.filter ?? null,
    deleted: options.deleted ?? null,
  }
}

export function rowOf(entity: JsonObject, { set, metadata, type: own, key, cursor }: SetPlan): Row {
  const record = recordOf(entity, own, metadata)
  const parts = key.map(({ name, type }) => {
    const value = record[name]
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint') return keyPart(String(value), type)
    throw new SyncError('SOURCE_INVALID', `An entity of ${set} has no plain value in "${name}", which is part of its key.`)
  })
  const at = cursor === null ? null : record[cursor.name]
  const stamp = typeof at !== 'string' ? '' : cursor!.type === 'Edm.Date' ? lastOf(at) : at
  return { record, parts, key: keyText(parts), stamp }
}

/** A GUID is the same in capitals. */
export function keyPart(text: string, type: string): string {
  return type === 'Edm.Guid' ? text.toLowerCase() : text
}

/** As a list, so that no two keys of several parts can ever read the same. */
export function keyText(parts: readonly string[]): string {
  return parts.length === 1 ? parts[0]! : JSON.stringify(parts)
}

export function keyParts(text: string, plan: SetPlan): readonly string[] {
  return plan.key.length === 1 ? [text] : checkParts(parsed(text), plan)
}

/** Of a state, which may have been set by hand. */
export function checkParts(parts: unknown, { set, key }: SetPlan): readonly string[] {
  if (Array.isArray(parts) && parts.length === key.length && parts.every((part) => typeof part === 'string')) return parts
  throw new SyncError('CURSOR_REJECTED', `The stored position is not one of ${set}.`)
}

/** Null when it is no JSON. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

export function changeOf({ record, key, stamp }: Row, { cursor, deleted }: SetPlan): Change {
  const at = cursor === null ? null : record[cursor.name]
  const position = typeof at === 'string' ? { cursor: at } : {}
  // A day is too coarse to say which of two facts is the newer.
  const time = cursor !== null && INSTANTS.includes(cursor.type) && canonicalInstant(stamp) !== null ? { upstreamUpdatedAt: stamp } : {}
  const mark = deleted === null ? null : record[deleted]
  const isDeleted = mark !== null && mark !== undefined && mark !== false && mark !== '' && mark !== 0
  return isDeleted ? { type: 'delete', key, ...time } : { type: 'upsert', key, record, ...position, ...time }
}

/** A row of a day may change until the day is over. */
function lastOf(day: string): string {
  return `${day}T23:59:59.999999Z`
}
