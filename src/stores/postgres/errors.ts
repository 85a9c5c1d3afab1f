import { SyncError, type ErrorCode } from '../../contract/index.ts'

/** Maps PostgreSQL's error codes: the full code first, then its class. */
const ERROR_CODES: Record<string, ErrorCode> = {
  '23503': 'STORE_FOREIGN', // foreign_key_violation: a user's table refers to the row
  '25006': 'STORE_READONLY', // read_only_sql_transaction
  '25P03': 'STORE_UNAVAILABLE', // idle_in_transaction_session_timeout
  '28': 'STORE_UNAVAILABLE', // invalid role or password
  '2BP01': 'STORE_FOREIGN', // dependent_objects_still_exist
  '3D000': 'STORE_UNAVAILABLE', // the database does not exist
  '40': 'STORE_BUSY', // serialization_failure, deadlock_detected
  '42501': 'STORE_READONLY', // insufficient_privilege
  '42710': 'STORE_FOREIGN', // duplicate_object
  '42809': 'STORE_FOREIGN', // wrong_object_type
  '42939': 'STORE_FOREIGN', // reserved_name
  '42P07': 'STORE_FOREIGN', // duplicate_table
  '53': 'STORE_BUSY', // too_many_connections, out_of_memory
  '53100': 'STORE_FULL',
  '55P03': 'STORE_BUSY', // lock_not_available
  '57014': 'STORE_BUSY', // query_canceled, by statement_timeout
  '57P': 'STORE_UNAVAILABLE', // shutting down, crashed, starting up
  '08': 'STORE_UNAVAILABLE', // connection exception
  '58': 'STORE_UNAVAILABLE', // the server's own input and output
}

/**
 * Wraps an error where it leaves the driver. An error without an SQLSTATE comes from the connection: the server did not
 * answer.
 */
export function toQueryError(error: unknown, where: string): SyncError {
  const state = sqlStateOf(error)
  const code =
    state === null
      ? 'STORE_UNAVAILABLE'
      : (ERROR_CODES[state] ?? ERROR_CODES[state.slice(0, 3)] ?? ERROR_CODES[state.slice(0, 2)] ?? 'STORE_FAILED')
  return new SyncError(code, `${where}: ${messageOf(error)}${state === null ? '' : ` (SQLSTATE ${state})`}.`, {
    cause: error,
  })
}

export function toConnectError(error: unknown, where: string, exhausted: boolean): SyncError {
  if (exhausted)
    return new SyncError('STORE_BUSY', `${where}: every connection of the pool was in use for too long.`, {
      cause: error,
    })
  return toQueryError(error, where)
}

/**
 * True when the server rejected COMMIT. Only codes that are raised before the commit is written count; after a
 * shutdown, a crash or a full disk the same error may follow a durable commit.
 */
export function isCommitRejected(error: unknown): boolean {
  return /^(23|25|40(?!003)|42|P0|57014)/.test(sqlStateOf(error) ?? '')
}

/** serialization_failure or deadlock_detected: the server rolled back the whole transaction, and it can be retried. */
export function isTransactionAborted(error: unknown): boolean {
  return (
    error instanceof SyncError &&
    error.code === 'STORE_BUSY' &&
    ['40001', '40P01'].includes(sqlStateOf(error.cause) ?? '')
  )
}

/** An SQLSTATE has five characters; Node's own codes, such as ECONNRESET, have another form. */
export function sqlStateOf(error: unknown): string | null {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && !/^E[A-Z]{4}$/.test(code) ? code : null
}

function messageOf(error: unknown): string {
  if (error instanceof AggregateError) return messageOf(error.errors[0])
  return (error instanceof Error ? error.message : String(error)).replace(/\.$/, '')
}
