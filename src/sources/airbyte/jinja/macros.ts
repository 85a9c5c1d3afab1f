import { dateInZone, PyDate, PyDateTime, SECOND } from './datetime.ts'
import { parseDuration } from './duration.ts'
import { pickExtreme, quoteUrl } from './filters.ts'
import { iterate } from './operators.ts'
import { print } from './printing.ts'
import { parseIso, strftime, strptime } from './time-formats.ts'
import {
  isNumber,
  PyFloat,
  PyFunction,
  TemplateError,
  toNumber,
  TypeMismatch,
  Undefined,
  UndefinedUse,
  fromBigInt,
  toFloat,
  isFloat,
  type Keywords,
  type PyValue,
} from './values.ts'

/** Time and randomness of a template: from the context of the cycle. */
export interface Ambient {
  readonly nowMs: number
  random(): number
}

type Macro = (positional: readonly PyValue[], keywords: Keywords, ambient: Ambient) => PyValue

const MACROS: Readonly<Record<string, Macro>> = {
  now_utc: (_positional, _keywords, ambient) => now(ambient),
  today_utc: (_positional, _keywords, ambient) => now(ambient).date,
  today_with_timezone: ([zone = ''], { timezone }, { nowMs }) => dateInZone(nowMs, print(timezone ?? zone)),
  day_delta: ([days = 0, format = '%Y-%m-%dT%H:%M:%S.%f%z'], keywords, ambient) => {
    const amount = keywords.num_days ?? days
    if (!isNumber(amount)) throw new TypeMismatch('a number of days is required')
    const micros = BigInt(Math.round(toNumber(amount) * 86_400_000)) * 1_000n
    return strftime(new PyDateTime(now(ambient).wall + micros, 0), print(keywords.format ?? format))
  },
  duration: ([text = null], { datestring }) => parseDuration(requireText(datestring ?? text)),
  timestamp: ([value = null], { dt }) => {
    const given = dt ?? value
    if (isNumber(given)) return typeof given === 'bigint' ? given : fromBigInt(BigInt(Math.trunc(toNumber(given))))
    return toFloat(Number(parseUtc(given).epoch) / 1_000_000)
  },
  str_to_datetime: ([text = null], { s }) => parseUtc(s ?? text),
  format_datetime: ([value = null, format = null, inputFormat = null], keywords) =>
    formatDateTime(keywords.dt ?? value, requireText(keywords.format ?? format), keywords.input_format ?? inputFormat),
  max: (positional) => pickArgument(positional, 1),
  min: (positional) => pickArgument(positional, -1),
  sanitize_url: ([text = null], { value }) => quoteUrl(requireText(value ?? text)).replaceAll('%20', '+'),
  camel_case_to_snake_case: ([text = null], { value }) =>
    requireText(value ?? text)
      .replace(/(?<!^)(?=[A-Z])/g, '_')
      .toLowerCase(),
  generate_uuid: (_positional, _keywords, ambient) => createUuid(ambient),
  dict: (_positional, keywords) => ({ ...keywords }),
}

export const MACRO_NAMES: readonly string[] = Object.keys(MACROS)

export function createMacros(ambient: Ambient): ReadonlyMap<string, PyValue> {
  return new Map(
    Object.entries(MACROS).map(([name, macro]) => [
      name,
      new PyFunction(name, (positional, keywords) => macro(positional, keywords, ambient)),
    ]),
  )
}

function now({ nowMs }: Ambient): PyDateTime {
  return PyDateTime.fromEpoch(BigInt(Math.trunc(nowMs)) * 1_000n)
}

function parseUtc(value: PyValue): PyDateTime {
  if (value instanceof Undefined) throw new UndefinedUse(value.description)
  return parseIso(requireText(value)).toUtc()
}

function requireText(value: PyValue): string {
  if (typeof value !== 'string') throw new TypeMismatch('a text is required')
  return value
}

function pickArgument(positional: readonly PyValue[], sign: 1 | -1): PyValue {
  const [first, ...others] = positional
  if (first === undefined) throw new TypeMismatch('an argument is missing')
  const items = others.length === 0 ? iterate(first) : positional
  if (items.length === 0) throw new TemplateError('an empty sequence has no largest or smallest item')
  return pickExtreme(items, sign)
}

function formatDateTime(value: PyValue, format: string, inputFormat: PyValue): string {
  if (value instanceof PyDateTime) return strftime(value, format)
  const given = inputFormat === null ? null : requireText(inputFormat)
  if ((typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean') && !isFloat(value))
    return formatTime(parseTime(print(Number(value)), given ?? '%s'), format)
  if (value instanceof PyDate) throw new TypeMismatch('a date is not a text')
  const parsed = given === null ? parseUtc(value) : strptime(requireText(value), given)
  if (parsed === null) throw new TemplateError('a time does not match its format')
  return formatTime(parsed.offset === null ? new PyDateTime(parsed.wall, 0) : parsed, format)
}

/** Parses a time as a cursor does: `%s`, `%ms` and others of Airbyte, or a format of Python. A time without zone is UTC. */
export function parseTime(text: string, format: string): PyDateTime {
  const micros = parseEpoch(text, format)
  if (micros !== null) return PyDateTime.fromEpoch(micros)
  const parsed = strptime(text, format.replaceAll('%_ms', '%f'))
  if (parsed === null) throw new TemplateError(`a time does not match the format ${JSON.stringify(format)}`)
  return parsed.offset === null ? new PyDateTime(parsed.wall, 0) : parsed
}

function parseEpoch(text: string, format: string): bigint | null {
  const unit = format === '%s' ? SECOND : format === '%ms' ? 1_000n : format === '%epoch_microseconds' ? 1n : null
  if (unit === null && format !== '%s_as_float') return null
  const plain = text.trim()
  if (unit !== null && /^[-+]?\d{1,17}$/.test(plain)) return BigInt(plain) * unit
  if (unit === null && /^[-+]?\d{1,17}(?:\.\d*)?(?:e[-+]?\d+)?$/i.test(plain))
    return BigInt(Math.round(Number(plain) * 1_000_000))
  throw new TemplateError(`a time does not match the format ${JSON.stringify(format)}`)
}

/** Formats a time as a cursor does. */
export function formatTime(time: PyDateTime, format: string): string {
  if (format === '%s') return String(time.epoch / SECOND)
  if (format === '%ms') return String(time.epoch / 1_000n)
  if (format === '%epoch_microseconds') return String(time.epoch)
  if (format === '%s_as_float') {
    const seconds = toFloat(Number(time.epoch) / 1_000_000)
    return print(seconds instanceof PyFloat ? seconds : seconds)
  }
  if (!format.includes('%_ms')) return strftime(time, format)
  const micros = strftime(time, '%f')
  return strftime(time, format.replaceAll('%_ms', '%f')).replaceAll(micros, micros.slice(0, 3))
}

function createUuid({ random }: Ambient): string {
  const digits = Array.from({ length: 32 }, () => Math.floor(random() * 16))
  digits[12] = 4
  digits[16] = 8 + ((digits[16] ?? 0) % 4)
  const text = digits.map((digit) => digit.toString(16)).join('')
  return [text.slice(0, 8), text.slice(8, 12), text.slice(12, 16), text.slice(16, 20), text.slice(20)].join('-')
}
