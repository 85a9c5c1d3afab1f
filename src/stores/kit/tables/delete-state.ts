import type { DeleteMode } from '../../../contract/index.ts'

/** How the rows of a table are deleted, as a store keeps it. */
export interface DeleteState {
  /** Null while the table has no `_deleted_at`: deletes are hard, and always were. */
  readonly deletes: DeleteMode | null
  /**
   * Set after deletes became hard again, while rows that were kept before are purged: the key of the last tombstone
   * that was scanned, '' before the first. Null when there are no such rows.
   */
  readonly purgedTo: string | null
}

export const DELETED_AT = '_deleted_at'

/** Tombstones scanned per purge step. */
export const PURGE_PER_COMMIT = 1_000

/** True when the table may have deleted rows. */
export function mayHaveDeletedRows({ deletes, purgedTo }: DeleteState): boolean {
  return deletes === 'soft' || purgedTo !== null
}

/** The rows that are not deleted, for a FROM clause. All reads go through it. */
export function liveRows(table: string, state: DeleteState): string {
  return mayHaveDeletedRows(state) ? `(select * from ${table} where true${liveCondition(state)})` : table
}

/** The same filter for the condition of a statement that must name the table itself. */
export function liveCondition(state: DeleteState): string {
  return mayHaveDeletedRows(state) ? ` and ${DELETED_AT} is null` : ''
}

/** Returns the state after a setting; the same object when nothing changes. */
export function withDeleteMode(state: DeleteState, wanted: DeleteMode): DeleteState {
  if ((state.deletes ?? 'hard') === wanted) return state
  // Rows that were not purged yet are kept again.
  return wanted === 'soft' ? { deletes: 'soft', purgedTo: null } : { deletes: 'hard', purgedTo: '' }
}
