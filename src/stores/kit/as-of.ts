import { SyncError } from '../../contract/index.ts'

/** From when on a store can show its tables, in ms; null before anything has landed. */
export interface HistoryStart {
  readonly startMs: number | null
  /** Versions that were replaced earlier have been dropped; else the first commit was made then. */
  readonly isCompacted: boolean
}

/** Before that the tables would look emptier than they were. */
export function checkAsOf(at: number, { startMs, isCompacted }: HistoryStart): void {
  if (startMs !== null && at < startMs) throw createNoHistoryError(at, startMs, isCompacted)
}

export function createNoHistoryError(at: number, startMs: number, isCompacted: boolean): SyncError {
  const why = isCompacted ? 'Older versions have been dropped' : 'The first commit was made then'
  return new SyncError('ARGUMENT_INVALID', `There is no history at ${toIsoTime(at)}: it is kept from ${toIsoTime(startMs)} on. ${why}.`)
}

/** Views and qualified names lead past what `--as-of` shows. */
export function createAsOfBypassError(relation: string): SyncError {
  return new SyncError(
    'ARGUMENT_INVALID', `The statement reads the present of ${relation}. With --as-of, name tables of this tenant directly and without a schema, not through a view.`,
  )
}

export function toIsoTime(ms: number): string {
  return new Date(ms).toISOString()
}
