import { SyncError, type BackfillRequest, type Checkpoint, type Inflight, type CheckpointSummary } from '../contract/index.ts'
import type { SyncPlan } from './sync-plan.ts'

/**
 * The time since which a delta needs every change and deletion from its source. A complete backfill moves it forward as a
 * complete cycle of the delta does: both leave the copy as the source was when they began.
 */
export function findHistoryStart(delta: Checkpoint, { startedAt }: Inflight, backfill: Checkpoint | null): number {
  const own = delta.committed === null ? startedAt : delta.completeSince ?? startedAt
  return Math.max(own, backfill?.completeSince ?? own)
}

/** As declared with the sync, else with its `execute`. Null for no limit: a replace cycle reads everything anyway. */
export function getRetentionMs({ mode, retentionMs, execute }: SyncPlan): number | null {
  return mode === 'incremental' ? retentionMs ?? execute.retentionMs ?? null : null
}

/**
 * Fails when the source may have forgotten what the delta still has to read (XC32). Without the check a deletion that the
 * source no longer lists would be missed, and the cycle would complete all the same.
 */
export function assertHistoryRetained(plan: SyncPlan, sinceMs: number, nowMs: number): void {
  const retentionMs = getRetentionMs(plan)
  if (!isBeyondRetention(retentionMs, sinceMs, nowMs)) return
  throw new SyncError('HISTORY_LOST', `${plan.sync} was last complete ${formatSpan(nowMs - sinceMs)} ago, and ${describeRetention(retentionMs)}`)
}

/** A delta as a status sees it: of a pair, or a sync of its own. */
export interface DeltaFacts {
  readonly sync: string
  readonly retentionMs: number
  readonly delta: CheckpointSummary
  /** Null for a sync of its own. */
  readonly backfill: CheckpointSummary | null
}

/**
 * The same before the delta runs: every status says that a backfill is needed as soon as the source has forgotten what the
 * delta would have to read. Null while nothing is lost, and while a cycle is under way that began after the loss and was
 * not refused: it reads from the beginning.
 */
export function detectHistoryLoss({ sync, retentionMs, delta, backfill }: DeltaFacts, nowMs: number): BackfillRequest | null {
  const { completeSince, inflight, failures } = delta
  if (completeSince === null) return null
  const sinceMs = Math.max(completeSince, backfill?.completeSince ?? completeSince)
  if (!isBeyondRetention(retentionMs, sinceMs, nowMs)) return null
  const lostAt = sinceMs + retentionMs
  if (inflight !== null && inflight.startedAt > lostAt && failures === 0) return null
  // In words that stay the same while time passes.
  return { since: lostAt, cycle: null, reason: `${sync} was last complete at ${toIso(sinceMs)}, and ${describeRetention(retentionMs)}` }
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
  const [unit, unitMs] = UNITS.find(([, size]) => ms >= 2 * size) ?? UNITS.at(-1)!
  return `${Math.floor(ms / unitMs)} ${unit}`
}

const UNITS: ReadonlyArray<readonly [string, number]> = [['days', 86_400_000], ['hours', 3_600_000], ['minutes', 60_000], ['seconds', 1_000]]
