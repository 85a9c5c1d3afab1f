import type { SyncStatusList, SyncStatusQuery } from '../../contract/index.ts'
import { CHECKPOINT_SUMMARY_COLUMNS, type CycleRow, type CheckpointSummaryEntry } from '../kit/registry-rows.ts'
import { joinSyncStatus } from '../kit/sync-status.ts'
import type { TenantSession } from './connection.ts'

/** An unchanged token means that the file was not written since; otherwise all rows are returned. */
export function listSyncStatus(
  { connection, tenantId }: TenantSession,
  { at, ref, changedSince, recent }: SyncStatusQuery,
): SyncStatusList {
  const changeToken = connection.readChangeMark()
  if (changeToken === changedSince) return { now: at, changeToken, syncs: [] }
  const which = ref === undefined ? 'true' : 'g.connector_id = ? and g.stream_id = ?'
  const given = ref === undefined ? [] : [ref.worker, ref.sync]
  const entries = connection.all<CheckpointSummaryEntry>(
    `select ${CHECKPOINT_SUMMARY_COLUMNS} from tidemark_registry g where g.tenant_id = ? and ${which}`,
    tenantId,
    ...given,
  )
  const cycles = connection.all<CycleRow>(
    `select c.*, g.connector_id as worker, g.stream_id as sync from tidemark_registry g join tidemark_cycles c on c.cycle_id in (
       select cycle_id from tidemark_cycles where tenant_id = g.tenant_id and sync_id = g.sync_id order by cycle_id desc limit ?
     ) where g.tenant_id = ? and ${which} order by c.cycle_id desc`,
    recent,
    tenantId,
    ...given,
  )
  return { now: at, changeToken, syncs: joinSyncStatus(entries, cycles) }
}
