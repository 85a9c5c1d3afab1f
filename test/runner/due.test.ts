import { describe, expect, test } from 'vitest'
import { parseSchedule, type ScheduleInput } from '../../src/config/schedule.ts'
import type { Checkpoint, CycleRecord, ErrorCode, Inflight } from '../../src/contract/index.ts'
import { computeDueTime, fingerprintCheckpoint, fingerprintFacts, type DueTime } from '../../src/runner/due.ts'
import type { PairRole } from '../../src/runner/pair-backfill.ts'
import { readParents, type ParentFacts } from '../../src/runner/parents.ts'
import { HOUR, MINUTE, SECOND } from './runner-fixture.ts'

const NOW = Date.parse('2026-03-01T12:00:00Z')

describe('a schedule', () => {
  test('N17: manual runs only when triggered', () => {
    expect(due('manual', {})).toEqual({ kind: 'never', why: 'manual' })
    expect(due('manual', { triggeredAt: NOW - 5 })).toEqual({ kind: 'at', at: NOW - 5, why: 'trigger' })
  })

  test('an interval is due at once the first time, then counted from the last start', () => {
    expect(due('5m', {})).toEqual({ kind: 'at', at: NOW, why: 'schedule' })
    expect(due('5m', {}, [ran(NOW - MINUTE)])).toEqual({ kind: 'at', at: NOW + 4 * MINUTE, why: 'schedule' })
  })

  test('N18: a cron waits for its slot, in its zone', () => {
    expect(due({ cron: '*/5 * * * *' }, {}, [ran(NOW - MINUTE)])).toMatchObject({ at: NOW })
    expect(due({ cron: '0 * * * *' }, {}, [ran(NOW)])).toMatchObject({ at: NOW + HOUR })
    expect(due({ cron: '30 14 * * *', zone: 'Europe/Berlin' }, {}, [ran(NOW)])).toMatchObject({
      at: NOW + HOUR + 30 * MINUTE,
    })
  })

  test('XB18: slots missed during sleep become one, in the past', () => {
    expect(due('5m', {}, [ran(NOW - 24 * HOUR)])).toMatchObject({ at: NOW - 24 * HOUR + 5 * MINUTE })
    expect(due({ cron: '0 * * * *' }, {}, [ran(NOW - 24 * HOUR)])).toMatchObject({ at: NOW - 23 * HOUR })
  })

  test('XB18: a start in the future, from a clock that was ahead, does not stop the sync', () => {
    expect(due('5m', {}, [ran(NOW + 24 * HOUR)])).toMatchObject({ at: NOW + 5 * MINUTE })
  })

  test('a continuous sync starts again one pause after its end', () => {
    expect(due('continuous', {})).toMatchObject({ at: NOW })
    expect(due('continuous', {}, [ran(NOW - MINUTE, { endedAt: NOW - 10, found: 1 })])).toMatchObject({
      at: NOW - 10 + SECOND,
    })
  })

  test('a continuous sync without changes doubles its pause each time, up to 32 s', () => {
    const rests = [0, 1, 2, 3, 4, 5, 9].map((empty) => {
      const recent = [...Array<CycleRecord>(empty).fill(ran(NOW, { found: 0 })), ran(NOW, { found: 1 })].slice(0, 5)
      return (due('continuous', {}, recent) as { at: number }).at - NOW
    })
    expect(rests).toEqual([1, 2, 4, 8, 16, 32, 32].map((s) => s * SECOND))
  })
})

