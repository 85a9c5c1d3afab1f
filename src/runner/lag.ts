import type { Checkpoint, CycleRecord } from '../contract/index.ts'

/** When the last complete cycle began: what changed in the source after that may be missing from the copy. Null when none ever was. */
export function completeSince({ lastSuccessAt }: Pick<Checkpoint, 'lastSuccessAt'>, recent: readonly CycleRecord[]): number | null {
  return recent.find(({ stopReason }) => stopReason === 'complete')?.startedAt ?? lastSuccessAt
}
