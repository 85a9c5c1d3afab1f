import type { JsonObject } from '../../../contract/index.ts'
import { parseJson, stringifyJson } from '../../../values/json.ts'
import type { TableColumn } from './column.ts'
import type { EncodedRecord } from './encode-record.ts'

/** The size limits of a row in the database. */
export interface RowSizeLimits {
  readonly rowBytesMax: number
  /** The most bytes that a long value takes in a row; the rest is stored out of line. */
  readonly valueBytesMax: number
}

/** For a database whose rows must fit into a page: values of a wide table that do not fit go to `_extra`. */
export function fitRow(
  columns: readonly TableColumn[],
  encoded: EncodedRecord,
  record: JsonObject,
  { rowBytesMax, valueBytesMax }: RowSizeLimits,
): EncodedRecord {
  const { values } = encoded
  if (values.length * valueBytesMax <= rowBytesMax) return encoded
  let bytes = values.length / 8
  let over: JsonObject | null = null
  for (const [at, { member }] of columns.entries()) {
    const value = values[at] ?? null
    if (value === null) continue
    bytes +=
      typeof value === 'string'
        ? Math.min(valueBytesMax, 4 + value.length * 3)
        : typeof value === 'boolean'
          ? 1
          : typeof value === 'object'
            ? valueBytesMax
            : 8
    if (bytes <= rowBytesMax) continue
    over ??= Object.create(null) as JsonObject
    over[member] = record[member] ?? null
    values[at] = null
  }
  if (over === null) return encoded
  const extra = encoded.extra === null ? {} : (parseJson(encoded.extra) as { values?: JsonObject })
  return { ...encoded, extra: stringifyJson({ ...extra, values: { ...over, ...extra.values } } as JsonObject) }
}