describe('an unfinished cycle', () => {
  const inflight = unfinished(7, NOW - HOUR)

  test.each(['timeout', 'max_pages', 'cancelled', 'paused', null] as const)(
    'of a scheduled sync goes on at once after %s',
    (stopReason) => {
      const record = ran(NOW - HOUR, { cycle: 7, endedAt: stopReason === null ? null : NOW - SECOND, stopReason })
      expect(due('1d', { inflight }, [record])).toEqual({
        kind: 'at',
        at: stopReason === null ? NOW - HOUR : NOW - SECOND,
        why: 'unfinished',
      })
    },
  )

  test('SX6: after a failure it waits for its retry time, not for the schedule', () => {
    const checkpoint = { inflight, ...failed('SOURCE_UNAVAILABLE', NOW - 10, 1, NOW + MINUTE) }
    expect(due('1d', checkpoint, [ran(NOW - HOUR, { cycle: 7 })])).toEqual({
      kind: 'at',
      at: NOW + MINUTE,
      why: 'retry',
    })
  })

  test('N17: a manual sync that was run by hand waits for the operator', () => {
    expect(due('manual', { inflight }, [ran(NOW - HOUR, { cycle: 7, trigger: 'manual', endedAt: null })])).toEqual({
      kind: 'never',
      why: 'manual',
    })
  })

  test('N17: a manual sync that was triggered continues: a whole cycle was requested', () => {
    const recent = [ran(NOW - HOUR, { cycle: 7, trigger: 'trigger', endedAt: null })]
    expect(due('manual', { inflight }, recent)).toMatchObject({ at: NOW - HOUR, why: 'unfinished' })
    expect(due('manual', { inflight, ...failed('RATE_LIMITED', NOW, 1, NOW + MINUTE) }, recent)).toMatchObject({
      at: NOW + MINUTE,
      why: 'retry',
    })
    expect(due('manual', { inflight, ...failed('CONNECTOR_FAILED', NOW, 1, NOW + MINUTE) }, recent)).toEqual({
      kind: 'never',
      why: 'manual',
    })
  })
})

describe('after a failure', () => {
  test('F11: an abandoned cycle waits for the later of its slot and its retry', () => {
    const blocked = [ran(NOW - 10 * MINUTE, { stopReason: 'blocked' })]
    expect(due('5m', failed('MASS_DELETE', NOW - MINUTE, 1, NOW + HOUR), blocked)).toEqual({
      kind: 'at',
      at: NOW + HOUR,
      why: 'retry',
    })
    expect(due('1h', failed('SCOPE_CHANGED', NOW - MINUTE, 1, NOW + MINUTE), blocked)).toEqual({
      kind: 'at',
      at: NOW + 50 * MINUTE,
      why: 'retry',
    })
  })

  test('F11: refused credentials stop the schedule until a resume, a new state or a trigger', () => {
    const inflight = unfinished(7, NOW - HOUR)
    const refused = { inflight, ...failed('AUTH_REJECTED', NOW - MINUTE, 1, NOW) }
    const recent = [ran(NOW - HOUR, { cycle: 7 })]
    expect(due('5m', refused, recent)).toEqual({ kind: 'never', why: 'stopped' })
    expect(due('continuous', refused, recent)).toEqual({ kind: 'never', why: 'stopped' })
    expect(due('5m', { ...refused, failures: 0, retryAt: null }, recent)).toMatchObject({
      kind: 'at',
      why: 'unfinished',
    })
    expect(due('5m', { ...refused, inflight: null }, recent)).toMatchObject({ kind: 'at', at: NOW })
    expect(due('5m', { ...refused, triggeredAt: NOW }, recent)).toEqual({ kind: 'at', at: NOW, why: 'trigger' })
  })

  test.each(['CONNECTOR_FAILED', 'CURSOR_REJECTED', 'SECRET_MISSING', 'STORE_FULL'] as const)(
    '%s is tried again after its wait',
    (code) => {
      const checkpoint = { inflight: unfinished(7, NOW - HOUR), ...failed(code, NOW, 4, NOW + 2 * HOUR) }
      expect(due('5m', checkpoint, [ran(NOW - HOUR, { cycle: 7 })])).toEqual({
        kind: 'at',
        at: NOW + 2 * HOUR,
        why: 'retry',
      })
    },
  )

  test('a retry delay written by a clock that was ahead keeps its length', () => {
    const checkpoint = {
      inflight: unfinished(7, NOW),
      ...failed('SOURCE_UNAVAILABLE', NOW + 24 * HOUR, 1, NOW + 24 * HOUR + MINUTE),
    }
    expect(due('5m', checkpoint)).toMatchObject({ at: NOW + MINUTE })
  })

  test('a trigger before the failure waits with it, one after it does not', () => {
    const wrong = failed('STORE_UNAVAILABLE', NOW - MINUTE, 1, NOW + MINUTE)
    expect(due('5m', { ...wrong, triggeredAt: NOW - HOUR })).toEqual({ kind: 'at', at: NOW + MINUTE, why: 'trigger' })
    expect(due('5m', { ...wrong, triggeredAt: NOW - SECOND })).toEqual({ kind: 'at', at: NOW - SECOND, why: 'trigger' })
  })

  test('a trigger from a clock that is ahead counts from now', () => {
    expect(due('manual', { triggeredAt: NOW + HOUR })).toMatchObject({ at: NOW })
  })
})

