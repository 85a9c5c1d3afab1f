import {
  SyncError,
  type BackfillRequest,
  type Checkpoint,
  type Inflight,
  type CheckpointSummary,
} from '../contract/index.ts'
import type { SyncPlan } from './sync-plan.ts'

/**
 * The time since which a delta needs every change and deletion from its source. A complete backfill advances it as a
 * complete cycle of the delta does: both leave the copy as the source was when they began.
 */
export function findHistoryStart(delta: Checkpoint, { startedAt }: Inflight, backfill: Checkpoint | null): number {
  const own = delta.committed === null ? startedAt : (delta.completeSince ?? startedAt)
  return Math.max(own, backfill?.completeSince ?? own)
}

/** As declared for the sync, else for its `execute`. Null for no limit: a replace cycle reads everything anyway. */
export function getRetentionMs({ mode, retentionMs, execute }: SyncPlan): number | null {
  return mode === 'incremental' ? (retentionMs ?? execute.retentionMs ?? null) : null
}

/**
 * Throws if the source may have dropped changes that the delta still has to read (XC32). Without the check the cycle
 * would miss deletions that the source no longer lists, and still complete.
 */
export function assertHistoryRetained(plan: SyncPlan, sinceMs: number, nowMs: number): void {
  const retentionMs = getRetentionMs(plan)
  if (!isBeyondRetention(retentionMs, sinceMs, nowMs)) return
  throw new SyncError(
    'HISTORY_LOST',
    `${plan.sync} was last complete ${formatSpan(nowMs - sinceMs)} ago, and ${describeRetention(retentionMs)}`,
  )
}

/** The checkpoints of a delta, of a pair or a standalone sync. */
export interface DeltaFacts {
  readonly sync: string
  readonly retentionMs: number
  readonly delta: CheckpointSummary
  /** Null for a standalone sync. */
  readonly backfill: CheckpointSummary | null
}

/**
 * The same check before the delta runs, so that the status reports a needed backfill as soon as the source has dropped
 * changes. Null while nothing is lost, and while a cycle is running that began after the loss and was not rejected: it
 * reads from the beginning.
 */
export function detectHistoryLoss(
  { sync, retentionMs, delta, backfill }: DeltaFacts,
  nowMs: number,
): BackfillRequest | null {
  const { completeSince, inflight, failures } = delta
  if (completeSince === null) return null
  const sinceMs = Math.max(completeSince, backfill?.completeSince ?? completeSince)
  if (!isBeyondRetention(retentionMs, sinceMs, nowMs)) return null
  const lostAt = sinceMs + retentionMs
  if (inflight !== null && inflight.startedAt > lostAt && failures === 0) return null
  // The text does not depend on the current time.
  return {
    since: lostAt,
    cycle: null,
    reason: `${sync} was last complete at ${toIso(sinceMs)}, and ${describeRetention(retentionMs)}`,
  }
}

function isBeyondRetention(retentionMs: number | null, sinceMs: number, nowMs: number): retentionMs is number {
  return retentionMs !== null && nowMs - sinceMs > retentionMs
}

function describeRetention(retentionMs: number): string {
  return `its source keeps changes and deletions for ${formatSpan(retentionMs)} only.`
}

function toIso(ms: number): string {
  return new Date(ms).toISOString()
}

function formatSpan(ms: number): string {
  const [unit, unitMs] = UNITS.find(([, size]) => ms >= 2 * size) ?? SMALLEST_UNIT
  return `${Math.floor(ms / unitMs)} ${unit}`
}

const SMALLEST_UNIT = ['seconds', 1_000] as const
const UNITS: ReadonlyArray<readonly [string, number]> = [
  ['days', 86_400_000],
  ['hours', 3_600_000],
  ['minutes', 60_000],
]
