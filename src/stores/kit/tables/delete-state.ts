import type { DeleteMode } from '../../../contract/index.ts'

/** What a store keeps of how the rows of a table are deleted. */
export interface DeleteState {
  /** Null while the table has no `_deleted_at`: deletes are hard, and always were. */
  readonly deletes: DeleteMode | null
  /**
   * While deletes are hard again and rows that were kept before are removed: the key of the last tombstone that was looked at, ''
   * before the first. Null when there are no such rows.
   */
  readonly purgedTo: string | null
}

export const DELETED_AT = '_deleted_at'

/** As many tombstones are looked at in one step of removing rows that were kept. */
export const PURGE_PER_COMMIT = 1_000

/** Whether the table may have deleted rows. */
export function mayHaveDeletedRows({ deletes, purgedTo }: DeleteState): boolean {
  return deletes === 'soft' || purgedTo !== null
}

/** The rows that are not deleted, for a FROM clause; the one place that leaves the others out. */
export function liveRows(table: string, state: DeleteState): string {
  return mayHaveDeletedRows(state) ? `(select * from ${table} where true${liveCondition(state)})` : table
}

/** For the condition of a statement that has to name the table itself. */
export function liveCondition(state: DeleteState): string {
  return mayHaveDeletedRows(state) ? ` and ${DELETED_AT} is null` : ''
}

/** The state after a setting; the same object when it changes nothing. */
export function withDeleteMode(state: DeleteState, wanted: DeleteMode): DeleteState {
  if ((state.deletes ?? 'hard') === wanted) return state
  // Rows that were not removed yet are kept again.
  return wanted === 'soft' ? { deletes: 'soft', purgedTo: null } : { deletes: 'hard', purgedTo: '' }
}
