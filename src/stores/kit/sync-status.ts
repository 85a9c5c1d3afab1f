import type { CycleRecord, SyncStatusRow } from '../../contract/index.ts'
import { toCycleRecord, toCheckpointSummary, type CycleRow, type CheckpointSummaryEntry } from './registry-rows.ts'

/** Joins registry rows with their cycles, newest first. */
export function joinSyncStatus(
  entries: readonly CheckpointSummaryEntry[],
  cycles: readonly CycleRow[],
): SyncStatusRow[] {
  const bySync = new Map<number, CycleRecord[]>()
  for (const cycle of cycles) {
    const record = toCycleRecord(cycle)
    const others = bySync.get(cycle.sync_id)
    if (others === undefined) bySync.set(cycle.sync_id, [record])
    else others.push(record)
  }
  return entries.map((entry) => ({
    worker: entry.connector_id,
    sync: entry.stream_id,
    checkpoint: toCheckpointSummary(entry),
    recent: bySync.get(entry.sync_id) ?? [],
  }))
}
