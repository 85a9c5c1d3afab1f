import { SyncError } from '../../contract/index.ts'
import { parseDurationMs } from '../../values/duration.ts'

/** How much every cycle reads again, in milliseconds; undefined when nothing was said. */
export function parseSafetyWindowMs(safetyWindow: string | undefined): number | undefined {
  const ms = safetyWindow === undefined ? undefined : parseDurationMs(safetyWindow)
  if (ms === null) throw new SyncError('SYNC_INVALID', `\`safetyWindow\` is ${JSON.stringify(safetyWindow)}; write a duration such as PT5M.`)
  return ms
}
