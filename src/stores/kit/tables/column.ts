import type { JsonValue } from '../../../contract/index.ts'
import { canonicalInstant } from '../../../values/instant.ts'

/** A member of the records of a database, and the column of its table that holds it. */
export interface TableColumn {
  readonly member: string
  /** The column's name in SQL; null while the member has no column: it was null in every record, or the table is full. */
  readonly name: string | null
  readonly type: ColumnType
  /** What SQL null means in a row: the member is null, or the record does not have it. The other case is in `_extra`. */
  readonly none: 'null' | 'absent'
  /** The first sequence of rows that may have the member. In an older row, SQL null means that the record does not have it. */
  readonly since: number
  /** Of a timestamp: the one way to write it that needs no copy of the text, such as `3Z` for three decimals and a Z. */
  readonly format?: string
}

/** `numeric`: an integer beyond 64 bits. */
export type ColumnType = 'bigint' | 'boolean' | 'date' | 'double' | 'json' | 'numeric' | 'text' | 'timestamp'

/** How a database holds values of these types. */
export interface ColumnDialect {
  /** Timestamps are kept as they are written. */
  readonly keepsTimestampText: boolean
  /** Nested values are kept as they are written. */
  readonly keepsJsonText: boolean
}

/** The type a value has on its own. */
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
  // Most texts are told apart by their length and two of their characters.
  if (text.length < 10 || text.charCodeAt(4) !== DASH || text.charCodeAt(7) !== DASH || text.startsWith('0000')) return 'text'
  if (text.length === 10) return isDate(text) ? 'date' : 'text'
  return isTimestamp(text) ? 'timestamp' : 'text'
}

const DASH = 45

/** A date that exists, of the years 1 to 9999. */
export function isDate(text: string): boolean {
  return /^\d{4}-\d\d-\d\d$/.test(text) && !text.startsWith('0000') && canonicalInstant(`${text}T00:00:00Z`) !== null
}

/** The usual form of an instant, in days that every month has. */
const USUAL = /^(?!0000)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?Z$/

/** An instant with a zone, of the years 1 to 9999. */
export function isTimestamp(text: string): boolean {
  if (USUAL.test(text)) return true
  const canonical = canonicalInstant(text)
  return canonical !== null && !canonical.startsWith('0000')
}

/** How a timestamp is written, such as `3Z`; null for one that a database would write in another way. */
export function timestampFormat(text: string): string | null {
  const match = /^\d{4}-\d\d-\d\dT\d\d:\d\d:[0-5]\d(?:\.(\d{1,6}))?(Z|\+00:00)$/.exec(text)
  return match === null ? null : `${match[1]?.length ?? 0}${match[2]}`
}

/** The type of a column for all of these values. A value that does not fit is kept in `_extra`; see `encode-record.ts`. */
export function typeOfValues(values: Iterable<Exclude<JsonValue, null>>): ColumnType {
  const types = new Set<ColumnType>()
  for (const value of values) types.add(typeOfValue(value))
  if (types.size === 1) return [...types][0]!
  const only = (...among: ColumnType[]): boolean => [...types].every((type) => among.includes(type))
  if (only('bigint', 'double')) return 'double'
  if (only('bigint', 'numeric', 'double')) return 'numeric'
  // Everything has a text.
  return 'text'
}

/** The format most of these timestamps have. */
export function commonFormat(texts: Iterable<string>): string {
  const counts = new Map<string, number>()
  for (const text of texts) {
    const format = timestampFormat(text)
    if (format !== null) counts.set(format, (counts.get(format) ?? 0) + 1)
  }
  return [...counts].toSorted((a, b) => b[1] - a[1])[0]?.[0] ?? '3Z'
}
