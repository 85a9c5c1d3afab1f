import { nextDueTime } from '../config/schedule.ts'
import type { SyncDeclaration } from './due.ts'
import type { StatusFacts } from './status.ts'

/** A late sync has missed two slots of its schedule, and has had at least this much time. */
const LATE_MIN_MS = 10 * 60_000
const SLOTS_MISSED = 2

/**
 * The time from which the copy counts as late: two slots of the schedule after the start of the last complete cycle, and
 * then twice the duration of that cycle or ten minutes, whichever is longer. Null for a sync without a schedule, for one
 * that is paused or whose connection is not active, and before the first complete cycle. Independent of the clock.
 */
export function computeLateAt(
  { schedule }: Pick<SyncDeclaration, 'schedule'>,
  {
    checkpoint: { completeSince, lastSuccessAt, paused },
    recent,
    connection,
  }: Pick<StatusFacts, 'checkpoint' | 'recent' | 'connection'>,
): number | null {
  if (completeSince === null || lastSuccessAt === null || paused) return null
  if (connection !== undefined && connection.status !== 'active') return null
  let slot: number | null = completeSince
  for (let missed = 0; missed < SLOTS_MISSED && slot !== null; missed++)
    slot = nextDueTime(schedule, { now: slot, lastStartedAt: slot })
  if (slot === null) return null
  const last = recent.find(({ stopReason, endedAt }) => stopReason === 'complete' && endedAt !== null)
  const lastMs = last === undefined ? 0 : (last.endedAt ?? last.startedAt) - last.startedAt
  return slot + Math.max(LATE_MIN_MS, 2 * lastMs)
}
