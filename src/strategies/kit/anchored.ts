import type { Execute, SyncContext } from '../../contract/index.ts'

/**
 * A strategy that can say where the source's changes stand now. Captured before a backfill's first page and given to the
 * delta as its state, nothing that changes during the backfill is missed.
 */
export interface Anchored<State> extends Execute<State> {
  /** Undefined when the source has no position yet. */
  anchor(context: SyncContext): Promise<State | undefined>
}
