import type { JsonObject, JsonValue } from '../../../contract/index.ts'
import { nameColumn } from '../columns.ts'
import { commonFormat, typeOfValues, type TableColumn } from './column.ts'

export interface ColumnLimits {
  /** Names that members may not have: the table's own columns, and those somebody else added. */
  readonly reserved: readonly string[]
  readonly nameBytesMax: number
  /** How many members may have a column. */
  readonly columnsMax: number
}

/**
 * The columns with those that these records need and the table does not have yet; the same array when there are none.
 * `since` is the first sequence the records get.
 */
export function growColumns(
  columns: readonly TableColumn[], records: readonly JsonObject[], since: number, limits: ColumnLimits,
): readonly TableColumn[] {
  const known = new Map(columns.flatMap(({ member, former }, at) => (former === true ? [] : [[member, at]])))
  const met = new Map<string, Array<Exclude<JsonValue, null>>>()
  const counts = new Map<string, number>()
  for (const record of records) {
    for (const name of Object.keys(record)) {
      const value = record[name]
      const column = columns[known.get(name) ?? -1]
      if (value === undefined || column?.name != null || column?.held === true) continue
      counts.set(name, (counts.get(name) ?? 0) + 1)
      let values = met.get(name)
      if (values === undefined) met.set(name, (values = []))
      if (value !== null) values.push(value)
    }
  }
  const grown = [...columns]
  const taken = new Set([...limits.reserved, ...columns.flatMap(({ name }) => name ?? [])].map((name) => name.toLowerCase()))
  let named = columns.filter(({ name }) => name !== null).length
  let changed = false
  for (const [member, values] of met) {
    const at = known.get(member)
    const before = at === undefined ? null : grown[at]!
    const name = values.length > 0 && named < limits.columnsMax ? nameColumn(member, taken, limits.nameBytesMax) : null
    // Without a name there is nothing to add, but the note that its null means null.
    if (name === null && (before !== null || values.length > 0)) continue
    if (name !== null) {
      taken.add(name.toLowerCase())
      named++
    }
    const type = values.length === 0 ? 'text' : typeOfValues(values)
    const column: TableColumn = {
      member, name, type,
      none: before?.none ?? (counts.get(member)! * 2 >= records.length ? 'null' : 'absent'), since: before?.since ?? since,
      ...(type === 'timestamp' && { format: commonFormat(values as string[]) }),
    }
    if (at === undefined) grown.push(column)
    else grown[at] = column
    changed = true
  }
  return changed ? grown : columns
}
