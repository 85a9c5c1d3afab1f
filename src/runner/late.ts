import { nextDueTime } from '../config/schedule.ts'
import type { SyncDeclaration } from './due.ts'
import type { StatusFacts } from './status.ts'

/** A late sync has missed two slots of its schedule, and has had at least this much time. */
const LATE_MIN_MS = 10 * 60_000
const SLOTS_MISSED = 2

/**
 * The time from which the copy counts as late: the last complete cycle began two slots of the schedule ago, and a cycle
 * of twice the last duration would have completed. Null for a sync that nothing starts, and before the first complete
 * cycle, whose duration is unknown. It does not depend on the clock.
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
