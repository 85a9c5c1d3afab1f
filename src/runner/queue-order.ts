import type { SyncDeclaration, DueReason } from './due.ts'

/** Due, and waiting for a place. */
export interface QueueItem {
  readonly tenant: string
  readonly dueSince: number
  readonly priority: number
  /** Drawn by each process for itself: of those who came in the same second, not everybody reaches for the same one. */
  readonly tieBreaker: number
}

/** What each tenant has had so far. */
export interface TenantLoad {
  /** Cycles running now, wherever. */
  runningCycles(tenant: string): number
  /** The turn in which it was served last; 0 when never. */
  lastServed(tenant: string): number
}

/**
 * Its place in the line of its tenant. A point of priority is a head start of ten seconds. Everybody's place is fixed when
 * it joins, and those who join later stand further back, so nobody waits for ever.
 */
export function computeRank({ dueSince: since, priority }: QueueItem): number {
  return Math.floor((since - priority * PRIORITY_STEP_MS) / RANK_BUCKET_MS)
}

/** A trigger before the changes, the changes before the full listing, unless the worker says otherwise. */
export function computePriority({ mode, priority }: Pick<SyncDeclaration, 'mode' | 'priority'>, why: DueReason): number {
  const own = priority !== 0 ? priority : MODE_PRIORITY[mode]
  return why === 'trigger' ? Math.max(TRIGGER_PRIORITY, own) : own
}

const TRIGGER_PRIORITY = 100
const MODE_PRIORITY = { incremental: 40, replace: 20 } as const satisfies Record<SyncDeclaration['mode'], number>
const PRIORITY_STEP_MS = 10_000
/** So close counts as at once. */
const RANK_BUCKET_MS = 1_000
