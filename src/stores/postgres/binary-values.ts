import type { JsonValue } from '../../contract/index.ts'
import { stringifyJson } from '../../values/json.ts'
import { itemTypeOf, type ColumnType, type ScalarType } from '../kit/tables/column.ts'
import type { ColumnValue } from '../kit/tables/encode-record.ts'
import { canonicalizeInstant } from '../../values/instant.ts'
import { plainDecimal } from '../../values/plain-decimal.ts'
import { required } from '../../values/required.ts'

/** A PostgreSQL type: its name in SQL and its OID. */
export type SqlType = ScalarSqlType | `${ScalarSqlType}[]`
export type ScalarSqlType = keyof typeof OIDS

const OIDS = {
  bigint: 20,
  boolean: 16,
  bytea: 17,
  date: 1082,
  'double precision': 701,
  integer: 23,
  json: 114,
  jsonb: 3802,
  numeric: 1700,
  text: 25,
  time: 1083,
  timestamp: 1114,
  timestamptz: 1184,
  uuid: 2950,
} as const

export const SQL_TYPES: Record<ScalarType, ScalarSqlType> = {
  bigint: 'bigint',
  boolean: 'boolean',
  bytes: 'bytea',
  date: 'date',
  datetime: 'timestamp',
  decimal: 'numeric',
  double: 'double precision',
  json: 'jsonb',
  numeric: 'numeric',
  text: 'text',
  time: 'time',
  timestamp: 'timestamptz',
  uuid: 'uuid',
}

const ARRAY_OIDS: Record<ScalarSqlType, number> = {
  bigint: 1016,
  boolean: 1000,
  bytea: 1001,
  date: 1182,
  'double precision': 1022,
  integer: 1007,
  json: 199,
  jsonb: 3807,
  numeric: 1231,
  text: 1009,
  time: 1183,
  timestamp: 1115,
  timestamptz: 1185,
  uuid: 2951,
}

export function oidOf(type: SqlType): number {
  const item = itemSqlTypeOf(type)
  return item === null ? OIDS[type as ScalarSqlType] : ARRAY_OIDS[item]
}

/** The SQL type of a column. */
export function sqlTypeOf(type: ColumnType): SqlType {
  const item = itemTypeOf(type)
  return item === null ? SQL_TYPES[type as ScalarType] : `${SQL_TYPES[item]}[]`
}

/** The item type of an array; null for a type that is not an array. */
export function itemSqlTypeOf(type: SqlType): ScalarSqlType | null {
  return type.endsWith('[]') ? (type.slice(0, -2) as ScalarSqlType) : null
}

const ARRAY_HEADER_BYTES = 20

/** Encodes one column of many rows as a binary array, for UPDATE and lookups. */
export function binaryArray(type: ScalarSqlType, values: readonly ColumnValue[]): Buffer {
  const writer = new BinaryWriter(ARRAY_HEADER_BYTES + values.length * (type === 'text' ? 64 : 12))
  writer.int32(1) // dimensions
  writer.int32(values.includes(null) ? 1 : 0)
  writer.int32(OIDS[type])
  writer.int32(values.length)
  writer.int32(1) // the first index
  for (const value of values) writer.value(type, value)
  return writer.toBuffer()
}

/** Writes values in PostgreSQL's binary format, each prefixed with its length. */
export class BinaryWriter {
  #buffer: Buffer
  #at = 0

  /** Writes to this buffer, or to a new one of this many bytes. A larger one replaces it when it is full. */
  constructor(buffer: Buffer | number) {
    this.#buffer = typeof buffer === 'number' ? Buffer.allocUnsafe(buffer) : buffer
  }

  get length(): number {
    return this.#at
  }

  /** Drops what was written after this length. */
  rewind(length: number): void {
    this.#at = length
  }

  /** Returns the written bytes. No further writes are allowed. */
  toBuffer(): Buffer {
    return this.#buffer.subarray(0, this.#at)
  }

  int16(value: number): void {
    this.#ensure(2)
    this.#buffer[this.#at++] = value >>> 8
    this.#buffer[this.#at++] = value
  }

  int32(value: number): void {
    this.#ensure(4)
    this.#setInt32(value, this.#at)
    this.#at += 4
  }

