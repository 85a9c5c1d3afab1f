import type { JsonObject, JsonValue } from '../../contract/index.ts'
import { itemTypeOf, type ScalarType } from '../../stores/kit/tables/column.ts'
import type { ColumnValue, EncodableVersion, EncodedRecord } from '../../stores/kit/tables/encode-record.ts'
import { parseJson, stringifyJson } from '../../values/json.ts'
import { isDecimalType, type LakeColumn, type LakeField } from './columns.ts'
import { decimalsOf, toUnscaled } from './decimals.ts'

/** The physical value of a Parquet column; a list of them for a list. */
export type PhysicalValue = bigint | boolean | number | string | Uint8Array | null | readonly PhysicalValue[]

/**
 * Converts values of a column to their physical form; null if they are the same. The last text is kept: neighbouring times
 * are often equal.
 */
export function converterOf({ type }: Pick<LakeField, 'type'>): ((value: ColumnValue) => PhysicalValue) | null {
  if (SAME_TYPES.includes(type)) return null
  const item = itemTypeOf(type)
  const convert = CONVERTERS[item ?? (type as ScalarType)]
  if (item !== null)
    return (value) => (Array.isArray(value) ? value.map((one) => (one === null ? null : convert(one))) : null)
  if (!SLOW_TYPES.includes(type)) return (value) => (value === null ? null : convert(value as JsonValue))
  let [last, converted]: [ColumnValue, PhysicalValue] = [null, null]
  return (value) => {
    if (value === last) return converted
    ;[last, converted] = [value, value === null ? null : convert(value as JsonValue)]
    return converted
  }
}

const SAME_TYPES = ['boolean', 'double', 'json', 'text']
const SLOW_TYPES = ['timestamp', 'datetime', 'date', 'time']

const CONVERTERS: Record<ScalarType, (value: JsonValue) => PhysicalValue> = {
  bigint: (value) => (typeof value === 'number' || typeof value === 'bigint' ? BigInt(value) : null),
  boolean: (value) => value === true,
  bytes: (value) => Buffer.from(String(value), 'base64'),
  date: (value) => toNumber(Date.parse(`${String(value)}T00:00:00Z`), 1 / 86_400_000),
  datetime: (value) => microsOf(`${String(value).replace(' ', 'T')}Z`),
  decimal: (value) => (typeof value === 'bigint' ? value : null),
  double: Number,
  json: (value) => (typeof value === 'string' ? value : stringifyJson(value)),
  numeric: (value) => (typeof value === 'bigint' ? value : null),
  text: String,
  time: (value) => microsOf(`1970-01-01T${String(value)}Z`),
  // System columns have milliseconds.
  timestamp: (value) => (typeof value === 'number' ? BigInt(value) * 1_000n : microsOf(String(value))),
  uuid: (value) => Buffer.from(String(value).replaceAll('-', ''), 'hex'),
}

function toNumber(value: number, factor: number): number | null {
  return Number.isNaN(value) ? null : Math.floor(value * factor)
}

/** Microseconds since 1970; null for a text such as a leap second, which has no such number. */
function microsOf(text: string): bigint | null {
  const ms = Date.parse(text)
  if (Number.isNaN(ms)) return null
  const decimals = /\.\d{3}(\d{1,3})/.exec(text)?.[1]
  return BigInt(ms) * 1_000n + (decimals === undefined ? 0n : BigInt(decimals.padEnd(3, '0')))
}

/**
 * Replaces decimals by their unscaled integers. A value with another number of decimals, or with too many digits, is kept
 * in `_extra`, so that it is returned as it was written.
 */
export function fitDecimals(
  columns: readonly LakeColumn[],
  encoded: EncodedRecord,
  version: EncodableVersion,
): EncodedRecord {
  let over: JsonObject | null = null
  for (const [at, { type, member, scale = 0 }] of columns.entries()) {
    const value = encoded.values[at] ?? null
    if (value === null || !isDecimalType(type)) continue
    const items = (Array.isArray(value) ? value : [value]) as readonly JsonValue[]
    const unscaled = items.map((item) => (item === null ? null : toUnscaledValue(item, scale)))
    const isHeld = unscaled.every((one, index) => one !== null || items[index] === null)
    const isExact =
      isHeld &&
      (!type.startsWith('decimal') || items.every((item) => typeof item !== 'string' || decimalsOf(item) === scale))
    encoded.values[at] = !isHeld ? null : Array.isArray(value) ? unscaled : (unscaled[0] ?? null)
    if (!isExact) (over ??= Object.create(null) as JsonObject)[member] = version.record?.[member] ?? null
  }
  if (over === null) return encoded
  const extra = encoded.extra === null ? {} : (parseJson(encoded.extra) as { values?: JsonObject })
  return { ...encoded, extra: stringifyJson({ ...extra, values: { ...over, ...extra.values } } as JsonObject) }
}

function toUnscaledValue(value: JsonValue, scale: number): bigint | null {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint'
    ? toUnscaled(value, scale)
    : null
}
