import type { JsonObject, JsonValue } from '../../../contract/index.ts'
import { parseJson } from '../../../values/json.ts'
import { required } from '../../../values/required.ts'

/** A catalog entry of a type without a built-in decoder. */
export interface PostgresType {
  readonly oid: number
  /** The base type of a domain; 0 for other types. */
  readonly base: number
  /** The element type of an array; 0 for other types. */
  readonly element: number
  readonly delimiter: string
}

/** Values in PostgreSQL text format. */
export type TextRow = (string | null)[]

export type ValueDecoder = (text: string) => JsonValue

/**
 * Decodes PostgreSQL text to JSON without loss: integers keep their size, decimals are strings with all digits, timestamps keep
 * their microseconds, bytes are base64. The session must write timestamps as ISO in UTC.
 */
export function getDecoder(oid: number, types: ReadonlyMap<number, PostgresType>): ValueDecoder {
  const plain = DECODER_BY_OID.get(oid)
  if (plain !== undefined) return plain
  const type = types.get(oid)
  if (type === undefined) return decodeText
  if (type.base !== 0) return getDecoder(type.base, types)
  if (type.element === 0) return decodeText
  const element = getDecoder(type.element, types)
  return (text) => parseArray(text, type.delimiter, element)
}

/** Built-in types need no catalog query. */
export function isBuiltinType(oid: number): boolean {
  return DECODER_BY_OID.has(oid)
}

/** How PostgreSQL text becomes JSON text. `decoded` decodes the value and serializes it. */
export type ScalarFormat = 'text' | 'integer' | 'boolean' | 'float' | 'timestamp' | 'instant' | 'decoded'

/** Null for types with nested values: arrays and JSON. */
export function getScalarFormat(oid: number, types: ReadonlyMap<number, PostgresType>): ScalarFormat | null {
  const plain = DECODER_BY_OID.get(oid)
  if (plain !== undefined) return plain === parseJson ? null : (FORMAT_BY_DECODER.get(plain) ?? 'decoded')
  const type = types.get(oid)
  if (type === undefined) return 'text'
  if (type.base !== 0) return getScalarFormat(type.base, types)
  return type.element === 0 ? 'text' : null
}

export const INT8_OID = 20
export const TIMESTAMP_OID = 1114
export const TIMESTAMPTZ_OID = 1184

const decodeText: ValueDecoder = (text) => text
const decodeBoolean: ValueDecoder = (text) => text === 't'
const decodeNumber: ValueDecoder = (text) => {
  const number = Number(text)
  return Number.isFinite(number) ? number : text
}

const DECODER_BY_OID = new Map<number, ValueDecoder>([
  [16, decodeBoolean],
  [17, (text) => (text.startsWith('\\x') ? Buffer.from(text.slice(2), 'hex').toString('base64') : text)],
  [INT8_OID, decodeInteger],
  [21, Number],
  [23, Number],
  [26, Number],
  [25, decodeText],
  [1043, decodeText],
  [1042, decodeText],
  [18, decodeText],
  [19, decodeText],
  [2950, decodeText],
  [1082, decodeText],
  [114, parseJson],
  [3802, parseJson],
  [700, decodeNumber],
  [701, decodeNumber],
  [TIMESTAMP_OID, decodeTimestamp],
  [TIMESTAMPTZ_OID, decodeInstant],
])

const FORMAT_BY_DECODER = new Map<ValueDecoder, ScalarFormat>([
  [decodeText, 'text'],
  [decodeBoolean, 'boolean'],
  [decodeNumber, 'float'],
  [Number, 'integer'],
  [decodeInteger, 'integer'],
  [decodeTimestamp, 'timestamp'],
  [decodeInstant, 'instant'],
])

export function decodeInteger(text: string): number | bigint {
  const number = Number(text)
  return Number.isSafeInteger(number) ? number : BigInt(text)
}

function decodeTimestamp(text: string): string {
  return text.replace(' ', 'T')
}

/** `infinity` and years BC stay as they are. */
function decodeInstant(text: string): string {
  return /^\d{4}-.{14}[\d.]*\+00$/.test(text) ? `${text.slice(0, 10)}T${text.slice(11, -3)}Z` : text
}

export function decodeRecord(names: readonly string[], decoders: readonly ValueDecoder[], row: TextRow): JsonObject {
  const record: JsonObject = {}
  for (let index = 0; index < names.length; index++) {
    const name = required(names[index], 'The column name')
    const text = row[index] ?? null
    const value = text === null ? null : required(decoders[index], 'The column decoder')(text)
    // A column may have any name.
    if (name === '__proto__')
      Object.defineProperty(record, '__proto__', { value, writable: true, enumerable: true, configurable: true })
    else record[name] = value
  }
  return record
}

/** Parses `{1,NULL,"a,b",{…}}`, with optional bounds: `[0:1]={…}`. */
function parseArray(text: string, delimiter: string, element: ValueDecoder): JsonValue {
  let at = text.indexOf('{')
  const list = (): JsonValue[] => {
    const items: JsonValue[] = []
    at++
    while (text[at] !== '}') {
      if (at >= text.length) throw new Error('The text of an array has no closing brace')
      items.push(text[at] === '{' ? list() : text[at] === '"' ? quoted() : bare())
      if (text[at] === delimiter) at++
    }
    at++
    return items
  }
  const quoted = (): JsonValue => {
    let value = ''
    for (at++; text[at] !== '"'; at++) value += text.charAt(text[at] === '\\' ? ++at : at)
    at++
    return element(value)
  }
  const bare = (): JsonValue => {
    const start = at
    while (at < text.length && text[at] !== delimiter && text[at] !== '}') at++
    const value = text.slice(start, at)
    return value === 'NULL' ? null : element(value)
  }
  return list()
}
