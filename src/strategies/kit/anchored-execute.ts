import type { Execute, SyncContext } from '../../contract/index.ts'

/**
 * A strategy that can say where the source's changes stand now. Captured before a backfill's first page and given to the
 * delta as its state, nothing that changes during the backfill is missed.
 */
export interface AnchoredExecute<State> extends Execute<State> {
  /** Undefined: the delta without a state reads from the beginning. A log that is empty has a place all the same. */
  anchor(context: SyncContext): Promise<State | undefined>
}

/** Undefined for a stream that has no anchor: it begins without a state. */
export async function captureAnchor<State>(execute: Execute<State> | AnchoredExecute<State>, context: SyncContext): Promise<State | undefined> {
  return 'anchor' in execute ? execute.anchor(context) : undefined
}
