import type { CommitShape, JsonObject, JsonValue, SchemaMode } from '../../../contract/index.ts'
import { nameColumn } from '../column-names.ts'
import { findCommonFormat, needsFormat, typeOfValues, type TableColumn } from './column.ts'

/** The limits of a database on the columns of a table. */
export interface ColumnLimits {
  /** Names that fields may not use: the table's own columns, and columns added by others. */
  readonly reserved: readonly string[]
  readonly nameBytesMax: number
  /** Replaces characters that the database refuses in a name. */
  sanitizeName?(member: string): string
  /** How many fields may have a column. */
  readonly columnsMax: number
}

/**
 * Returns the columns plus those that these records need; the same array when there are none. `since` is the first
 * sequence the records get.
 */
export function growColumns(
  columns: readonly TableColumn[],
  records: readonly JsonObject[],
  since: number,
  limits: ColumnLimits,
): readonly TableColumn[] {
  const known = new Map(columns.flatMap(({ member, former }, at) => (former === true ? [] : [[member, at]])))
  const met = new Map<string, Array<Exclude<JsonValue, null>>>()
  const counts = new Map<string, number>()
  for (const record of records) {
    for (const name of Object.keys(record)) {
      const value = record[name]
      if (value === undefined || isSettled(columns[known.get(name) ?? -1])) continue
      counts.set(name, (counts.get(name) ?? 0) + 1)
      let values = met.get(name)
      if (values === undefined) met.set(name, (values = []))
      if (value !== null) values.push(value)
    }
  }
  const grown = [...columns]
  const names = new ColumnNameAllocator(columns, limits)
  let changed = false
  for (const [member, values] of met) {
    const at = known.get(member)
    const before = at === undefined ? null : (grown[at] ?? null)
    const name = before?.name ?? (values.length > 0 ? names.allocate(member) : null)
    const type = before?.from === undefined ? (values.length === 0 ? 'text' : typeOfValues(values)) : before.type
    const format = before?.format ?? (needsFormat(type) ? findCommonFormat(type, textsOf(values)) : null)
    // Without a name there is no column to add, only the note that its null means null.
    if (name === null && (before !== null || values.length > 0)) continue
    if (before !== null && name === before.name && format === (before.format ?? null)) continue
    const column: TableColumn = {
      ...before,
      member,
      name,
      type,
      none: before?.none ?? ((counts.get(member) ?? 0) * 2 >= records.length ? 'null' : 'absent'),
      since: before?.since ?? since,
      ...(format !== null && { format }),
    }
    if (at === undefined) grown.push(column)
    else grown[at] = column
    changed = true
  }
  return changed ? grown : columns
}

/** True when records can no longer change a column. */
function isSettled(column: TableColumn | undefined): boolean {
  if (column === undefined) return false
  return column.held === true || (column.name !== null && (column.format !== undefined || !needsFormat(column.type)))
}

function textsOf(values: readonly JsonValue[]): string[] {
  return values.flatMap((value) => (Array.isArray(value) ? textsOf(value) : typeof value === 'string' ? [value] : []))
}

/** True when declared columns are added: a frozen table keeps its own. */
export function acceptsShape(columns: readonly TableColumn[], mode: SchemaMode = 'evolve'): boolean {
  return mode === 'evolve' || columns.every(({ name }) => name === null)
}

/** Sets a format on every column that needs one: in a frozen table no later record decides. */
export function withFormats(columns: readonly TableColumn[], records: readonly JsonObject[]): TableColumn[] {
  return columns.map((column) => {
    if (column.format !== undefined || !needsFormat(column.type)) return column
    const values = records.flatMap((record) =>
      Object.hasOwn(record, column.member) ? [record[column.member] ?? null] : [],
    )
    return {
      ...column,
      format: findCommonFormat(column.type, textsOf(values)) ?? (column.type.startsWith('datetime') ? '3' : '3Z'),
    }
  })
}

/**
 * Returns the columns plus those that a shape declares; the same array when it adds nothing. An existing column keeps
 * its type: the declared one is noted as `wanted` and reported in `drift`.
 */
export function addDeclaredColumns(
  columns: readonly TableColumn[],
  shape: CommitShape,
  since: number,
  limits: ColumnLimits,
): { readonly columns: readonly TableColumn[]; readonly drift: readonly string[] } {
  const known = new Map(columns.flatMap(({ member, former }, at) => (former === true ? [] : [[member, at]])))
  const grown = [...columns]
  const names = new ColumnNameAllocator(columns, limits)
  const drift: string[] = []
  let changed = false
  for (const { name: member, type, from, isOptional = false, isEmptyText = false } of shape.columns) {
    const at = known.get(member)
    const before = at === undefined ? null : (grown[at] ?? null)
    // A schema change dropped its column.
    if (before?.held === true) continue
    const column: TableColumn =
      before !== null && before.name !== null
        ? withWantedType(before, type)
        : {
            none: isOptional ? 'absent' : isEmptyText ? 'empty' : 'null',
            since,
            ...before,
            member,
            name: names.allocate(member),
            type,
            from,
          }
    if (before !== null && isSameColumn(before, column)) continue
    if (column.wanted !== undefined) {
      drift.push(`${shape.database}.${member} is declared as ${type}, but its column is ${column.type}`)
    }
    if (at === undefined) known.set(member, grown.push(column) - 1)
    else grown[at] = column
    changed = true
  }
  return { columns: changed ? grown : columns, drift }
}

function withWantedType(before: TableColumn, type: TableColumn['type']): TableColumn {
  const { wanted: _wanted, ...column } = before
  return column.type === type ? column : { ...column, wanted: type }
}

function isSameColumn(a: TableColumn, b: TableColumn): boolean {
  return a.name === b.name && a.type === b.type && a.from === b.from && a.wanted === b.wanted
}

/** Allocates column names, as long as the table has room. */
class ColumnNameAllocator {
  readonly #taken: Set<string>
  readonly #limits: ColumnLimits
  #count: number

  constructor(columns: readonly TableColumn[], limits: ColumnLimits) {
    this.#taken = new Set(
      [...limits.reserved, ...columns.flatMap(({ name }) => name ?? [])].map((name) => name.toLowerCase()),
    )
    this.#limits = limits
    this.#count = columns.filter(({ name }) => name !== null).length
  }

  /** Returns null when no column can be named for the field. */
  allocate(member: string): string | null {
    const { columnsMax, nameBytesMax, sanitizeName = (name) => name } = this.#limits
    const name = this.#count < columnsMax ? nameColumn(sanitizeName(member), this.#taken, nameBytesMax) : null
    if (name === null) return null
    this.#taken.add(name.toLowerCase())
    this.#count++
    return name
  }
}
