import { nextDueTime, type Schedule } from '../config/schedule.ts'
import {
  ERROR_CODES,
  type ConnectionSummary,
  type CycleRecord,
  type Mode,
  type CheckpointSummary,
  type SyncStatusRow,
} from '../contract/index.ts'
import { FAILURE_EFFECTS } from './health.ts'
import { isBackfillNeeded, type PairRole } from './pair-backfill.ts'
import { listPendingParents, type ParentFacts, type ParentSync } from './parents.ts'

/** The part of a worker's declaration that decides when a sync runs. */
export interface SyncDeclaration {
  readonly mode: Mode
  readonly schedule: Schedule
  /** Defaults to 0. */
  readonly priority: number
  readonly pair?: PairRole
  /** See ManifestSync. */
  readonly retentionMs?: number
  /** The syncs that have to complete before each start. */
  readonly after?: readonly ParentSync[]
}

/** The checkpoint with its last cycles: one, or `RECENT_CYCLES` for a continuous sync. */
export interface SyncFacts extends Pick<SyncStatusRow, 'checkpoint' | 'recent'> {
  /** The result of `readParents`; absent for a sync without parents. */
  readonly parents?: readonly ParentFacts[]
  /** The connection that it reads with; absent for a sync without one. */
  readonly connection?: ConnectionFacts
}

export type ConnectionFacts = Pick<ConnectionSummary, 'name' | 'status' | 'statusReason' | 'updatedAt'>

export interface DueOptions {
  readonly now: number
  /** Time at which the schedule was first seen. */
  readonly since: number
  /** Minimum time between two cycles of a continuous sync. */
  readonly pauseMs: number
}

export type DueTime =
  /** `at` may be in the past: the sync is then due now, once, however many slots were missed. */
  | { readonly kind: 'at'; readonly at: number; readonly why: DueReason }
  | { readonly kind: 'never'; readonly why: 'paused' | 'manual' | 'stopped' | 'connection' }
  /** Until the named syncs have completed. */
  | { readonly kind: 'never'; readonly why: 'after'; readonly waitingFor: readonly string[] }

/**
 * `unfinished`: continues a cycle that a crash, a budget or a stop interrupted. `retry`: retries a failed cycle after
 * its backoff. `needed`: runs a backfill that its pair requires, regardless of its schedule.
 */
export type DueReason = 'trigger' | 'unfinished' | 'retry' | 'needed' | 'schedule'

/**
 * Computes when a sync runs next. Pure function of stored data, so every process of a fleet gets the same result.
 * Timestamps from a clock that was ahead are clamped to `now`; keep the result until the checkpoint changes, because
 * recomputing it would move it along with `now`.
 */
export function computeDueTime(
  { schedule, pair = null }: Pick<SyncDeclaration, 'schedule' | 'pair'>,
  { checkpoint: stored, recent, parents = [], connection }: SyncFacts,
  options: DueOptions,
): DueTime {
  const { now } = options
  const checkpoint = connection === undefined ? stored : forgiveOldFailure(stored, connection)
  if (checkpoint.paused) return { kind: 'never', why: 'paused' }
  if (connection !== undefined && connection.status !== 'active') return { kind: 'never', why: 'connection' }
  const earliest = computeRetryAt(checkpoint, now)
  if (checkpoint.triggeredAt !== null) {
    // A trigger after the failure overrides the backoff. A cycle that fails before it begins keeps its trigger, and
    // waits.
    const isAfterFailure = checkpoint.lastError === null || checkpoint.triggeredAt > checkpoint.lastError.at
    const requestedAt = Math.min(checkpoint.triggeredAt, now)
    return { kind: 'at', at: isAfterFailure ? requestedAt : Math.max(requestedAt, earliest), why: 'trigger' }
  }
  if (isScheduleStopped(checkpoint)) return { kind: 'never', why: 'stopped' }
  const failed = checkpoint.failures > 0
  // A first backfill follows its schedule. A requested one repairs the copy and does not wait.
  const isNeeded =
    pair === 'backfill' &&
    (checkpoint.backfillNeeded !== null || (schedule.kind === 'manual' && isBackfillNeeded(checkpoint)))
  if (
    checkpoint.inflight !== null &&
    (schedule.kind !== 'manual' || isNeeded || continuesTriggeredCycle(checkpoint, recent))
  ) {
    const { cycle, startedAt } = checkpoint.inflight
    const leftAt = recent[0]?.cycle === cycle ? (recent[0].endedAt ?? startedAt) : startedAt
    return { kind: 'at', at: Math.max(Math.min(leftAt, now), earliest), why: failed ? 'retry' : 'unfinished' }
  }
  // A retry belongs to a start that was allowed. A requested backfill repairs the copy and does not wait.
  const isGated =
    !failed && !(isNeeded && checkpoint.backfillNeeded !== null) && (isNeeded || schedule.kind !== 'manual')
  const waitingFor = isGated ? listPendingParents(parents, recent[0]?.startedAt ?? null) : []
  if (waitingFor.length > 0) return { kind: 'never', why: 'after', waitingFor }
  if (isNeeded) {
    const since = Math.min(checkpoint.backfillNeeded?.since ?? options.since, now)
    return { kind: 'at', at: Math.max(since, earliest), why: failed ? 'retry' : 'needed' }
  }
  const slot = computeNextSlot(schedule, recent, options)
  if (slot === null) return { kind: 'never', why: 'manual' }
  return { kind: 'at', at: Math.max(slot, earliest), why: failed ? 'retry' : 'schedule' }
}

