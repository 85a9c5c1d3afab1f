/**
 * The type of a column of the copy.
 *
 *   bigint, double, numeric   a JSON number: a 64-bit integer, a double, any other number with all its digits
 *   decimal                   a string of digits such as "1.50", as databases and APIs write exact numbers
 *   timestamp, datetime       a string: a time with a zone (RFC 3339), or a date and time without one, also with a space
 *   date, time                a string: `2026-01-31`, `12:00:00`
 *   uuid                      a string, in lower case
 *   bytes                     a string in base64
 *   json                      an object, an array, or any other value
 *   text[], bigint[], …       an array of values of that type and of nulls
 */
export type ColumnType = ScalarType | `${ScalarType}[]`

/** A column type that holds a single value. */
export type ScalarType = (typeof SCALAR_TYPES)[number]

export const SCALAR_TYPES = [
  'bigint',
  'boolean',
  'bytes',
  'date',
  'datetime',
  'decimal',
  'double',
  'json',
  'numeric',
  'text',
  'time',
  'timestamp',
  'uuid',
] as const

/** The known types of the records of a database before they are read: from the source's metadata, or from a schema. */
export interface TableShape {
  /** A declared database other than the sync's own. */
  readonly database?: string
  readonly columns: readonly ShapeColumn[]
  /** The fields of the key, in order; absent if the key is unknown. */
  readonly key?: readonly string[]
}

export interface ShapeColumn {
  /** The field of the records. */
  readonly name: string
  readonly type: ColumnType
  /** Records may lack the field. Otherwise a record without a value has null. */
  readonly isOptional?: boolean
  /** A record without a value has an empty string, as in APIs whose values are all strings. */
  readonly isEmptyText?: boolean
}

/** The declared schema of the database, or the metadata of the source. */
export type TypeOrigin = 'schema' | 'source'

/** A shape as it is committed: the declared schema takes precedence over the source's metadata. */
export interface CommitShape {
  readonly database: string
  readonly columns: ReadonlyArray<ShapeColumn & { readonly from: TypeOrigin }>
  readonly key: readonly string[]
}
