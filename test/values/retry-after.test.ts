import { describe, expect, test } from 'vitest'
import {
  announcedPauseMs,
  rateLimitWaitMs,
  retryAfterMs,
  isBudgetExhausted,
  readServerTime,
} from '../../src/values/retry-after.ts'

const NOW = Date.parse('2026-03-01T12:00:00Z')
const DAY = 86_400_000
const wait = (headers: Record<string, string>): number | undefined => rateLimitWaitMs(new Headers(headers), NOW)

describe('Retry-After', () => {
  test.each([
    ['30', 30_000],
    ['0', 0],
    ['1.5', 1_500],
    [' 7 ', 7_000],
    ['-5', 0],
    ['315360000', DAY],
    ['99999999999999999999', DAY],
    ['30, 60', 60_000],
    ['Sun, 01 Mar 2026 12:00:45 GMT', 45_000],
    ['Sunday, 01-Mar-26 12:00:45 GMT', 45_000],
    ['Sun Mar  1 12:00:45 2026', 45_000],
    ['Sun, 01 Mar 2026 11:00:00 GMT', 1_000],
    ['Thu, 01 Mar 2036 12:00:00 GMT', DAY],
    ['', undefined],
    ['soon', undefined],
    ['NaN', undefined],
    ['Infinity', undefined],
    ['1e9', undefined],
    ['0x10', undefined],
    ['2026', 2_026_000],
    ['Foo, 99 Bar 2026 99:99:99 GMT', undefined],
    ['in 12 seconds', undefined],
  ])('XD1, NX2: %j is %s ms', (value, expected) => {
    expect(wait({ 'retry-after': value })).toBe(expected)
  })

  const at = (ms: number): string => new Date(NOW + ms).toUTCString()
  const MINUTE = 60_000
  const HOUR = 60 * MINUTE

  test.each([
    ['no Date header', null, 20_000],
    ['the same time', 0, 20_000],
    ['a Date header an hour ahead', HOUR, 20_000],
    ['a Date header a day ahead', DAY, 20_000],
    ['a Date header an hour behind', -HOUR, 20_000],
    ['a Date header a year behind', -365 * DAY, 20_000],
    ['a Date header two minutes ahead', 2 * MINUTE, 20_000],
    ['a Date header two minutes behind', -2 * MINUTE, 2 * MINUTE + 20_000],
  ])('XD1: with %s a date 20 seconds from now is never undercut', (_, skewMs, expected) => {
    for (const [name, value] of [
      ['retry-after', at(20_000)],
      ['x-ratelimit-reset', String((NOW + 20_000) / 1_000)],
    ] as const) {
      expect(wait({ [name]: value, ...(skewMs !== null && { date: at(skewMs) }) })).toBe(expected)
    }
  })

  test.each([[-HOUR], [-5 * MINUTE]])(
    'XD1: a server whose clock is %i ms behind is waited for by its own clock',
    (skewMs) => {
      expect(wait({ 'retry-after': at(skewMs + 20_000), date: at(skewMs) })).toBe(20_000)
    },
  )

  test('XD1: a date in the past by every clock still means a short wait, and one far ahead is capped', () => {
    expect(wait({ 'retry-after': at(-2 * HOUR), date: at(-HOUR) })).toBe(1_000)
    expect(wait({ 'retry-after': at(400 * DAY), date: at(HOUR) })).toBe(DAY)
  })

  test('reads milliseconds from retry-after-ms', () => {
    expect(wait({ 'retry-after-ms': '250' })).toBe(250)
    expect(wait({ 'retry-after-ms': '250', 'retry-after': '1' })).toBe(1_000)
  })

  test('XD1: a custom cap', () => {
    expect(rateLimitWaitMs(new Headers({ 'retry-after': '3600' }), NOW, 30_000)).toBe(30_000)
  })
})

