import type { CycleRecord, Standing } from '../../contract/index.ts'
import { toCycleRecord, toOutline, type CycleRow, type OutlineEntry } from './registry-rows.ts'

/** Rows of the registry, each with its cycles, which come newest first. */
export function joinStandings(entries: readonly OutlineEntry[], cycles: readonly CycleRow[]): Standing[] {
  const bySync = new Map<number, CycleRecord[]>()
  for (const cycle of cycles) {
    const record = toCycleRecord(cycle)
    const others = bySync.get(cycle.sync_id)
    if (others === undefined) bySync.set(cycle.sync_id, [record])
    else others.push(record)
  }
  return entries.map((entry) => ({ worker: entry.connector_id, sync: entry.stream_id, checkpoint: toOutline(entry), recent: bySync.get(entry.sync_id) ?? [] }))
}
