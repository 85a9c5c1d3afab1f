import type { AuditEntry, CycleReport } from '../../contract/index.ts'

/** The checkpoint was moved under a cycle, which gave way: whoever reads the trail sees who moved it and whom it cost. */
export function conflictEntry(version: number, { cycle, endedAt, error }: CycleReport): AuditEntry {
  return { version, at: endedAt, actor: 'engine', action: 'conflict', reason: error!.message, cycle, state: null }
}
