import { describe, expect, test } from 'vitest'
import { nextDueTime, parseSchedule, type Schedule } from '../../src/config/schedule.ts'

const at = (text: string): number => Date.parse(text)
const iso = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString())
const parse = (input: unknown): Schedule => parseSchedule(input, 'Sync "contacts"')

describe('a schedule', () => {
  test('F12 is "manual", "continuous", an interval from 1m to 7d, or a cron pattern', () => {
    expect(parse('manual')).toEqual({ kind: 'manual' })
    expect(parse('continuous')).toEqual({ kind: 'continuous' })
    expect(parse('1m')).toEqual({ kind: 'interval', intervalMs: 60_000 })
    expect(parse('6h')).toEqual({ kind: 'interval', intervalMs: 21_600_000 })
    expect(parse('7d')).toEqual({ kind: 'interval', intervalMs: 604_800_000 })
    expect(parse({ cron: ' 0 3 * * * ', zone: 'Europe/Berlin' })).toEqual({
      kind: 'cron',
      cron: '0 3 * * *',
      zone: 'Europe/Berlin',
    })
  })

  test('N18 takes the cron patterns of the field, in UTC unless a zone is named', () => {
    for (const cron of ['*/5 * * * *', '0 * * * *', '@daily', '0 9 * * MON-FRI']) {
      expect(parse({ cron })).toEqual({ kind: 'cron', cron, zone: 'UTC' })
    }
  })

  test.each([
    '0m',
    '30s',
    '8d',
    '169h',
    '1.5h',
    '-5m',
    '5 m',
    '5M',
    '',
    'hourly',
    '01m',
    '*/5 * * * *',
    '9999999m',
    30,
    null,
    undefined,
    [],
    {},
    { cron: '' },
    { cron: '* * * * * *' },
    { cron: '61 * * * *' },
    { cron: '2030-01-01T00:00:00' },
    { cron: '@reboot' },
    { cron: '*/5 * * * *', zone: 'Mars/Olympus' },
    { cron: '*/5 * * * *', timezone: 'UTC' },
    { cron: 5 },
    { cron: '*/0 * * * *' },
  ])('F12 refuses %j', (input) => {
    expect(() => parse(input)).toThrow(
      expect.objectContaining({ code: 'SCHEDULE_INVALID', message: expect.stringContaining('Sync "contacts"') }),
    )
  })

  test('a cron pattern that never matches is refused, and for a bare pattern the error shows the correct form', () => {
    expect(() => parse({ cron: '0 0 30 2 *' })).toThrow(/never matches a time/)
    expect(() => parse('*/5 * * * *')).toThrow('{ cron: "*/5 * * * *" }')
  })
})

describe('the next due slot', () => {
  const now = at('2026-05-10T12:00:00Z')

  test('N17 a manual sync is never due', () => {
    expect(nextDueTime({ kind: 'manual' }, { now, lastStartedAt: null })).toBeNull()
    expect(nextDueTime({ kind: 'manual' }, { now, lastStartedAt: now - 1e12 })).toBeNull()
  })

  test('F12 a continuous sync is always due', () => {
    expect(nextDueTime({ kind: 'continuous' }, { now, lastStartedAt: null })).toBe(now)
    expect(nextDueTime({ kind: 'continuous' }, { now, lastStartedAt: now - 5 })).toBeLessThanOrEqual(now)
  })

  test('F12 an interval counts from the start of the last cycle, and begins at once', () => {
    const schedule = parse('30m')
    expect(nextDueTime(schedule, { now, lastStartedAt: null })).toBe(now)
    expect(nextDueTime(schedule, { now, lastStartedAt: now - 60_000 })).toBe(now + 29 * 60_000)
  })

  test('XB18 slots missed while the machine slept get one run, for intervals and for cron', () => {
    for (const schedule of [parse('1h'), parse({ cron: '0 * * * *' })]) {
      const slept = nextDueTime(schedule, { now, lastStartedAt: at('2026-05-09T11:00:00Z') })!
      expect(slept).toBeLessThanOrEqual(now)
      expect(nextDueTime(schedule, { now, lastStartedAt: now })).toBe(now + 3_600_000)
    }
  })

  test('XB18 a slot fires once: a cycle begun in it is not due again before the next', () => {
    const schedule = parse({ cron: '*/5 * * * *' })
    expect(iso(nextDueTime(schedule, { now: now + 20, lastStartedAt: now + 10 }))).toBe('2026-05-10T12:05:00.000Z')
    expect(iso(nextDueTime(schedule, { now, lastStartedAt: now }))).toBe('2026-05-10T12:05:00.000Z')
  })

  test('XB18 a cron that has never run waits for its first slot, and gets it although time has passed it', () => {
    const schedule = parse({ cron: '0 13 * * *' })
    expect(iso(nextDueTime(schedule, { now, lastStartedAt: null }))).toBe('2026-05-10T13:00:00.000Z')
    const late = at('2026-05-10T13:00:07Z')
    expect(iso(nextDueTime(schedule, { now: late, lastStartedAt: null, since: now }))).toBe('2026-05-10T13:00:00.000Z')
    const onTheDot = at('2026-05-10T13:00:00Z')
    expect(nextDueTime(schedule, { now: onTheDot, lastStartedAt: null })).toBe(onTheDot)
  })

  test('XB18 a clock that was set back does not stop the sync', () => {
    const future = at('2027-01-01T00:00:00Z')
    expect(nextDueTime(parse('5m'), { now, lastStartedAt: future })).toBe(now + 5 * 60_000)
    expect(iso(nextDueTime(parse({ cron: '*/5 * * * *' }), { now, lastStartedAt: future }))).toBe(
      '2026-05-10T12:05:00.000Z',
    )
  })

  test('XB18 daylight saving neither skips a daily slot nor runs it twice', () => {
    const schedule = parse({ cron: '30 2 * * *', zone: 'Europe/Berlin' })
    const slots = (from: string, count: number): string[] => {
      const found: string[] = []
      let last = at(from)
      while (found.length < count) found.push(iso((last = nextDueTime(schedule, { now: last, lastStartedAt: last })!))!)
      return found
    }
    // 02:30 does not exist on 29 March: the slot falls on the first moment that does.
    expect(slots('2026-03-28T12:00:00Z', 2)).toEqual(['2026-03-29T01:00:00.000Z', '2026-03-30T00:30:00.000Z'])
    // 02:30 comes twice on 25 October: the first counts.
    expect(slots('2026-10-24T12:00:00Z', 2)).toEqual(['2026-10-25T00:30:00.000Z', '2026-10-26T01:30:00.000Z'])
  })

  test('XB18 an hourly cron keeps its rhythm through the doubled hour', () => {
    const schedule = parse({ cron: '0 * * * *', zone: 'America/New_York' })
    let last = at('2026-11-01T04:30:00Z')
    for (const hour of ['05', '06', '07', '08']) {
      last = nextDueTime(schedule, { now: last, lastStartedAt: last })!
      expect(iso(last)).toBe(`2026-11-01T${hour}:00:00.000Z`)
    }
  })
})
