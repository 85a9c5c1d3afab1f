import type { JsonValue } from '../../contract/index.ts'
import type { TableColumn } from '../kit/tables/column.ts'
import type { RecordEncoder } from '../kit/tables/encode-record.ts'
import { JSONB_VERSION, sqlTypeOf, utcMicros, type BinaryWriter, type SqlType } from './binary-values.ts'

/**
 * Writes the columns of a record from its JSON text, without parsing it: the bytes of a text, a number or a nested
 * value are copied from where they are. Equals `RecordEncoder.encode` for the records it accepts: those whose columns
 * hold every value exactly.
 */
export class RecordTranscoder {
  readonly #columns: readonly TranscodedColumn[]
  readonly #indexes: ReadonlyMap<string, number>
  readonly #encoder: RecordEncoder
  /** Where the value of each column begins and ends in the text; a column without a value begins at `ABSENT`. */
  readonly #starts: Int32Array
  readonly #ends: Int32Array
  /** 1 for a value with a backslash, 2 for one with the code of a character, which jsonb may refuse. */
  readonly #isEscaped: Uint8Array

  constructor(columns: readonly TableColumn[], encoder: RecordEncoder) {
    this.#columns = columns.map((column) => ({
      column,
      token: Buffer.from(`${JSON.stringify(column.member)}:`),
      sqlType: sqlTypeOf(column.type),
      kind: kindOf(column),
      decimals: (column.format ?? '').charCodeAt(0) - DIGIT_0,
    }))
    this.#indexes = new Map(this.#columns.map(({ token }, at) => [token.toString('latin1'), at]))
    this.#encoder = encoder
    this.#starts = new Int32Array(columns.length)
    this.#ends = new Int32Array(columns.length)
    this.#isEscaped = new Uint8Array(columns.length)
  }

  /** Returns false, with nothing written, for a record that must be parsed. */
  write(writer: BinaryWriter, text: string): boolean {
    if (text.length > TEXT_MAX || !this.#locateValues(SCRATCH.write(text, 0))) return false
    const { length } = writer
    for (let at = 0; at < this.#columns.length; at++) {
      if (this.#writeValue(writer, this.#columns[at] as TranscodedColumn, at)) continue
      writer.rewind(length)
      return false
    }
    return true
  }

  /** False for a field without a column, or text that is not as `JSON.stringify` writes it. */
  #locateValues(length: number): boolean {
    const bytes = SCRATCH
    const starts = this.#starts
    starts.fill(ABSENT)
    if (bytes[0] !== BRACE_OPEN || length < 2) return false
    if (bytes[1] === BRACE_CLOSE) return length === 2
    // Most records have their fields in the order of the columns.
    let expected = 0
    for (let at = 1; ; at++) {
      const index = this.#startsWithName(expected, at) ? expected : this.#indexOfName(at, length)
      if (index === -1) return false
      at += this.#columns[index]?.token.length ?? 0
      starts[index] = at
      at = this.#endOfValue(index, at, length)
      if (at === -1) return false
      this.#ends[index] = at
      expected = index + 1
      const next = bytes[at]
      if (next === COMMA) continue
      return next === BRACE_CLOSE && at === length - 1
    }
  }

  #startsWithName(index: number, at: number): boolean {
    const token = this.#columns[index]?.token
    if (token === undefined) return false
    for (let n = 0; n < token.length; n++) if (SCRATCH[at + n] !== token[n]) return false
    return true
  }

  /** -1 for a field that has no column, and for a name with a backslash. */
  #indexOfName(at: number, length: number): number {
    let end = at + 1
    while (end < length && SPECIAL[SCRATCH[end] as number] === 0) end++
    return this.#indexes.get(SCRATCH.toString('latin1', at, end + 2)) ?? -1
  }

  /** Returns the index after the value; -1 for a value that must be parsed. */
  #endOfValue(index: number, start: number, length: number): number {
    const bytes = SCRATCH
    let at = start
    let depth = 0
    let isEscaped = 0
    while (at < length) {
      const byte = bytes[at] as number
      if (byte === QUOTE) {
        for (at++; ; at++) {
          while (SPECIAL[bytes[at] as number] === 0) at++
          if (bytes[at] !== BACKSLASH) break
          isEscaped = Math.max(isEscaped, bytes[++at] === LETTER_U ? 2 : 1)
        }
        // Control characters are not valid in a text.
        if (bytes[at] !== QUOTE || at >= length) return -1
        at++
        if (depth === 0) break
      } else if (byte === BRACE_OPEN || byte === BRACKET_OPEN) {
        depth++
        at++
      } else if (byte === BRACE_CLOSE || byte === BRACKET_CLOSE) {
        if (depth === 0) break
        depth--
        at++
        if (depth === 0) break
      } else if (byte === COMMA && depth === 0) break
      else at++
    }
    this.#isEscaped[index] = isEscaped
    return at === start ? -1 : at
  }

  #writeValue(writer: BinaryWriter, { column, kind, sqlType, decimals }: TranscodedColumn, index: number): boolean {
    const start = this.#starts[index] as number
    const end = this.#ends[index] as number
    const hasColumn = column.name !== null
    if (start === ABSENT) return column.none === 'absent' && writeNull(writer, hasColumn)
    const first = SCRATCH[start] as number
    if (first === LETTER_N) return column.none === 'null' && writeNull(writer, hasColumn)
    if (!hasColumn) return false
    if (column.none === 'empty' && first === QUOTE && end === start + 2) return writeNull(writer, true)
    switch (kind) {
      case 'text':
        if (first !== QUOTE) return false
        if (this.#isEscaped[index] !== 0) writer.text(JSON.parse(SCRATCH.toString('utf8', start, end)) as string)
        else writer.textBytes(SCRATCH, start + 1, end - 1)
        return true
      case 'boolean':
        if (first !== LETTER_T && first !== LETTER_F) return false
        writer.boolean(first === LETTER_T)
        return true
      case 'bigint':
      case 'double': {
        const number = readNumber(start, end, kind === 'double')
        if (Number.isNaN(number)) return false
        if (kind === 'double') writer.double(number)
        else writer.int64(number)
        return true
      }
      case 'json':
        if (this.#isEscaped[index] === 2 || !hasPlainNumbers(start, end)) return false
        writer.textBytes(SCRATCH, start, end, JSONB_VERSION)
        return true
      case 'timestamp': {
        if (first !== QUOTE) return false
        const micros = utcMicros(SCRATCH, start + 1, end - 1, decimals)
        if (!Number.isNaN(micros)) {
          writer.int64(micros)
          return true
        }
        return this.#writeParsed(writer, column, sqlType, start, end)
      }
      default:
        return this.#writeParsed(writer, column, sqlType, start, end)
    }
  }

  #writeParsed(writer: BinaryWriter, column: TableColumn, sqlType: SqlType, start: number, end: number): boolean {
    if (!hasPlainNumbers(start, end)) return false
    const value = JSON.parse(SCRATCH.toString('utf8', start, end)) as Exclude<JsonValue, null>
    const held = this.#encoder.encodeExact(column, value)
    if (held === null) return false
    writer.value(sqlType, held)
    return true
  }
}

