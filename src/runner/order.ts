import type { Declared, Why } from './due.ts'

/** Due, and waiting for a place. */
export interface Waiting {
  readonly tenant: string
  readonly since: number
  readonly priority: number
  /** Drawn by each process for itself: of those who came in the same second, not everybody reaches for the same one. */
  readonly lot: number
}

/** What each tenant has had so far. */
export interface Shares {
  /** Cycles running now, wherever. */
  running(tenant: string): number
  /** The turn in which it was served last; 0 when never. */
  lastTurn(tenant: string): number
}

/**
 * Its place in the line of its tenant. A point of priority is a head start of ten seconds. Everybody's place is fixed when
 * it joins, and those who join later stand further back, so nobody waits for ever.
 */
export function placeOf({ since, priority }: Waiting): number {
  return Math.floor((since - priority * HEAD_START_MS) / SAME_MS)
}

/** A trigger before the changes, the changes before the full listing, unless the worker says otherwise. */
export function priorityOf({ mode, priority }: Pick<Declared, 'mode' | 'priority'>, why: Why): number {
  const own = priority !== 0 ? priority : MODE_PRIORITY[mode]
  return why === 'trigger' ? Math.max(TRIGGER_PRIORITY, own) : own
}

const TRIGGER_PRIORITY = 100
const MODE_PRIORITY = { incremental: 40, replace: 20 } as const satisfies Record<Declared['mode'], number>
const HEAD_START_MS = 10_000
/** So close counts as at once. */
const SAME_MS = 1_000
