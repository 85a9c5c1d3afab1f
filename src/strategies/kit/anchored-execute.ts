import type { Execute, SyncContext } from '../../contract/index.ts'

/**
 * A strategy that can capture the current end of the source's changes. Captured before a backfill's first page and
 * passed to the delta as its state, it ensures that no change during the backfill is missed.
 */
export interface AnchoredExecute<State> extends Execute<State> {
  /** Undefined: the delta starts from the beginning. An empty log still has an anchor. */
  anchor(context: SyncContext): Promise<State | undefined>
}

/** Undefined for a stream without an anchor: it starts without a state. */
export async function captureAnchor<State>(
  execute: Execute<State> | AnchoredExecute<State>,
  context: SyncContext,
): Promise<State | undefined> {
  return 'anchor' in execute ? execute.anchor(context) : undefined
}
