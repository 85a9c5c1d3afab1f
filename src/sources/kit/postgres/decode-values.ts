import type { JsonObject, JsonValue } from '../../../contract/index.ts'
import { parseJson } from '../../../values/json.ts'

/** What the catalog says of a type that is not one of the plain ones below. */
export interface PostgresType {
  readonly oid: number
  /** Of a domain: the type below it. */
  readonly base: number
  /** Of an array: the type of its elements. */
  readonly element: number
  readonly delimiter: string
}

/** Values as PostgreSQL writes them; null is null. */
export type TextRow = (string | null)[]

export type ValueDecoder = (text: string) => JsonValue

/**
 * PostgreSQL's text of a value as JSON, with nothing lost: an integer of any size is an integer, a decimal is a text with all
 * its digits, a moment keeps its microseconds, bytes are base64. The session must write moments as ISO, in UTC.
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

/** Types that need no look into the catalog. */
export function isBuiltinType(oid: number): boolean {
  return DECODER_BY_OID.has(oid)
}

/** How JSON text is made of the text of a value without depth: `decoded` takes the way over the value itself, which is a text. */
export type ScalarFormat = 'text' | 'integer' | 'boolean' | 'float' | 'moment' | 'instant' | 'decoded'

/** Null for what may hold other values: arrays and JSON. */
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
  [21, Number], [23, Number], [26, Number],
  [25, decodeText], [1043, decodeText], [1042, decodeText], [18, decodeText], [19, decodeText], [2950, decodeText], [1082, decodeText],
  [114, parseJson], [3802, parseJson],
  [700, decodeNumber], [701, decodeNumber],
  [TIMESTAMP_OID, decodeTimestamp],
  [TIMESTAMPTZ_OID, decodeInstant],
])

const FORMAT_BY_DECODER = new Map<ValueDecoder, ScalarFormat>([[decodeText, 'text'], [decodeBoolean, 'boolean'], [decodeNumber, 'float'], [Number, 'integer'], [decodeInteger, 'integer'], [decodeTimestamp, 'moment'], [decodeInstant, 'instant']])

export function decodeInteger(text: string): number | bigint {
  const number = Number(text)
  return Number.isSafeInteger(number) ? number : BigInt(text)
}

function decodeTimestamp(text: string): string {
  return text.replace(' ', 'T')
}

/** `infinity`, and what lies before our era, stay as they are. */
function decodeInstant(text: string): string {
  return /^\d{4}-.{14}[\d.]*\+00$/.test(text) ? `${text.slice(0, 10)}T${text.slice(11, -3)}Z` : text
}

/** A record of a row. */
export function decodeRecord(names: readonly string[], decoders: readonly ValueDecoder[], row: TextRow): JsonObject {
  const record: JsonObject = {}
  for (let index = 0; index < names.length; index++) {
    const text = row[index]!
    const value = text === null ? null : decoders[index]!(text)
    // A column may bear any name.
    if (names[index] === '__proto__') Object.defineProperty(record, '__proto__', { value, writable: true, enumerable: true, configurable: true })
    else record[names[index]!] = value
  }
  return record
}

/** `{1,NULL,"a,b",{…}}`, also with bounds in front of it: `[0:1]={…}`. */
function parseArray(text: string, delimiter: string, element: ValueDecoder): JsonValue {
  let at = text.indexOf('{')
  const list = (): JsonValue[] => {
    const items: JsonValue[] = []
    at++
    while (text[at] !== '}') {
      if (at >= text.length) throw new Error('an array that does not end')
      items.push(text[at] === '{' ? list() : text[at] === '"' ? quoted() : bare())
      if (text[at] === delimiter) at++
    }
    at++
    return items
  }
  const quoted = (): JsonValue => {
    let value = ''
    for (at++; text[at] !== '"'; at++) value += text[at] === '\\' ? text[++at]! : text[at]!
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
