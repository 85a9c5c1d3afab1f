import { expect, test } from 'vitest'
import type { Execute, SyncContext } from '../../../src/contract/index.ts'
import { limitRange, parseSince, SINCE_SCHEMA, withSinceScope } from '../../../src/sources/kit/since.ts'

test.each([
  ['2024-01-31', '2024-01-31T00:00:00.000000Z'],
  ['2024-01-31T08:00:00Z', '2024-01-31T08:00:00.000000Z'],
  ['2024-01-31T08:00:00.5+02:00', '2024-01-31T06:00:00.500000Z'],
])('the start date %s is %s', (given, instant) => {
  expect(new RegExp(SINCE_SCHEMA.pattern).test(given)).toBe(true)
  expect(parseSince(given)).toBe(instant)
})

test('a source without a start date has none', () => {
  expect(parseSince(undefined)).toBeUndefined()
})

test.each(['', 'yesterday', '2024', '2024-02-30', '31.01.2024', '2024-01-31T08:00:00', '2024-13-01'])(
  'the start date %j is refused with two examples',
  (given) => {
    expect(() => parseSince(given)).toThrow(
      `\`since\` is ${JSON.stringify(given)}. Write a date such as 2024-01-31, or a time such as 2024-01-31T08:00:00Z.`,
    )
  },
)

test('every page names the start date in its scope, beside the scope of the source', async () => {
  const pages = [
    { changes: [], hasMore: true, nextState: 1, scope: 'account a' },
    { changes: [], hasMore: false },
  ]
  const execute: Execute<number> = async (state = 0) => pages[state] ?? { changes: [], hasMore: false }
  const limited = withSinceScope(Object.assign(execute, { lagMs: 5 }), '2024-01-31T00:00:00.000000Z')
  expect(limited.lagMs).toBe(5)
  const context = {} as SyncContext
  expect((await limited(undefined, context)).scope).toBe('account a since 2024-01-31T00:00:00.000000Z')
  expect((await limited(1, context)).scope).toBe('since 2024-01-31T00:00:00.000000Z')
  expect(withSinceScope(execute, undefined)).toBe(execute)
})

test('a range never begins before the start date', () => {
  const since = '2024-01-31T00:00:00.000000Z'
  const earlier = '2023-01-01T00:00:00.000000Z'
  const later = '2025-01-01T00:00:00.000000Z'
  expect(limitRange({ from: earlier, to: later }, since)).toEqual({ from: since, to: later })
  expect(limitRange({ to: later }, since)).toEqual({ from: since, to: later })
  expect(limitRange({ from: later }, since)).toEqual({ from: later })
  expect(limitRange({ from: earlier }, undefined)).toEqual({ from: earlier })
})
