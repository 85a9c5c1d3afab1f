import { createHash } from 'node:crypto'
import type { ColumnValue } from '../../stores/kit/tables/encode-record.ts'
import { itemTypeOf, type ColumnType, type ScalarType } from '../../stores/kit/tables/column.ts'
import { canonicalizeInstant, msToInstant } from '../../values/instant.ts'
import { plainDecimal } from '../../values/plain-decimal.ts'
import { required } from '../../values/required.ts'

/** JSON is text: MySQL's own type rounds numbers and sorts members, and MariaDB's refuses deep nesting. */
export const SQL_TYPES: Record<ScalarType, string> = {
  bigint: 'bigint',
  boolean: 'boolean',
  bytes: 'longblob',
  date: 'date',
  datetime: 'datetime(6)',
  decimal: 'decimal(65,30)',
  double: 'double',
  json: 'longtext',
  numeric: 'decimal(65,30)',
  text: 'longtext',
  time: 'time(6)',
  timestamp: 'datetime(6)',
  uuid: 'char(36) character set ascii collate ascii_bin',
}

export function sqlTypeOf(type: ColumnType): string {
  return itemTypeOf(type) === null ? SQL_TYPES[type as ScalarType] : SQL_TYPES.json
}

const DIGITS_MAX = 35
const DECIMALS_MAX = 30

/** True for digits that decimal(65,30) holds. */
export function fitsDecimal(text: string): boolean {
  const [whole = '', fraction = ''] = text.replace('-', '').split('.')
  return whole.length <= DIGITS_MAX && fraction.length <= DECIMALS_MAX
}

/** A column's values as the text that the server reads; never called for null. */
export function textWriterOf(type: ColumnType): (value: ColumnValue) => string {
  switch (type) {
    case 'boolean':
      return (value) => (value === true ? '1' : '0')
    case 'numeric':
    case 'decimal':
      return (value) => (typeof value === 'number' ? plainDecimal(value) : String(value))
    case 'timestamp':
      return writeTimestamp
    default:
      return String
  }
}

/** An instant as text, or milliseconds since 1970, in UTC. */
function writeTimestamp(value: ColumnValue): string {
  if (typeof value === 'number') return msToInstant(value).slice(0, -1)
  const text = String(value)
  const isPlain = text.length <= 27 && text.endsWith('Z') && text.charCodeAt(17) !== SIX
  return (isPlain ? text : required(canonicalizeInstant(text), 'A valid instant')).slice(0, -1)
}

/** Leap seconds (`:60`) begin with it. */
const SIX = 54

/** An index entry has at most 3,072 bytes, and 4 are counted for each character: 766, and 8 bytes for a sequence. */
export const KEY_CHARACTERS_MAX = 766

/** A longer key is cut and made distinct with a hash. */
export function toStoredKey(key: string): string {
  if (key.length <= KEY_CHARACTERS_MAX) return key
  const characters = Array.from(key)
  if (characters.length <= KEY_CHARACTERS_MAX) return key
  const hash = createHash('sha256').update(key).digest('hex')
  return `${characters.slice(0, KEY_CHARACTERS_MAX - hash.length - 1).join('')}#${hash}`
}
