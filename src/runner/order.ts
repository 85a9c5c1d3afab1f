import type { Declared, Why } from './due.ts'

/** Due, and waiting for a place. */
export interface Waiting {
  readonly tenant: string
  readonly since: number
  readonly priority: number
}

/** What each tenant has had so far. */
export interface Shares {
  /** Cycles running now. */
  running(tenant: string): number
  /** The turn in which it was served last; 0 when never. */
  lastTurn(tenant: string): number
}

/**
 * Who goes next. Tenants share the places evenly: the one with the fewest running cycles, then the one served longest
 * ago. Within a tenant a point of priority is a head start of ten seconds. Everybody's place in the line is fixed when
 * it joins, and those who join later stand further back, so nobody waits for ever.
 */
export function nextOf<T extends Waiting>(waiting: Iterable<T>, shares: Shares): T | null {
  let best: T | null = null
  for (const candidate of waiting) if (best === null || isBefore(candidate, best, shares)) best = candidate
  return best
}

/** A trigger before the changes, the changes before the full listing, unless the worker says otherwise. */
export function priorityOf({ mode, priority }: Pick<Declared, 'mode' | 'priority'>, why: Why): number {
  const own = priority !== 0 ? priority : MODE_PRIORITY[mode]
  return why === 'trigger' ? Math.max(TRIGGER_PRIORITY, own) : own
}

const TRIGGER_PRIORITY = 100
const MODE_PRIORITY = { incremental: 40, replace: 20 } as const satisfies Record<Declared['mode'], number>
const HEAD_START_MS = 10_000

function isBefore(a: Waiting, b: Waiting, shares: Shares): boolean {
  if (a.tenant !== b.tenant) {
    const running = shares.running(a.tenant) - shares.running(b.tenant)
    if (running !== 0) return running < 0
    const turns = shares.lastTurn(a.tenant) - shares.lastTurn(b.tenant)
    if (turns !== 0) return turns < 0
  }
  return place(a) < place(b)
}

function place({ since, priority }: Waiting): number {
  return since - priority * HEAD_START_MS
}
