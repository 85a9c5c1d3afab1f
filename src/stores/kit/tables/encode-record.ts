import type { JsonObject, JsonValue } from '../../../contract/index.ts'
import { stringifyJson } from '../../../values/json.ts'
import {
  hasDatetimeFormat,
  needsFormat,
  isTimestampOfFormat,
  isBase64,
  isDate,
  isDatetime,
  isDecimal,
  isTime,
  isTimestamp,
  isUuid,
  itemTypeOf,
  typeOfValue,
  type ColumnDialect,
  type ColumnType,
  type TableColumn,
} from './column.ts'

/**
 * A value as it is bound to a column: text for all types that JSON writes as text, and the JSON text of a nested value.
 */
export type ColumnValue = ScalarValue | readonly JsonValue[]

/** Lists are bound as lists only where the database has columns for them. */
export type ScalarValue = bigint | boolean | number | string | null

/** A record as values of table columns. */
export interface EncodedRecord {
  /** One per column, in order; null where the column has no name in SQL. */
  readonly values: ColumnValue[]
  /** Values that the columns cannot hold exactly, as JSON text: see `ExtraJson`. */
  readonly extra: string | null
  /** The record has fields that need a new column, or a column whose format is not known yet. */
  readonly needsColumns: boolean
  /** Fields whose column cannot show their value. */
  readonly misfits: readonly string[] | null
}

/** Content of `_extra`: values that override the columns, and fields that the record does not have. */
export interface ExtraJson {
  readonly values?: JsonObject
  readonly absent?: string[]
}

/** A version of a record: its object, or its values by field. */
export interface EncodableVersion {
  readonly sequence: number
  readonly record: JsonObject | null
  readonly values?: FieldValues
}

type FieldValues = ReadonlyArray<JsonValue | undefined>

/** Splits records into the columns of a table and `_extra`. `decode-record.ts` is its inverse. */
export class RecordEncoder {
  /** `at` is the index of the column's field among `members`. */
  readonly #fields: ReadonlyArray<{ readonly column: TableColumn; readonly isInherited: boolean; readonly at: number }>
  readonly #dialect: ColumnDialect
  readonly #known: ReadonlySet<string>
  readonly #members: readonly string[]
  /** The fields among `members` that have no column. */
  readonly #others: readonly number[]

