import { NEVER_RUN, type Outline, type Standing } from '../contract/index.ts'
import { lostHistory } from '../engine/history.ts'
import { backfillNameOf, deltaNameOf, type PairPlan } from '../engine/sync-plan.ts'

/** Which half of a pair a sync is. Null for a sync of its own, undefined where no worker declares it. */
export type PairRole = PairPlan['role'] | null | undefined

/** A backfill as far as the health of a sync depends on it. */
export interface PairBackfill extends Pick<Outline, 'backfillNeeded' | 'lastSuccessAt'> {
  /** The history is lost, and no cycle has found it out yet: nothing is ordered in the store. */
  readonly isForeseen?: true
}

/** The syncs of the same worker, and the time by the store's clock. */
export interface Surroundings {
  find(sync: string): Outline | undefined
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
export function backfillOf(
  { sync, checkpoint }: Pick<Standing, 'sync' | 'checkpoint'>, declared: DeclaredHistory | null, { find, now }: Surroundings,
): PairBackfill | null {
  const role = declared === null ? undefined : declared.pair ?? null
  const backfill = storedBackfill({ sync, checkpoint }, role, find)
  const retentionMs = declared?.retentionMs
  if (retentionMs === undefined || (backfill !== null && backfill.backfillNeeded !== null)) return backfill
  const name = role === 'backfill' ? deltaNameOf(sync) : sync
  const delta = role === 'backfill' ? find(name) : checkpoint
  const lost = delta === undefined ? null : lostHistory({ sync: name, retentionMs, delta, backfill }, now)
  if (lost === null) return backfill
  return { lastSuccessAt: (backfill ?? checkpoint).lastSuccessAt, backfillNeeded: lost, isForeseen: true }
}

function storedBackfill(
  { sync, checkpoint }: Pick<Standing, 'sync' | 'checkpoint'>, role: PairRole, find: Surroundings['find'],
): Outline | null {
  const other = find(backfillNameOf(sync))
  if (role === 'delta') return other ?? NEVER_RUN
  if (role === 'backfill') return checkpoint
  if (role === null) return null
  // Without a worker only an order tells that there is a pair.
  return [checkpoint, other].find((known) => known !== undefined && known.backfillNeeded !== null) ?? null
}

/** A pair needs its backfill until the first one is complete, and again from every order to the next that is. */
export function isBackfillNeeded({ backfillNeeded, lastSuccessAt }: Pick<Outline, 'backfillNeeded' | 'lastSuccessAt'>): boolean {
  return backfillNeeded !== null || lastSuccessAt === null
}
