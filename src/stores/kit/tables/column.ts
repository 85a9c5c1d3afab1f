import type { ColumnType, JsonValue, ScalarType, TypeOrigin } from '../../../contract/index.ts'
import { canonicalizeInstant } from '../../../values/instant.ts'

/** A field of a database's records, and the column of its table that holds it. */
export interface TableColumn {
  readonly member: string
  /**
   * The column's name in SQL; null while the field has no column, because every value was null or the table is full.
   */
  readonly name: string | null
  readonly type: ColumnType
  /** The meaning of SQL null in a row: the field is null, an empty text, or absent. Other cases are in `_extra`. */
  readonly none: 'null' | 'empty' | 'absent'
  /** The first sequence of rows that may have the field. In an older row, SQL null means that the field is absent. */
  readonly since: number
  /**
   * For timestamps, the one format that needs no copy of the text, such as `3Z` for three decimals and a Z. `*Z` means
   * up to six decimals without trailing zeros, as PostgreSQL writes them. A datetime has no zone: `3`, or `3_` with a
   * space instead of the T.
   */
  readonly format?: string
  /** The declaration that gave the column its type; absent for a type that was inferred from values. */
  readonly from?: ColumnOrigin
  /** The field's declared type, where the column has another one. `tidemark schema plan` proposes it. */
  readonly wanted?: ColumnType
  /**
   * The column is part of the declared key: not null, and unique together with the others (`enforced`), unless existing
   * rows prevent that (`refused`).
   */
  readonly key?: 'enforced' | 'refused'
  /**
   * The column that a running schema change replaces: still written, and read where the new one is null, until the
   * change ends.
   */
  readonly former?: true
  /** The field stays in `_extra` until a schema change promotes it. */
  readonly held?: true
}

/** The declared schema of the database, the metadata of the source, or a schema change. */
export type ColumnOrigin = TypeOrigin | 'change'

export type { ColumnType, ScalarType }

/** How a database stores values of these types. */
export interface ColumnDialect {
  /** Timestamps, times and uuids are stored as written. */
  readonly preservesText: boolean
  /** Nested values, and lists of scalars, are stored as written. */
  readonly preservesJsonText: boolean
  /** Nonzero numbers nearer to zero than this are not representable. */
  readonly doubleMin: number
}

/**
 * True when a column of the type needs a format; see `TableColumn.format`. Without a declared one, the first values
 * decide.
 */
export function needsFormat(type: ColumnType): boolean {
  return type.startsWith('timestamp') || type.startsWith('datetime')
}

/** The item type of a list; null for a type that is not a list. */
export function itemTypeOf(type: ColumnType): ScalarType | null {
  return type.endsWith('[]') ? (type.slice(0, -2) as ScalarType) : null
}

export function isListType(type: ColumnType): boolean {
  return type.endsWith('[]')
}

/** The type of a single value. */
export function typeOfValue(value: Exclude<JsonValue, null>): ColumnType {
  switch (typeof value) {
    case 'string':
      return typeOfText(value)
    case 'boolean':
      return 'boolean'
    case 'bigint':
      return value < INT64 && value >= -INT64 ? 'bigint' : 'numeric'
    case 'number':
      return Number.isSafeInteger(value) && !Object.is(value, -0) ? 'bigint' : 'double'
    default:
      return 'json'
  }
}

const INT64 = 2n ** 63n

function typeOfText(text: string): 'date' | 'text' | 'timestamp' {
  // The length and two characters rule out most texts cheaply.
  if (text.length < 10 || text.charCodeAt(4) !== DASH || text.charCodeAt(7) !== DASH || text.startsWith('0000'))
    return 'text'
  if (text.length === 10) return isDate(text) ? 'date' : 'text'
  return isTimestamp(text) ? 'timestamp' : 'text'
}

const DASH = 45

/** True for a valid date in the years 1 to 9999. */
export function isDate(text: string): boolean {
  return /^\d{4}-\d\d-\d\d$/.test(text) && !text.startsWith('0000') && canonicalizeInstant(`${text}T00:00:00Z`) !== null
}

/** The usual form of an instant, limited to days that every month has. */
const COMMON_TIMESTAMP =
  /^(?!0000)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?Z$/

/** True for an instant with a zone, in the years 1 to 9999. */
export function isTimestamp(text: string): boolean {
  if (COMMON_TIMESTAMP.test(text)) return true
  const canonical = canonicalizeInstant(text)
  return canonical !== null && !canonical.startsWith('0000')
}

/** A timestamp in UTC with up to six decimals, which a database can reproduce. */
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:[0-5]\d(?:\.(\d{1,6}))?(Z|\+00:?00)$/

