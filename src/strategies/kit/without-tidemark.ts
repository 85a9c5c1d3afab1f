import type { SyncContext } from '../../contract/index.ts'
import type { AnchoredExecute } from './anchored-execute.ts'

/** A delta that does not report deletions: a tidemark would claim that they are in the copy. */
export function withoutTidemark<State>(execute: AnchoredExecute<State>): AnchoredExecute<State> {
  const read = async (state: State | undefined, context: SyncContext) => ({
    ...(await execute(state, context)),
    tidemark: null,
  })
  return Object.assign(read, execute)
}