describe('resets', () => {
  test.each([
    ['epoch seconds', 'x-ratelimit-reset', String(NOW / 1_000 + 90), 90_000],
    ['epoch milliseconds', 'x-ratelimit-reset', String(NOW + 90_000), 90_000],
    ['a span', 'x-ratelimit-reset', '90', 90_000],
    ['a span', 'ratelimit-reset', '12', 12_000],
    ['a span with a fraction', 'x-ratelimit-reset-after', '0.25', 250],
    ['the other spelling', 'x-rate-limit-reset', '5', 5_000],
    ['the past', 'x-ratelimit-reset', String(NOW / 1_000 - 90), 1_000],
    ['ten years', 'x-ratelimit-reset', String(NOW / 1_000 + 315_360_000), DAY],
    ['garbage', 'x-ratelimit-reset', 'tomorrow', undefined],
    ['negative', 'ratelimit-reset', '-1', 0],
  ])('XD2: %s in %s', (_, name, value, expected) => {
    expect(wait({ [name]: value })).toBe(expected)
  })

  test('NX2: the longest wins', () => {
    expect(wait({ 'retry-after': '10', 'x-ratelimit-reset': '20', 'ratelimit-reset': '15' })).toBe(20_000)
    expect(wait({ 'retry-after': '60', 'x-ratelimit-reset': '20' })).toBe(60_000)
  })

  test('NX2: a quota with requests left is not waited for', () => {
    expect(
      wait({ 'retry-after': '60', 'x-ratelimit-remaining': '4000', 'x-ratelimit-reset': String(NOW / 1_000 + 3_000) }),
    ).toBe(60_000)
    expect(wait({ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(NOW / 1_000 + 3_000) })).toBe(3_000_000)
    expect(wait({ ratelimit: '"burst";r=3;t=5, "daily";r=0;t=40' })).toBe(40_000)
  })

  test('a server that is down is not waited for until a quota renews', () => {
    const headers = new Headers({ 'x-ratelimit-reset': '3000', 'retry-after': '4' })
    expect([retryAfterMs(headers, NOW), rateLimitWaitMs(headers, NOW)]).toEqual([4_000, 3_000_000])
  })

  test('reports whether a quota is exhausted', () => {
    expect(isBudgetExhausted(new Headers({ 'x-ratelimit-remaining': '0' }))).toBe(true)
    expect(isBudgetExhausted(new Headers({ ratelimit: '"a";r=0;t=1' }))).toBe(true)
    for (const headers of [
      {},
      { 'x-ratelimit-remaining': '1' },
      { 'x-ratelimit-remaining': '' },
      { ratelimit: ';;==,' },
    ])
      expect(isBudgetExhausted(new Headers(headers as Record<string, string>))).toBe(false)
  })

  test('XD27: a header designed to be slow to parse is ignored', () => {
    for (const value of [
      '1'.repeat(100_000),
      `Sun, ${' '.repeat(100_000)}x`,
      ',;='.repeat(40_000),
      `${'-'.repeat(100_000)}GMT`,
    ]) {
      for (const name of ['retry-after', 'x-ratelimit-reset', 'ratelimit', 'date'])
        expect(wait({ [name]: value })).toBe(undefined)
    }
  })
})

test('XD28: the server’s time is read exactly, or not at all', () => {
  expect(readServerTime(new Headers({ date: 'Sun, 01 Mar 2026 12:00:00 GMT' }))).toBe(NOW)
  expect(readServerTime(new Headers({ date: 'Sun, 01 Mar 2026 09:00:00 GMT' }))).toBe(NOW - 3 * 3_600_000)
  for (const date of ['12', 'now', '2026-03-01', '']) expect(readServerTime(new Headers({ date }))).toBe(null)
  expect(readServerTime(new Headers())).toBe(null)
})

test('XD1: a rate limit and a server that gives a retry time announce a pause, and nothing else does', () => {
  const announced = (status: number, headers: Record<string, string>): number | undefined =>
    announcedPauseMs(status, new Headers(headers), NOW)
  // A refusal that only has a quota reset time is not a rate limit.
  expect(announced(403, { 'x-ratelimit-reset': '90' })).toBeUndefined()
  expect(announced(429, { 'retry-after': '600' })).toBe(600_000)
  expect(announced(429, { 'x-ratelimit-reset': '90' })).toBe(90_000)
  expect(announced(403, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '90' })).toBe(90_000)
  expect(announced(503, { 'retry-after': '5' })).toBe(5_000)
  expect(announced(503, { 'x-ratelimit-reset': '90' })).toBeUndefined()
  expect(announced(403, {})).toBeUndefined()
  expect(announced(429, { 'retry-after': '0' })).toBeUndefined()
  for (const status of [200, 202, 304, 400, 404]) expect(announced(status, { 'retry-after': '600' })).toBeUndefined()
})
