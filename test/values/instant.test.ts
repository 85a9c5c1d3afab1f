import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { canonicalizeInstant, compareInstants, instantToMs } from '../../src/values/instant.ts'

describe('a canonical time', () => {
  test.each([
    ['2026-01-31T12:00:00Z', '2026-01-31T12:00:00.000000Z'],
    ['2026-01-31t12:00:00z', '2026-01-31T12:00:00.000000Z'],
    ['2026-01-31 12:00:00Z', '2026-01-31T12:00:00.000000Z'],
    ['2026-01-31T12:00:00.1Z', '2026-01-31T12:00:00.100000Z'],
    ['2026-01-31T12:00:00.123456Z', '2026-01-31T12:00:00.123456Z'],
    ['2026-01-01T01:30:00+02:00', '2025-12-31T23:30:00.000000Z'],
    ['2026-01-01T01:30:00+0200', '2025-12-31T23:30:00.000000Z'],
    ['2025-12-31T23:30:00.5-05:30', '2026-01-01T05:00:00.500000Z'],
    ['2026-01-01T00:00:00-00:00', '2026-01-01T00:00:00.000000Z'],
    ['2024-02-29T00:00:00Z', '2024-02-29T00:00:00.000000Z'],
    ['2000-02-29T23:59:59.999999Z', '2000-02-29T23:59:59.999999Z'],
  ])('of %s is %s', (text, canonical) => {
    expect(canonicalizeInstant(text)).toBe(canonical)
  })

  test.each([
    ['2026-01-31T12:00:00.1234569Z', '2026-01-31T12:00:00.123456Z'],
    ['2026-01-31T12:00:00.999999999Z', '2026-01-31T12:00:00.999999Z'],
    ['2026-01-31T12:00:00.9999999+00:00', '2026-01-31T12:00:00.999999Z'],
    ['2026-12-31T23:59:59.9999999-00:00', '2026-12-31T23:59:59.999999Z'],
  ])('XC21 digits past the microsecond are truncated, never rounded up: %s', (text, canonical) => {
    expect(canonicalizeInstant(text)).toBe(canonical)
  })

  test.each([
    '2026-01-31T12:00:00',
    '2026-01-31 12:00:00',
    '2026-01-31',
    '2026-01-31T12:00:00 Europe/Oslo',
    '2026-01-31T12:00:00 CET',
    '2026-01-31T12:00:00.5',
  ])('XC22 without a zone there is none: %s', (text) => {
    expect(canonicalizeInstant(text)).toBeNull()
  })

  test('XC22 both readings of an ambiguous hour are distinguished by their offsets', () => {
    expect(canonicalizeInstant('2026-10-25T02:30:00+02:00')).toBe('2026-10-25T00:30:00.000000Z')
    expect(canonicalizeInstant('2026-10-25T02:30:00+01:00')).toBe('2026-10-25T01:30:00.000000Z')
  })

  test('XC23 a leap second is after the second before it and before the minute after it', () => {
    const [before, leap, after] = ['2016-12-31T23:59:59.999998Z', '2016-12-31T23:59:60Z', '2017-01-01T00:00:00Z'].map(
      (text) => canonicalizeInstant(text)!,
    )
    expect(leap).toBe('2016-12-31T23:59:59.999999Z')
    expect(before! < leap! && leap! < after!).toBe(true)
    expect(canonicalizeInstant('2017-01-01T01:59:60.5+02:00')).toBe('2016-12-31T23:59:59.999999Z')
  })

  test('XC23 the years 0001 and 9999 are valid, and an offset that carries beyond them is refused', () => {
    expect(canonicalizeInstant('0001-01-01T00:00:00Z')).toBe('0001-01-01T00:00:00.000000Z')
    expect(canonicalizeInstant('0001-01-01T00:00:00+00:00')).toBe('0001-01-01T00:00:00.000000Z')
    expect(canonicalizeInstant('9999-12-31T23:59:59.999999Z')).toBe('9999-12-31T23:59:59.999999Z')
    expect(canonicalizeInstant('9999-12-31T23:59:59.999999+00:00')).toBe('9999-12-31T23:59:59.999999Z')
    expect(canonicalizeInstant('9999-12-31T23:30:00-01:00')).toBeNull()
    expect(canonicalizeInstant('0000-01-01T00:30:00+01:00')).toBeNull()
  })

  test.each([
    'infinity',
    '-infinity',
    'Infinity',
    'NaN',
    'null',
    '',
    ' ',
    'now',
    '1767225600',
    '1767225600000',
    '+010000-01-01T00:00:00Z',
    '10000-01-01T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-00-01T00:00:00Z',
    '2026-01-00T00:00:00Z',
    '2026-01-32T00:00:00Z',
    '2026-02-29T00:00:00Z',
    '2100-02-29T00:00:00Z',
    '2026-04-31T00:00:00Z',
    '2026-01-01T24:00:00Z',
    '2026-01-01T00:60:00Z',
    '2026-01-01T00:00:61Z',
    '2026-01-01T00:00:00+24:00',
    '2026-01-01T00:00:00+00:60',
    '2026-01-01T00:00:00.Z',
    '2026-01-01T00:00:00.1234567890Z',
    '2026-1-1T00:00:00Z',
    ' 2026-01-01T00:00:00Z',
    '2026-01-01T00:00:00Z ',
    '2026-01-01T00:00:00Z\n',
    '２026-01-01T00:00:00Z',
    '2026-01-01T00:00:00ZZ',
    '2026-01-01T00:00Z',
  ])('XC23 %j is invalid', (text) => {
    expect(canonicalizeInstant(text)).toBeNull()
  })

  const when = fc.record({
    // A day inside the years 0001 and 9999, so that no offset carries it out of them.
    ms: fc.integer({ min: Date.parse('0001-01-02T00:00:00Z'), max: Date.parse('9999-12-31T00:00:00Z') }),
    micros: fc.integer({ min: 0, max: 999 }),
    nanos: fc.integer({ min: 0, max: 999 }),
  })
  const textOf = ({ ms, micros, nanos }: { ms: number; micros: number; nanos: number }): string =>
    `${new Date(ms).toISOString().slice(0, 23)}${String(micros).padStart(3, '0')}${String(nanos).padStart(3, '0')}`

  test('XC21 is the same on the fast path and on the slow one', () => {
    fc.assert(
      fc.property(when, fc.integer({ min: 0, max: 9 }), (instant, digits) => {
        const text = digits === 0 ? textOf(instant).slice(0, 19) : textOf(instant).slice(0, 20 + digits)
        // A lower-case z, a space and a zero offset take the slow path.
        const short = canonicalizeInstant(`${text}Z`)
        expect(short).not.toBeNull()
        expect(short).toBe(canonicalizeInstant(`${text}z`))
        expect(short).toBe(canonicalizeInstant(`${text.replace('T', ' ')}Z`))
        expect(short).toBe(canonicalizeInstant(`${text}+00:00`))
      }),
    )
  })

  test('is the same for every offset, is its own canonical form, and has the same millisecond', () => {
    fc.assert(
      fc.property(when, fc.integer({ min: -23 * 60 - 59, max: 23 * 60 + 59 }), (instant, offset) => {
        const canonical = canonicalizeInstant(`${textOf(instant)}Z`)!
        const local = textOf({ ...instant, ms: instant.ms + offset * 60_000 })
        const hours = String(Math.floor(Math.abs(offset) / 60)).padStart(2, '0')
        const minutes = String(Math.abs(offset) % 60).padStart(2, '0')
        expect(canonicalizeInstant(`${local}${offset < 0 ? '-' : '+'}${hours}:${minutes}`)).toBe(canonical)
        expect(canonicalizeInstant(canonical)).toBe(canonical)
        expect(instantToMs(canonical)).toBe(instant.ms)
      }),
    )
  })

  test('compares as text in time order', () => {
    fc.assert(
      fc.property(when, when, (a, b) => {
        const [first, second] = [canonicalizeInstant(`${textOf(a)}Z`)!, canonicalizeInstant(`${textOf(b)}Z`)!]
        const order = Math.sign(a.ms - b.ms) || Math.sign(a.micros - b.micros)
        expect(compareInstants(first, second, 0)).toBe(order)
        expect(Buffer.compare(Buffer.from(first), Buffer.from(second))).toBe(order)
      }),
    )
  })

  test('is never returned for invalid text, and parsing never throws', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[0-9TZ:.+ -]{0,35}$/)), (text) => {
        const canonical = canonicalizeInstant(text)
        if (canonical !== null) expect(canonical).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
      }),
    )
  })
})

describe('comparing instants', () => {
  const at = (seconds: string): string => canonicalizeInstant(`2026-01-01T00:00:${seconds}Z`)!

  test('XC24 times within the tolerance are equal, including its edge, and beyond it not', () => {
    expect(compareInstants(at('10'), at('08'), 2_000)).toBe(0)
    expect(compareInstants(at('08'), at('10'), 2_000)).toBe(0)
    expect(compareInstants(at('10'), at('07.999'), 2_000)).toBe(1)
    expect(compareInstants(at('07.999'), at('10'), 2_000)).toBe(-1)
  })

  test('without a tolerance a microsecond counts', () => {
    expect(compareInstants(at('10.000001'), at('10'), 0)).toBe(1)
    expect(compareInstants(at('10'), at('10.000001'), 0)).toBe(-1)
    expect(compareInstants(at('10'), at('10'), 0)).toBe(0)
  })
})
