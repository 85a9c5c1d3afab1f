import type { JsonObject } from '../../../contract/index.ts'
import { parseJson, stringifyJson } from '../../../values/json.ts'
import type { TableColumn } from './column.ts'
import type { ColumnValue, EncodedRecord } from './encode-record.ts'

/** The size limits of a row in the database. */
export interface RowSizeLimits {
  readonly rowBytesMax: number
  /** The most bytes that a long value takes in a row; the rest is stored out of line. */
  readonly valueBytesMax: number
  /** The bytes of a value in the row; without it, those of PostgreSQL. */
  sizeOf?(value: Exclude<ColumnValue, null>, column: TableColumn): number
}

/** False if the values of every record fit. */
export function mayExceedRow(columns: readonly TableColumn[], { rowBytesMax, valueBytesMax }: RowSizeLimits): boolean {
  return columns.length * valueBytesMax > rowBytesMax
}

/** For a database whose rows must fit into a page: values of a wide table that do not fit go to `_extra`. */
export function fitRow(
  columns: readonly TableColumn[],
  encoded: EncodedRecord,
  record: JsonObject,
  limits: RowSizeLimits,
): EncodedRecord {
  const { rowBytesMax, valueBytesMax, sizeOf = (value) => defaultSizeOf(value, valueBytesMax) } = limits
  const { values } = encoded
  if (!mayExceedRow(columns, limits)) return encoded
  let bytes = values.length / 8
  const over: number[] = []
  for (const [at, column] of columns.entries()) {
    const value = values[at] ?? null
    if (value === null) continue
    bytes += sizeOf(value, column)
    if (bytes > rowBytesMax) over.push(at)
  }
  return moveToExtra(columns, encoded, record, over)
}

function defaultSizeOf(value: Exclude<ColumnValue, null>, valueBytesMax: number): number {
  if (typeof value === 'string') return Math.min(valueBytesMax, 4 + value.length * 3)
  if (typeof value === 'boolean') return 1
  return typeof value === 'object' ? valueBytesMax : 8
}

/** Moves the values at these indexes to `_extra`, and leaves null in their columns. */
export function moveToExtra(
  columns: readonly TableColumn[],
  encoded: EncodedRecord,
  record: JsonObject,
  indexes: readonly number[],
): EncodedRecord {
  if (indexes.length === 0) return encoded
  const { values } = encoded
  const moved = Object.create(null) as JsonObject
  for (const at of indexes) {
    const member = columns[at]?.member ?? ''
    moved[member] = record[member] ?? null
    values[at] = null
  }
  const extra = encoded.extra === null ? {} : (parseJson(encoded.extra) as { values?: JsonObject })
  return { ...encoded, extra: stringifyJson({ ...extra, values: { ...moved, ...extra.values } } as JsonObject) }
}
