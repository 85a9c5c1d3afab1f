import { SyncError } from '../../contract/index.ts'

/**
 * Progress of reading by a cursor. Between cycles only the cursor and, for integers, the mark are kept; the other
 * fields belong to one cycle.
 */
export interface SqlState {
  readonly cursorField: string
  /** As the database writes it; null when nothing has been read yet. */
  readonly cursorValue: string | null
  /**
   * For an integer cursor: the maximum at a time of the server. A transaction that took a smaller value earlier may
   * still commit, so the cursor moves up to the mark only once that is impossible.
   */
  readonly mark?: { readonly value: string; readonly at: string }
  /** The last row read in this cycle: its cursor, then its key. */
  readonly after?: readonly string[]
  /** Upper bound of this cycle. */
  readonly until?: string
}

/** Progress of a full refresh: the key of the last row read. */
export interface SqlListState {
  readonly after: readonly string[]
}

/** A state may have been edited by hand, and the cursor column may have changed since. */
export function checkState(state: SqlState | undefined, cursorField: string, count: number): void {
  if (state === undefined) return
  if (state.cursorField !== cursorField)
    throw stateRejectedError(`it is a cursor of another column than "${cursorField}"`)
  if (state.cursorValue !== null && typeof state.cursorValue !== 'string')
    throw stateRejectedError('`cursorValue` is not a string')
  if (state.until !== undefined && typeof state.until !== 'string') throw stateRejectedError('`until` is not a string')
  if (state.mark !== undefined && (typeof state.mark?.value !== 'string' || typeof state.mark.at !== 'string'))
    throw stateRejectedError('`mark` has no value or time')
  if (state.after !== undefined) checkRowCursor(state.after, count)
}

export function checkRowCursor(after: unknown, count: number): void {
  if (!Array.isArray(after) || after.length !== count || after.some((text) => typeof text !== 'string'))
    throw stateRejectedError('`after` does not match the order columns of this table')
}

function stateRejectedError(what: string): SyncError {
  return new SyncError('CURSOR_REJECTED', `The stored state does not belong to this table: ${what}.`)
}
