import type { ColumnType, JsonValue, ScalarType } from '../contract/index.ts'
import { canonicalizeInstant, msToInstant } from '../values/instant.ts'
import { parseJson, stringifyJson } from '../values/json.ts'
import { plainDecimal } from '../values/plain-decimal.ts'

/**
 * The value as a column of the type holds it. A value that cannot be converted without loss is returned as it is: the
 * store then keeps it in `_extra`, like any value that its column cannot hold.
 */
export function castValue(value: JsonValue, type: ColumnType): JsonValue {
  if (value === null) return null
  if (!type.endsWith('[]')) return CASTS[type as ScalarType](value)
  const item = CASTS[type.slice(0, -2) as ScalarType]
  return Array.isArray(value) ? value.map((one) => (one === null ? null : item(one))) : value
}

type Cast = (value: Exclude<JsonValue, null>) => JsonValue

const CASTS: Readonly<Record<ScalarType, Cast>> = {
  text: (value) => (typeof value === 'string' ? value : stringifyJson(value)),
  bigint: (value) => {
    if (typeof value === 'string' && /^-?\d+$/.test(value)) return toInteger(value)
    return value
  },
  double: (value) => (typeof value === 'string' ? (toExactNumber(value) ?? value) : value),
  numeric: (value) => {
    if (typeof value !== 'string') return value
    return /^-?\d+$/.test(value) ? toInteger(value) : (toExactNumber(value) ?? value)
  },
  decimal: (value) => {
    if (typeof value === 'bigint') return value.toString()
    return typeof value === 'number' && Number.isFinite(value) ? plainDecimal(value) : value
  },
  boolean: (value) => BOOLEANS.get(typeof value === 'string' ? value.toLowerCase() : value) ?? value,
  timestamp: (value) => {
    if (typeof value === 'string') return canonicalizeInstant(value) === null ? value : value.replace(' ', 'T')
    if (typeof value !== 'number' || !Number.isInteger(value)) return value
    const ms = Math.abs(value) < UNIX_SECONDS_MAX ? value * 1_000 : value
    return Math.abs(ms) <= MS_MAX ? msToInstant(ms) : value
  },
  uuid: (value) => (typeof value === 'string' ? value.toLowerCase() : value),
  json: (value) => {
    if (typeof value !== 'string') return value
    try {
      return parseJson(value)
    } catch {
      return value
    }
  },
  bytes: (value) => value,
  date: (value) => value,
  datetime: (value) => value,
  time: (value) => value,
}

const BOOLEANS: ReadonlyMap<unknown, boolean> = new Map<unknown, boolean>([
  ['true', true],
  ['false', false],
  ['1', true],
  ['0', false],
  [1, true],
  [0, false],
])

/** An integer below is a Unix time in seconds, which lies before the year 5138; from here on it is in milliseconds. */
const UNIX_SECONDS_MAX = 100_000_000_000
/** The last day of the year 9999. */
const MS_MAX = 253_402_300_799_999

function toInteger(digits: string): number | bigint {
  const number = Number(digits)
  return Number.isSafeInteger(number) ? number + 0 : BigInt(digits)
}

/** Null if a double does not have exactly this value. */
function toExactNumber(text: string): number | null {
  if (!/^-?\d+(?:\.\d+)?$/.test(text)) return null
  const number = Number(text)
  return plainDecimal(number) === normalizeDecimal(text) ? number : null
}

function normalizeDecimal(text: string): string {
  const [, sign = '', whole = '', fraction = ''] = /^(-?)0*(\d+?)(?:\.(\d*?)0*)?$/.exec(text) ?? []
  return `${sign}${whole}${fraction === '' ? '' : `.${fraction}`}`
}
