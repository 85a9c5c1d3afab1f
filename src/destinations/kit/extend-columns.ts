import type { DestinationSchema, JsonValue } from '../../contract/index.ts'
import { findCommonFormat, needsFormat, type TableColumn } from '../../stores/kit/tables/column.ts'
import { addDeclaredColumns, type ColumnLimits } from '../../stores/kit/tables/grow-columns.ts'
import type { BatchFields } from './batch-fields.ts'

/** The limits of a destination on the columns of a table. */
export interface DestinationColumnLimits extends ColumnLimits {
  readonly decimals?: DecimalFormats
}

/** The formats of decimal columns, where the database has one scale per column and not per value. */
export interface DecimalFormats {
  /** The column has no format yet, or one that its first values decide. */
  isOpen(column: TableColumn): boolean
  /** Null if the values do not decide. `isExisting`: the table has the column, so its type stays. */
  choose(column: TableColumn, values: ReadonlyArray<JsonValue | undefined>, isExisting: boolean): string | null
}

/**
 * The columns of a table plus those of the schema that it lacks; the same array if there are none. A column keeps its name
 * and type: values that no longer fit go to `_extra`. `since` is the first sequence of rows that may have the new fields.
 */
export function extendColumns(
  columns: readonly TableColumn[],
  schema: DestinationSchema,
  fields: BatchFields,
  since: number,
  limits: DestinationColumnLimits,
): readonly TableColumn[] {
  const known = new Set(columns.map(({ member }) => member))
  const added = schema.columns.filter(({ member }) => !known.has(member))
  const isRare = (member: string): boolean => {
    const values = fields.valuesOf(member)
    return values.filter((value) => value !== undefined).length * 2 < values.length
  }
  const grown = addDeclaredColumns(
    columns,
    {
      database: schema.database,
      key: [],
      columns: added.map(({ member, type }) => ({
        name: member,
        type,
        from: 'source',
        // SQL null then means that most records lack the field, and not that it is null.
        isOptional: isRare(member),
      })),
    },
    since,
    limits,
  ).columns
  return withFormats(grown, columns, fields, limits)
}

/** Chooses formats by the first values of a column; the same array if nothing changes. `known` are those of the table. */
export function withFormats(
  columns: readonly TableColumn[],
  known: readonly TableColumn[],
  fields: BatchFields,
  { decimals }: DestinationColumnLimits,
): readonly TableColumn[] {
  const isOpen = (column: TableColumn): boolean =>
    (column.format === undefined && needsFormat(column.type)) || decimals?.isOpen(column) === true
  if (!columns.some(isOpen)) return columns
  const existing = new Set(known.map(({ name }) => name))
  let isChanged = false
  const formatted = columns.map((column) => {
    if (!isOpen(column)) return column
    const values = fields.valuesOf(column.member)
    const format = needsFormat(column.type)
      ? findCommonFormat(column.type, values.flatMap(textsOf))
      : (decimals?.choose(column, values, existing.has(column.name)) ?? null)
    if (format === null || format === column.format) return column
    isChanged = true
    return { ...column, format }
  })
  return isChanged ? formatted : columns
}

function textsOf(value: JsonValue | undefined): string[] {
  if (typeof value === 'string') return [value]
  return Array.isArray(value) ? value.flatMap(textsOf) : []
}
