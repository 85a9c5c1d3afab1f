import { required } from '../kit/required.ts'

/** The supported property types. `Edm.DateTime` exists in version 2 only, `Edm.Date` in version 4 only. */
export type EdmType =
  | 'Edm.String'
  | 'Edm.Boolean'
  | 'Edm.Byte'
  | 'Edm.SByte'
  | 'Edm.Int16'
  | 'Edm.Single'
  | 'Edm.Int32'
  | 'Edm.Int64'
  | 'Edm.Decimal'
  | 'Edm.Double'
  | 'Edm.Guid'
  | 'Edm.DateTimeOffset'
  | 'Edm.DateTime'
  | 'Edm.Date'

/**
 * The value as a test writes it: Int64 and Decimal may be text so that no digit is lost; times are ISO text with up to
 * seven decimals.
 */
export type EdmValue = string | number | boolean | null

/** Classes of mutually comparable types. */
export type EdmClass = 'text' | 'truth' | 'number' | 'guid' | 'offset' | 'datetime' | 'date'

export interface Comparable {
  readonly class: EdmClass
  readonly value: string | bigint | boolean | null
}

const CLASSES: Record<EdmType, EdmClass> = {
  'Edm.String': 'text',
  'Edm.Boolean': 'truth',
  'Edm.Byte': 'number',
  'Edm.SByte': 'number',
  'Edm.Int16': 'number',
  'Edm.Single': 'number',
  'Edm.Int32': 'number',
  'Edm.Int64': 'number',
  'Edm.Decimal': 'number',
  'Edm.Double': 'number',
  'Edm.Guid': 'guid',
  'Edm.DateTimeOffset': 'offset',
  'Edm.DateTime': 'datetime',
  'Edm.Date': 'date',
}

export function toComparable(type: EdmType, value: EdmValue): Comparable {
  const of = CLASSES[type]
  return { class: of, value: value === null ? null : parseComparable(of, String(value)) }
}

export function parseComparable(of: EdmClass, text: string): string | bigint | boolean {
  switch (of) {
    case 'text':
    case 'date':
      return text
    case 'guid':
      return text.toLowerCase()
    case 'truth':
      return text === 'true'
    case 'number':
      return toScaledInteger(text)
    case 'offset':
    case 'datetime':
      return toTicks(text)
  }
}

export function compare(a: Comparable['value'], b: Comparable['value']): number {
  // Null sorts first.
  if (a === null || b === null) return Number(a !== null) - Number(b !== null)
  return a < b ? -1 : a > b ? 1 : 0
}

const DECIMAL_PLACES = 18

/** Exact: a number as an integer count of its last decimal, so that no Int64 or Decimal is rounded. */
function toScaledInteger(text: string): bigint {
  const match = /^([+-]?)(\d+)(?:\.(\d{1,18}))?$/.exec(text)
  if (match === null) return BigInt(Math.round(Number(text) * 1e6)) * 10n ** BigInt(DECIMAL_PLACES - 6)
  const digits = BigInt(required(match[2], 'match[2]') + (match[3] ?? '').padEnd(DECIMAL_PLACES, '0'))
  return match[1] === '-' ? -digits : digits
}

/** Units of 100 ns since 1970: times are compared at full precision, whatever the JSON shows. */
function toTicks(text: string): bigint {
  const fraction = /\.(\d+)/.exec(text)?.[1] ?? ''
  const whole = text.replace(/\.\d+/, '')
  const ms = Date.parse(/(?:Z|[+-]\d\d:\d\d)$/.test(whole) ? whole : `${whole}Z`)
  if (Number.isNaN(ms)) throw new TypeError(`${text} is not a time.`)
  return BigInt(ms) * 10_000n + BigInt(fraction.slice(0, 7).padEnd(7, '0'))
}

/** A number that JSON.stringify must not round: `unquoteNumbers` removes the quotes. */
const UNQUOTED_MARK = '\u0000bare:'

export function unquoteNumbers(text: string): string {
  return text.replaceAll(/"\\u0000bare:([^"]*)"/g, '$1')
}

export function renderV4(type: EdmType, value: EdmValue, ieee754Compatible: boolean): unknown {
  if (value === null || (type !== 'Edm.Int64' && type !== 'Edm.Decimal')) return value
  return ieee754Compatible ? String(value) : UNQUOTED_MARK + String(value)
}

/**
 * Version 2 shows milliseconds, though the server stores more; 64-bit numbers, decimals, doubles and singles are text.
 */
export function renderV2(type: EdmType, value: EdmValue): unknown {
  if (value === null) return null
  if (type === 'Edm.Int64' || type === 'Edm.Decimal' || type === 'Edm.Double' || type === 'Edm.Single')
    return String(value)
  if (type !== 'Edm.DateTime' && type !== 'Edm.DateTimeOffset') return value
  const ms = Number(toTicks(String(value)) / 10_000n)
  return type === 'Edm.DateTime' ? `/Date(${ms})/` : `/Date(${ms}+0000)/`
}

/** A value in the key of an address. */
export function keyLiteral(version: 2 | 4, type: EdmType, value: EdmValue): string {
  if (type === 'Edm.String') return `'${String(value).replaceAll("'", "''")}'`
  if (version === 4) return String(value)
  if (type === 'Edm.Guid') return `guid'${String(value)}'`
  if (type === 'Edm.Int64') return `${String(value)}L`
  if (type === 'Edm.DateTime') return `datetime'${String(value)}'`
  if (type === 'Edm.DateTimeOffset') return `datetimeoffset'${String(value)}'`
  return String(value)
}
