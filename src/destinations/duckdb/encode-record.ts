import type { JsonObject, JsonValue } from '../../contract/index.ts'
import { itemTypeOf, type ColumnDialect, type TableColumn } from '../../stores/kit/tables/column.ts'
import {
  RecordEncoder,
  type ColumnValue,
  type EncodedRecord,
  type ExtraJson,
} from '../../stores/kit/tables/encode-record.ts'
import { parseJson, stringifyJson } from '../../values/json.ts'
import type { RecordVersion } from '../kit/sql-tables.ts'
import { isDecimalType, parseDecimalFormat, scaleDecimal, type DecimalFormat } from './decimals.ts'

const COLUMN_DIALECT: ColumnDialect = { preservesText: false, preservesJsonText: false, doubleMin: 0 }

/** Encodes records for these columns. Decimals that their column does not reproduce go to `_extra`. */
export function createEncoder(
  columns: readonly TableColumn[],
  members: readonly string[] = [],
): (version: RecordVersion) => EncodedRecord {
  const encoder = new RecordEncoder(columns, COLUMN_DIALECT, members)
  const decimals = columns.flatMap(({ name, type, format, member }, at) =>
    name !== null && isDecimalType(type)
      ? [
          {
            at,
            member,
            isList: itemTypeOf(type) !== null,
            format: parseDecimalFormat({ ...(format !== undefined && { format }) }),
          },
        ]
      : [],
  )
  if (decimals.length === 0) return (version) => encoder.encodeVersion(version)
  return (version) => {
    const encoded = encoder.encodeVersion(version)
    let over: JsonObject | null = null
    for (const { at, member, isList, format } of decimals) {
      const value = encoded.values[at] ?? null
      if (value === null) continue
      const { stored, isExact } = isList ? scaleItems(value as readonly JsonValue[], format) : scaleOne(value, format)
      encoded.values[at] = stored
      if (isExact) continue
      over ??= Object.create(null) as JsonObject
      over[member] = version.record?.[member] ?? null
    }
    return over === null ? encoded : { ...encoded, extra: addExtra(encoded.extra, over) }
  }
}

interface StoredDecimals {
  readonly stored: ColumnValue
  readonly isExact: boolean
}

function scaleOne(value: ColumnValue, format: DecimalFormat): StoredDecimals {
  const { unscaled, isExact } = scaleDecimal(value as string | number | bigint, format)
  return { stored: unscaled, isExact }
}

function scaleItems(items: readonly JsonValue[], format: DecimalFormat): StoredDecimals {
  const scaled = items.map((item) => (item === null ? null : scaleDecimal(item as string | number | bigint, format)))
  const isExact = scaled.every((item) => item === null || item.isExact)
  return { stored: isExact ? scaled.map((item) => item?.unscaled ?? null) : null, isExact }
}

function addExtra(extra: string | null, over: JsonObject): string {
  const before = extra === null ? {} : (parseJson(extra) as ExtraJson)
  return stringifyJson({ ...before, values: { ...over, ...before.values } } as JsonObject)
}
