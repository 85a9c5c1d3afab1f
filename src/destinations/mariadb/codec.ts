import type { ColumnDialect, TableColumn } from '../../stores/kit/tables/column.ts'
import { RecordEncoder, type ColumnValue, type EncodedRecord } from '../../stores/kit/tables/encode-record.ts'
import { fitRow, mayExceedRow, moveToExtra, type RowSizeLimits } from '../../stores/kit/tables/fit-row.ts'
import { plainDecimal } from '../../values/plain-decimal.ts'
import type { RecordVersion } from '../kit/sql-tables.ts'
import { fitsDecimal } from './values.ts'

const DIALECT: ColumnDialect = { preservesText: false, preservesJsonText: true, doubleMin: 0 }

/** Encodes records as values of these columns. */
export function createEncoder(
  columns: readonly TableColumn[],
  members: readonly string[] = [],
): (version: RecordVersion) => EncodedRecord {
  const encoder = new RecordEncoder(columns, DIALECT, members)
  const decimals = [...columns.entries()].filter(([, { type }]) => type === 'numeric' || type === 'decimal')
  const isWide = mayExceedRow(columns, ROW_SIZE_LIMITS)
  return (version) => {
    const encoded = encoder.encodeVersion(version)
    const misfits = decimals.filter(([at, column]) => !holdsDecimal(column, encoded.values[at] ?? null))
    if (misfits.length === 0 && !isWide) return encoded
    const record = version.record ?? {}
    const exact = moveToExtra(
      columns,
      encoded,
      record,
      misfits.map(([at]) => at),
    )
    return fitRow(columns, exact, record, ROW_SIZE_LIMITS)
  }
}

/** Whether the column returns this value: the server pads every value with zeros, which the scale of the column removes. */
function holdsDecimal({ type, format }: TableColumn, value: ColumnValue): boolean {
  if (value === null) return true
  const text = typeof value === 'number' ? plainDecimal(value) : String(value)
  return fitsDecimal(text) && (type === 'numeric' || String(text.split('.')[1]?.length ?? 0) === format)
}

/** A row must fit into half a page of 16 kB, with a key of up to 1,024 bytes. A text of less than 40 bytes stays in it. */
const ROW_SIZE_LIMITS: RowSizeLimits = {
  rowBytesMax: 6_500,
  valueBytesMax: 42,
  sizeOf: (value, { type }) => {
    switch (type) {
      case 'bigint':
      case 'double':
      case 'datetime':
      case 'timestamp':
      case 'time':
      case 'date':
        return 8
      case 'boolean':
        return 1
      case 'numeric':
      case 'decimal':
        return 30
      default:
        return typeof value === 'string' ? Math.min(42, 2 + value.length * 3) : 42
    }
  },
}
