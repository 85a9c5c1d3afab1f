import { daysFromCivil, daysInMonth } from './civil.ts'
import { DAY, floorDivide, pad, PyDate, PyDateTime, SECOND } from './datetime.ts'
import { TemplateError } from './values.ts'

/** `datetime.timedelta`, in microseconds. */
export class PyTimeDelta {
  readonly micros: bigint

  constructor(micros: bigint) {
    if (micros > MICROS_MAX || micros < -MICROS_MAX) throw new TemplateError('a duration is out of range')
    this.micros = micros
  }

  toString(): string {
    const days = floorDivide(this.micros, DAY)
    const rest = Number(this.micros - days * DAY)
    const seconds = Math.floor(rest / 1_000_000)
    const fraction = rest % 1_000_000 === 0 ? '' : `.${pad(rest % 1_000_000, 6)}`
    const time = `${Math.floor(seconds / 3_600)}:${pad(Math.floor(seconds / 60) % 60, 2)}:${pad(seconds % 60, 2)}${fraction}`
    return days === 0n ? time : `${days} day${days === 1n || days === -1n ? '' : 's'}, ${time}`
  }
}

const MICROS_MAX = 1_000_000_000n * DAY

/** A duration with years or months, whose length depends on the date that it is added to. */
export class PyDuration {
  readonly years: number
  readonly months: number
  readonly rest: PyTimeDelta

  constructor(years: number, months: number, rest: PyTimeDelta) {
    this.years = years
    this.months = months
    this.rest = rest
  }

  negate(): PyDuration {
    return new PyDuration(-this.years, -this.months, new PyTimeDelta(-this.rest.micros))
  }

  toString(): string {
    const parts: string[] = []
    if (this.years !== 0) parts.push(`${this.years} years`)
    if (this.months !== 0) parts.push(`${this.months} ${this.months <= 1 ? 'month' : 'months'}`)
    return [...parts, this.rest.toString()].join(', ')
  }
}

const NUMBER = '(\\d+(?:[.,]\\d+)?)'
const ISO_DURATION = new RegExp(
  `^([+-])?P(?!$)(?:${NUMBER}Y)?(?:${NUMBER}M)?(?:${NUMBER}W)?(?:${NUMBER}D)?` +
    `(?:T(?:${NUMBER}H)?(?:${NUMBER}M)?(?:${NUMBER}S)?)?$`,
)

/** Parses an ISO 8601 duration. */
export function parseDuration(text: string): PyTimeDelta | PyDuration {
  const match = text.length > 64 ? null : ISO_DURATION.exec(text)
  if (match === null) throw new TemplateError(`${JSON.stringify(text)} is not an ISO 8601 duration`)
  const sign = match[1] === '-' ? -1 : 1
  const [years = 0, months = 0, weeks = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = match
    .slice(2)
    .map((part) => (part === undefined ? 0 : sign * Number(part.replace(',', '.'))))
  const wholeSeconds = (weeks * 7 + days) * 86_400 + hours * 3_600 + minutes * 60 + seconds
  const rest = new PyTimeDelta(BigInt(Math.round(wholeSeconds * 1_000_000)))
  if (years === 0 && months === 0) return rest
  if (!Number.isInteger(years) || !Number.isInteger(months))
    throw new TemplateError(`${JSON.stringify(text)} has a fraction of a year or month`)
  return new PyDuration(years, months, rest)
}

/** Adds a duration by the calendar: a month after 31 January is the last day of February. */
export function addDuration<Time extends PyDate | PyDateTime>(time: Time, duration: PyTimeDelta | PyDuration): Time {
  if (duration instanceof PyTimeDelta) return shift(time, duration.micros)
  const { year, month, day } = time instanceof PyDate ? time.civil : time.fields
  const months = year * 12 + (month - 1) + duration.years * 12 + duration.months
  const newYear = Math.floor(months / 12)
  const newMonth = months - newYear * 12 + 1
  const newDay = Math.min(day, daysInMonth(newYear, newMonth))
  const days = BigInt(daysFromCivil(newYear, newMonth, newDay) - time.days)
  return shift(shift(time, days * DAY), duration.rest.micros)
}

function shift<Time extends PyDate | PyDateTime>(time: Time, micros: bigint): Time {
  // Python ignores the part of a duration that is below a day when it adds it to a date.
  const shifted =
    time instanceof PyDate
      ? new PyDate(time.days + Number(floorDivide(micros, DAY)))
      : new PyDateTime(time.wall + micros, time.offset)
  return shifted as Time
}

export function totalSeconds({ micros }: PyTimeDelta): number {
  return Number(micros) / Number(SECOND)
}
