import { SyncError, type SyncRef } from '../../contract/index.ts'
import type { RegistryEntry } from './registry-rows.ts'

/**
 * Facts about a sync's state that are stored outside its registry row: the newest transition in the audit log, and the
 * progress of the unfinished cycle. Both are written in the transaction that changes the state.
 */
export interface StateEvidenceRow {
  /** Null when the audit log has no transition of the sync's state. */
  moved_version: number | null
  /** SQLite has no booleans. */
  moved_has_state: boolean | number | null
  open_cycle: number | null
  open_page: number | null
  open_has_state: boolean | number | null
}

/**
 * A registry row that was restored, deleted or emptied in SQL still has valid seals, so only evidence outside the row
 * reveals it. Checked on every read that a cycle or an operator builds on.
 */
export function checkStateRollback(ref: SyncRef, entry: RegistryEntry | undefined, evidence: StateEvidenceRow): void {
  const why = findContradiction(entry, evidence)
  if (why !== null)
    throw new SyncError(
      'STATE_ROLLED_BACK',
      `The stored state of ${ref.sync} (worker ${ref.worker}) ${why}. Nothing was changed.`,
    )
}

/**
 * Rebuilds the row from the audit log, without the state that cannot be trusted; the same row when nothing contradicts
 * it.
 */
export function repairEntry(entry: RegistryEntry, evidence: StateEvidenceRow): RegistryEntry {
  if (findContradiction(entry, evidence) === null) return entry
  return {
    ...entry,
    version: evidence.moved_version ?? 0,
    committed: null,
    committed_by: null,
    inflight_cycle: null,
    inflight_mode: null,
    inflight_page: null,
    inflight_state: null,
    inflight_started_at: null,
    inflight_scope: null,
    inflight_tidemark: null,
    inflight_guard: null,
    inflight_start_sequence: null,
  }
}

function findContradiction(
  entry: RegistryEntry | undefined,
  { moved_version: moved, moved_has_state, open_cycle, open_page, open_has_state }: StateEvidenceRow,
): string | null {
  if (entry === undefined) return moved === null ? null : `is gone, but the audit log has it at version ${moved}`
  if (entry.version !== (moved ?? 0))
    return `is at version ${entry.version}, but the audit log has it at version ${moved ?? 0}`
  if ((entry.committed !== null) !== Boolean(moved_has_state))
    return entry.committed === null
      ? `was emptied: the audit log has a state for version ${entry.version}`
      : 'was never committed by a cycle'
  if (entry.inflight_cycle !== open_cycle || entry.inflight_page !== open_page) {
    const found =
      entry.inflight_cycle === null
        ? 'has no unfinished cycle'
        : `has cycle ${entry.inflight_cycle} unfinished at page ${entry.inflight_page}`
    return `${found}, but the cycle records have ${open_cycle === null ? 'none' : `cycle ${open_cycle} at page ${open_page}`}`
  }
  if (entry.inflight_cycle !== null && (entry.inflight_state !== null) !== Boolean(open_has_state))
    return `was emptied in the middle of cycle ${entry.inflight_cycle}`
  return null
}
