import type { CheckpointSummary } from '../contract/index.ts'
import { isBackfillNeeded } from './pair-backfill.ts'

/** A sync that another one runs after. */
export interface ParentSync {
  readonly sync: string
  /** The backfill of a pair: the pair is complete when both halves are. Null outside a pair. */
  readonly backfill: string | null
}

/** The facts about a parent that decide whether its child may start. */
export interface ParentFacts {
  readonly sync: string
  /** When the parent last completed; null if it never did, or lacks data that its backfill has to read. */
  readonly completedAt: number | null
}

/** `findCheckpoint` returns undefined for a sync of the same worker and tenant that never ran. */
export function readParents(
  after: readonly ParentSync[] | undefined,
  findCheckpoint: (sync: string) => CheckpointSummary | undefined,
): readonly ParentFacts[] {
  return (after ?? []).map(({ sync, backfill }) => {
    const other = backfill === null ? undefined : findCheckpoint(backfill)
    const isPartial = backfill !== null && (other === undefined || isBackfillNeeded(other))
    return { sync, completedAt: isPartial ? null : (findCheckpoint(sync)?.lastSuccessAt ?? null) }
  })
}

/** The parents that have not completed since the child last started. */
export function listPendingParents(parents: readonly ParentFacts[], lastStartedAt: number | null): string[] {
  return parents
    .filter(({ completedAt }) => completedAt === null || (lastStartedAt !== null && completedAt <= lastStartedAt))
    .map(({ sync }) => sync)
}
