import type { Store } from '../contract/index.ts'
import type { DeclaredSync } from './declared-sync.ts'
import { computeDueTime, type DueTime, type DueOptions, type SyncFacts } from './due.ts'
import { computePriority, type QueueItem } from './queue-order.ts'

/** One sync of one tenant, and what this process knows of it. */
export class Job implements QueueItem {
  readonly store: Store
  readonly sync: DeclaredSync
  /** Null before it was first looked at. */
  facts: SyncFacts | null = null
  due: DueTime | null = null
  dueSince = Infinity
  priority = 0
  readonly tieBreaker: number
  /** A wait of this process alone: the store could not be reached, or somebody else was faster. */
  notBefore = -Infinity
  /** Cycles in a row that could not even begin. */
  backoffStep = 0

  constructor(store: Store, sync: DeclaredSync, lot: number) {
    this.store = store
    this.sync = sync
    this.tieBreaker = lot
  }

  get tenant(): string {
    return this.store.tenant
  }

  get ref(): { tenant: string; worker: string; sync: string } {
    return { tenant: this.tenant, worker: this.sync.plan.worker, sync: this.sync.plan.sync }
  }

  updateDue(options: DueOptions): void {
    if (this.facts === null) return
    const due = computeDueTime(this.sync, this.facts, options)
    this.due = due
    if (due.kind === 'never') return
    // A day of standstill must not give all it left behind a day's head start on what is asked for now.
    this.dueSince = Math.max(due.at, options.since)
    this.priority = computePriority(this.sync, due.why)
  }

  /** Until when somebody is known to hold it who may be alive; -Infinity when nobody is. */
  heldUntil(isDead: (holder: string) => boolean): number {
    const { heldBy = null, heldUntil = null } = this.facts?.checkpoint ?? {}
    return heldBy === null || heldUntil === null || isDead(heldBy) ? -Infinity : heldUntil
  }

  /** When it may be started by this process; Infinity for never. */
  readyAt(isDead: (holder: string) => boolean): number {
    if (this.due === null || this.due.kind === 'never') return Infinity
    return Math.max(this.due.at, this.notBefore, this.heldUntil(isDead))
  }
}