/** True for a timestamp that is written in this format. */
export function isTimestampOfFormat(text: string, format: string | undefined): boolean {
  // In the common form, only the number of decimals makes a difference in length.
  if (format?.length === 2 && format.endsWith('Z')) {
    const decimals = format.charCodeAt(0) - 48
    if (text.length === (decimals === 0 ? 20 : decimals + 21) && COMMON_TIMESTAMP.test(text)) return true
  }
  return isTimestamp(text) && hasTimestampFormat(text, format)
}

/** True when a timestamp is written in this format. */
export function hasTimestampFormat(text: string, format: string | undefined): boolean {
  const match = TIMESTAMP.exec(text)
  return (
    match !== null && format !== undefined && hasFormatSuffix(format, match[2] ?? '') && hasDecimals(match[1], format)
  )
}

const DATETIME = /^(?!0000)\d{4}-\d\d-\d\d[T ](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.(\d{1,6}))?$/

/** True for a valid date and time without a zone, in the years 1 to 9999. */
export function isDatetime(text: string): boolean {
  return DATETIME.test(text) && canonicalizeInstant(`${text}Z`) !== null
}

export function hasDatetimeFormat(text: string, format: string | undefined): boolean {
  return (
    format !== undefined && hasFormatSuffix(format, separatorOf(text)) && hasDecimals(DATETIME.exec(text)?.[1], format)
  )
}

/** True when `end` is everything that follows the decimals in a format. */
function hasFormatSuffix(format: string, end: string): boolean {
  return format.length === end.length + 1 && format.endsWith(end)
}

/** The format's character for the separator between the date and the time. */
function separatorOf(datetime: string): '' | '_' {
  return datetime.charCodeAt(10) === SPACE ? '_' : ''
}

const SPACE = 32

/** `*` means decimals without trailing zeros. */
function hasDecimals(decimals: string | undefined, format: string): boolean {
  if (format.charCodeAt(0) === ASTERISK) return decimals === undefined || !decimals.endsWith('0')
  return format.charCodeAt(0) - 48 === (decimals?.length ?? 0)
}

const ASTERISK = 42

/** True for a time of day as PostgreSQL writes it. */
export function isTime(text: string): boolean {
  return /^(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{0,5}[1-9])?$/.test(text)
}

/** True for a uuid as PostgreSQL writes it; in capital letters the text would change. */
export function isUuid(text: string): boolean {
  return text.length === 36 && UUID.test(text)
}

const UUID = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/

/**
 * True for digits that a decimal column returns unchanged: no exponent, no leading zeros or plus sign, no negative
 * zero.
 */
export function isDecimal(text: string): boolean {
  return /^(?!-[0.]*$)-?(?:0|[1-9]\d{0,99999})(?:\.\d{1,16383})?$/.test(text)
}

/** True for base64 that its bytes reproduce exactly: with padding, and with no bits beyond the last byte. */
export function isBase64(text: string): boolean {
  return (
    text.length % 4 === 0 &&
    /^[A-Za-z\d+/]*={0,2}$/.test(text) &&
    Buffer.from(text, 'base64').toString('base64') === text
  )
}

/** The column type for all of these values. A value that does not fit is kept in `_extra`; see `encode-record.ts`. */
export function typeOfValues(values: Iterable<Exclude<JsonValue, null>>): ColumnType {
  const types = new Set<ColumnType>()
  for (const value of values) types.add(typeOfValue(value))
  return commonType(types)
}

/** The type that can hold values of all of these types. */
export function commonType(types: ReadonlySet<ColumnType>): ColumnType {
  const [first] = types
  if (first !== undefined && types.size === 1) return first
  const only = (...among: ColumnType[]): boolean => [...types].every((type) => among.includes(type))
  if (only('bigint', 'double')) return 'double'
  if (only('bigint', 'numeric', 'double')) return 'numeric'
  // Every value has a text form.
  return 'text'
}

/** The format of a column of this type; undefined for a type that has none. */
export function inferFormat(type: ColumnType, texts: readonly string[]): string | undefined {
  return needsFormat(type) ? (findCommonFormat(type, texts) ?? undefined) : undefined
}

/**
 * The most common format of these timestamps or datetimes; null if none has any. On a tie, the one with a fixed number
 * of decimals.
 */
export function findCommonFormat(type: ColumnType, texts: Iterable<string>): string | null {
  const counts = new Map<string, number>()
  const count = (format: string): unknown => counts.set(format, (counts.get(format) ?? 0) + 1)
  for (const text of texts) {
    const match = (type.startsWith('datetime') ? DATETIME : TIMESTAMP).exec(text)
    if (match === null) continue
    const [, decimals = '', zone = separatorOf(text)] = match
    count(`${decimals.length}${zone}`)
    if (!decimals.endsWith('0')) count(`*${zone}`)
  }
  return (
    [...counts].toSorted(
      (a, b) => b[1] - a[1] || Number(a[0].startsWith('*')) - Number(b[0].startsWith('*')),
    )[0]?.[0] ?? null
  )
}
