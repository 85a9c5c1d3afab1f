import { InvalidArgumentError } from 'commander'
import { canonicalizeInstant, instantToMs } from '../../values/instant.ts'

export function parseCount(text: string): number {
  const count = Number(text)
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(count) || count < 1)
    throw new InvalidArgumentError('It must be a whole number of at least 1.')
  return count
}

/** For options in which 0 means none, or all. */
export function parseCountOrZero(text: string): number {
  return text === '0' ? 0 : parseCount(text)
}

/** Accepts a repeated option as well as a comma-separated list. */
export function parseList(text: string, earlier: readonly string[] = []): string[] {
  return [
    ...earlier,
    ...text
      .split(',')
      .map((key) => key.trim())
      .filter((key) => key !== ''),
  ]
}

/** Returns milliseconds. */
export function parseSeconds(text: string): number {
  const [, count, unit = 's'] = /^(\d{1,6})(s|m)?$/.exec(text) ?? []
  if (count === undefined || Number(count) === 0) throw new InvalidArgumentError('It must be a time such as 60s or 5m.')
  return Number(count) * (unit === 'm' ? 60_000 : 1_000)
}

export function parseUrl(text: string): string {
  if (!/^https?:$/.test(URL.canParse(text) ? new URL(text).protocol : ''))
    throw new InvalidArgumentError('It must be a URL such as http://127.0.0.1:9080.')
  return text
}

/** Returns milliseconds since the epoch. */
export function parseTime(text: string): number {
  const canonical = canonicalizeInstant(text)
  if (canonical === null)
    throw new InvalidArgumentError(
      `${JSON.stringify(text)} is not a time with a time zone, such as 2026-01-31T12:00:00Z.`,
    )
  return instantToMs(canonical)
}
