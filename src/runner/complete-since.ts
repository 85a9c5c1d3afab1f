import type { Checkpoint, CycleRecord } from '../contract/index.ts'
import { canonicalizeInstant, instantToMs } from '../values/instant.ts'

/**
 * The time up to which the copy is complete: the tidemark if it is a timestamp, otherwise the start of the last
 * complete cycle. Later changes of the source may be missing. Null when no cycle has completed.
 */
export function computeCompleteSince(
  { tidemark, lastSuccessAt }: Pick<Checkpoint, 'tidemark' | 'lastSuccessAt'>,
  recent: readonly CycleRecord[],
): number | null {
  const instant = tidemark === null ? null : canonicalizeInstant(tidemark)
  return instant === null
    ? (recent.find(({ stopReason }) => stopReason === 'complete')?.startedAt ?? lastSuccessAt)
    : instantToMs(instant)
}
