import type { DuckDBValue } from '@duckdb/node-api'
import type { JsonValue } from '../../contract/index.ts'
import { itemTypeOf, type ColumnType, type ScalarType, type TableColumn } from '../../stores/kit/tables/column.ts'
import type { ColumnValue } from '../../stores/kit/tables/encode-record.ts'
import { canonicalizeInstant } from '../../values/instant.ts'
import { stringifyJson } from '../../values/json.ts'
import { required } from '../../values/required.ts'
import { parseDecimalFormat } from './decimals.ts'
import type { Duckdb } from './load-duckdb.ts'

/** Converts an encoded value, never null, to one of DuckDB. */
export type ValueConverter = (value: Exclude<ColumnValue, null>) => DuckDBValue

export function createConverter(duckdb: Duckdb, column: Pick<TableColumn, 'type' | 'format'>): ValueConverter {
  const item = itemTypeOf(column.type)
  if (item === null) return createScalarConverter(duckdb, column.type as ScalarType, column)
  const convert = createScalarConverter(duckdb, item, column)
  const toItem = (value: JsonValue): DuckDBValue => {
    if (value === null) return null
    return convert(item === 'json' ? stringifyJson(value) : (value as Exclude<ColumnValue, null>))
  }
  return (value) => duckdb.listValue((value as readonly JsonValue[]).map(toItem))
}

function createScalarConverter(
  duckdb: Duckdb,
  type: ScalarType,
  column: { readonly type: ColumnType; readonly format?: string },
): ValueConverter {
  switch (type) {
    case 'text':
    case 'json':
    case 'boolean':
    case 'double':
      return (value) => value as string | boolean | number
    case 'bigint':
      return (value) => BigInt(value as number | bigint)
    case 'timestamp':
      return rememberLast((value) => new duckdb.DuckDBTimestampTZValue(toMicros(value as string | number)))
    case 'datetime':
      return (value) => new duckdb.DuckDBTimestampValue(toMicros(`${(value as string).replace(' ', 'T')}Z`))
    case 'date':
      return (value) => new duckdb.DuckDBDateValue(Date.parse(`${value as string}T00:00:00Z`) / DAY_MS)
    case 'time':
      return (value) => new duckdb.DuckDBTimeValue(toMicros(`1970-01-01T${value as string}Z`))
    case 'uuid':
      return (value) => duckdb.DuckDBUUIDValue.fromUint128(BigInt(`0x${(value as string).replaceAll('-', '')}`))
    case 'bytes':
      return (value) => new duckdb.DuckDBBlobValue(Buffer.from(value as string, 'base64'))
    case 'decimal':
    case 'numeric': {
      const { scale } = parseDecimalFormat(column)
      return (value) => new duckdb.DuckDBDecimalValue(value as bigint, DECIMAL_WIDTH, scale)
    }
    default:
      return type satisfies never
  }
}

/** The rows of a commit have one time. */
function rememberLast(convert: ValueConverter): ValueConverter {
  let last: Exclude<ColumnValue, null> | null = null
  let converted: DuckDBValue = null
  return (value) => {
    if (value !== last) [last, converted] = [value, convert(value)]
    return converted
  }
}

const DAY_MS = 86_400_000
const DECIMAL_WIDTH = 38

/** Microseconds since 1970 of an instant, or of milliseconds. */
function toMicros(value: string | number): bigint {
  if (typeof value === 'number') return BigInt(value) * 1_000n
  // Up to three decimals, in UTC: the common form.
  if (value.length <= 24 && value.charCodeAt(value.length - 1) === ZULU) {
    const ms = Date.parse(value)
    if (!Number.isNaN(ms)) return ms < SAFE_MS && ms > -SAFE_MS ? BigInt(ms * 1_000) : BigInt(ms) * 1_000n
  }
  const canonical = required(canonicalizeInstant(value), 'A valid instant')
  return BigInt(Date.parse(`${canonical.slice(0, 23)}Z`)) * 1_000n + BigInt(canonical.slice(23, 26))
}

const ZULU = 90
const SAFE_MS = 9_000_000_000_000
