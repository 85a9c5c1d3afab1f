import type { Checkpoint, CycleRecord } from '../contract/index.ts'
import { canonicalizeInstant, instantToMs } from '../values/instant.ts'

/**
 * Up to when the copy is complete: the tidemark where it is a time, else the start of the last complete cycle. Changes of the
 * source after it may be missing. Null when no cycle has completed.
 */
export function computeCompleteSince({ tidemark, lastSuccessAt }: Pick<Checkpoint, 'tidemark' | 'lastSuccessAt'>, recent: readonly CycleRecord[]): number | null {
  const instant = tidemark === null ? null : canonicalizeInstant(tidemark)
  return instant === null ? (recent.find(({ stopReason }) => stopReason === 'complete')?.startedAt ?? lastSuccessAt) : instantToMs(instant)
}
