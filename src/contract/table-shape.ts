/**
 * The type of a column of the copy.
 *
 *   bigint, double, numeric   a JSON number: an integer of 64 bits, a double, any other number with all its digits
 *   decimal                   a text of digits such as "1.50", as databases and APIs write exact numbers
 *   timestamp, datetime       a text: an instant with a zone (RFC 3339), or a date and time without one, also with a space between
 *   date, time                a text: `2026-01-31`, `12:00:00`
 *   uuid                      a text, in small letters
 *   bytes                     a text in base64
 *   json                      an object, a list, or any other value
 *   text[], bigint[], …       a list of values of that type and of nulls
 */
export type ColumnType = ScalarType | `${ScalarType}[]`

export type ScalarType = (typeof SCALAR_TYPES)[number]

export const SCALAR_TYPES = [
  'bigint', 'boolean', 'bytes', 'date', 'datetime', 'decimal', 'double', 'json', 'numeric', 'text', 'time', 'timestamp', 'uuid',
] as const

/** What is known of the records of a database before they are read: from the metadata of its source, or from a schema. */
export interface TableShape {
  /** Another declared database than the sync's own. */
  readonly database?: string
  readonly columns: readonly ShapeColumn[]
  /** The members that make up the key, in their order; absent where nothing is known of it. */
  readonly key?: readonly string[]
}

export interface ShapeColumn {
  /** The member of the records. */
  readonly name: string
  readonly type: ColumnType
  /** Records may lack the member. Otherwise a record without a value has null. */
  readonly isOptional?: boolean
  /** A record without a value has an empty text, as APIs write it whose values are all texts. */
  readonly isEmptyText?: boolean
}

/** The declared schema of the database, or the metadata of the source. */
export type TypeOrigin = 'schema' | 'source'

/** A shape as it is committed: the declared schema counts before the metadata of the source. */
export interface CommitShape {
  readonly database: string
  readonly columns: ReadonlyArray<ShapeColumn & { readonly from: TypeOrigin }>
  readonly key: readonly string[]
}
