import type { ColumnKind, JsonObject } from '../../../contract/index.ts'
import { parseJson, stringifyJson } from '../../../values/json.ts'
import { required } from '../../../values/required.ts'
import type { SerializedRecord, SerializedShape } from '../../../values/serialized-upsert.ts'
import {
  getScalarFormat,
  decodeRecord,
  type ValueDecoder,
  type ScalarFormat,
  type PostgresType,
} from './decode-values.ts'

export interface SerializedRow {
  /** The requested fields only. */
  readonly record: JsonObject
  readonly serialized: SerializedRecord
  readonly bytes: number
}

/**
 * Converts a line of COPY to the JSON text of the record, byte by byte. The text equals the serialized decoded record, but only
 * the requested fields are decoded.
 */
export class RowSerializer {
  readonly #columns: readonly SerializerColumn[]
  readonly #requestedColumns: {
    readonly indexes: readonly number[]
    readonly names: readonly string[]
    readonly decoders: readonly ValueDecoder[]
  }
  readonly #prefixBytes: number
  readonly #shapes: RowShape[] = []
  /** The current row: where each column starts, its kind, and the text so far. */
  readonly #starts: Int32Array
  readonly #kinds: Uint8Array
  #buffer = Buffer.allocUnsafeSlow(16_384)
  #length = 0

  private constructor(columns: readonly SerializerColumn[], indexes: readonly number[]) {
    this.#columns = columns
    const requested = indexes.map((index) => required(columns[index], 'The requested column'))
    this.#requestedColumns = {
      indexes,
      names: requested.map(({ name }) => name),
      decoders: requested.map(({ decode }) => decode),
    }
    this.#prefixBytes = columns.reduce((sum, { prefix }) => sum + prefix.length, 0)
    this.#starts = new Int32Array(columns.length + 1)
    this.#kinds = new Uint8Array(columns.length)
  }

  /** Null if rows must be decoded: a column may hold nested values, or the fields have another order than the columns. */
  static create(
    columns: readonly { name: string; oid: number; decode: ValueDecoder }[],
    types: ReadonlyMap<number, PostgresType>,
    wanted: readonly string[],
  ): RowSerializer | null {
    const names = columns.map(({ name }) => name)
    const fields = Object.keys(
      decodeRecord(
        names,
        [],
        names.map(() => null),
      ),
    )
    if (fields.length === 0 || fields.length !== names.length || fields.some((name, index) => name !== names[index]))
      return null
    const serialized: SerializerColumn[] = []
    for (const [index, { name, oid, decode }] of columns.entries()) {
      const format = getScalarFormat(oid, types)
      if (format === null) return null
      serialized.push({
        name,
        format,
        decode,
        prefix: Buffer.from(`${index === 0 ? '{' : ','}${JSON.stringify(name)}:`),
      })
    }
    return new RowSerializer(
      serialized,
      wanted.map((name) => names.indexOf(name)).filter((index) => index !== -1),
    )
  }

  /** Takes one row in COPY text format, with its line feed. The caller may reuse the buffer afterwards. */
  serialize(line: Buffer): SerializedRow {
    const end = line.length - 1
    this.#reserve(end)
    let from = 0
    let index = 0
    for (const column of this.#columns) {
      this.#starts[index] = from
      this.#append(column.prefix)
      from = this.#writeValue(line, from, end, column, index) + 1
      index++
    }
    this.#starts[this.#columns.length] = from
    this.#buffer[this.#length++] = CLOSE
    return {
      record: this.#decodeRequested(line),
      serialized: { text: this.#buffer.toString('utf8', 0, this.#length), shape: this.#findShape() },
      bytes: line.length,
    }
  }

  /** A byte becomes at most six bytes (a JSON escape), and a number at most 32. */
  #reserve(bytes: number): void {
    const needed = this.#prefixBytes + bytes * 6 + this.#columns.length * 32
    if (this.#buffer.length < needed) this.#buffer = Buffer.allocUnsafeSlow(needed * 2)
    this.#length = 0
  }

  /** Returns the index at which the value ends in the line. */
  #writeValue(line: Buffer, from: number, end: number, { format, decode }: SerializerColumn, index: number): number {
    if (isNull(line, from)) {
      this.#kinds[index] = NONE
      this.#append(NULL)
      return from + 2
    }
    this.#kinds[index] = STRING
    if (format === 'text') return this.#writeText(line, from, end)
    const to = findValueEnd(line, from, end)
    switch (format) {
      case 'integer':
        this.#kinds[index] = INTEGER
        this.#appendRange(line, from, to)
        break
      case 'boolean':
        this.#kinds[index] = BOOLEAN
        this.#append(line[from] === LOWER_T ? TRUE : FALSE)
        break
      case 'float':
        this.#kinds[index] = this.#writeFloat(line, from, to, decode)
        break
      case 'timestamp':
        this.#writeTimestamp(line, from, to)
        break
      case 'instant':
        this.#writeInstant(line, from, to)
        break
      case 'decoded':
        this.#append(Buffer.from(stringifyJson(decode(unescapeCopyText(line, from, to)))))
    }
    return to
  }

  /** Converts COPY escapes to JSON escapes. */
  #writeText(line: Buffer, from: number, end: number): number {
    const out = this.#buffer
    let put = this.#length
    let at = from
    out[put++] = QUOTE
    for (; at < end; at++) {
      const byte = line[at]!
      if (byte >= SPACE && byte !== QUOTE && byte !== BACKSLASH) {
        out[put++] = byte
      } else if (byte === TAB) {
        break
      } else if (byte === QUOTE) {
        out[put++] = BACKSLASH
        out[put++] = QUOTE
      } else if (byte === BACKSLASH && line[at + 1] !== LOWER_V) {
        // \b \f \n \r \t and \\ are the same in both.
        out[put++] = BACKSLASH
        out[put++] = line[++at]!
      } else {
        if (byte === BACKSLASH) at++
        put += out.write(
          `\\u${(byte === BACKSLASH ? VERTICAL_TAB : byte).toString(16).padStart(4, '0')}`,
          put,
          'latin1',
        )
      }
    }
    out[put++] = QUOTE
    this.#length = put
    return at
  }

  /** Copies the bytes if both formats agree: no sign, no exponent, and at most the 15 digits that a double always preserves. */
  #writeFloat(line: Buffer, from: number, to: number, decode: ValueDecoder): number {
    let points = 0
    let digits = 0
    for (let at = from; at < to; at++) {
      if (line[at] === POINT) points++
      else if (isDigit(line[at])) digits++
    }
    if (digits <= 15 && digits + points === to - from) {
      this.#appendRange(line, from, to)
      return points === 0 ? INTEGER : NUMBER
    }
    const value = decode(unescapeCopyText(line, from, to)) as number | string
    this.#append(Buffer.from(stringifyJson(value)))
    return typeof value === 'string' ? STRING : Number.isSafeInteger(value) ? INTEGER : NUMBER
  }

  #writeTimestamp(line: Buffer, from: number, to: number): void {
    this.#buffer[this.#length++] = QUOTE
    const start = this.#length
    this.#appendRange(line, from, to)
    const space = line.indexOf(SPACE, from)
    if (space !== -1 && space < to) this.#buffer[start + space - from] = UPPER_T
    this.#buffer[this.#length++] = QUOTE
  }

  #writeInstant(line: Buffer, from: number, to: number): void {
    this.#buffer[this.#length++] = QUOTE
    const start = this.#length
    this.#appendRange(line, from, to)
    if (isUtcInstant(line, from, to)) {
      this.#buffer[start + 10] = UPPER_T
      this.#length -= 3
      this.#buffer[this.#length++] = UPPER_Z
    }
    this.#buffer[this.#length++] = QUOTE
  }

  #append(bytes: Buffer): void {
    this.#appendRange(bytes, 0, bytes.length)
  }

  #appendRange(bytes: Buffer, from: number, to: number): void {
    const out = this.#buffer
    let put = this.#length
    for (let at = from; at < to; at++) out[put++] = bytes[at]!
    this.#length = put
  }

  #decodeRequested(line: Buffer): JsonObject {
    const { indexes, names, decoders } = this.#requestedColumns
    return decodeRecord(
      names,
      decoders,
      indexes.map((index) => this.#unescapeColumn(line, index)),
    )
  }

  #unescapeColumn(line: Buffer, index: number): string | null {
    if (this.#kinds[index] === NONE) return null
    const [start, nextStart] = this.#starts.subarray(index, index + 2)
    return unescapeCopyText(
      line,
      required(start, 'The start of the column'),
      required(nextStart, 'The end of the column') - 1,
    )
  }

  /** Reuses the shape of an earlier row with the same kinds. */
  #findShape(): SerializedShape {
    for (const shape of this.#shapes) if (this.#hasSameKinds(shape)) return shape
    const shape = {
      kinds: this.#kinds.slice(),
      columns: this.#columns.map(({ name }, index) => ({
        name,
        kinds: KINDS_BY_CODE[this.#kinds[index] ?? NONE] ?? [],
      })),
      parse: (text: string) => this.#parseRecord(text),
      isTrusted: true,
    }
    // Searching more shapes costs more than creating one.
    if (this.#shapes.length < SHAPES_MAX) this.#shapes.push(shape)
    return shape
  }

  #hasSameKinds({ kinds }: RowShape): boolean {
    for (let index = 0; index < kinds.length; index++) if (kinds[index] !== this.#kinds[index]) return false
    return true
  }

  #parseRecord(text: string): JsonObject {
    const record = parseJson(text) as JsonObject
    // A large double without a fraction parses as a bigint, but it stays a double.
    for (const { name, format } of this.#columns)
      if (format === 'float' && typeof record[name] === 'bigint') record[name] = Number(record[name])
    return record
  }
}