describe('a sync with parents', () => {
  const parents = (...completedAt: (number | null)[]): ParentFacts[] =>
    completedAt.map((at, index) => ({ sync: `p${index + 1}`, completedAt: at }))
  const waiting = (...waitingFor: string[]) => ({ kind: 'never', why: 'after', waitingFor })

  test('waits for each of them to complete once', () => {
    expect(due('5m', {}, [], parents(null, NOW))).toEqual(waiting('p1'))
    expect(due('5m', {}, [], parents(NOW, NOW))).toEqual({ kind: 'at', at: NOW, why: 'schedule' })
  })

  test('waits again for each of them after its own start', () => {
    const started = [ran(NOW - MINUTE)]
    expect(due('continuous', {}, started, parents(NOW - MINUTE, NOW - HOUR))).toEqual(waiting('p1', 'p2'))
    expect(due('continuous', {}, started, parents(NOW - SECOND, NOW - HOUR))).toEqual(waiting('p2'))
    expect(due('continuous', {}, started, parents(NOW - SECOND, NOW - SECOND))).toMatchObject({ kind: 'at' })
  })

  test('still waits for its own slot', () => {
    expect(due('5m', {}, [ran(NOW - MINUTE)], parents(NOW))).toEqual({
      kind: 'at',
      at: NOW + 4 * MINUTE,
      why: 'schedule',
    })
  })

  test('a trigger, an unfinished cycle and a retry do not wait', () => {
    const none = parents(null)
    expect(due('5m', { triggeredAt: NOW }, [], none)).toMatchObject({ why: 'trigger' })
    expect(due('5m', { inflight: unfinished(7, NOW) }, [ran(NOW, { cycle: 7 })], none)).toMatchObject({
      why: 'unfinished',
    })
    const wrong = failed('SOURCE_UNAVAILABLE', NOW - MINUTE, 1, NOW)
    expect(due('5m', wrong, [ran(NOW - HOUR)], parents(NOW - 2 * HOUR))).toMatchObject({ why: 'retry' })
  })

  test('a manual sync stays manual', () => {
    expect(due('manual', {}, [], parents(NOW))).toEqual({ kind: 'never', why: 'manual' })
    expect(due('manual', {}, [], parents(null))).toEqual({ kind: 'never', why: 'manual' })
  })

  test('the first backfill of a pair waits, and a requested one does not', () => {
    expect(due('manual', {}, [], parents(null), 'backfill')).toEqual(waiting('p1'))
    expect(due('manual', {}, [], parents(NOW), 'backfill')).toMatchObject({ why: 'needed' })
    const request = { backfillNeeded: { since: NOW, reason: 'lost', cycle: null } }
    expect(due('manual', request, [], parents(null), 'backfill')).toMatchObject({ why: 'needed' })
  })

  test('a pair is complete when its delta is, and its backfill is not needed', () => {
    const after = [{ sync: 'p', backfill: 'p-backfill' }]
    const delta = checkpointOf({ lastSuccessAt: NOW })
    const find = (backfill: Partial<Checkpoint> | null) => (sync: string) =>
      sync === 'p' ? delta : backfill === null ? undefined : checkpointOf(backfill)
    const completedAt = (backfill: Partial<Checkpoint> | null): number | null | undefined =>
      readParents(after, find(backfill))[0]?.completedAt
    expect(completedAt(null)).toBeNull()
    expect(completedAt({})).toBeNull()
    expect(completedAt({ lastSuccessAt: 5, backfillNeeded: { since: 1, reason: '', cycle: null } })).toBeNull()
    expect(completedAt({ lastSuccessAt: 5 })).toBe(NOW)
  })

  test('the fingerprint changes when a parent completes', () => {
    const facts = { checkpoint: checkpointOf({}), recent: [] }
    const prints = [parents(null), parents(NOW), parents(NOW, null)].map((given) =>
      fingerprintFacts({ ...facts, parents: given }),
    )
    expect(new Set(prints).size).toBe(3)
  })
})

