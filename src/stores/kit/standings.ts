import type { CycleRecord, Outline, Standing } from '../../contract/index.ts'

/** Rows of the registry, each with its cycles, which come newest first. */
export function joinStandings<Entry extends { sync_id: number; connector_id: string; stream_id: string }, Cycle extends { sync_id: number }>(
  entries: readonly Entry[], toOutline: (entry: Entry) => Outline, cycles: readonly Cycle[], toCycleRecord: (cycle: Cycle) => CycleRecord,
): Standing[] {
  const bySync = new Map<number, CycleRecord[]>()
  for (const cycle of cycles) {
    const record = toCycleRecord(cycle)
    const others = bySync.get(cycle.sync_id)
    if (others === undefined) bySync.set(cycle.sync_id, [record])
    else others.push(record)
  }
  return entries.map((entry) => ({ worker: entry.connector_id, sync: entry.stream_id, checkpoint: toOutline(entry), recent: bySync.get(entry.sync_id) ?? [] }))
}
