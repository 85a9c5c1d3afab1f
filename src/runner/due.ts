import { nextDueTime, type Schedule } from '../config/schedule.ts'
import { ERROR_CODES, type CycleRecord, type Mode, type CheckpointSummary, type SyncStatusRow } from '../contract/index.ts'
import { FAILURE_EFFECTS } from './health.ts'
import { isBackfillNeeded, type PairRole } from './pair-backfill.ts'

/** What a worker says about when a sync runs. */
export interface SyncDeclaration {
  readonly mode: Mode
  readonly schedule: Schedule
  /** 0 when the worker says nothing. */
  readonly priority: number
  /** Which half of a pair it is. */
  readonly pair?: PairRole
  /** See ManifestSync. */
  readonly retentionMs?: number
}

/** Where it stands, with its last cycles: one, and for a continuous sync `RECENT_CYCLES`. */
export type SyncFacts = Pick<SyncStatusRow, 'checkpoint' | 'recent'>

export interface DueOptions {
  readonly now: number
  /** Since when the schedule has been known. */
  readonly since: number
  /** The least time between two cycles of a continuous sync. */
  readonly pauseMs: number
}

export type DueTime =
  /** `at` may lie in the past: then it is due now, once, for however many slots were missed. */
  | { readonly kind: 'at'; readonly at: number; readonly why: DueReason }
  | { readonly kind: 'never'; readonly why: 'paused' | 'manual' | 'stopped' }

/**
 * `unfinished`: a cycle that a crash, a budget or a stop interrupted goes on. `retry`: it failed, and its wait is over.
 * `needed`: a backfill that its pair is not complete without, whatever its schedule.
 */
export type DueReason = 'trigger' | 'unfinished' | 'retry' | 'needed' | 'schedule'

/**
 * When a sync should run next. A pure function of what is stored, so every process of a fleet comes to the same answer.
 * Times from a clock that was ahead are brought back to `now`, so the answer is to be kept until the standing changes
 * and not asked for again and again: it would move along with `now`.
 */
export function computeDueTime({ schedule, pair = null }: SyncDeclaration, { checkpoint, recent }: SyncFacts, options: DueOptions): DueTime {
  const { now } = options
  if (checkpoint.paused) return { kind: 'never', why: 'paused' }
  const earliest = computeRetryAt(checkpoint, now)
  if (checkpoint.triggeredAt !== null) {
    // Whoever asked after the failure knew of it. A cycle that fails before it begins leaves its trigger behind, and waits.
    const knowing = checkpoint.lastError === null || checkpoint.triggeredAt > checkpoint.lastError.at
    const asked = Math.min(checkpoint.triggeredAt, now)
    return { kind: 'at', at: knowing ? asked : Math.max(asked, earliest), why: 'trigger' }
  }
  if (isScheduleStopped(checkpoint)) return { kind: 'never', why: 'stopped' }
  const failed = checkpoint.failures > 0
  // A first backfill keeps to the schedule it has; one that was ordered repairs the copy and does not wait.
  const isNeeded = pair === 'backfill' && (checkpoint.backfillNeeded !== null || (schedule.kind === 'manual' && isBackfillNeeded(checkpoint)))
  if (checkpoint.inflight !== null && (schedule.kind !== 'manual' || isNeeded || continuesTriggeredCycle(checkpoint, recent))) {
    const { cycle, startedAt } = checkpoint.inflight
    const leftAt = recent[0]?.cycle === cycle ? recent[0].endedAt ?? startedAt : startedAt
    return { kind: 'at', at: Math.max(Math.min(leftAt, now), earliest), why: failed ? 'retry' : 'unfinished' }
  }
  if (isNeeded) {
    const since = Math.min(checkpoint.backfillNeeded?.since ?? options.since, now)
    return { kind: 'at', at: Math.max(since, earliest), why: failed ? 'retry' : 'needed' }
  }
  const slot = computeNextSlot(schedule, recent, options)
  if (slot === null) return { kind: 'never', why: 'manual' }
  return { kind: 'at', at: Math.max(slot, earliest), why: failed ? 'retry' : 'schedule' }
}

/** How many cycles of a continuous sync tell how long it may rest. */
export const RECENT_CYCLES = 5

/**
 * What must be the same for a judgement to still hold. A cycle that ran since changed at least one of these, and so did
 * whoever paused, resumed, triggered or set the state.
 */
export function fingerprintCheckpoint(checkpoint: CheckpointSummary): string {
  const { version, inflight, paused, triggeredAt, failures, lastError, retryAt: retry, lastSuccessAt, backfillNeeded } = checkpoint
  const need = [backfillNeeded?.since, backfillNeeded?.cycle]
  return [version, inflight?.cycle, inflight?.page, paused, triggeredAt, failures, lastError?.at, retry, lastSuccessAt, ...need].join('/')
}

/** Never before its time, counted from the failure as our clock would have seen it. */
function computeRetryAt({ failures, lastError, retryAt: at }: CheckpointSummary, now: number): number {
  if (failures === 0 || at === null) return -Infinity
  return lastError === null ? at : Math.min(lastError.at, now) + (at - lastError.at)
}

/** A refusal leaves its cycle unfinished; whoever sets the state clears it, and with it the stop. */
function isScheduleStopped({ failures, lastError, inflight }: CheckpointSummary): boolean {
  return failures > 0 && inflight !== null && lastError !== null && FAILURE_EFFECTS[ERROR_CODES[lastError.code].remedy].stopsSchedule
}

/** A trigger asks for a cycle, not for a part of one: what it began goes on after a crash, unless it waits for a person. */
function continuesTriggeredCycle({ inflight, failures, lastError }: CheckpointSummary, recent: readonly CycleRecord[]): boolean {
  const last = recent[0]
  if (last === undefined || last.cycle !== inflight!.cycle || last.trigger !== 'trigger') return false
  if (failures === 0 || lastError === null) return true
  const { remedy } = ERROR_CODES[lastError.code]
  return remedy === 'retry' || remedy === 'wait'
}

function computeNextSlot(schedule: Schedule, recent: readonly CycleRecord[], { now, since, pauseMs }: DueOptions): number | null {
  const last = recent[0]
  if (schedule.kind === 'continuous' && last !== undefined) return Math.min(last.endedAt ?? last.startedAt, now) + computeRestMs(recent, pauseMs)
  return nextDueTime(schedule, { now, since, lastStartedAt: last?.startedAt ?? null })
}

/** Twice as long after each cycle in a row that found nothing. */
function computeRestMs(recent: readonly CycleRecord[], pauseMs: number): number {
  const found = recent.slice(0, RECENT_CYCLES).findIndex(({ counts }) => counts.created + counts.updated + counts.deleted + counts.swept > 0)
  return pauseMs * 2 ** (found === -1 ? Math.min(recent.length, RECENT_CYCLES) : found)
}
