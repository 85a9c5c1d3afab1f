import { nextDueTime, type Schedule } from '../../config/schedule.ts'
import type { DestinationStatus } from '../../contract/index.ts'
import type { DestinationPlan } from './run-destination.ts'

export type DestinationDue =
  /** `at` may be in the past: the destination is then due now. */
  | { readonly kind: 'at'; readonly at: number; readonly why: 'trigger' | 'retry' | 'changes' | 'schedule' }
  | { readonly kind: 'never'; readonly why: 'paused' | 'manual' | 'current' }

export interface DestinationDueFacts {
  readonly now: number
  /** When the schedule was first seen. */
  readonly since: number
  readonly headSequence: number
}

/** When a destination runs next. A continuous one is due when the log has entries that it has not read. */
export function computeDestinationDue(
  { databases }: Pick<DestinationPlan, 'databases'>,
  schedule: Schedule,
  status: DestinationStatus | undefined,
  { now, since, headSequence }: DestinationDueFacts,
): DestinationDue {
  if (status === undefined)
    return schedule.kind === 'manual' ? { kind: 'never', why: 'manual' } : { kind: 'at', at: now, why: 'schedule' }
  if (status.isPaused) return { kind: 'never', why: 'paused' }
  const retryAt = status.error === null ? null : status.retryAt
  const failed = new Set(status.databases.filter(({ failure }) => failure != null).map(({ database }) => database))
  const isWaiting = (status.retryAt ?? 0) > now
  // A request of an operator clears the wait. Databases that did not fail do not wait for the others.
  if (isWaiting && (failed.size === 0 || databases.every((database) => failed.has(database))))
    return { kind: 'at', at: status.retryAt ?? now, why: 'retry' }
  if (status.triggeredAt !== null || status.resync.length > 0)
    return { kind: 'at', at: Math.min(status.triggeredAt ?? now, now), why: 'trigger' }
  if (retryAt !== null && retryAt <= now) return { kind: 'at', at: retryAt, why: 'retry' }
  const scheduled = computeScheduled()
  if (retryAt === null || (scheduled.kind === 'at' && scheduled.at <= retryAt)) return scheduled
  return { kind: 'at', at: retryAt, why: 'retry' }

  function computeScheduled(): DestinationDue {
    if (schedule.kind === 'manual') return { kind: 'never', why: 'manual' }
    if (schedule.kind === 'continuous') {
      const progress = new Map(status?.databases.map((one) => [one.database, one]))
      const hasChanges = databases.some((database) => {
        const own = progress.get(database)
        if (failed.has(database)) return retryAt === null
        return own === undefined || own.state !== 'following' || own.readSequence < headSequence
      })
      return hasChanges ? { kind: 'at', at: now, why: 'changes' } : { kind: 'never', why: 'current' }
    }
    const at = nextDueTime(schedule, { now, since, lastStartedAt: status?.startedAt ?? null })
    return at === null ? { kind: 'never', why: 'manual' } : { kind: 'at', at, why: 'schedule' }
  }
}

export function isDestinationDue(
  plan: Pick<DestinationPlan, 'databases'>,
  schedule: Schedule,
  status: DestinationStatus | undefined,
  facts: DestinationDueFacts,
): boolean {
  const due = computeDestinationDue(plan, schedule, status, facts)
  return due.kind === 'at' && due.at <= facts.now
}
