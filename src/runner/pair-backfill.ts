import { EMPTY_CHECKPOINT, type CheckpointSummary, type SyncStatusRow } from '../contract/index.ts'
import { detectHistoryLoss } from '../engine/source-retention.ts'
import { toBackfillName, toDeltaName, type PairPlan } from '../engine/sync-plan.ts'

/** Null for a sync without a pair, undefined if no worker declares the sync. */
export type PairRole = PairPlan['role'] | null | undefined

/** The fields of a backfill that the health of a sync depends on. */
export interface PairBackfill extends Pick<CheckpointSummary, 'backfillNeeded' | 'lastSuccessAt'> {
  /** The history is lost, but no cycle has detected it yet, so the store holds no backfill request. */
  readonly isPredicted?: true
}

/** The syncs of the same worker, and the time of the store's clock. */
export interface PairEnvironment {
  findCheckpoint(sync: string): CheckpointSummary | undefined
  readonly now: number
}

export interface DeclaredHistory {
  readonly pair?: PairRole
  /** See ManifestSync. */
  readonly retentionMs?: number
}

/**
 * Returns the backfill that a sync needs to be complete: for a delta the other half of its pair, for a backfill
 * itself, otherwise null. All status computations use this function. A backfill is needed if the store holds a
 * request, or if the source no longer retains the changes that the delta has to read. `declared` is null if no worker
 * declares the sync.
 */
export function findPairBackfill(
  { sync, checkpoint }: Pick<SyncStatusRow, 'sync' | 'checkpoint'>,
  declared: DeclaredHistory | null,
  { findCheckpoint, now }: PairEnvironment,
): PairBackfill | null {
  const role = declared === null ? undefined : (declared.pair ?? null)
  const backfill = findStoredBackfill({ sync, checkpoint }, role, findCheckpoint)
  const retentionMs = declared?.retentionMs
  if (retentionMs === undefined || (backfill !== null && backfill.backfillNeeded !== null)) return backfill
  const name = role === 'backfill' ? toDeltaName(sync) : sync
  const delta = role === 'backfill' ? findCheckpoint(name) : checkpoint
  const lost = delta === undefined ? null : detectHistoryLoss({ sync: name, retentionMs, delta, backfill }, now)
  if (lost === null) return backfill
  return { lastSuccessAt: (backfill ?? checkpoint).lastSuccessAt, backfillNeeded: lost, isPredicted: true }
}

function findStoredBackfill(
  { sync, checkpoint }: Pick<SyncStatusRow, 'sync' | 'checkpoint'>,
  role: PairRole,
  findCheckpoint: PairEnvironment['findCheckpoint'],
): CheckpointSummary | null {
  const other = findCheckpoint(toBackfillName(sync))
  if (role === 'delta') return other ?? EMPTY_CHECKPOINT
  if (role === 'backfill') return checkpoint
  if (role === null) return null
  // Without a worker, only a stored request shows that the sync belongs to a pair.
  return [checkpoint, other].find((known) => known !== undefined && known.backfillNeeded !== null) ?? null
}

/** A pair needs its backfill until the first one completes, and again after each request. */
export function isBackfillNeeded({
  backfillNeeded,
  lastSuccessAt,
}: Pick<CheckpointSummary, 'backfillNeeded' | 'lastSuccessAt'>): boolean {
  return backfillNeeded !== null || lastSuccessAt === null
}