  /** Byte by byte: Buffer's own methods check their arguments, which takes longer than the write. */
  #setInt32(value: number, at: number): void {
    const buffer = this.#buffer
    buffer[at] = value >>> 24
    buffer[at + 1] = value >>> 16
    buffer[at + 2] = value >>> 8
    buffer[at + 3] = value
  }

  bytes(bytes: Uint8Array): void {
    this.#ensure(bytes.length)
    this.#buffer.set(bytes, this.#at)
    this.#at += bytes.length
  }

  value(sqlType: SqlType, value: ColumnValue): void {
    if (value === null) return this.int32(-1)
    switch (sqlType) {
      case 'text':
      case 'json':
        return this.text(value as string)
      case 'jsonb':
        return this.text(value as string, JSONB_VERSION)
      case 'bigint':
        return this.int64(value as number | bigint)
      case 'integer':
        this.int32(4)
        return this.int32(value as number)
      case 'boolean':
        return this.boolean(value as boolean)
      case 'double precision':
        return this.double(value as number)
      case 'date':
        this.int32(4)
        return this.int32(daysOf(value as string))
      case 'timestamptz':
        return this.timestamp(value as number | string)
      case 'timestamp':
        return this.timestamp(`${value as string}Z`)
      case 'time':
        return this.int64(microsOf(value as string, 0))
      case 'uuid':
        return this.#uuid(value as string)
      case 'bytea':
        return this.#base64(value as string)
      case 'numeric':
        return this.#numeric(typeof value === 'number' ? plainDecimal(value) : String(value))
      default:
        return this.#items(required(itemSqlTypeOf(sqlType), 'The item type of an array'), value as readonly JsonValue[])
    }
  }

  boolean(value: boolean): void {
    this.int32(1)
    this.#ensure(1)
    this.#buffer[this.#at++] = value ? 1 : 0
  }

  double(value: number): void {
    this.int32(8)
    this.#ensure(8)
    this.#at = this.#buffer.writeDoubleBE(value, this.#at)
  }

  /** A text that is a part of other bytes; see `text`. */
  textBytes(bytes: Uint8Array, start: number, end: number, version = 0): void {
    const length = end - start
    this.#ensure(5 + length)
    const buffer = this.#buffer
    this.#setInt32(version > 0 ? length + 1 : length, this.#at)
    let to = this.#at + 4
    if (version > 0) buffer[to++] = version
    if (length > SHORT_TEXT) buffer.set(bytes.subarray(start, end), to)
    else for (let n = 0; n < length; n++) buffer[to + n] = bytes[start + n] as number
    this.#at = to + length
  }

  /** `version` is the byte that jsonb has before its text. */
  text(text: string, version = 0): void {
    const { length } = text
    this.#ensure(5 + length * 3)
    const buffer = this.#buffer
    const at = this.#at
    let start = at + 4
    if (version > 0) buffer[start++] = version
    // For a short text, a native call costs more than this loop.
    let end = start
    if (length <= SHORT_TEXT) {
      for (let n = 0; n < length; n++) {
        const code = text.charCodeAt(n)
        if (code >= 0x80) {
          end = start
          break
        }
        buffer[end++] = code
      }
    }
    if (end - start !== length) end = start + buffer.write(text, start, 'utf8')
    this.#setInt32(end - at - 4, at)
    this.#at = end
  }

  #uuid(text: string): void {
    this.int32(16)
    this.#ensure(16)
    this.#at += this.#buffer.write(text.replaceAll('-', ''), this.#at, 'hex')
  }

  #base64(text: string): void {
    const bytes = Buffer.from(text, 'base64')
    this.int32(bytes.length)
    this.bytes(bytes)
  }

  /** An array as a single value, prefixed with its length. */
  #items(type: ScalarSqlType, items: readonly JsonValue[]): void {
    const start = this.#at
    this.int32(0)
    this.int32(items.length === 0 ? 0 : 1) // dimensions
    this.int32(items.includes(null) ? 1 : 0)
    this.int32(OIDS[type])
    if (items.length > 0) {
      this.int32(items.length)
      this.int32(1) // the first index
      for (const item of items)
        this.value(type, item === null ? null : type === 'jsonb' ? stringifyJson(item) : (item as ColumnValue))
    }
    this.#setInt32(this.#at - start - 4, start)
  }

  int64(value: number | bigint): void {
    this.int32(8)
    this.#ensure(8)
    if (typeof value === 'bigint') this.#at = this.#buffer.writeBigInt64BE(value, this.#at)
    else {
      // The bitwise operators take the lower 32 bits of a number.
      this.#setInt32(Math.floor(value / 2 ** 32), this.#at)
      this.#setInt32(value, this.#at + 4)
      this.#at += 8
    }
  }

  /** An instant as text, or milliseconds since 1970. */
  timestamp(value: number | string): void {
    if (typeof value === 'number') return this.int64((value - EPOCH_2000_MS) * 1_000)
    const isPlain = value.length <= 27 && value.charCodeAt(value.length - 1) === ZULU && value.charCodeAt(17) !== SIX
    const canonical = isPlain ? value : required(canonicalizeInstant(value), 'A valid instant')
    const days = daysOf(canonical)
    const micros = microsOf(canonical, 11)
    const total = days * DAY_MICROS + micros
    this.int64(Number.isSafeInteger(total) ? total : BigInt(days) * BigInt(DAY_MICROS) + BigInt(micros))
  }

  /** Digits are encoded in groups of four. */
  #numeric(text: string): void {
    const negative = text.startsWith('-')
    const [whole, fraction = ''] = (negative ? text.slice(1) : text).split('.') as [string, string?]
    const digits =
      whole.padStart(Math.ceil(whole.length / 4) * 4, '0') + fraction.padEnd(Math.ceil(fraction.length / 4) * 4, '0')
    this.int32(8 + digits.length / 2)
    this.int16(digits.length / 4)
    this.int16(Math.ceil(whole.length / 4) - 1)
    this.int16(negative ? 0x4000 : 0)
    this.int16(fraction.length)
    for (let at = 0; at < digits.length; at += 4) this.int16(Number(digits.slice(at, at + 4)))
  }

  #ensure(bytes: number): void {
    if (this.#at + bytes <= this.#buffer.length) return
    const grown = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, this.#at + bytes))
    this.#buffer.copy(grown, 0, 0, this.#at)
    this.#buffer = grown
  }
}

