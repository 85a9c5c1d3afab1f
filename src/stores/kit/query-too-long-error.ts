import { SyncError } from '../../contract/index.ts'

/** Creates the error of a query that exceeded its deadline. */
export function createQueryTooLongError(deadlineMs: number): SyncError {
  return new SyncError('QUERY_TOO_LONG', `The query took longer than ${deadlineMs / 1_000} s.`)
}
