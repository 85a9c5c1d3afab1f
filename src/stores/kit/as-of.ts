import { SyncError } from '../../contract/index.ts'

/** The oldest time, in ms, at which a store can show its tables; null before the first commit. */
export interface HistoryStart {
  readonly startMs: number | null
  /** True when older versions were compacted; false when the first commit was made at `startMs`. */
  readonly isCompacted: boolean
}

/** Refuses a time before the history begins, where the tables would look emptier than they were. */
export function checkAsOf(at: number, { startMs, isCompacted }: HistoryStart): void {
  if (startMs !== null && at < startMs) throw createNoHistoryError(at, startMs, isCompacted)
}

export function createNoHistoryError(at: number, startMs: number, isCompacted: boolean): SyncError {
  const why = isCompacted ? 'Older versions have been compacted' : 'The first commit was made then'
  return new SyncError(
    'ARGUMENT_INVALID',
    `There is no history at ${toIsoTime(at)}: it begins at ${toIsoTime(startMs)}. ${why}. Choose a later time.`,
  )
}

/** A view or a qualified name bypasses the tables that `--as-of` substitutes. */
export function createAsOfBypassError(relation: string): SyncError {
  return new SyncError(
    'ARGUMENT_INVALID',
    `The statement reads current data of ${relation}. With --as-of, name tables of this tenant directly and without a schema, not through a view.`,
  )
}

export function toIsoTime(ms: number): string {
  return new Date(ms).toISOString()
}
