import { SyncError, type ErrorCode } from '../../contract/index.ts'

/** By the type of the error. The API has no other code. */
const ERROR_CODES: Record<string, ErrorCode> = {
  IO: 'DESTINATION_UNAVAILABLE',
  Connection: 'DESTINATION_UNAVAILABLE',
  Interrupt: 'DESTINATION_UNAVAILABLE',
  'Out of Memory': 'DESTINATION_UNAVAILABLE',
  // A conflict with another connection of this process.
  TransactionContext: 'DESTINATION_UNAVAILABLE',
  // The database must be opened again.
  Fatal: 'DESTINATION_UNAVAILABLE',
  Permission: 'DESTINATION_REFUSED',
  // One of the user: our tables have none that a batch violates.
  Constraint: 'DESTINATION_FOREIGN',
}

/** The texts of the operating system for EFBIG, ENOSPC and EDQUOT, and that of Windows. */
const FULL_TEXT = /File too large|No space left on device|Disk quota exceeded|not enough space/i

const CONSTRAINT_HINT =
  'Drop the unique index or the constraint that you added: DuckDB checks it before the old version of a row is gone.'

/** An error of a connection is JSON, see `SETTINGS`; only there do those of the Appender have a type. Others begin with it. */
export function parseError(error: unknown): { readonly type: string | null; readonly message: string } {
  const message = error instanceof Error ? error.message : String(error)
  const json = /\{"exception_type":.*\}/s.exec(message)?.[0]
  if (json === undefined) return { type: /^([A-Za-z ]+) Error: /.exec(message)?.[1] ?? null, message }
  const { exception_type: type, exception_message: text } = JSON.parse(json) as Record<string, string>
  return { type: type ?? null, message: text ?? message }
}

export function toDestinationError(error: unknown, where: string): SyncError {
  if (error instanceof SyncError) return error
  const { type, message } = parseError(error)
  const code = FULL_TEXT.test(message) ? 'DESTINATION_FULL' : (ERROR_CODES[type ?? ''] ?? 'DESTINATION_FAILED')
  const hint = type === 'Constraint' ? ` ${CONSTRAINT_HINT}` : ''
  return new SyncError(code, `${where}: ${message}${hint}`, { cause: error })
}
