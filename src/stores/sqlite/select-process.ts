import { isSyncError, SyncError, type ErrorCode, type SelectOptions, type SelectResult } from '../../contract/index.ts'
import { selectFromSqlite } from './select.ts'

/**
 * Runs one statement of a person, and exits. SQLite cannot be interrupted from another thread, so a statement that runs
 * too long or needs too much memory ends with its process.
 */

export interface SelectRequest {
  readonly file: string
  readonly sql: string
  readonly options: SelectOptions
}

export type SelectReply =
  | { readonly result: SelectResult }
  | { readonly error: { readonly code: ErrorCode; readonly message: string } }

process.once('message', ({ file, sql, options }: SelectRequest) => {
  process.send?.(answer(file, sql, options), () => process.disconnect())
})

function answer(file: string, sql: string, options: SelectOptions): SelectReply {
  try {
    return { result: selectFromSqlite(file, sql, options) }
  } catch (error) {
    // Errors of the file have a code; without one, the statement failed on its own values.
    const reason = error instanceof Error ? error.message : String(error)
    const { code, message } = isSyncError(error) ? error : new SyncError('ARGUMENT_INVALID', `SQLite: ${reason}.`)
    return { error: { code, message } }
  }
}
