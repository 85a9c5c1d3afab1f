/**
 * Times as text. Source times are compared with microsecond precision, which Date does not have. The canonical form
 * (UTC, six decimals) has a fixed width, so that comparing texts by bytes compares times, in SQL as well.
 */
const RFC3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:([Zz])|([+-])(\d\d):?(\d\d))$/

/** The most common form, recognized without parsing; days 29 to 31 take the slow path. */
const COMMON_UTC_FORM =
  /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?Z$/

/**
 * Null if the text is not a time: no zone, a date that does not exist, `infinity`. Digits past the sixth are truncated,
 * never rounded up.
 */
export function canonicalizeInstant(text: string): string | null {
  if (COMMON_UTC_FORM.test(text)) return `${text.slice(0, 19)}.${text.slice(20, -1).slice(0, 6).padEnd(6, '0')}Z`
  const match = RFC3339.exec(text)
  if (match === null) return null
  const [, year, month, day, hour, minute, second, fraction = '', zulu, sign, offsetHour = '0', offsetMinute = '0'] =
    match
  const leap = second === '60'
  if (Number(hour) > 23 || Number(minute) > 59 || (Number(second) > 59 && !leap)) return null
  if (Number(offsetHour) > 23 || Number(offsetMinute) > 59 || Number(month) < 1 || Number(month) > 12) return null
  if (Number(day) < 1 || Number(day) > daysInMonth(Number(year), Number(month))) return null
  // A leap second maps to the last microsecond of its minute: later than :59, earlier than the next minute.
  const micros = leap ? '999999' : fraction.slice(0, 6).padEnd(6, '0')
  const seconds = leap ? '59' : second
  if (zulu !== undefined) return `${year}-${month}-${day}T${hour}:${minute}:${seconds}.${micros}Z`
  const offsetMs = (sign === '-' ? -1 : 1) * (Number(offsetHour) * 60 + Number(offsetMinute)) * 60_000
  const at = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${seconds}.000Z`) - offsetMs
  const utc = new Date(at).toISOString()
  return utc.length === 24 ? `${utc.slice(0, 19)}.${micros}Z` : null
}

/** A time with its zone, or a date, which is its midnight in UTC; null for any other text. */
export function parseInstantOrDate(text: string): string | null {
  return canonicalizeInstant(text) ?? canonicalizeInstant(`${text}T00:00:00Z`)
}

/** Converts a canonical time; microseconds are truncated. */
export function instantToMs(canonical: string): number {
  return Date.parse(`${canonical.slice(0, 23)}Z`)
}

export function msToInstant(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 23)}000Z`
}

/** Negative, zero or positive; times within the tolerance are equal. */
export function compareInstants(a: string, b: string, toleranceMs: number): number {
  if (toleranceMs > 0 && Math.abs(instantToMs(a) - instantToMs(b)) <= toleranceMs) return 0
  return a < b ? -1 : a > b ? 1 : 0
}

function daysInMonth(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}
