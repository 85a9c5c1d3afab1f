import { Cron } from 'croner'
import { SyncError } from '../contract/index.ts'
import { describeValue } from './names.ts'

/** As people write it. */
export type ScheduleInput = 'manual' | 'continuous' | (string & {}) | CronInput

export interface CronInput {
  /** Five fields, or a nickname such as @daily. */
  readonly cron: string
  /** An IANA zone such as Europe/Berlin; UTC when absent. */
  readonly zone?: string
}

/** As the runner keeps it. */
export type Schedule =
  | { readonly kind: 'manual' }
  | { readonly kind: 'continuous' }
  | { readonly kind: 'interval'; readonly intervalMs: number }
  | { readonly kind: 'cron'; readonly cron: string; readonly zone: string }

export interface DueFacts {
  readonly now: number
  /** When the last cycle began, however it ended; null when none has. */
  readonly lastStartedAt: number | null
  /** Since when the runner has known the schedule: slots of a cron before that were never promised. `now` when absent. */
  readonly since?: number
}

const MINUTE_MS = 60_000
const UNIT_MS: Record<string, number> = { m: MINUTE_MS, h: 60 * MINUTE_MS, d: 24 * 60 * MINUTE_MS }
const INTERVAL_MAX_MS = 7 * 24 * 60 * MINUTE_MS

/** Throws SCHEDULE_INVALID. `subject` names what is being scheduled, for the message. */
export function parseSchedule(input: unknown, subject: string): Schedule {
  if (input === 'manual') return { kind: 'manual' }
  if (input === 'continuous') return { kind: 'continuous' }
  if (typeof input === 'string') return { kind: 'interval', intervalMs: parseInterval(input, subject) }
  if (typeof input === 'object' && input !== null && 'cron' in input) return parseCron(input as CronInput, subject)
  throw invalidSchedule(subject, `${describeValue(input)} is not a schedule`)
}

/**
 * The slot the next run is for; null when only a trigger starts one. It may lie in the past: then it is due now, and the
 * one run it gets stands for every slot missed since, because the next slot is counted from that run's own start.
 */
export function nextDueTime(schedule: Schedule, facts: DueFacts): number | null {
  // A clock that was ahead when the last cycle began must not silence the sync until it gets there again.
  const last = facts.lastStartedAt === null ? null : Math.min(facts.lastStartedAt, facts.now)
  switch (schedule.kind) {
    case 'manual':
      return null
    case 'continuous':
      return last ?? facts.now
    case 'interval':
      return last === null ? facts.now : last + schedule.intervalMs
    case 'cron': {
      // A slot at the very moment the schedule became known counts; one at the moment of the last start was that start.
      const after = last ?? (facts.since ?? facts.now) - 1
      return createCron(schedule).nextRun(new Date(after))?.getTime() ?? null
    }
    default:
      return schedule satisfies never
  }
}

function parseInterval(text: string, subject: string): number {
  const match = /^([1-9]\d{0,5})([mhd])$/.exec(text)
  if (match === null) {
    const hint = /^\S+(\s+\S+){4}$/.test(text) ? `; write it as { cron: ${describeValue(text)} }` : ''
    throw invalidSchedule(subject, `${describeValue(text)} is not a schedule${hint}`)
  }
  const intervalMs = Number(match[1]) * UNIT_MS[match[2]!]!
  if (intervalMs > INTERVAL_MAX_MS) throw invalidSchedule(subject, `${describeValue(text)} is longer than 7d`)
  return intervalMs
}

function parseCron(input: CronInput, subject: string): Schedule {
  const { cron, zone = 'UTC', ...rest } = input
  const unknown = Object.keys(rest)[0]
  if (unknown !== undefined) throw invalidSchedule(subject, `a cron schedule has no option ${describeValue(unknown)}`)
  if (typeof cron !== 'string' || typeof zone !== 'string') throw invalidSchedule(subject, 'cron and zone are strings')
  const text = cron.trim()
  // The library would also take a date, or fields for seconds and years; a schedule here is a rhythm of whole minutes.
  if (!text.startsWith('@') && text.split(/\s+/).length !== 5) throw invalidSchedule(subject, `${describeValue(cron)} has not five fields`)
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
    const said = cause instanceof Error ? cause.message.replace(/^CronPattern: /, '') : String(cause)
    throw invalidSchedule(subject, `${describeValue(cron)} is not a cron pattern: ${said}`, cause)
  }
  if (first === null) throw invalidSchedule(subject, `${describeValue(cron)} never comes`)
  return schedule
}

/** Without a function to call, the library only computes: it sets no timer and reads no clock. */
function createCron(schedule: { cron: string; zone: string }): Cron {
  return new Cron(schedule.cron, { timezone: schedule.zone, mode: '5-part', paused: true })
}

function invalidSchedule(subject: string, what: string, cause?: unknown): SyncError {
  return new SyncError('SCHEDULE_INVALID', `${subject}: ${what}.`, { cause })
}
