import { SyncError, type Change, type JsonObject, type TableShape } from '../../contract/index.ts'
import { SerializedUpsert } from '../../values/serialized-upsert.ts'
import type { SqlColumn, SqlColumnKind, SqlRow, SqlTable } from './database.ts'
import { parseColumnInstant } from './column-instants.ts'
import type { TableOptions } from './source.ts'

/** How one table is read, as it stands now. */
export interface TablePlan {
  readonly table: SqlTable
  readonly key: readonly SqlColumn[]
  /** Whether the database keeps two rows from having one key. */
  readonly isKeyUnique: boolean
  readonly cursor: (SqlColumn & { readonly isUnique: boolean }) | null
  /** For a page by the cursor: the cursor, then the key; the cursor alone where no two rows share it. */
  readonly order: readonly SqlColumn[]
}

export function buildPlan(table: SqlTable, options: TableOptions, cursorKind?: SqlColumnKind): TablePlan {
  const column = (name: string): SqlColumn => {
    const found = table.columns.find((entry) => entry.name === name)
    if (found === undefined) throw new SyncError('SOURCE_NOT_FOUND', `${table.id} has no column "${name}".`)
    return found
  }
  for (const name of options.columns ?? []) column(name)
  if (options.deleted !== undefined) column(options.deleted)
  const names = options.key ?? table.key
  if (names.length === 0) throw new SyncError('SYNC_INVALID', `${table.id} has no primary key: say with \`key\` which columns tell its rows apart.`)
  const key = names.map(column)
  const nullable = table.isView ? undefined : key.find((entry) => entry.nullable)
  if (nullable !== undefined) throw new SyncError('SYNC_INVALID', `${table.id}: "${nullable.name}" may be null, and what is null is no key.`)
  const isUnique = (columns: readonly string[]): boolean => table.unique.some((set) => set.every((name) => columns.includes(name)))
  const own = options.cursor === undefined ? null : column(options.cursor)
  const cursor = own === null ? null : { ...own, kind: cursorKind ?? own.kind, isUnique: !own.nullable && isUnique([own.name]) }
  if (cursor !== null && cursor.kind !== 'instant' && cursor.kind !== 'integer') {
    throw new SyncError('SYNC_INVALID', `${table.id}: "${cursor.name}" (${cursor.type}) cannot order changes; a cursor is a timestamp, a date or an integer. Use \`listing\` for a full refresh.`)
  }
  const needed = [...names, ...(cursor === null ? [] : [cursor.name])]
  const left = options.columns === undefined ? undefined : needed.find((name) => !options.columns!.includes(name))
  if (left !== undefined) throw new SyncError('SYNC_INVALID', `${table.id}: \`columns\` leaves out "${left}", which is part of the key or the cursor.`)
  const order = cursor === null ? key : cursor.isUnique ? [cursor] : [cursor, ...key.filter(({ name }) => name !== cursor.name)]
  return { table, key, isKeyUnique: isUnique(names), cursor, order }
}

/** The types of the columns that are read. */
export function buildTableShape({ table, key }: TablePlan, { columns }: TableOptions): TableShape {
  const read = table.columns.filter(({ name }) => columns?.includes(name) ?? true)
  return {
    columns: read.flatMap(({ name, columnType }) => (columnType === null ? [] : [{ name, type: columnType }])),
    key: key.map(({ name }) => name),
  }
}

/** The place of a row in an order, as texts that a state can hold. */
export function readOrderValues(record: JsonObject, order: readonly SqlColumn[], table: SqlTable): string[] {
  return order.map(({ name }) => {
    const value = record[name]
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean') return String(value)
    throw new SyncError('SOURCE_INVALID', `${table.id}: a row has ${value === null ? 'null' : 'no plain value'} in "${name}", which orders its pages.`)
  })
}

/** The parts of a key as `changeOf` wrote it; null when it is none of so many parts. */
export function parseKey(key: string, count: number): string[] | null {
  if (count === 1) return [key]
  try {
    const parts = JSON.parse(key) as unknown
    return Array.isArray(parts) && parts.length === count && parts.every((part) => typeof part === 'string') ? parts : null
  } catch {
    return null
  }
}

export function toChange({ record, serialized: written }: SqlRow, { table, key, cursor }: TablePlan, deleted: string | undefined): Change {
  const parts = readOrderValues(record, key, table)
  // As a list, so that no two keys of several parts can ever read the same.
  const text = parts.length === 1 ? parts[0]! : JSON.stringify(parts)
  const at = cursor === null ? null : record[cursor.name]
  const position = at === null || at === undefined ? {} : { cursor: String(at) }
  const instant = cursor?.kind === 'instant' && cursor.isUtc && typeof at === 'string' ? parseColumnInstant(at) : null
  const stamp = instant === null ? {} : { upstreamUpdatedAt: instant }
  const mark = deleted === undefined ? null : record[deleted]
  const isDeleted = mark !== null && mark !== undefined && mark !== false && mark !== 0
  if (isDeleted) return { type: 'delete', key: text, ...stamp }
  return written === undefined ? { type: 'upsert', key: text, record, ...position, ...stamp } : Object.assign(new SerializedUpsert(text, written), position, stamp)
}
