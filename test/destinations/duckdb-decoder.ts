import type { JsonObject } from '../../src/contract/index.ts'
import { isDecimalType, parseDecimalFormat } from '../../src/destinations/duckdb/decimals.ts'
import { itemTypeOf, type ColumnType, type TableColumn } from '../../src/stores/kit/tables/column.ts'
import { RecordDecoder } from '../../src/stores/kit/tables/decode-record.ts'
import { parseJson } from '../../src/values/json.ts'

/** Rebuilds a record from a row of the table, as JSON values of DuckDB. */
export function decodeRecord(
  columns: readonly TableColumn[],
  sequence: number,
  row: Readonly<Record<string, unknown>>,
): JsonObject {
  const decoder = new RecordDecoder<unknown>(columns, (value, column) => toJsonText(value, column.type, column))
  const text = decoder.decode(sequence, row['_extra'] as string | null, (at) => {
    const name = columns[at]?.name ?? null
    return name === null ? null : row[name]
  })
  return parseJson(text) as JsonObject
}

function toJsonText(value: unknown, type: ColumnType, column: TableColumn): string {
  const item = itemTypeOf(type)
  if (item !== null)
    return `[${(value as unknown[]).map((one) => (one === null ? 'null' : toJsonText(one, item, column))).join(',')}]`
  const text = String(value)
  switch (type) {
    case 'bigint':
    case 'boolean':
    case 'json':
      return text
    case 'double':
      return JSON.stringify(value)
    case 'numeric':
      return trimZeros(text)
    case 'decimal':
      return JSON.stringify(spellDecimal(text, column))
    case 'timestamp':
      return JSON.stringify(spellTime(text.replace(/\+00$/, ''), column.format ?? '', 'T'))
    case 'datetime':
      return JSON.stringify(spellTime(text, column.format ?? '', column.format?.endsWith('_') === true ? ' ' : 'T'))
    case 'bytes':
      return JSON.stringify(toBase64(text))
    default:
      return JSON.stringify(text)
  }
}

function spellDecimal(text: string, column: TableColumn): string {
  if (!isDecimalType(column.type)) throw new Error(`${column.type} is not a decimal`)
  const { decimals } = parseDecimalFormat(column)
  const [whole = '', fraction = ''] = text.split('.')
  if (decimals === '*' || decimals === '?') return trimZeros(text)
  return decimals === 0 ? whole : `${whole}.${fraction.slice(0, decimals)}`
}

function trimZeros(text: string): string {
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text
}

/** `2026-01-31 12:00:00.5` in the format of a column: see `TableColumn.format`. */
function spellTime(text: string, format: string, separator: string): string {
  const [date = '', time = ''] = text.split(' ')
  const [seconds = '', fraction = ''] = time.split('.')
  const decimals = format.startsWith('*')
    ? fraction.replace(/0+$/, '')
    : fraction.padEnd(6, '0').slice(0, Number(format[0]))
  return `${date}${separator}${seconds}${decimals === '' ? '' : `.${decimals}`}${format.slice(1).replace('_', '')}`
}

/** DuckDB writes bytes that are not printable ASCII as \xNN. */
function toBase64(text: string): string {
  const bytes = text.replaceAll(/\\x([\dA-F]{2})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
  return Buffer.from(bytes, 'latin1').toString('base64')
}