/** Number of cycles from which the rest of a continuous sync is computed. */
export const RECENT_CYCLES = 5

/**
 * Identifies the inputs of `computeDueTime`. A cycle, pause, resume, trigger or state transition changes at least one
 * of them.
 */
export function fingerprintCheckpoint(checkpoint: CheckpointSummary): string {
  const { version, inflight, paused, triggeredAt, failures, lastError, retryAt, lastSuccessAt, backfillNeeded } =
    checkpoint
  const request = [backfillNeeded?.since, backfillNeeded?.cycle]
  return [
    version,
    inflight?.cycle,
    inflight?.page,
    paused,
    triggeredAt,
    failures,
    lastError?.at,
    retryAt,
    lastSuccessAt,
    ...request,
  ].join('/')
}

/** The same for all inputs, with the parents. */
export function fingerprintFacts({ checkpoint, parents = [], connection }: SyncFacts): string {
  const { status, updatedAt } = connection ?? {}
  return [fingerprintCheckpoint(checkpoint), status, updatedAt, ...parents.map(({ completedAt }) => completedAt)].join(
    '|',
  )
}

/** A failure from before the connection was authorized or enabled says nothing about it now. */
function forgiveOldFailure(checkpoint: CheckpointSummary, { updatedAt }: ConnectionFacts): CheckpointSummary {
  const { lastError } = checkpoint
  return lastError !== null && lastError.at < updatedAt && ERROR_CODES[lastError.code].remedy === 'reauth'
    ? { ...checkpoint, failures: 0, retryAt: null }
    : checkpoint
}

/** Counts the backoff from the failure, clamped to the local clock. */
function computeRetryAt({ failures, lastError, retryAt }: CheckpointSummary, now: number): number {
  if (failures === 0 || retryAt === null) return -Infinity
  return lastError === null ? retryAt : Math.min(lastError.at, now) + (retryAt - lastError.at)
}

/** Refused credentials leave the cycle unfinished; a state transition clears it, and with it the stop. */
function isScheduleStopped({ failures, lastError, inflight }: CheckpointSummary): boolean {
  return (
    failures > 0 &&
    inflight !== null &&
    lastError !== null &&
    FAILURE_EFFECTS[ERROR_CODES[lastError.code].remedy].stopsSchedule
  )
}

/** A trigger requests a whole cycle: it continues after a crash, unless the error needs an operator. */
function continuesTriggeredCycle(
  { inflight, failures, lastError }: CheckpointSummary,
  recent: readonly CycleRecord[],
): boolean {
  const last = recent[0]
  if (last === undefined || last.cycle !== inflight?.cycle || last.trigger !== 'trigger') return false
  if (failures === 0 || lastError === null) return true
  const { remedy } = ERROR_CODES[lastError.code]
  return remedy === 'retry' || remedy === 'wait'
}

function computeNextSlot(
  schedule: Schedule,
  recent: readonly CycleRecord[],
  { now, since, pauseMs }: DueOptions,
): number | null {
  const last = recent[0]
  if (schedule.kind === 'continuous' && last !== undefined)
    return Math.min(last.endedAt ?? last.startedAt, now) + computeRestMs(recent, pauseMs)
  return nextDueTime(schedule, { now, since, lastStartedAt: last?.startedAt ?? null })
}

/** Doubles the rest after each consecutive cycle without changes. */
function computeRestMs(recent: readonly CycleRecord[], pauseMs: number): number {
  const found = recent
    .slice(0, RECENT_CYCLES)
    .findIndex(({ counts }) => counts.created + counts.updated + counts.deleted + counts.swept > 0)
  return pauseMs * 2 ** (found === -1 ? Math.min(recent.length, RECENT_CYCLES) : found)
}
