import { Cron } from 'croner'
import { SyncError } from '../contract/index.ts'
import { describeValue } from './names.ts'

/** A schedule as written in a worker. */
export type ScheduleInput = 'manual' | 'continuous' | (string & {}) | CronInput

/** A schedule as a cron expression, optionally in a time zone. */
export interface CronInput {
  /** Five fields, or a nickname such as @daily. */
  readonly cron: string
  /** An IANA zone such as Europe/Berlin; UTC when absent. */
  readonly zone?: string
}

/** A parsed schedule. */
export type Schedule =
  | { readonly kind: 'manual' }
  | { readonly kind: 'continuous' }
  | { readonly kind: 'interval'; readonly intervalMs: number }
  | { readonly kind: 'cron'; readonly cron: string; readonly zone: string }

export interface DueFacts {
  readonly now: number
  /** When the last cycle started, regardless of its result; null if none has run. */
  readonly lastStartedAt: number | null
  /** When the runner first saw the schedule; earlier cron slots do not count. Default: `now`. */
  readonly since?: number
}

const MINUTE_MS = 60_000
const UNIT_MS: Record<string, number> = { m: MINUTE_MS, h: 60 * MINUTE_MS, d: 24 * 60 * MINUTE_MS }
const INTERVAL_MAX_MS = 7 * 24 * 60 * MINUTE_MS

/** Throws SCHEDULE_INVALID. `subject` is the scheduled item, for the message. */
export function parseSchedule(input: unknown, subject: string): Schedule {
  if (input === 'manual') return { kind: 'manual' }
  if (input === 'continuous') return { kind: 'continuous' }
  if (typeof input === 'string') return { kind: 'interval', intervalMs: parseInterval(input, subject) }
  if (typeof input === 'object' && input !== null && 'cron' in input) return parseCron(input as CronInput, subject)
  throw invalidSchedule(subject, `${describeValue(input)} is not a schedule`)
}

/**
 * The slot of the next run; null if only a trigger starts one. A slot in the past is due now. One run covers all missed
 * slots, because the next slot is computed from the start of that run.
 */
export function nextDueTime(schedule: Schedule, facts: DueFacts): number | null {
  // If the clock was ahead when the last cycle started, the sync must not wait until that time.
  const last = facts.lastStartedAt === null ? null : Math.min(facts.lastStartedAt, facts.now)
  switch (schedule.kind) {
    case 'manual':
      return null
    case 'continuous':
      return last ?? facts.now
    case 'interval':
      return last === null ? facts.now : last + schedule.intervalMs
    case 'cron': {
      // A slot at the time the schedule was first seen counts; a slot at the last start was that run.
      const after = last ?? (facts.since ?? facts.now) - 1
      return createCron(schedule).nextRun(new Date(after))?.getTime() ?? null
    }
    default:
      return schedule satisfies never
  }
}

function parseInterval(text: string, subject: string): number {
  const [, count, unit = ''] = /^([1-9]\d{0,5})([mhd])$/.exec(text) ?? []
  const unitMs = UNIT_MS[unit]
  if (count === undefined || unitMs === undefined) {
    const hint = /^\S+(\s+\S+){4}$/.test(text) ? `; write it as { cron: ${describeValue(text)} }` : ''
    throw invalidSchedule(subject, `${describeValue(text)} is not a schedule${hint}`)
  }
  const intervalMs = Number(count) * unitMs
  if (intervalMs > INTERVAL_MAX_MS) throw invalidSchedule(subject, `${describeValue(text)} is longer than 7d`)
  return intervalMs
}

function parseCron(input: CronInput, subject: string): Schedule {
  const { cron, zone = 'UTC', ...rest } = input
  const unknown = Object.keys(rest)[0]
  if (unknown !== undefined) throw invalidSchedule(subject, `a cron schedule has no option ${describeValue(unknown)}`)
  if (typeof cron !== 'string' || typeof zone !== 'string')
    throw invalidSchedule(subject, 'cron and zone must be strings')
  const text = cron.trim()
  // The library also accepts dates and fields for seconds and years; schedules here have minute precision.
  if (!text.startsWith('@') && text.split(/\s+/).length !== 5)
    throw invalidSchedule(subject, `${describeValue(cron)} does not have five fields`)
  const schedule = { kind: 'cron', cron: text, zone } as const
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone })
  } catch (cause) {
    throw invalidSchedule(subject, `${describeValue(zone)} is not a time zone`, cause)
  }
  let first: Date | null
  try {
    first = createCron(schedule).nextRun(new Date(0))
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.replace(/^CronPattern: /, '') : String(cause)
    throw invalidSchedule(subject, `${describeValue(cron)} is not a cron pattern: ${reason}`, cause)
  }
  if (first === null) throw invalidSchedule(subject, `${describeValue(cron)} never matches a time`)
  return schedule
}

/** Without a callback the library only computes times; it sets no timer. */
function createCron(schedule: { cron: string; zone: string }): Cron {
  return new Cron(schedule.cron, { timezone: schedule.zone, mode: '5-part', paused: true })
}

function invalidSchedule(subject: string, what: string, cause?: unknown): SyncError {
  return new SyncError('SCHEDULE_INVALID', `${subject}: ${what}.`, { cause })
}
