import type { JsonValue } from '../contract/index.ts'

/** A time as an API writes it. Two times of one API are compared by `micros`. */
export interface TimeText {
  readonly raw: string | number
  /** Microseconds since 1970. A text without a zone is read as UTC. */
  readonly micros: number
  readonly form: TimeForm
  /** Digits of the fraction of a second. */
  readonly digits: number
  /** `Z`, an offset such as +02:00, or null if the text has none. Numbers are in UTC. */
  readonly zone: string | null
}

/** `text` has date and time; its separator is a T or a space. */
export type TimeForm = 'text' | 'date' | 's' | 'ms' | 'us'

const TEXT = /^(\d{4}-\d\d-\d\d)([T ])(\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9}))?\s?(Z|[+-]\d\d:?\d\d)?$/
const SECOND = 1_000_000

/** The smallest step of each form, in microseconds. */
const FORM_UNITS = { text: 1, date: 86_400 * SECOND, s: SECOND, ms: 1_000, us: 1 } as const

/** Null if the value is not a time. */
export function parseTime(value: JsonValue | undefined): TimeText | null {
  if (typeof value === 'number' || (typeof value === 'string' && /^\d{9,16}(?:\.\d+)?$/.test(value)))
    return parseNumber(value)
  if (typeof value !== 'string') return null
  if (/^\d{4}-\d\d-\d\d$/.test(value)) return build(value, 'date', `${value}T00:00:00Z`, '', null)
  const match = TEXT.exec(value)
  if (match === null) return null
  const [, date, , time = '', fraction = '', zone] = match
  const offset = zone === undefined || zone === 'Z' ? 'Z' : zone.includes(':') ? zone : zone.replace(/(\d\d)$/, ':$1')
  return build(value, 'text', `${date}T${time}${offset}`, fraction, zone === undefined ? null : offset)
}

function parseNumber(raw: string | number): TimeText | null {
  const value = Number(raw)
  const form = value < 1e8 ? null : value < 1e11 ? 's' : value < 1e14 ? 'ms' : value < 1e17 ? 'us' : null
  if (form === null) return null
  const digits = form === 's' ? (String(raw).split('.')[1]?.length ?? 0) : form === 'ms' ? 3 : 6
  return { raw, micros: Math.round(value * FORM_UNITS[form]), form, digits, zone: 'Z' }
}

function build(raw: string, form: TimeForm, whole: string, fraction: string, zone: string | null): TimeText | null {
  const ms = Date.parse(whole)
  if (Number.isNaN(ms)) return null
  return { raw, micros: ms * 1_000 + Number(fraction.slice(0, 6).padEnd(6, '0')), form, digits: fraction.length, zone }
}

/** The time in the form of another time of the same API. Rounds down. */
export function formatTimeLike(micros: number, like: TimeText): string | number {
  if (like.form === 'date') return new Date(micros / 1_000).toISOString().slice(0, 10)
  if (like.form !== 'text') {
    const number = like.form === 's' ? micros / SECOND : Math.floor(micros / FORM_UNITS[like.form])
    const rounded = like.form === 's' ? Number(number.toFixed(Math.min(like.digits, 6))) : number
    return typeof like.raw === 'string' ? String(rounded) : rounded
  }
  const offset = like.zone === null || like.zone === 'Z' ? 0 : parseOffset(like.zone)
  const local = micros + offset
  const text = new Date(Math.floor(local / 1_000)).toISOString()
  const fraction = String(((local % SECOND) + SECOND) % SECOND).padStart(6, '0')
  const shown = like.digits === 0 ? '' : `.${fraction.slice(0, like.digits).padEnd(like.digits, '0')}`
  return `${text.slice(0, 10)}${String(like.raw).charAt(10)}${text.slice(11, 19)}${shown}${formatZone(like)}`
}

function formatZone({ raw, zone }: TimeText): string {
  if (zone === null) return ''
  return zone === 'Z' || String(raw).endsWith(zone) ? zone : zone.replace(':', '')
}

function parseOffset(zone: string): number {
  const [hours = '0', minutes = '0'] = zone.slice(1).split(':')
  return (zone.startsWith('-') ? -1 : 1) * (Number(hours) * 3_600 + Number(minutes) * 60) * SECOND
}

/** The smallest step between two times that the form can express, in microseconds. */
export function unitOf({ form, digits }: TimeText): number {
  return form === 'text' || form === 's' ? 10 ** (6 - Math.min(digits, 6)) : FORM_UNITS[form]
}