test('a paused sync is never due, triggered or not', () => {
  expect(due('continuous', { paused: true, triggeredAt: NOW, inflight: unfinished(7, NOW) })).toEqual({
    kind: 'never',
    why: 'paused',
  })
})

test('the fingerprint changes with every input of the due time, and not with the lease', () => {
  const base = checkpointOf({ inflight: unfinished(7, NOW) })
  const moves: Array<Partial<Checkpoint>> = [
    { version: 1 },
    { inflight: null },
    { inflight: { ...base.inflight!, page: 1 } },
    { paused: true },
    { triggeredAt: 1 },
    { failures: 1 },
    { retryAt: 1 },
    { lastSuccessAt: 1 },
    { lastError: { code: 'INTERNAL', message: '', at: 1 } },
  ]
  expect(new Set([base, ...moves.map((move) => ({ ...base, ...move }))].map(fingerprintCheckpoint)).size).toBe(
    moves.length + 1,
  )
  expect(fingerprintCheckpoint({ ...base, heldBy: 'another', heldUntil: 5 })).toBe(fingerprintCheckpoint(base))
})

// ── what is said about a sync ────────────────────────────────────────────────────────────────────────────────────────

function due(
  schedule: ScheduleInput,
  checkpoint: Partial<Checkpoint>,
  recent: readonly CycleRecord[] = [],
  parents: readonly ParentFacts[] = [],
  pair: PairRole = null,
): DueTime {
  return computeDueTime(
    { schedule: parseSchedule(schedule, 'test'), pair },
    { checkpoint: checkpointOf(checkpoint), recent, parents },
    { now: NOW, since: NOW - HOUR, pauseMs: SECOND },
  )
}

function checkpointOf(given: Partial<Checkpoint>): Checkpoint {
  return {
    version: 0,
    committed: null,
    committedBy: null,
    inflight: null,
    scope: null,
    tidemark: null,
    paused: false,
    triggeredAt: null,
    failures: 0,
    lastError: null,
    retryAt: null,
    lastSuccessAt: null,
    completeSince: null,
    backfillNeeded: null,
    heldBy: null,
    heldSince: null,
    heldUntil: null,
    ...given,
  }
}

function failed(code: ErrorCode, at: number, failures: number, retryAt: number): Partial<Checkpoint> {
  return { failures, lastError: { code, message: '', at }, retryAt }
}

function unfinished(cycle: number, startedAt: number): Inflight {
  return {
    cycle,
    mode: 'incremental',
    page: 3,
    state: '{}',
    startedAt,
    scope: null,
    tidemark: null,
    guardState: null,
    startSequence: 0,
  }
}

function ran(startedAt: number, { found = 0, ...given }: Partial<CycleRecord> & { found?: number } = {}): CycleRecord {
  return {
    worker: 'shop',
    sync: 'orders',
    cycle: 1,
    mode: 'incremental',
    trigger: 'schedule',
    startedAt,
    startSequence: 0,
    endedAt: startedAt,
    stopReason: 'complete',
    endReason: null,
    pages: 1,
    retries: 0,
    waitedMs: 0,
    error: null,
    counts: { created: found, updated: 0, deleted: 0, swept: 0, unchanged: 3, stale: 0, missing: 0, quarantined: 0 },
    ...given,
  }
}
