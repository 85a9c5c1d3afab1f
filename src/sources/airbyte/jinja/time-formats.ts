import { civilFromDays, daysFromCivil } from './civil.ts'
import {
  createDateTime,
  DAY,
  floorDivide,
  formatOffset,
  pad,
  PyDate,
  PyDateTime,
  SECOND,
  type DateTimeFields,
} from './datetime.ts'
import { TemplateError } from './values.ts'

const DAYS = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday']
const MONTHS = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
]

/** `strftime` of Python on Linux. */
export function strftime(time: PyDateTime | PyDate, format: string): string {
  const at = time instanceof PyDate ? new PyDateTime(BigInt(time.days) * DAY, null) : time
  return format.replace(/%([-_0^#]?)([\s\S])/g, (whole, flag: string, directive: string) => {
    const text = formatDirective(at, directive)
    if (text === null) return whole
    return applyFlag(text, flag)
  })
}

function applyFlag(text: string, flag: string): string {
  if (flag === '-') return text.replace(/^[0 ]+(?=.)/, '')
  if (flag === '_') return text.replace(/^0+(?=.)/, (zeros) => ' '.repeat(zeros.length))
  if (flag === '^') return text.toUpperCase()
  return text
}

function formatDirective(at: PyDateTime, directive: string): string | null {
  const { year, month, day, hour, minute, second, microsecond } = at.fields
  const weekday = mod(at.days + 3, 7)
  const dayOfYear = at.days - daysFromCivil(year, 1, 1) + 1
  switch (directive) {
    case 'Y':
      return String(year)
    case 'y':
      return pad(year % 100, 2)
    case 'C':
      return pad(Math.floor(year / 100), 2)
    case 'm':
      return pad(month, 2)
    case 'd':
      return pad(day, 2)
    case 'e':
      return String(day).padStart(2, ' ')
    case 'H':
      return pad(hour, 2)
    case 'k':
      return String(hour).padStart(2, ' ')
    case 'I':
      return pad(hour % 12 || 12, 2)
    case 'l':
      return String(hour % 12 || 12).padStart(2, ' ')
    case 'M':
      return pad(minute, 2)
    case 'S':
      return pad(second, 2)
    case 'f':
      return pad(microsecond, 6)
    case 'p':
      return hour < 12 ? 'AM' : 'PM'
    case 'P':
      return hour < 12 ? 'am' : 'pm'
    case 'z':
      return formatOffset(at.offset, '')
    case 'Z':
      return at.offset === null ? '' : at.offset === 0 ? 'UTC' : `UTC${formatOffset(at.offset, ':')}`
    case 'A':
      return DAYS[weekday] ?? ''
    case 'a':
      return (DAYS[weekday] ?? '').slice(0, 3)
    case 'B':
      return MONTHS[month - 1] ?? ''
    case 'b':
    case 'h':
      return (MONTHS[month - 1] ?? '').slice(0, 3)
    case 'j':
      return pad(dayOfYear, 3)
    case 'u':
      return String(weekday + 1)
    case 'w':
      return String((weekday + 1) % 7)
    case 'U':
      return pad(Math.floor((dayOfYear + 6 - ((weekday + 1) % 7)) / 7), 2)
    case 'W':
      return pad(Math.floor((dayOfYear + 6 - weekday) / 7), 2)
    case 'G':
      return String(isoWeek(at.days).year)
    case 'V':
      return pad(isoWeek(at.days).week, 2)
    case 's':
      // The time on the wall, as a process in UTC reads it.
      return String(floorDivide(at.wall, SECOND))
    case 'T':
    case 'X':
      return strftime(at, '%H:%M:%S')
    case 'R':
      return strftime(at, '%H:%M')
    case 'D':
    case 'x':
      return strftime(at, '%m/%d/%y')
    case 'F':
      return strftime(at, '%Y-%m-%d')
    case 'c':
      return strftime(at, '%a %b %e %H:%M:%S %Y')
    case 'n':
      return '\n'
    case 't':
      return '\t'
    case '%':
      return '%'
    default:
      return null
  }
}

export function isoWeek(days: number): { readonly year: number; readonly week: number; readonly weekday: number } {
  const weekday = mod(days + 3, 7)
  const thursday = days - weekday + 3
  const { year } = civilFromDays(thursday)
  return { year, week: Math.floor((thursday - daysFromCivil(year, 1, 1)) / 7) + 1, weekday: weekday + 1 }
}

const PATTERNS: Readonly<Record<string, string>> = {
  Y: '(?<Y>\\d{4})',
  y: '(?<y>\\d{2})',
  m: '(?<m>1[0-2]|0[1-9]|[1-9])',
  d: '(?<d>3[01]|[12]\\d|0[1-9]|[1-9]| [1-9])',
  H: '(?<H>2[0-3]|[01]\\d|\\d)',
  I: '(?<I>1[0-2]|0[1-9]|[1-9])',
  M: '(?<M>[0-5]\\d|\\d)',
  S: '(?<S>6[01]|[0-5]\\d|\\d)',
  f: '(?<f>\\d{1,6})',
  p: '(?<p>am|pm)',
  j: '(?<j>36[0-6]|3[0-5]\\d|[12]\\d\\d|0[1-9]\\d|00[1-9]|[1-9]\\d|0[1-9]|[1-9])',
  z: '(?<z>[+-]\\d\\d:?[0-5]\\d(?::?[0-5]\\d(?:\\.\\d{1,6})?)?|z)',
  Z: '(?<Z>utc|gmt)',
  a: `(?<a>${DAYS.map((day) => day.slice(0, 3)).join('|')})`,
  A: `(?<A>${DAYS.join('|')})`,
  b: `(?<b>${MONTHS.map((month) => month.slice(0, 3)).join('|')})`,
  B: `(?<B>${MONTHS.join('|')})`,
  w: '(?<w>[0-6])',
  '%': '%',
}

/** `strptime` of Python. Returns null if the text does not match, so that a caller can try the next format. */
export function strptime(text: string, format: string): PyDateTime | null {
  const pattern = compileFormat(format)
  const found = text.length > 128 ? null : pattern.exec(text)
  if (found === null) return null
  const { Y, y, m, d, H, I, M, S, f, p, j, z, b, B, Z } = found.groups ?? {}
  const year = Y !== undefined ? Number(Y) : y !== undefined ? Number(y) + (Number(y) < 69 ? 2_000 : 1_900) : 1_900
  const named = B ?? b
  const month =
    named === undefined
      ? Number(m ?? 1)
      : MONTHS.findIndex((name) => name.toLowerCase().startsWith(named.toLowerCase().slice(0, 3))) + 1
  const isAfternoon = p?.toLowerCase() === 'pm'
  const hour = H !== undefined ? Number(H) : I === undefined ? 0 : (Number(I) % 12) + (isAfternoon ? 12 : 0)
  const fields: DateTimeFields = {
    year,
    ...(j === undefined ? { month, day: Number(d ?? 1) } : civilFromDays(daysFromCivil(year, 1, 1) + Number(j) - 1)),
    hour,
    minute: Number(M ?? 0),
    second: Number(S ?? 0),
    microsecond: Number((f ?? '0').padEnd(6, '0')),
  }
  return createDateTime(fields, z === undefined ? (Z === undefined ? null : 0) : parseOffset(z))
}

const compiledFormats = new Map<string, RegExp>()

function compileFormat(format: string): RegExp {
  const known = compiledFormats.get(format)
  if (known !== undefined) return known
  const pattern = new RegExp(`^${createPattern(format)}$`, 'i')
  if (compiledFormats.size < 1_000) compiledFormats.set(format, pattern)
  return pattern
}

function createPattern(format: string): string {
  const used = new Set<string>()
  return format.replace(/%([\s\S]?)|(\s+)|([^%\s])/g, (_, directive?: string, space?: string, character?: string) => {
    if (space !== undefined) return '\\s+'
    if (character !== undefined) return character.replace(/[\\^$.*+?()[\]{}|/-]/, '\\$&')
    if (directive === 'T') return createPattern('%H:%M:%S')
    const pattern = directive === undefined ? undefined : PATTERNS[directive]
    if (pattern === undefined || (used.has(directive ?? '') && directive !== '%'))
      throw new TemplateError(`the time format ${JSON.stringify(format)} is invalid`)
    used.add(directive ?? '')
    return pattern
  })
}

function parseOffset(text: string): number {
  if (/^z$/i.test(text)) return 0
  const digits = text.slice(1).replaceAll(':', '')
  const seconds =
    Number(digits.slice(0, 2)) * 3_600 + Number(digits.slice(2, 4)) * 60 + Math.floor(Number(digits.slice(4) || 0))
  return text.startsWith('-') ? -seconds : seconds
}

const ISO_DATE_TIME =
  /^(\d{4})(?:-(\d\d)(?:-(\d\d))?|(\d\d)(\d\d)|-?W(\d\d)(?:-?(\d))?|-?(\d{3}))?(?:[^\d](\d\d)(?::?(\d\d)(?::?(\d\d)(?:[.,](\d+))?)?)?(Z|[+-]\d\d(?::?\d\d)?)?)?$/i

/** `dateutil.parser.isoparse`. */
export function parseIso(text: string): PyDateTime {
  const found = text.length > 64 ? null : ISO_DATE_TIME.exec(text)
  if (found === null) throw new TemplateError('a text is not an ISO 8601 time')
  const [, year, m1, d1, m2, d2, week, weekday, ordinal, hour, minute, second, fraction, zone] = found
  const days =
    week !== undefined
      ? firstIsoMonday(Number(year)) + (Number(week) - 1) * 7 + Number(weekday ?? 1) - 1
      : ordinal !== undefined
        ? daysFromCivil(Number(year), 1, 1) + Number(ordinal) - 1
        : null
  const isMidnight = hour === '24' && Number(minute ?? 0) === 0 && Number(second ?? 0) === 0
  const fields: DateTimeFields = {
    ...(days === null
      ? { year: Number(year), month: Number(m1 ?? m2 ?? 1), day: Number(d1 ?? d2 ?? 1) }
      : civilFromDays(days)),
    hour: isMidnight ? 0 : Number(hour ?? 0),
    minute: Number(minute ?? 0),
    second: Number(second ?? 0),
    microsecond: Number((fraction ?? '0').slice(0, 6).padEnd(6, '0')),
  }
  const parsed = createDateTime(fields, zone === undefined ? null : parseOffset(padZone(zone)))
  return isMidnight ? new PyDateTime(parsed.wall + DAY, parsed.offset) : parsed
}

function padZone(zone: string): string {
  return zone.length === 3 ? `${zone}00` : zone
}

function firstIsoMonday(year: number): number {
  const fourth = daysFromCivil(year, 1, 4)
  return fourth - mod(fourth + 3, 7)
}

function mod(value: number, by: number): number {
  return ((value % by) + by) % by
}
