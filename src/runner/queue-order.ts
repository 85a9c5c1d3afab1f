import type { SyncDeclaration, DueReason } from './due.ts'

/** A due sync that waits for a slot. */
export interface QueueItem {
  readonly tenant: string
  readonly dueSince: number
  readonly priority: number
  /** Random per process, so that processes do not all try the same sync of those due in the same second. */
  readonly tieBreaker: number
}

export interface TenantLoad {
  /** In the whole fleet. */
  runningCycles(tenant: string): number
  /** The turn in which the tenant was last served; 0 for never. */
  lastServed(tenant: string): number
}

/**
 * Rank within the tenant's queue. One point of priority is worth ten seconds of waiting. The rank is fixed when the
 * item joins, and later items rank behind it, so no item starves.
 */
export function computeRank({ dueSince, priority }: QueueItem): number {
  return Math.floor((dueSince - priority * PRIORITY_STEP_MS) / RANK_BUCKET_MS)
}

/** Triggers go before incremental syncs, and those before full listings, unless the worker sets a priority. */
export function computePriority(
  { mode, priority }: Pick<SyncDeclaration, 'mode' | 'priority'>,
  why: DueReason,
): number {
  const own = priority !== 0 ? priority : MODE_PRIORITY[mode]
  return why === 'trigger' ? Math.max(TRIGGER_PRIORITY, own) : own
}

const TRIGGER_PRIORITY = 100
const MODE_PRIORITY = { incremental: 40, replace: 20 } as const satisfies Record<SyncDeclaration['mode'], number>
const PRIORITY_STEP_MS = 10_000
/** Items this close in time rank equal. */
const RANK_BUCKET_MS = 1_000
