import { EMPTY_CHECKPOINT, type CheckpointSummary, type SyncStatusRow } from '../contract/index.ts'
import { detectHistoryLoss } from '../engine/source-retention.ts'
import { toBackfillName, toDeltaName, type PairPlan } from '../engine/sync-plan.ts'

/** Which half of a pair a sync is. Null for a sync of its own, undefined where no worker declares it. */
export type PairRole = PairPlan['role'] | null | undefined

/** A backfill as far as the health of a sync depends on it. */
export interface PairBackfill extends Pick<CheckpointSummary, 'backfillNeeded' | 'lastSuccessAt'> {
  /** The history is lost, and no cycle has found it out yet: nothing is ordered in the store. */
  readonly isPredicted?: true
}

/** The syncs of the same worker, and the time by the store's clock. */
export interface PairEnvironment {
  findCheckpoint(sync: string): CheckpointSummary | undefined
  readonly now: number
}

/** What a worker declares of a sync. */
export interface DeclaredHistory {
  readonly pair?: PairRole
  /** See ManifestSync. */
  readonly retentionMs?: number
}

/**
 * The backfill without which a sync is not complete: of a delta the other half of its pair, of a backfill itself, of a sync
 * of its own null. Every status takes it from here. It is needed by an order in the store, or because the source has
 * forgotten what the delta has to read. `declared` is null where no worker declares the sync.
 */
export function findPairBackfill(
  { sync, checkpoint }: Pick<SyncStatusRow, 'sync' | 'checkpoint'>, declared: DeclaredHistory | null, { findCheckpoint: find, now }: PairEnvironment,
): PairBackfill | null {
  const role = declared === null ? undefined : declared.pair ?? null
  const backfill = findStoredBackfill({ sync, checkpoint }, role, find)
  const retentionMs = declared?.retentionMs
  if (retentionMs === undefined || (backfill !== null && backfill.backfillNeeded !== null)) return backfill
  const name = role === 'backfill' ? toDeltaName(sync) : sync
  const delta = role === 'backfill' ? find(name) : checkpoint
  const lost = delta === undefined ? null : detectHistoryLoss({ sync: name, retentionMs, delta, backfill }, now)
  if (lost === null) return backfill
  return { lastSuccessAt: (backfill ?? checkpoint).lastSuccessAt, backfillNeeded: lost, isPredicted: true }
}

function findStoredBackfill(
  { sync, checkpoint }: Pick<SyncStatusRow, 'sync' | 'checkpoint'>, role: PairRole, find: PairEnvironment['findCheckpoint'],
): CheckpointSummary | null {
  const other = find(toBackfillName(sync))
  if (role === 'delta') return other ?? EMPTY_CHECKPOINT
  if (role === 'backfill') return checkpoint
  if (role === null) return null
  // Without a worker only an order tells that there is a pair.
  return [checkpoint, other].find((known) => known !== undefined && known.backfillNeeded !== null) ?? null
}

/** A pair needs its backfill until the first one is complete, and again from every order to the next that is. */
export function isBackfillNeeded({ backfillNeeded, lastSuccessAt }: Pick<CheckpointSummary, 'backfillNeeded' | 'lastSuccessAt'>): boolean {
  return backfillNeeded !== null || lastSuccessAt === null
}