/** The byte that jsonb has before its text. */
export const JSONB_VERSION = 1
const SHORT_TEXT = 40
const ZULU = 90
/** Leap seconds (`:60`) begin with it. */
const SIX = 54
const EPOCH_2000_MS = 946_684_800_000

/** Days since 2000-01-01 of a text that begins with a date. */
function daysOf(text: string): number {
  return daysFromCivil(
    parseTwoDigits(text, 0) * 100 + parseTwoDigits(text, 2),
    parseTwoDigits(text, 5),
    parseTwoDigits(text, 8),
  )
}

/** Days since 2000-01-01; see Howard Hinnant's function of this name. */
function daysFromCivil(civilYear: number, month: number, day: number): number {
  const year = month <= 2 ? civilYear - 1 : civilYear
  const era = Math.floor(year / 400)
  const yearOfEra = year - era * 400
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1
  return era * 146_097 + yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear - 730_425
}

/**
 * Microseconds since 2000 of an instant with this many decimals and a Z, on a day that every month has. NaN for any
 * other text.
 */
export function utcMicros(bytes: Uint8Array, start: number, end: number, decimals: number): number {
  if (end - start !== (decimals === 0 ? 20 : decimals + 21) || bytes[end - 1] !== ZULU) return Number.NaN
  const century = twoDigits(bytes, start)
  const yearOfCentury = twoDigits(bytes, start + 2)
  const month = twoDigits(bytes, start + 5)
  const day = twoDigits(bytes, start + 8)
  const hour = twoDigits(bytes, start + 11)
  const minute = twoDigits(bytes, start + 14)
  const second = twoDigits(bytes, start + 17)
  if (bytes[start + 4] !== DASH || bytes[start + 7] !== DASH || bytes[start + 10] !== LETTER_T) return Number.NaN
  if (bytes[start + 13] !== COLON || bytes[start + 16] !== COLON) return Number.NaN
  if (!(century * 100 + yearOfCentury > 0 && month >= 1 && month <= 12 && day >= 1 && day <= 28)) return Number.NaN
  if (!(hour <= 23 && minute <= 59 && second <= 59)) return Number.NaN
  let micros = 0
  if (decimals > 0) {
    if (bytes[start + 19] !== POINT) return Number.NaN
    for (let at = start + 20, weight = 100_000; at < end - 1; at++, weight /= 10) {
      const digit = (bytes[at] as number) - 48
      if (digit < 0 || digit > 9) return Number.NaN
      micros += digit * weight
    }
  }
  const days = daysFromCivil(century * 100 + yearOfCentury, month, day)
  return days * DAY_MICROS + (hour * 3_600 + minute * 60 + second) * 1_000_000 + micros
}

/** NaN for other characters. */
function twoDigits(bytes: Uint8Array, at: number): number {
  const tens = (bytes[at] as number) - 48
  const ones = (bytes[at + 1] as number) - 48
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN
}

const [DASH, COLON, POINT, LETTER_T] = [45, 58, 46, 84]

/** Microseconds since midnight of a time that begins at index `from`; it may end with a Z. */
function microsOf(text: string, from: number): number {
  let micros =
    (parseTwoDigits(text, from) * 3_600 + parseTwoDigits(text, from + 3) * 60 + parseTwoDigits(text, from + 6)) *
    1_000_000
  const end = text.charCodeAt(text.length - 1) === ZULU ? text.length - 1 : text.length
  for (let at = from + 9, weight = 100_000; at < end; at++, weight /= 10) micros += (text.charCodeAt(at) - 48) * weight
  return micros
}

const DAY_MICROS = 86_400_000_000

function parseTwoDigits(text: string, at: number): number {
  return text.charCodeAt(at) * 10 + text.charCodeAt(at + 1) - 528
}
