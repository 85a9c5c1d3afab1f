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

export type Decode = (text: string) => JsonValue

/**
 * PostgreSQL's text of a value as JSON, with nothing lost: an integer of any size is an integer, a decimal is a text with all
 * its digits, a moment keeps its microseconds, bytes are base64. The session must write moments as ISO, in UTC.
 */
export function decoderOf(oid: number, types: ReadonlyMap<number, PostgresType>): Decode {
  const plain = DECODERS.get(oid)
  if (plain !== undefined) return plain
  const type = types.get(oid)
  if (type === undefined) return asText
  if (type.base !== 0) return decoderOf(type.base, types)
  if (type.element === 0) return asText
  const element = decoderOf(type.element, types)
  return (text) => parseArray(text, type.delimiter, element)
}

/** Types that need no look into the catalog. */
export function isPlain(oid: number): boolean {
  return DECODERS.has(oid)
}

/** How JSON text is made of the text of a value without depth: `decoded` takes the way over the value itself, which is a text. */
export type PlainType = 'text' | 'integer' | 'boolean' | 'float' | 'moment' | 'instant' | 'decoded'

/** Null for what may hold other values: arrays and JSON. */
export function plainTypeOf(oid: number, types: ReadonlyMap<number, PostgresType>): PlainType | null {
  const plain = DECODERS.get(oid)
  if (plain !== undefined) return plain === parseJson ? null : (PLAIN_TYPES.get(plain) ?? 'decoded')
  const type = types.get(oid)
  if (type === undefined) return 'text'
  if (type.base !== 0) return plainTypeOf(type.base, types)
  return type.element === 0 ? 'text' : null
}

export const INT8 = 20
export const TIMESTAMP = 1114
export const TIMESTAMPTZ = 1184

const asText: Decode = (text) => text
const asBoolean: Decode = (text) => text === 't'
const asNumber: Decode = (text) => {
  const number = Number(text)
  return Number.isFinite(number) ? number : text
}

const DECODERS = new Map<number, Decode>([
  [16, asBoolean],
  [17, (text) => (text.startsWith('\\x') ? Buffer.from(text.slice(2), 'hex').toString('base64') : text)],
  [INT8, wholeNumber],
  [21, Number], [23, Number], [26, Number],
  [25, asText], [1043, asText], [1042, asText], [18, asText], [19, asText], [2950, asText], [1082, asText],
  [114, parseJson], [3802, parseJson],
  [700, asNumber], [701, asNumber],
  [TIMESTAMP, momentText],
  [TIMESTAMPTZ, instantText],
])

const PLAIN_TYPES = new Map<Decode, PlainType>([[asText, 'text'], [asBoolean, 'boolean'], [asNumber, 'float'], [Number, 'integer'], [wholeNumber, 'integer'], [momentText, 'moment'], [instantText, 'instant']])

export function wholeNumber(text: string): number | bigint {
  const number = Number(text)
  return Number.isSafeInteger(number) ? number : BigInt(text)
}

function momentText(text: string): string {
  return text.replace(' ', 'T')
}

/** `infinity`, and what lies before our era, stay as they are. */
function instantText(text: string): string {
  return /^\d{4}-.{14}[\d.]*\+00$/.test(text) ? `${text.slice(0, 10)}T${text.slice(11, -3)}Z` : text
}

/** A record of a row. */
export function recordOf(names: readonly string[], decoders: readonly Decode[], row: TextRow): JsonObject {
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
function parseArray(text: string, delimiter: string, element: Decode): JsonValue {
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
