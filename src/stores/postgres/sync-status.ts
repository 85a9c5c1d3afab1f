import type { SyncStatusList, SyncStatusQuery } from '../../contract/index.ts'
import { CHECKPOINT_SUMMARY_COLUMNS, type CycleRow, type CheckpointSummaryEntry } from '../kit/registry-rows.ts'
import { joinSyncStatus } from '../kit/sync-status.ts'
import type { Parameter, TenantSession } from './connection.ts'
import { NOW_MS_SQL } from './server-clock.ts'

/**
 * A row's `xmin` is the transaction that wrote it. A transaction that was running when the token was taken, or began
 * later, is not older than the token, so no change is missed, and an unchanged row costs one comparison. A token beyond
 * this server's transactions comes from another server, and then all rows are returned.
 */
const CHANGED_SINCE = '(age(g.xmin) <= age($2::xid8::xid) or $2::xid8 > pg_snapshot_xmax(pg_current_snapshot()))'

export function listSyncStatus(
  session: TenantSession,
  { ref, changedSince, recent }: SyncStatusQuery,
): Promise<SyncStatusList> {
  const [which, ...given]: [string, ...Parameter[]] =
    ref !== undefined
      ? ['g.connector_id = $2 and g.stream_id = $3', ref.worker, ref.sync]
      : changedSince === undefined
        ? ['true']
        : [CHANGED_SINCE, changedSince]
  return session.connection.read(session.tenant, async (transaction) => {
    const [snapshot, entries, cycles] = await Promise.all([
      transaction.one<{ now: number; changeToken: string }>(
        `select ${NOW_MS_SQL} as now, pg_snapshot_xmin(pg_current_snapshot())::text as "changeToken"`,
      ),
      transaction.all<CheckpointSummaryEntry>(
        `select ${CHECKPOINT_SUMMARY_COLUMNS} from tidemark.registry g where g.tenant_id = $1 and ${which}`,
        session.tenant,
        ...given,
      ),
      transaction.all<CycleRow>(
        `select c.*, g.connector_id as worker, g.stream_id as sync from tidemark.registry g cross join lateral (
           select * from tidemark.cycles c where c.tenant_id = g.tenant_id and c.sync_id = g.sync_id order by c.cycle_id desc limit ${recent}
         ) c where g.tenant_id = $1 and ${which}`,
        session.tenant,
        ...given,
      ),
    ])
    return { ...snapshot, syncs: joinSyncStatus(entries, cycles) }
  })
}