interface TranscodedColumn {
  readonly column: TableColumn
  /** The name of the field as it is in the text, with the colon. */
  readonly token: Buffer
  readonly sqlType: SqlType
  /** Null for a type without a short cut. */
  readonly kind: 'text' | 'boolean' | 'bigint' | 'double' | 'json' | 'timestamp' | null
  /** Only for a timestamp. */
  readonly decimals: number
}

function kindOf({ type, format }: TableColumn): TranscodedColumn['kind'] {
  switch (type) {
    case 'text':
    case 'boolean':
    case 'bigint':
    case 'double':
    case 'json':
      return type
    case 'timestamp':
      return format?.length === 2 && format.endsWith('Z') && !format.startsWith('*') ? type : null
    default:
      return null
  }
}

function writeNull(writer: BinaryWriter, hasColumn: boolean): true {
  if (hasColumn) writer.int32(-1)
  return true
}

/** NaN for a number that a parser must read: with an exponent, with more than 15 digits, or -0. */
function readNumber(start: number, end: number, mayHaveDecimals: boolean): number {
  const isNegative = SCRATCH[start] === MINUS
  let digits = 0
  let decimals = -1
  let number = 0
  for (let at = isNegative ? start + 1 : start; at < end; at++) {
    const byte = SCRATCH[at] as number
    if (byte >= DIGIT_0 && byte <= DIGIT_9) {
      number = number * 10 + byte - DIGIT_0
      if (++digits > DIGITS_MAX) return Number.NaN
      if (decimals >= 0) decimals++
    } else if (byte === POINT && mayHaveDecimals && decimals === -1) decimals = 0
    else return Number.NaN
  }
  if (digits === 0 || (isNegative && number === 0)) return Number.NaN
  // Both are exact, so the quotient is the double nearest to the text.
  if (decimals > 0) number /= POWERS_OF_TEN[decimals] as number
  return isNegative ? -number : number
}

/** False if a number among the values may be written differently by jsonb, or by JavaScript. */
function hasPlainNumbers(start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const byte = SCRATCH[at] as number
    if (byte === QUOTE) {
      for (at++; SCRATCH[at] !== QUOTE; at++) if (SCRATCH[at] === BACKSLASH) at++
      continue
    }
    if (byte !== MINUS && (byte < DIGIT_0 || byte > DIGIT_9)) continue
    const from = at
    let hasPoint = false
    for (; at < end; at++) {
      const next = SCRATCH[at] as number
      if (next === POINT) hasPoint = true
      else if (next === LETTER_E || next === LETTER_CAPITAL_E) return false
      else if (next !== MINUS && (next < DIGIT_0 || next > DIGIT_9)) break
    }
    if (at - from > DIGITS_MAX || (hasPoint && SCRATCH[at - 1] === DIGIT_0)) return false
    if (byte === MINUS && SCRATCH[from + 1] === DIGIT_0 && !hasPoint) return false
    at--
  }
  return true
}

/** Longer texts are parsed. */
const TEXT_MAX = 1 << 14
/** The text of the record that is being written: three bytes suffice for a UTF-16 unit. */
const SCRATCH = Buffer.alloc(TEXT_MAX * 3 + 1)

const ABSENT = -1
const DIGITS_MAX = 15
const POWERS_OF_TEN = Array.from({ length: DIGITS_MAX + 1 }, (_, at) => 10 ** at)

const [QUOTE, BACKSLASH, COMMA, MINUS, POINT] = [0x22, 0x5c, 0x2c, 0x2d, 0x2e]
const [BRACE_OPEN, BRACE_CLOSE, BRACKET_OPEN, BRACKET_CLOSE] = [0x7b, 0x7d, 0x5b, 0x5d]
const [DIGIT_0, DIGIT_9] = [0x30, 0x39]
const [LETTER_E, LETTER_CAPITAL_E, LETTER_F, LETTER_N, LETTER_T, LETTER_U] = [0x65, 0x45, 0x66, 0x6e, 0x74, 0x75]

/** 1 for a byte that a text cannot contain as it is: quotes, backslashes and control characters. */
const SPECIAL = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x20 || byte === QUOTE || byte === BACKSLASH ? 1 : 0,
)
