import { describe, expect, test } from 'vitest'
import { ERROR_CODES, type ErrorCode, type Remedy } from '../../src/contract/index.ts'
import { FAILURE_EFFECTS, computeHealth, type Health } from '../../src/runner/health.ts'

const CODE_OF: Record<Remedy, ErrorCode> = {
  retry: 'SOURCE_UNAVAILABLE',
  wait: 'RATE_LIMITED',
  bug: 'CONNECTOR_FAILED',
  restart: 'CURSOR_REJECTED',
  fix: 'MASS_DELETE',
  reauth: 'AUTH_REJECTED',
}

/** Consecutive failures → health, by the remedy of the last one. */
const TABLE: Record<Remedy, readonly [one: Health, two: Health, three: Health, many: Health]> = {
  retry: ['WARNING', 'WARNING', 'ERROR', 'ERROR'],
  wait: ['WARNING', 'WARNING', 'ERROR', 'ERROR'],
  bug: ['WARNING', 'WARNING', 'ERROR', 'ERROR'],
  restart: ['ERROR', 'ERROR', 'ERROR', 'ERROR'],
  fix: ['ERROR', 'ERROR', 'ERROR', 'ERROR'],
  reauth: ['ERROR', 'ERROR', 'ERROR', 'ERROR'],
}

describe('the health of a sync', () => {
  test('is INITIALIZING until the first success and HEALTHY after the last cycle succeeded', () => {
    expect(computeHealth({ paused: false, failures: 0, lastError: null, lastSuccessAt: null }, null)).toBe(
      'INITIALIZING',
    )
    expect(computeHealth({ paused: false, failures: 0, lastError: null, lastSuccessAt: 1 }, null)).toBe('HEALTHY')
  })

  test.each(Object.entries(TABLE) as Array<[Remedy, readonly Health[]]>)(
    'after failures with remedy %s: %j for one, two, three, many',
    (remedy, expected) => {
      const code = CODE_OF[remedy]
      expect(ERROR_CODES[code].remedy).toBe(remedy)
      for (const lastSuccessAt of [null, 1]) {
        const seen = [1, 2, 3, 50].map((failures) =>
          computeHealth({ paused: false, failures, lastError: { code, message: '', at: 2 }, lastSuccessAt }, null),
        )
        expect(seen).toEqual(expected)
      }
    },
  )

  test('is PAUSED regardless of everything else', () => {
    for (const failures of [0, 1, 3]) {
      for (const lastSuccessAt of [null, 1]) {
        expect(
          computeHealth(
            { paused: true, failures, lastError: { code: 'AUTH_REJECTED', message: '', at: 2 }, lastSuccessAt },
            null,
          ),
        ).toBe('PAUSED')
      }
    }
  })

  test('is cleared by a resume, which keeps the error and resets its count', () => {
    expect(
      computeHealth(
        { paused: false, failures: 0, lastError: { code: 'AUTH_REJECTED', message: '', at: 2 }, lastSuccessAt: 1 },
        null,
      ),
    ).toBe('HEALTHY')
  })

  const complete = { paused: false, failures: 0, lastError: null, lastSuccessAt: 5 }
  const order = { since: 3, reason: 'events are gone', cycle: null }

  test('XC32 a sync whose pair needs a backfill is never HEALTHY', () => {
    expect(computeHealth(complete, { backfillNeeded: null, lastSuccessAt: null })).toBe('INITIALIZING')
    expect(computeHealth(complete, { backfillNeeded: order, lastSuccessAt: null })).toBe('WARNING')
    expect(computeHealth(complete, { backfillNeeded: order, lastSuccessAt: 4 })).toBe('WARNING')
    expect(computeHealth(complete, { backfillNeeded: null, lastSuccessAt: 4 })).toBe('HEALTHY')
  })

  test('XC32 lost history needs an operator only while no backfill is requested', () => {
    const lost = { ...complete, failures: 1, lastError: { code: 'HISTORY_LOST', message: '', at: 2 } } as const
    expect(computeHealth(lost, null)).toBe('ERROR')
    expect(computeHealth(lost, { backfillNeeded: null, lastSuccessAt: 1 })).toBe('ERROR')
    expect(computeHealth(lost, { backfillNeeded: order, lastSuccessAt: 1 })).toBe('WARNING')
    expect(computeHealth({ ...lost, failures: 3 }, { backfillNeeded: order, lastSuccessAt: 1 })).toBe('ERROR')
  })

  test('F11: only refused credentials stop the schedule', () => {
    expect(
      Object.entries(FAILURE_EFFECTS)
        .filter(([, { stopsSchedule }]) => stopsSchedule)
        .map(([remedy]) => remedy),
    ).toEqual(['reauth'])
  })
})
