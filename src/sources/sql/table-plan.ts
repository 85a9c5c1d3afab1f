import { SyncError, type Change, type JsonObject, type TableShape } from '../../contract/index.ts'
import { required } from '../../values/required.ts'
import { serializedUpsert } from '../../values/serialized-upsert.ts'
import type { SqlColumn, SqlColumnKind, SqlRow, SqlTable } from './database.ts'
import { parseColumnInstant } from './column-instants.ts'
import type { TableOptions } from './source.ts'

/** How to read one table, from its current definition. */
export interface TablePlan {
  readonly table: SqlTable
  readonly key: readonly SqlColumn[]
  /** Whether a unique constraint covers the key. */
  readonly isKeyUnique: boolean
  readonly cursor: (SqlColumn & { readonly isUnique: boolean }) | null
  /** The order of pages by cursor: the cursor, then the key; the cursor alone if it is unique. */
  readonly order: readonly SqlColumn[]
}

export function buildPlan(table: SqlTable, options: TableOptions, cursorKind?: SqlColumnKind): TablePlan {
  const column = (name: string): SqlColumn => {
    const found = table.columns.find((entry) => entry.name === name)
    if (found === undefined)
      throw new SyncError('SOURCE_NOT_FOUND', `${table.id} has no column "${name}". Check the options of the table.`)
    return found
  }
  for (const name of options.columns ?? []) column(name)
  if (options.deleted !== undefined) column(options.deleted)
  const names = options.key ?? table.key
  if (names.length === 0)
    throw new SyncError(
      'SYNC_INVALID',
      `${table.id} has no primary key. Set \`key\` to the columns that identify a row.`,
    )
  const key = names.map(column)
  const nullable = table.isView ? undefined : key.find((entry) => entry.nullable)
  if (nullable !== undefined)
    throw new SyncError(
      'SYNC_INVALID',
      `${table.id}: "${nullable.name}" is nullable and cannot be part of the key. Set \`key\` to columns that are NOT NULL.`,
    )
  const isUnique = (columns: readonly string[]): boolean =>
    table.unique.some((set) => set.every((name) => columns.includes(name)))
  const cursorColumn = options.cursor === undefined ? null : column(options.cursor)
  const cursor =
    cursorColumn === null
      ? null
      : {
          ...cursorColumn,
          kind: cursorKind ?? cursorColumn.kind,
          isUnique: !cursorColumn.nullable && isUnique([cursorColumn.name]),
        }
  if (cursor !== null && cursor.kind !== 'instant' && cursor.kind !== 'integer') {
    throw new SyncError(
      'SYNC_INVALID',
      `${table.id}: "${cursor.name}" (${cursor.type}) cannot be a cursor, which must be a timestamp, a date or an integer. Use \`listing\` for a full refresh.`,
    )
  }
  const requiredNames = [...names, ...(cursor === null ? [] : [cursor.name])]
  const { columns } = options
  const omitted = columns === undefined ? undefined : requiredNames.find((name) => !columns.includes(name))
  if (omitted !== undefined)
    throw new SyncError(
      'SYNC_INVALID',
      `${table.id}: \`columns\` omits "${omitted}", which is part of the key or the cursor. Add it.`,
    )
  const order =
    cursor === null ? key : cursor.isUnique ? [cursor] : [cursor, ...key.filter(({ name }) => name !== cursor.name)]
  return { table, key, isKeyUnique: isUnique(names), cursor, order }
}

/** Legal only for plans of a sync that has a cursor. */
export function requireCursor({ cursor, table }: TablePlan): NonNullable<TablePlan['cursor']> {
  return required(cursor, `the cursor of ${table.id}`)
}

/** The types of the selected columns. */
export function buildTableShape({ table, key }: TablePlan, { columns }: TableOptions): TableShape {
  const read = table.columns.filter(({ name }) => columns?.includes(name) ?? true)
  return {
    columns: read.flatMap(({ name, columnType }) => (columnType === null ? [] : [{ name, type: columnType }])),
    key: key.map(({ name }) => name),
  }
}

/** The order values of a row, as strings for the state. */
export function readOrderValues(record: JsonObject, order: readonly SqlColumn[], table: SqlTable): string[] {
  return order.map(({ name }) => {
    const value = record[name]
    if (
      typeof value === 'string' ||
      typeof value === 'number' ||
      typeof value === 'bigint' ||
      typeof value === 'boolean'
    )
      return String(value)
    throw new SyncError(
      'SOURCE_INVALID',
      `${table.id}: a row has ${value === null ? 'null' : 'no scalar value'} in "${name}", which orders its pages.`,
    )
  })
}

/** Splits a key that `toChange` wrote; null if it does not have this many parts. */
export function parseKey(key: string, count: number): string[] | null {
  if (count === 1) return [key]
  try {
    const parts = JSON.parse(key) as unknown
    return Array.isArray(parts) && parts.length === count && parts.every((part) => typeof part === 'string')
      ? parts
      : null
  } catch {
    return null
  }
}

export function toChange(
  { record, serialized }: SqlRow,
  { table, key, cursor }: TablePlan,
  deleted: string | undefined,
): Change {
  const parts = readOrderValues(record, key, table)
  // Serialized as a list, so composite keys are unambiguous.
  const [first, ...others] = parts
  const keyText = first !== undefined && others.length === 0 ? first : JSON.stringify(parts)
  const value = cursor === null ? null : record[cursor.name]
  const cursorField = value === null || value === undefined ? {} : { cursor: String(value) }
  const instant =
    cursor?.kind === 'instant' && cursor.isUtc && typeof value === 'string' ? parseColumnInstant(value) : null
  const time = instant === null ? {} : { upstreamUpdatedAt: instant }
  const mark = deleted === undefined ? null : record[deleted]
  const isDeleted = mark !== null && mark !== undefined && mark !== false && mark !== 0
  if (isDeleted) return { type: 'delete', key: keyText, ...time }
  return serialized === undefined
    ? { type: 'upsert', key: keyText, record, ...cursorField, ...time }
    : serializedUpsert(keyText, serialized, { ...cursorField, ...time })
}
