import { SyncError } from '../../contract/index.ts'

/** Where reading by a cursor stands. Between cycles only the cursor, and for integers the mark; the rest lives within one cycle. */
export interface SqlState {
  readonly cursorField: string
  /** As the database writes it; null when nothing has been read yet. */
  readonly cursorValue: string | null
  /**
   * Of an integer cursor: the greatest value at a moment of the server. A smaller one may still be on its way, in a
   * transaction that took it earlier and commits later; so the cursor moves up to here only when that can be no more.
   */
  readonly mark?: { readonly value: string; readonly at: string }
  /** The last row read in this cycle: its cursor, then its key. */
  readonly after?: readonly string[]
  /** Up to where this cycle reads. */
  readonly until?: string
}

/** Where a full refresh stands: the key of the last row read. */
export interface SqlListState {
  readonly after: readonly string[]
}

/** A state may have been set by hand, and a sync may have been given another cursor since. */
export function checkState(state: SqlState | undefined, cursorField: string, places: number): void {
  if (state === undefined) return
  if (state.cursorField !== cursorField) throw stateRejectedError(`it is a position of another column than "${cursorField}"`)
  if (state.cursorValue !== null && typeof state.cursorValue !== 'string') throw stateRejectedError('`cursorValue` is not a text')
  if (state.until !== undefined && typeof state.until !== 'string') throw stateRejectedError('`until` is not a text')
  if (state.mark !== undefined && (typeof state.mark?.value !== 'string' || typeof state.mark.at !== 'string')) throw stateRejectedError('`mark` is no mark')
  if (state.after !== undefined) checkRowCursor(state.after, places)
}

export function checkRowCursor(after: unknown, places: number): void {
  if (!Array.isArray(after) || after.length !== places || after.some((text) => typeof text !== 'string')) throw stateRejectedError('`after` is not the place of a row of this table')
}

function stateRejectedError(what: string): SyncError {
  return new SyncError('CURSOR_REJECTED', `The stored state is not one of this table: ${what}.`)
}