interface SerializerColumn {
  readonly name: string
  readonly format: ScalarFormat
  readonly decode: ValueDecoder
  /** The JSON text before the value: a separator and the name. */
  readonly prefix: Buffer
}

interface RowShape extends SerializedShape {
  readonly kinds: Uint8Array
}

const SHAPES_MAX = 32

const [NONE, STRING, INTEGER, NUMBER, BOOLEAN] = [0, 1, 2, 3, 4] as const
const KINDS_BY_CODE: readonly (readonly ColumnKind[])[] = [[], ['string'], ['integer'], ['number'], ['boolean']]

const [TAB, VERTICAL_TAB, SPACE, QUOTE, PLUS, DASH, POINT, ZERO, NINE, BACKSLASH, CLOSE] = [
  0x09, 0x0b, 0x20, 0x22, 0x2b, 0x2d, 0x2e, 0x30, 0x39, 0x5c, 0x7d,
] as const
const [UPPER_N, UPPER_T, UPPER_Z, LOWER_T, LOWER_V] = [0x4e, 0x54, 0x5a, 0x74, 0x76] as const
const [NULL, TRUE, FALSE] = [Buffer.from('null'), Buffer.from('true'), Buffer.from('false')] as const

/** A tab inside a value is written as \t. */
function findValueEnd(line: Buffer, from: number, end: number): number {
  let at = from
  while (at < end && line[at] !== TAB) at++
  return at
}

/** A backslash that is part of a value is written twice. */
function isNull(line: Buffer, from: number): boolean {
  return line[from] === BACKSLASH && line[from + 1] === UPPER_N
}

/** The same check as `decodeInstant`: a year of four digits, and UTC. It excludes `infinity` and other years. */
function isUtcInstant(line: Buffer, from: number, to: number): boolean {
  if (
    to - from < 22 ||
    line[from + 4] !== DASH ||
    line[to - 3] !== PLUS ||
    line[to - 2] !== ZERO ||
    line[to - 1] !== ZERO
  )
    return false
  for (let at = from; at < from + 4; at++) if (!isDigit(line[at])) return false
  for (let at = from + 19; at < to - 3; at++) if (!isDigit(line[at]) && line[at] !== POINT) return false
  return true
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= NINE
}

/** Removes the escapes of COPY. */
function unescapeCopyText(line: Buffer, from: number, to: number): string {
  const text = line.toString('utf8', from, to)
  return text.includes('\\') ? text.replace(/\\(.)/g, (_, escaped: string) => COPY_ESCAPES[escaped] ?? escaped) : text
}

const COPY_ESCAPES: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }
