import type { JsonValue, Row, RowsQuery, RowValues } from '../../contract/index.ts'
import { parseJson, parseNumber } from '../../values/json.ts'
import { required } from '../../values/required.ts'
import { quoteIdentifier } from '../kit/column-names.ts'
import { isListType, type TableColumn } from '../kit/tables/column.ts'
import { VALUES_TEXT_MAX, valueOfNull } from '../kit/tables/row-values.ts'
import type { TenantSession } from './connection.ts'
import { readRow } from './queries.ts'
import { findTable, type Table } from './table.ts'

/** A page of rows on its way between threads: one text for all of them, because each object costs more than its copy. */
export interface PackedRows {
  readonly columns: readonly TableColumn[]
  readonly length: number
  /** A line of JSON for each row: its key, its time and its values. Empty for a row in `texts`. */
  readonly lines: string
  /** For each row its sequence, then its doubles, which SQLite would write with 15 digits; NaN stands for null. */
  readonly numbers: Float64Array
  /** Rows that are returned as text, by index. */
  readonly texts: ReadonlyMap<number, Row>
  readonly bytes: number
}

/** SQLite builds the JSON of a row in a fraction of the time that reading its columns one by one takes. */
export function packRows(
  session: TenantSession,
  { database, after, limit, bytesMax = Infinity }: RowsQuery,
): PackedRows | null {
  const table = findTable(session, database)
  if (table === null || !canPack(table)) return null
  const { columns } = table
  const sql = selectPacked(table)
  const parts: string[] = []
  const numbers: number[] = []
  const texts = new Map<number, Row>()
  const nameBytes = columns.reduce((sum, { member }) => sum + member.length + 4, 0)
  let length = 0
  let bytes = 0
  let last = after ?? ''
  while (length < limit && bytes < bytesMax) {
    const count = Math.min(CHUNK_ROWS, limit - length)
    const found = session.connection.tuples<PackedTuple>(sql, last, count)
    const lines: string[] = []
    for (const row of found) {
      if (bytes >= bytesMax) break
      const [line] = row
      if (line.startsWith(TEXT_MARK)) {
        const stored = required(readRow(session, table, line.slice(1)), 'A row of the same snapshot')
        texts.set(length, stored)
        lines.push('')
        bytes += Buffer.byteLength(stored.text)
        last = stored.key
      } else {
        lines.push(line)
        bytes += line.length + nameBytes
      }
      for (let at = 1; at < row.length; at++) numbers.push((row[at] as number | null) ?? Number.NaN)
      length++
    }
    const end = lines.at(-1) ?? ''
    if (end !== '') last = (JSON.parse(end) as PackedLine)[0]
    if (lines.length > 0) parts.push(lines.join('\n'))
    if (found.length < count) break
  }
  return { columns, length, lines: parts.join('\n'), numbers: Float64Array.from(numbers), texts, bytes }
}

type PackedTuple = [line: string, sequence: number, ...doubles: Array<number | null>]

/** Rows that are read at once: all of them are in memory, none with more than VALUES_TEXT_MAX bytes. */
const CHUNK_ROWS = 512
/** The first character of a row that is read as text: its key follows. An array begins with another one. */
const TEXT_MARK = 'k'
/** A function of SQLite has at most 1,000 arguments. */
const COLUMNS_MAX = 990

/** During a schema change, a value may be in either of two columns. */
function canPack({ columns }: Table): boolean {
  return columns.length <= COLUMNS_MAX && columns.every(({ former }) => former !== true)
}

function selectPacked({ columns, live }: Table): string {
  const named = columns.flatMap((column) => (column.name === null ? [] : [{ ...column, name: column.name }]))
  const packed = named.filter(({ type }) => type !== 'double').map(packedValue)
  const doubles = named.filter(({ type }) => type === 'double').map(({ name }) => `, ${quoteIdentifier(name)}`)
  const sizes = named
    .filter(({ type }) => !isShortType(type))
    .map(({ name }) => ` + ifnull(octet_length(${quoteIdentifier(name)}), 0)`)
  return `select case when _extra is null and 0${sizes.join('')} <= ${VALUES_TEXT_MAX}
      then json_array(_key, _synced_at${packed.join('')}) else '${TEXT_MARK}' || _key end, _sequence${doubles.join('')}
    from ${live} where _key > ? order by _key limit ?`
}

