import { SyncError, type ErrorCode } from '../../../contract/index.ts'

/** Error codes by SQLSTATE, or by its class (the first two characters). The full code takes precedence. */
const CODE_BY_SQLSTATE: Record<string, ErrorCode> = {
  '08': 'SOURCE_UNAVAILABLE', // the connection
  '22': 'CURSOR_REJECTED', // the only bound value is a stored cursor, which does not fit the type of its column
  '28': 'AUTH_REJECTED',
  '3D000': 'SOURCE_NOT_FOUND', // the database
  '3F000': 'SOURCE_NOT_FOUND', // the schema
  '40': 'SOURCE_UNAVAILABLE', // serialization_failure, also a conflict with recovery on a standby
  '42501': 'SOURCE_FORBIDDEN',
  '42703': 'SOURCE_NOT_FOUND', // the column
  '42704': 'SOURCE_NOT_FOUND', // the publication or the slot
  '42P01': 'SOURCE_NOT_FOUND', // the table
  '53': 'SOURCE_UNAVAILABLE',
  '55': 'SOURCE_UNAVAILABLE', // in use
  '57': 'SOURCE_UNAVAILABLE', // shutting down, starting up
  '57014': 'SOURCE_TIMEOUT', // query_canceled
  '58': 'SOURCE_UNAVAILABLE',
}

/** Wraps errors at the driver boundary. An error without an SQLSTATE is a connection failure. */
export function toSyncError(error: unknown, label: string): SyncError {
  if (error instanceof SyncError) return error
  const state = getSqlState(error)
  if (state === null) return new SyncError('SOURCE_UNAVAILABLE', `${label}: ${getMessage(error)}.`, { cause: error })
  const code = CODE_BY_SQLSTATE[state] ?? CODE_BY_SQLSTATE[state.slice(0, 2)] ?? 'CONNECTOR_FAILED'
  // Without the server's message: it quotes the value, which is part of the state.
  if (code === 'CURSOR_REJECTED')
    return new SyncError(code, `${label}: the stored cursor does not fit the type of its column (SQLSTATE ${state}).`)
  return new SyncError(code, `${label}: ${getMessage(error)} (SQLSTATE ${state}).`, { cause: error })
}

/** An SQLSTATE has five characters. Node codes such as EPIPE have the same shape but start with E and four letters. */
export function getSqlState(error: unknown): string | null {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !/^E[A-Z]{4}$/.test(code) ? code : null
}

function getMessage(error: unknown): string {
  if (error instanceof AggregateError) return getMessage(error.errors[0])
  return (error instanceof Error ? error.message : String(error)).replace(/\.$/, '')
}
