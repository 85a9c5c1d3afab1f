import type {
  Checkpoint,
  CycleRecord,
  ErrorCode,
  Inflight,
  LandingCounts,
  Mode,
  CheckpointSummary,
  StateText,
  StopReason,
  SyncRef,
} from '../../contract/index.ts'
import { required } from '../../values/required.ts'

/** A row of the registry, as both databases return it. */
export interface RegistryEntry {
  sync_id: number
  connector_id: string
  stream_id: string
  version: number
  committed: StateText
  committed_by: number | null
  inflight_cycle: number | null
  inflight_mode: Mode | null
  inflight_page: number | null
  inflight_state: StateText
  inflight_started_at: number | null
  inflight_scope: string | null
  inflight_tidemark: string | null
  inflight_guard: string | null
  inflight_start_sequence: number | null
  scope: string | null
  tidemark: string | null
  /** SQLite has no booleans. */
  paused: boolean | number
  triggered_at: number | null
  failures: number
  error_code: ErrorCode | null
  error_message: string | null
  error_at: number | null
  retry_at: number | null
  last_success_at: number | null
  complete_since: number | null
  needed_at: number | null
  needed_reason: string | null
  needed_cycle: number | null
  epoch: number
  holder: string | null
  held_since: number | null
  held_until: number | null
}

/** A cycle as a row of its SQL table. */
export interface CycleRow extends SyncRef, LandingCounts {
  cycle_id: number
  sync_id: number
  mode: Mode
  trigger: string
  started_at: number
  start_sequence: number
  ended_at: number | null
  stop_reason: StopReason | null
  end_reason: string | null
  pages: number
  retries: number
  waited_ms: number
  error_code: ErrorCode | null
  error_message: string | null
}

/** Reads the unfinished cycle of a registry entry; null if there is none. */
export function toInflight(entry: RegistryEntry): Inflight | null {
  if (entry.inflight_cycle === null) return null
  return {
    cycle: entry.inflight_cycle,
    mode: required(entry.inflight_mode, 'inflight_mode'),
    page: required(entry.inflight_page, 'inflight_page'),
    state: entry.inflight_state,
    startedAt: required(entry.inflight_started_at, 'inflight_started_at'),
    scope: entry.inflight_scope,
    tidemark: entry.inflight_tidemark,
    guardState: entry.inflight_guard,
    startSequence: required(entry.inflight_start_sequence, 'inflight_start_sequence'),
  }
}

/** The default is the checkpoint of a sync that never ran. */
export function toCheckpoint(entry: RegistryEntry = NEVER_RUN_ENTRY): Checkpoint {
  return {
    ...toCheckpointSummary(entry),
    committed: entry.committed,
    committedBy: entry.committed_by,
    inflight: toInflight(entry),
    scope: entry.scope,
  }
}

/** Columns of the registry that a checkpoint summary needs. */
export const CHECKPOINT_SUMMARY_COLUMNS = `sync_id, connector_id, stream_id, version, inflight_cycle, inflight_page, inflight_started_at, tidemark, paused, triggered_at,
  failures, error_code, error_message, error_at, retry_at, last_success_at, complete_since, needed_at, needed_reason, needed_cycle, holder, held_since, held_until`

/** The columns of a registry entry that a checkpoint summary needs, without sealed states. */
export type CheckpointSummaryEntry = Omit<
  RegistryEntry,
  | 'committed'
  | 'committed_by'
  | 'scope'
  | 'inflight_mode'
  | 'inflight_state'
  | 'inflight_scope'
  | 'inflight_tidemark'
  | 'inflight_guard'
  | 'inflight_start_sequence'
  | 'epoch'
>

export function toCheckpointSummary(entry: CheckpointSummaryEntry): CheckpointSummary {
  return {
    version: entry.version,
    tidemark: entry.tidemark,
    paused: Boolean(entry.paused),
    triggeredAt: entry.triggered_at,
    failures: entry.failures,
    inflight:
      entry.inflight_cycle === null
        ? null
        : {
            cycle: entry.inflight_cycle,
            page: required(entry.inflight_page, 'inflight_page'),
            startedAt: required(entry.inflight_started_at, 'inflight_started_at'),
          },
    lastError:
      entry.error_code === null
        ? null
        : { code: entry.error_code, message: entry.error_message ?? '', at: required(entry.error_at, 'error_at') },
    retryAt: entry.retry_at,
    lastSuccessAt: entry.last_success_at,
    completeSince: entry.complete_since,
    backfillNeeded:
      entry.needed_at === null
        ? null
        : { since: entry.needed_at, reason: entry.needed_reason ?? '', cycle: entry.needed_cycle },
    heldBy: entry.holder,
    heldSince: entry.held_since,
    heldUntil: entry.held_until,
  }
}

export function toCycleRecord(row: CycleRow): CycleRecord {
  return {
    worker: row.worker,
    sync: row.sync,
    cycle: row.cycle_id,
    mode: row.mode,
    trigger: row.trigger,
    startedAt: row.started_at,
    startSequence: row.start_sequence,
    endedAt: row.ended_at,
    stopReason: row.stop_reason,
    endReason: row.end_reason,
    pages: row.pages,
    counts: {
      created: row.created,
      updated: row.updated,
      deleted: row.deleted,
      swept: row.swept,
      unchanged: row.unchanged,
      stale: row.stale,
      missing: row.missing,
      quarantined: row.quarantined,
    },
    retries: row.retries,
    waitedMs: row.waited_ms,
    error: row.error_code === null ? null : { code: row.error_code, message: row.error_message ?? '' },
  }
}

export const NEVER_RUN_ENTRY: RegistryEntry = {
  sync_id: 0,
  connector_id: '',
  stream_id: '',
  version: 0,
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
  scope: null,
  tidemark: null,
  paused: false,
  triggered_at: null,
  failures: 0,
  error_code: null,
  error_message: null,
  error_at: null,
  retry_at: null,
  last_success_at: null,
  complete_since: null,
  needed_at: null,
  needed_reason: null,
  needed_cycle: null,
  epoch: 0,
  holder: null,
  held_since: null,
  held_until: null,
}
