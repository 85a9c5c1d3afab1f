import { SyncError } from '../../contract/index.ts'
import { parseDurationMs } from '../../values/duration.ts'

/** The time span that every cycle re-reads, in milliseconds; undefined if not configured. */
export function parseSafetyWindowMs(safetyWindow: string | undefined): number | undefined {
  const ms = safetyWindow === undefined ? undefined : parseDurationMs(safetyWindow)
  if (ms === null)
    throw new SyncError(
      'SYNC_INVALID',
      `\`safetyWindow\` is ${JSON.stringify(safetyWindow)}. Write a duration such as PT5M.`,
    )
  return ms
}
