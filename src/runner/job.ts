import type { CheckpointSummary, Store } from '../contract/index.ts'
import { required } from '../values/required.ts'
import type { DeclaredSync } from './declared-sync.ts'
import {
  computeDueTime,
  fingerprintFacts,
  type ConnectionFacts,
  type DueOptions,
  type DueReason,
  type DueTime,
  type SyncFacts,
} from './due.ts'
import { readParents } from './parents.ts'
import { computePriority, type QueueItem } from './queue-order.ts'

/** One sync of one tenant with the facts this process knows about it. */
export class Job implements QueueItem {
  readonly store: Store
  readonly sync: DeclaredSync
  /** Null before the first poll. Without the parents, which change on their own. */
  facts: SyncFacts | null = null
  /** The connection that the sync reads with; undefined if it names none. */
  connection: ConnectionFacts | undefined = undefined
  /** The other syncs of the tenant, if this one runs after some of them. */
  findCheckpoint: (sync: string) => CheckpointSummary | undefined = () => undefined
  due: DueTime | null = null
  dueSince = Infinity
  priority = 0
  readonly tieBreaker: number
  /** Local backoff: the store was unreachable, or another process took the lease first. */
  notBefore = -Infinity
  /** Consecutive cycles that failed to begin. */
  backoffStep = 0

  constructor(store: Store, sync: DeclaredSync, tieBreaker: number) {
    this.store = store
    this.sync = sync
    this.tieBreaker = tieBreaker
  }

  get tenant(): string {
    return this.store.tenant
  }

  get ref(): { tenant: string; worker: string; sync: string } {
    return { tenant: this.tenant, worker: this.sync.plan.worker, sync: this.sync.plan.sync }
  }

  /** Legal only after the first poll. */
  get checkpoint(): CheckpointSummary {
    return required(this.facts, 'the status of the sync').checkpoint
  }

  /** Legal only for a job that is due. */
  get dueReason(): DueReason {
    return required(this.due?.kind === 'at' ? this.due.why : null, 'the due time of the sync')
  }

  updateDue(options: DueOptions): void {
    if (this.facts === null) return
    const due = computeDueTime(this.sync, this.#allFacts(this.facts), options)
    this.due = due
    if (due.kind === 'never') return
    // After a day of downtime, the backlog must not get a day's head start over a new trigger.
    this.dueSince = Math.max(due.at, options.since)
    this.priority = computePriority(this.sync, due.why)
  }

  /** Changes with every input of the due time. Legal only after the first poll. */
  get fingerprint(): string {
    return fingerprintFacts(this.#allFacts(required(this.facts, 'the status of the sync')))
  }

  /** Whether the sync waits for one of these to complete. */
  runsAfter(sync: string): boolean {
    return this.sync.after?.some((parent) => parent.sync === sync || parent.backfill === sync) === true
  }

  #allFacts(facts: SyncFacts): SyncFacts {
    const { after } = this.sync
    return {
      ...facts,
      ...(after !== undefined && { parents: readParents(after, this.findCheckpoint) }),
      ...(this.connection !== undefined && { connection: this.connection }),
    }
  }

  /** End of the lease of another holder that may still run; -Infinity if there is none. */
  heldUntil(isDead: (holder: string) => boolean): number {
    const { heldBy = null, heldUntil = null } = this.facts?.checkpoint ?? {}
    return heldBy === null || heldUntil === null || isDead(heldBy) ? -Infinity : heldUntil
  }

  /** Earliest start in this process; Infinity for never. */
  readyAt(isDead: (holder: string) => boolean): number {
    if (this.due === null || this.due.kind === 'never') return Infinity
    return Math.max(this.due.at, this.notBefore, this.heldUntil(isDead))
  }
}