  /** `members` are the fields of records that are given as values. */
  constructor(columns: readonly TableColumn[], dialect: ColumnDialect, members: readonly string[] = []) {
    this.#dialect = dialect
    this.#known = new Set(columns.map(({ member }) => member))
    this.#fields = columns.map((column) => ({
      column,
      isInherited: column.member in Object.prototype,
      at: members.indexOf(column.member),
    }))
    this.#members = members
    this.#others = members.flatMap((member, at) => (this.#known.has(member) ? [] : [at]))
  }

  /** Does not read the record of a version that has values. `byRecord` encodes a version that has none. */
  encodeVersion<Version extends EncodableVersion>(
    version: Version,
    byRecord: (version: Version) => EncodedRecord = ({ record, sequence }) => this.encode(record ?? {}, sequence),
  ): EncodedRecord {
    const { values, sequence } = version
    if (values === undefined) return byRecord(version)
    const draft = this.#encodeFields(NO_RECORD, values, sequence)
    for (const at of this.#others) addOther(draft, this.#members[at] ?? '', values[at])
    return finishRecord(draft)
  }

  /** `sequence` is that of an existing row: the meaning of SQL null depends on the row's age. */
  encode(record: JsonObject, sequence = Infinity): EncodedRecord {
    const draft = this.#encodeFields(record, null, sequence)
    const names = Object.keys(record)
    if (names.length > draft.met)
      for (const name of names) if (!this.#known.has(name)) addOther(draft, name, record[name])
    return finishRecord(draft)
  }

  /** Reads the fields of the columns from `given`, or else from the record. */
  #encodeFields(record: JsonObject, given: FieldValues | null, sequence: number): RecordDraft {
    const values: ColumnValue[] = []
    let extra: JsonObject | null = null
    let absent: string[] | null = null
    let misfits: string[] | null = null
    let needsColumns = false
    let met = 0
    for (const { column, isInherited, at } of this.#fields) {
      const { member } = column
      const value =
        given !== null ? given[at] : isInherited && !Object.hasOwn(record, member) ? undefined : record[member]
      let held: ColumnValue = null
      if (column.former === true) {
        values.push(
          value === undefined || value === null
            ? null
            : (this.encodeExact(column, value) ?? approximateValue(column, value)),
        )
        continue
      }
      if (value === undefined) {
        if (column.none !== 'absent' && sequence >= column.since) (absent ??= []).push(member)
      } else {
        met++
        if (value === null) {
          if (column.none !== 'null' || sequence < column.since) defineMember((extra ??= {}), member, null)
        } else if (value === '' && column.none === 'empty' && sequence >= column.since) {
          held = null
        } else if (column.name === null) {
          defineMember((extra ??= {}), member, value)
          if (column.held !== true) needsColumns = true
        } else {
          held = this.encodeExact(column, value)
          if (held !== null) {
            values.push(held)
            continue
          }
          defineMember((extra ??= {}), member, value)
          held = approximateValue(column, value)
          if (isMisfit(column, value)) (misfits ??= []).push(member)
          if (column.format === undefined && needsFormat(column.type)) needsColumns = true
        }
      }
      values.push(held)
    }
    return { values, extra, absent, misfits, needsColumns, met }
  }

  /** Returns the value as the column stores it; null when the column would not return exactly this value. */
  encodeExact({ type, format }: TableColumn, value: Exclude<JsonValue, null>): ColumnValue {
    if (!this.#isExact(type, format, value)) return null
    return typeof value === 'object' || type === 'json' ? this.#serialize(type, value) : value
  }

  /** True when the column returns exactly this value. */
  #isExact(type: ColumnType, format: string | undefined, value: Exclude<JsonValue, null>): boolean {
    const { preservesText, preservesJsonText, doubleMin } = this.#dialect
    switch (type) {
      case 'text':
        return typeof value === 'string'
      case 'timestamp':
        if (typeof value !== 'string') return false
        return preservesText ? isTimestamp(value) : isTimestampOfFormat(value, format)
      case 'datetime':
        return typeof value === 'string' && isDatetime(value) && (preservesText || hasDatetimeFormat(value, format))
      case 'date':
        return typeof value === 'string' && isDate(value)
      case 'time':
        return typeof value === 'string' && isTime(value)
      case 'boolean':
        return typeof value === 'boolean'
      case 'double':
        return (
          typeof value === 'number' &&
          (value > 0 ? value >= doubleMin : value < 0 ? value <= -doubleMin : Object.is(value, 0))
        )
      case 'bigint':
        return (typeof value === 'number' || typeof value === 'bigint') && typeOfValue(value) === 'bigint'
      case 'numeric':
        return (
          typeof value === 'bigint' ||
          (typeof value === 'number' && (typeOfValue(value) === 'bigint' || !Number.isInteger(value)))
        )
      case 'decimal':
        return typeof value === 'string' && isDecimal(value)
      case 'uuid':
        return typeof value === 'string' && isUuid(preservesText ? value.toLowerCase() : value)
      case 'bytes':
        return typeof value === 'string' && isBase64(value)
      case 'json':
        // SQLite converts the text of a number to its own number.
        return preservesJsonText ? typeof value !== 'number' && typeof value !== 'bigint' : isExactInJsonb(value)
      default: {
        if (!Array.isArray(value)) return false
        const item = itemTypeOf(type)
        return (
          preservesJsonText || (item !== null && value.every((one) => one === null || this.#isExact(item, format, one)))
        )
      }
    }
  }

  #serialize(type: ColumnType, value: Exclude<JsonValue, null>): ColumnValue {
    if (!this.#dialect.preservesJsonText && Array.isArray(value) && itemTypeOf(type) !== null) return value
    return stringifyJson(value)
  }
}

const NO_RECORD: JsonObject = {}

interface RecordDraft extends Omit<EncodedRecord, 'extra' | 'needsColumns'> {
  extra: JsonObject | null
  readonly absent: string[] | null
  needsColumns: boolean
  /** The fields of the record that have a column. */
  readonly met: number
}

/** Adds a field that has no column. */
function addOther(draft: RecordDraft, name: string, value: JsonValue | undefined): void {
  if (value === undefined) return
  defineMember((draft.extra ??= {}), name, value)
  draft.needsColumns = true
}

function finishRecord({ values, extra, absent, needsColumns, misfits }: RecordDraft): EncodedRecord {
  return {
    values,
    extra: extra === null && absent === null ? null : serializeExtra(extra, absent),
    needsColumns,
    misfits,
  }
}

/** The nearest value the column can show, for people who query it; the exact one is in `_extra`. */
function approximateValue({ type }: TableColumn, value: Exclude<JsonValue, null>): ColumnValue {
  switch (type) {
    case 'text':
      return typeof value === 'object' ? null : String(value)
    case 'timestamp':
      return typeof value === 'string' && isTimestamp(value) ? value : null
    case 'datetime':
      return typeof value === 'string' && isDatetime(value) ? value : null
    case 'double':
      return typeof value === 'number' || typeof value === 'bigint' ? Number(value) : null
    case 'numeric':
    case 'decimal':
      return typeof value === 'number' || typeof value === 'bigint' || (typeof value === 'string' && isDecimal(value))
        ? value
        : null
    case 'uuid':
      return typeof value === 'string' && isUuid(value.toLowerCase()) ? value.toLowerCase() : null
    default:
      return null
  }
}

/**
 * True when the column cannot show a value that it does not hold exactly. It can show -0, or an instant in another
 * form.
 */
export function isMisfit(column: TableColumn, value: Exclude<JsonValue, null>): boolean {
  if (column.type === 'json') return false
  return (column.type === 'double' && typeof value === 'bigint') || approximateValue(column, value) === null
}

/** PostgreSQL's jsonb expands a large exponent into digits, which read as an integer, and has no -0. */
function isExactInJsonb(value: JsonValue): boolean {
  if (typeof value === 'number') {
    return Math.abs(value) < 1e21 && !Object.is(value, -0) && (Number.isSafeInteger(value) || !Number.isInteger(value))
  }
  if (typeof value !== 'object' || value === null) return true
  for (const item of Array.isArray(value) ? value : Object.values(value))
    if (!isExactInJsonb(item ?? null)) return false
  return true
}

function serializeExtra(values: JsonObject | null, absent: string[] | null): string {
  return stringifyJson({ ...(values !== null && { values }), ...(absent !== null && { absent }) })
}

/**
 * Plain assignment is wrong for names of Object.prototype: `object.__proto__ = …` sets the prototype instead of the
 * field, and with a frozen prototype any such assignment throws.
 */
function defineMember(object: JsonObject, name: string, value: JsonValue): void {
  if (name in object)
    Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true })
  else object[name] = value
}
