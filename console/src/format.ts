import type { LandingCounts } from '../../src/contract/index.ts'
import type { ScheduleDocument } from '../../src/server/console/documents.ts'

const SECOND = ['s', 1_000] as const
const UNITS = [['d', 86_400_000], ['h', 3_600_000], ['m', 60_000], SECOND] as const

/** The two largest units: `4m 10s`, `2d 3h`. */
export function formatDuration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`
  const [[unit, unitMs] = SECOND, next] = UNITS.filter(([, length]) => ms >= length)
  const whole = Math.floor(ms / unitMs)
  const rest = next === undefined ? 0 : Math.floor((ms - whole * unitMs) / next[1])
  return rest === 0 || next === undefined ? `${whole}${unit}` : `${whole}${unit} ${rest}${next[0]}`
}

/** Whole seconds, so that a value updated every second does not flicker. */
export function formatAgo(at: string, now: number): string {
  const ms = now - Date.parse(at)
  if (Math.abs(ms) < 1_500) return 'now'
  const seconds = formatDuration(Math.floor(Math.abs(ms) / 1_000) * 1_000)
  return ms < 0 ? `in ${seconds}` : `${seconds} ago`
}

const COUNT_FORMAT = new Intl.NumberFormat('en')
const COMPACT_FORMAT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })

export function formatCount(value: number): string {
  return COUNT_FORMAT.format(value)
}

export function formatCompact(value: number): string {
  return value < 10_000 ? COUNT_FORMAT.format(Math.round(value)) : COMPACT_FORMAT.format(value)
}

export function pluralize(value: number, one: string, many = `${one}s`): string {
  return `${formatCount(value)} ${value === 1 ? one : many}`
}

/** A blank key would be invisible and could not be clicked. */
export function formatKey(key: string): string {
  return key.trim() === '' ? JSON.stringify(key) : key
}

/** Lists up to five names, otherwise their number. */
export function summarizeNames(names: readonly string[], what: string): string {
  return names.length > 5 ? pluralize(names.length, what) : names.join(', ')
}

/** In the local time zone. */
export function formatTime(at: string): string {
  const time = new Date(at)
  return `${padTwo(time.getHours())}:${padTwo(time.getMinutes())}:${padTwo(time.getSeconds())}`
}

export function formatDate(at: string): string {
  const time = new Date(at)
  return `${time.getFullYear()}-${padTwo(time.getMonth() + 1)}-${padTwo(time.getDate())}`
}

function padTwo(value: number): string {
  return String(value).padStart(2, '0')
}

export function formatSchedule(schedule: ScheduleDocument | null): string {
  if (schedule === null) return 'not declared'
  switch (schedule.kind) {
    case 'interval':
      return `every ${formatDuration(schedule.intervalMs)}`
    case 'cron':
      return schedule.zone === 'UTC' ? schedule.cron : `${schedule.cron} ${schedule.zone}`
    default:
      return schedule.kind
  }
}

export function countLanded({ created, updated }: LandingCounts): number {
  return created + updated
}

export function countDeleted({ deleted, swept }: LandingCounts): number {
  return deleted + swept
}

/** All processed records, changed or not. */
function countProcessed({
  created,
  updated,
  deleted,
  swept,
  unchanged,
  stale,
  missing,
  quarantined,
}: LandingCounts): number {
  return created + updated + deleted + swept + unchanged + stale + missing + quarantined
}

export function computeRowsPerSecond(
  cycle: { readonly startedAt: string; readonly endedAt: string | null; readonly counts: LandingCounts } | null,
  now: number,
): number | null {
  if (cycle === null) return null
  const ms = (cycle.endedAt === null ? now : Date.parse(cycle.endedAt)) - Date.parse(cycle.startedAt)
  return countProcessed(cycle.counts) / Math.max(0.05, ms / 1_000)
}

export function formatBytes(value: number): string {
  return value < 1_024 ? `${value} B` : `${(value / 1_024).toFixed(1)} kB`
}

/** A step of a chart: its start, with the date if it is not today, and its end if it is shorter than a day. */
export function formatStep(from: number, stepMs: number): string {
  const [start, end] = [new Date(from), new Date(from + stepMs)]
  const clock = (time: Date): string => `${padTwo(time.getHours())}:${padTwo(time.getMinutes())}`
  const isToday = formatDate(start.toISOString()) === formatDate(new Date().toISOString())
  return `${isToday ? '' : `${formatDate(start.toISOString())} `}${clock(start)}–${clock(end)}`
}

/** A tick of a time axis: the date for a span of days. */
export function formatTick(at: number, spanMs: number): string {
  const time = new Date(at)
  const clock = `${padTwo(time.getHours())}:${padTwo(time.getMinutes())}`
  return spanMs > 2 * 86_400_000 ? `${padTwo(time.getMonth() + 1)}-${padTwo(time.getDate())}` : clock
}
