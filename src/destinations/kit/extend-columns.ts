import type { DestinationChange, DestinationSchema } from '../../contract/index.ts'
import { findCommonFormat, needsFormat, type TableColumn } from '../../stores/kit/tables/column.ts'
import { addDeclaredColumns, type ColumnLimits } from '../../stores/kit/tables/grow-columns.ts'

/**
 * The columns of a table plus those of the schema that it lacks; the same array if there are none. A column keeps its name
 * and type: values that no longer fit go to `_extra`. `since` is the first sequence of rows that may have the new fields.
 */
export function extendColumns(
  columns: readonly TableColumn[],
  schema: DestinationSchema,
  changes: readonly DestinationChange[],
  since: number,
  limits: ColumnLimits,
): readonly TableColumn[] {
  const known = new Set(columns.map(({ member }) => member))
  const added = schema.columns.filter(({ member }) => !known.has(member))
  const records = changes.map(({ record }) => record).filter((record) => record !== null)
  const countOf = (member: string): number => records.filter((record) => Object.hasOwn(record, member)).length
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
        isOptional: records.length > 0 && countOf(member) * 2 < records.length,
      })),
    },
    since,
    limits,
  ).columns
  if (!grown.some((column) => column.format === undefined && needsFormat(column.type))) return grown
  return grown.map((column) => {
    if (column.format !== undefined || !needsFormat(column.type)) return column
    const texts = records.flatMap((record) => textsOf(record[column.member]))
    const format = findCommonFormat(column.type, texts)
    return format === null ? column : { ...column, format }
  })
}

function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return Array.isArray(value) ? value.flatMap(textsOf) : []
}
