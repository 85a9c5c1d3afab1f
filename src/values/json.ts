import { SyncError, type JsonObject, type JsonValue } from '../contract/index.ts'

export interface ParseJsonOptions {
  /** Called for every field name that occurs twice in one object; the last one wins. Uses the slower parser. */
  onDuplicate?: (name: string) => void
}

/** Like JSON.parse, but integers beyond 2^53 become bigint without loss, and `__proto__` is an ordinary field. */
export function parseJson(text: string, options: ParseJsonOptions = {}): JsonValue {
  if (options.onDuplicate === undefined && !hasLongDigits(text)) return JSON.parse(text) as JsonValue
  JSON.parse(text) // Rejects invalid JSON with the standard message; the parser below may then trust its input.
  return new LosslessParser(text, options.onDuplicate ?? (() => {})).parse()
}

/** A number of JSON as `parseJson` returns it. */
export function parseNumber(digits: string): number | bigint {
  const number = Number(digits)
  return !Number.isSafeInteger(number) && /^-?\d+$/.test(digits) ? BigInt(digits) : number
}

const LONG_DIGITS = 16

/**
 * Sixteen digits in a row may be an integer that a double cannot hold. Such a run covers a multiple of sixteen, so only
 * these indexes are searched, and the runs around them are measured.
 */
function hasLongDigits(text: string): boolean {
  for (let at = LONG_DIGITS - 1; at < text.length; at += LONG_DIGITS) {
    if (!isDigit(text.charCodeAt(at))) continue
    let [start, end] = [at, at + 1]
    while (start > 0 && isDigit(text.charCodeAt(start - 1))) start--
    while (end < text.length && end - start < LONG_DIGITS && isDigit(text.charCodeAt(end))) end++
    if (end - start >= LONG_DIGITS) return true
  }
  return false
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57
}

/**
 * Like JSON.stringify, but writes bigint as an integer, and -0 as `-0`. Throws for circular references and for nesting
 * too deep for the stack.
 */
export function stringifyJson(value: JsonValue): string {
  try {
    const text = JSON.stringify(value)
    return mayHaveZero(text) && hasNegativeZero(value) ? stringifyValue(value) : text
  } catch (error) {
    if (error instanceof TypeError && /BigInt/i.test(error.message)) return stringifyValue(value)
    throw error
  }
}

/** Searches that cost little find nearly every text without a zero. Some values, such as undefined, have no text. */
function mayHaveZero(text: string | undefined): boolean {
  if (text === undefined) return false
  if (text === '0') return true
  return (text.includes(':0') || text.includes(',0') || text.includes('[0')) && /[:,[]0[,\]}]/.test(text)
}

function hasNegativeZero(value: JsonValue | undefined): boolean {
  if (typeof value === 'number') return Object.is(value, -0)
  if (typeof value !== 'object' || value === null || typeof (value as { toJSON?: unknown }).toJSON === 'function')
    return false
  return Array.isArray(value) ? value.some(hasNegativeZero) : Object.values(value).some(hasNegativeZero)
}

/** Equal as JSON: the order of fields does not matter, everything else does. */
export function equalsJson(a: string, b: string): boolean {
  return a === b || equalsValue(parseJson(a), parseJson(b))
}

function equalsValue(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (Object.is(a, b)) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null || a === undefined || b === undefined)
    return false
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false
    return a.every((item, index) => equalsValue(item, b[index]))
  }
  const names = Object.keys(a)
  if (names.length !== Object.keys(b).length) return false
  return names.every((name) => Object.hasOwn(b, name) && equalsValue(a[name], b[name]))
}

function stringifyValue(value: JsonValue): string {
  if (typeof value === 'bigint') return value.toString()
  if (Object.is(value, -0)) return '-0'
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map((item) => stringifyValue(item ?? null)).join(',')}]`
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return JSON.stringify(value)
  const members: string[] = []
  for (const name of Object.keys(value)) {
    const member = value[name]
    if (member === undefined || typeof member === 'function' || typeof member === 'symbol') continue
    members.push(`${JSON.stringify(name)}:${stringifyValue(member)}`)
  }
  return `{${members.join(',')}}`
}

/** Far below the stack limit; records are rejected much earlier. */
const DEPTH_MAX = 1_000

const NUMBER_CHARS: ReadonlySet<string | undefined> = new Set('+-.0123456789eE')
const SPACE_CHARS: ReadonlySet<string | undefined> = new Set(' \n\r\t')

/** Parses text that is known to be valid JSON. */
class LosslessParser {
  #offset = 0
  #depth = 0
  readonly #text: string
  readonly #onDuplicate: (name: string) => void

  constructor(text: string, onDuplicate: (name: string) => void) {
    this.#text = text
    this.#onDuplicate = onDuplicate
  }

  parse(): JsonValue {
    if (++this.#depth > DEPTH_MAX)
      throw new SyncError('SOURCE_INVALID', `The text is nested more than ${DEPTH_MAX} deep.`)
    const value = this.#value()
    this.#depth--
    return value
  }

  #value(): JsonValue {
    this.#skipSpace()
    const char = this.#text[this.#offset]
    if (char === '{') return this.#object()
    if (char === '[') return this.#array()
    if (char === '"') return this.#string()
    if (char === 't') return this.#literal(4, true)
    if (char === 'f') return this.#literal(5, false)
    if (char === 'n') return this.#literal(4, null)
    return this.#number()
  }

  #object(): JsonObject {
    const object: JsonObject = {}
    if (this.#consumeEmpty('}')) return object
    do {
      this.#skipSpace()
      const name = this.#string()
      if (Object.hasOwn(object, name)) this.#onDuplicate(name)
      this.#skipSpace()
      this.#offset++ // :
      // Not an assignment: `object.__proto__ = …` would set the prototype instead of the field.
      Object.defineProperty(object, name, { value: this.parse(), writable: true, enumerable: true, configurable: true })
    } while (this.#consumeComma())
    return object
  }

  #array(): JsonValue[] {
    const array: JsonValue[] = []
    if (this.#consumeEmpty(']')) return array
    do array.push(this.parse())
    while (this.#consumeComma())
    return array
  }

  #consumeEmpty(close: string): boolean {
    this.#offset++
    this.#skipSpace()
    if (this.#text[this.#offset] !== close) return false
    this.#offset++
    return true
  }

  #consumeComma(): boolean {
    this.#skipSpace()
    return this.#text[this.#offset++] === ','
  }

  #string(): string {
    const start = this.#offset
    let end = start
    do end = this.#text.indexOf('"', end + 1)
    while (this.#isEscaped(end))
    this.#offset = end + 1
    return JSON.parse(this.#text.slice(start, end + 1)) as string
  }

  #isEscaped(quote: number): boolean {
    let backslashes = 0
    while (this.#text[quote - 1 - backslashes] === '\\') backslashes++
    return backslashes % 2 === 1
  }

  #number(): number | bigint {
    const start = this.#offset
    while (NUMBER_CHARS.has(this.#text[this.#offset])) this.#offset++
    return parseNumber(this.#text.slice(start, this.#offset))
  }

  #literal<T>(length: number, value: T): T {
    this.#offset += length
    return value
  }

  #skipSpace(): void {
    while (SPACE_CHARS.has(this.#text[this.#offset])) this.#offset++
  }
}
