import type { JsonValue, SchemaColumn, ExtraMember } from '../../../contract/index.ts'
import { parseJson } from '../../../values/json.ts'
import { commonType, typeOfValue, type ColumnType, type TableColumn } from './column.ts'
import { isMisfit, type ExtraJson } from './encode-record.ts'

/** Rows with an `_extra` that are scanned; for a larger table the counts are too low. */
export const EXTRA_ROWS_MAX = 10_000

/** Counts the values in these `_extra` texts, by field. */
export function countExtraMembers(columns: readonly TableColumn[], texts: Iterable<string>): ExtraMember[] {
  const columnOf = new Map(columns.filter(({ former }) => former !== true).map((column) => [column.member, column]))
  const found = new Map<string, { rows: number; misfits: number; types: Map<ColumnType, number> }>()
  for (const text of texts) {
    const { values = {} } = parseJson(text) as ExtraJson
    for (const member of Object.keys(values)) {
      const value = values[member] as JsonValue
      if (value === null) continue
      let own = found.get(member)
      if (own === undefined) found.set(member, (own = { rows: 0, misfits: 0, types: new Map() }))
      const type = typeOfValue(value)
      const column = columnOf.get(member)
      own.rows++
      own.types.set(type, (own.types.get(type) ?? 0) + 1)
      if (column?.name == null || (column.type !== type && isMisfit(column, value))) own.misfits++
    }
  }
  return [...found].map(([member, { rows, misfits, types }]) => ({
    member,
    rows,
    misfits,
    types: Object.fromEntries(types),
    proposal: misfits === 0 ? null : proposeType(columnOf.get(member), new Set(types.keys())),
  }))
}

/** The type that holds both the column's values and the waiting ones; null when it is the column's own. */
function proposeType(column: TableColumn | undefined, types: Set<ColumnType>): string | null {
  if (column === undefined || column.name === null)
    return types.has('json') && types.size > 1 ? 'json' : commonType(types)
  const all = new Set([...types, column.type])
  const type = all.has('json') ? 'json' : commonType(all)
  return type === column.type ? null : type
}

/** Describes the columns of a table with their SQL types and dependent objects. */
export function describeColumns(
  columns: readonly TableColumn[],
  sqlTypeOf: (type: ColumnType) => string,
  dependentsOf: (column: string) => SchemaColumn['dependents'],
): SchemaColumn[] {
  return columns
    .filter(({ former }) => former !== true)
    .map(({ member, name, type, from, held, wanted }) => ({
      member,
      column: name,
      type,
      sqlType: name === null ? null : sqlTypeOf(type),
      origin: from ?? 'values',
      wanted: wanted ?? null,
      isHeld: held === true,
      dependents:
        name === null
          ? []
          : dependentsOf(columns.find((other) => other.former === true && other.member === member)?.name ?? name),
    }))
}
