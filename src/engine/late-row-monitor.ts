import type { CommitOutcome, Landing, Log } from '../contract/index.ts'
import { canonicalizeInstant, instantToMs } from '../values/instant.ts'
import type { RetryingStore } from './retrying-store.ts'
import type { SyncPlan } from './sync-plan.ts'

/**
 * Detects rows that a delta has missed: rows that its backfill finds with a time that the delta had already passed when
 * the backfill requested them. They became visible later than the delta's window, or their time was set back. The
 * backfill has committed them; the report shows by how much the window is too small.
 */
export class LateRowMonitor {
  readonly #plan: SyncPlan
  readonly #store: RetryingStore
  readonly #deltaTidemark: string
  #count = 0
  #oldest: string | null = null

  private constructor(plan: SyncPlan, retryingStore: RetryingStore, deltaTidemark: string) {
    this.#plan = plan
    this.#store = retryingStore
    this.#deltaTidemark = deltaTidemark
  }

  /** Null unless the sync is the backfill of a delta with a tidemark. Call it before the first page. */
  static async create(plan: SyncPlan, retryingStore: RetryingStore): Promise<LateRowMonitor | null> {
    if (plan.pair?.role !== 'backfill') return null
    const { worker, pair } = plan
    const { tidemark } = await retryingStore.call((store) => store.readCheckpoint({ worker, sync: pair.delta }))
    const deltaTidemark = tidemark === null ? null : canonicalizeInstant(tidemark)
    return deltaTidemark === null ? null : new LateRowMonitor(plan, retryingStore, deltaTidemark)
  }

  /** Call after each committed page: `after` is the head sequence before it. */
  async inspectPage(
    { counts, headSequence }: Extract<CommitOutcome, { kind: 'landed' }>,
    after: number,
    landings: readonly Landing[],
  ): Promise<void> {
    if (counts.created + counts.updated === 0) return
    // These times are not times of a change, so they do not show lateness.
    if (landings.some((landing) => landing.type === 'upsert' && landing.asOf !== undefined)) return
    const { worker, sync } = this.#plan
    // The page is committed. A failure to measure lateness must not fail the cycle.
    const entries = await this.#store
      .call((store) => store.changes({ after, limit: headSequence - after }))
      .catch(() => [])
    for (const entry of entries) {
      const { upstreamAt } = entry
      if (
        entry.worker !== worker ||
        entry.sync !== sync ||
        entry.action === 'deleted' ||
        upstreamAt === null ||
        upstreamAt >= this.#deltaTidemark
      )
        continue
      this.#count++
      if (this.#oldest === null || upstreamAt < this.#oldest) this.#oldest = upstreamAt
    }
  }

  /** Call once the cycle is complete. */
  report(log: Log, nowMs: number): void {
    if (this.#oldest === null) return
    const { pair } = this.#plan
    log.warn('late_beyond_window: the backfill found rows that the delta had missed', {
      delta: pair?.role === 'backfill' ? pair.delta : null,
      rows: this.#count,
      lagMs: nowMs - instantToMs(this.#oldest),
    })
  }
}