function packedValue({ name, type }: TableColumn & { readonly name: string }): string {
  const value = quoteIdentifier(name)
  // JSON has no blobs, and a large integer would be parsed as a double.
  if (type === 'bytes') return `, case when ${value} is not null then hex(${value}) end`
  if (type !== 'bigint') return `, ${value}`
  const { MAX_SAFE_INTEGER: max } = Number
  return `, case when ${value} between -${max} and ${max} then ${value} else cast(${value} as text) end`
}

function isShortType(type: TableColumn['type']): boolean {
  return ['bigint', 'boolean', 'date', 'datetime', 'double', 'time', 'timestamp', 'uuid'].includes(type)
}

type PackedValue = string | number
type PackedLine = [key: string, time: string, ...values: Array<PackedValue | null>]

/** The rows of a page. The one that was read last is kept, because its members are read one after the other. */
export class UnpackedRows implements RowValues {
  readonly length: number
  readonly bytes: number
  readonly members: readonly string[]
  readonly #lines: readonly string[]
  readonly #numbers: Float64Array
  readonly #texts: ReadonlyMap<number, Row>
  readonly #fields: ReadonlyArray<TableColumn & { readonly isDouble: boolean; readonly read: ValueReader | null }>
  readonly #numbersPerRow: number
  #index = -1
  #line: PackedLine = ['', '']
  #time = ''
  #committedAt = 0

  constructor({ columns, length, lines, numbers, texts, bytes }: PackedRows) {
    this.length = length
    this.bytes = bytes
    this.members = columns.map(({ member }) => member)
    this.#lines = lines.split('\n')
    this.#numbers = numbers
    this.#texts = texts
    this.#fields = columns.map((column) => ({ ...column, isDouble: column.type === 'double', read: readerOf(column) }))
    this.#numbersPerRow = 1 + this.#fields.filter(({ name, isDouble }) => name !== null && isDouble).length
  }

  key(index: number): string {
    return this.#texts.get(index)?.key ?? this.#lineOf(index)[0]
  }

  sequence(index: number): number {
    return this.#numbers[index * this.#numbersPerRow] ?? 0
  }

  committedAt(index: number): number {
    const stored = this.#texts.get(index)
    if (stored !== undefined) return stored.committedAt
    const [, time] = this.#lineOf(index)
    // The rows of a commit have one time.
    if (time !== this.#time) {
      this.#time = time
      this.#committedAt = Date.parse(time)
    }
    return this.#committedAt
  }

  text(index: number): string | null {
    return this.#texts.get(index)?.text ?? null
  }

  values(index: number): Array<JsonValue | undefined> {
    const line = this.#lineOf(index)
    const values: Array<JsonValue | undefined> = []
    let next = 2
    let nextNumber = index * this.#numbersPerRow + 1
    for (const field of this.#fields) {
      let value: JsonValue = null
      if (field.name !== null)
        if (field.isDouble) {
          const double = this.#numbers[nextNumber++] ?? Number.NaN
          if (!Number.isNaN(double)) value = double
        } else {
          const stored = line[next++] ?? null
          value = stored === null || field.read === null ? stored : field.read(stored)
        }
      values.push(value === null ? valueOfNull(field, this.sequence(index)) : value)
    }
    return values
  }

  #lineOf(index: number): PackedLine {
    if (this.#index !== index) {
      this.#line = JSON.parse(this.#lines[index] ?? '') as PackedLine
      this.#index = index
    }
    return this.#line
  }
}

type ValueReader = (value: PackedValue) => JsonValue

/** How a value of the JSON becomes one of the record; null if it is the same. */
function readerOf({ type }: TableColumn): ValueReader | null {
  switch (type) {
    case 'boolean':
      return (value) => value !== 0
    case 'bigint':
      return (value) => (typeof value === 'number' ? value : BigInt(value))
    case 'bytes':
      return (value) => Buffer.from(String(value), 'hex').toString('base64')
    case 'numeric':
      return (value) => parseNumber(String(value))
    default:
      return type === 'json' || isListType(type) ? (value) => parseJson(String(value)) : null
  }
}
