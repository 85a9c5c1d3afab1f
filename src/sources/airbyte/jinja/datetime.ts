import { civilFromDays, daysFromCivil, daysInMonth, type CivilDate } from './civil.ts'
import { TemplateError } from './values.ts'

export const SECOND = 1_000_000n
export const DAY = 86_400n * SECOND

/** `datetime.date`. */
export class PyDate {
  readonly days: number

  constructor(days: number) {
    checkYear(civilFromDays(days).year)
    this.days = days
  }

  get civil(): CivilDate {
    return civilFromDays(this.days)
  }

  toString(): string {
    const { year, month, day } = this.civil
    return `${pad(year, 4)}-${pad(month, 2)}-${pad(day, 2)}`
  }
}

/** `datetime.datetime`: the time on the wall in microseconds, and the offset in seconds, null for a naive time. */
export class PyDateTime {
  readonly wall: bigint
  readonly offset: number | null

  constructor(wall: bigint, offset: number | null) {
    this.wall = wall
    this.offset = offset
    checkYear(civilFromDays(this.days).year)
  }

  static fromEpoch(micros: bigint): PyDateTime {
    return new PyDateTime(micros, 0)
  }

  /** Microseconds since the epoch. A naive time is read as UTC. */
  get epoch(): bigint {
    return this.wall - BigInt(this.offset ?? 0) * SECOND
  }

  get days(): number {
    return Number(floorDivide(this.wall, DAY))
  }

  get date(): PyDate {
    return new PyDate(this.days)
  }

  get fields(): DateTimeFields {
    const rest = Number(this.wall - BigInt(this.days) * DAY)
    const seconds = Math.floor(rest / 1_000_000)
    return {
      ...civilFromDays(this.days),
      hour: Math.floor(seconds / 3_600),
      minute: Math.floor(seconds / 60) % 60,
      second: seconds % 60,
      microsecond: rest % 1_000_000,
    }
  }

  toUtc(): PyDateTime {
    return new PyDateTime(this.epoch, 0)
  }

  isoformat(separator = 'T'): string {
    const { hour, minute, second, microsecond } = this.fields
    const fraction = microsecond === 0 ? '' : `.${pad(microsecond, 6)}`
    const time = `${pad(hour, 2)}:${pad(minute, 2)}:${pad(second, 2)}${fraction}`
    return `${this.date.toString()}${separator}${time}${formatOffset(this.offset, ':')}`
  }

  toString(): string {
    return this.isoformat(' ')
  }
}

export interface DateTimeFields extends CivilDate {
  readonly hour: number
  readonly minute: number
  readonly second: number
  readonly microsecond: number
}

export function createDateTime(fields: DateTimeFields, offset: number | null): PyDateTime {
  const { year, month, day, hour, minute, second, microsecond } = fields
  checkYear(year)
  const isValid =
    month >= 1 && month <= 12 && day >= 1 && day <= daysInMonth(year, month) && hour < 24 && minute < 60 && second < 60
  if (!isValid) throw new TemplateError('a part of the date is out of range')
  const seconds = daysFromCivil(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second
  return new PyDateTime(BigInt(seconds) * SECOND + BigInt(microsecond), offset)
}

export function formatOffset(offset: number | null, separator: string): string {
  if (offset === null) return ''
  const size = Math.abs(offset)
  const parts = [Math.floor(size / 3_600), Math.floor(size / 60) % 60, size % 60]
  const shown = parts[2] === 0 ? parts.slice(0, 2) : parts
  return `${offset < 0 ? '-' : '+'}${shown.map((part) => pad(part, 2)).join(separator)}`
}

/** The date of an instant in a named zone. */
export function dateInZone(epochMs: number, zone: string): PyDate {
  let parts: Intl.DateTimeFormatPart[]
  try {
    parts = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      calendar: 'gregory',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
    }).formatToParts(epochMs)
  } catch {
    throw new TemplateError(`the time zone ${JSON.stringify(zone)} is unknown`)
  }
  const read = (type: string): number => Number(parts.find((part) => part.type === type)?.value)
  return new PyDate(daysFromCivil(read('year'), read('month'), read('day')))
}

export function floorDivide(value: bigint, by: bigint): bigint {
  const quotient = value / by
  return value % by !== 0n && value < 0n !== by < 0n ? quotient - 1n : quotient
}

export function pad(value: number, size: number): string {
  return String(value).padStart(size, '0')
}

function checkYear(year: number): void {
  if (!(year >= 1 && year <= 9_999)) throw new TemplateError('a date is out of range')
}
