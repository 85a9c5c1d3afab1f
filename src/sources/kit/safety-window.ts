import { SyncError } from '../../contract/index.ts'
import { durationMs } from '../../values/duration.ts'

/** How much every cycle reads again, in milliseconds; undefined when nothing was said. */
export function windowMs(safetyWindow: string | undefined): number | undefined {
  const ms = safetyWindow === undefined ? undefined : durationMs(safetyWindow)
  if (ms === null) throw new SyncError('SYNC_INVALID', `\`safetyWindow\` is ${JSON.stringify(safetyWindow)}; write a duration such as PT5M.`)
  return ms
}
