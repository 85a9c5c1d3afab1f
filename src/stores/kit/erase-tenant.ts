import type { EraseResult, TenantBusy } from '../../contract/index.ts'
import { createEraseAuditEntry } from './audit-entries.ts'
import { lockTenant } from './registry.ts'
import { recordChange } from './roles/connections.ts'
import { defineWrite, type Steps } from './sql/port.ts'

/** `Kernel.eraseTenant`. `remains` is for the store to say. */
export const ERASE_TENANT_PLAN = defineWrite(function* (
  sql,
  by: { actor: string; at: number },
): Steps<EraseResult | TenantBusy> {
  yield* lockTenant(sql)
  const syncs = yield* sql.all<{
    worker: string
    sync: string
    holder: string | null
    expiresAt: number | null
    now: number
  }>(
    'select connector_id as worker, stream_id as sync, holder, held_until as "expiresAt", :now as now from {registry} where tenant_id = :tenant {for_update}',
    { at: by.at },
  )
  for (const { worker, sync, holder, expiresAt, now } of syncs) {
    if (holder !== null && expiresAt !== null && expiresAt > now)
      return { kind: 'held', ref: { worker, sync }, holder, expiresAt }
  }
  // Other transactions lock several of these rows without locking the tenant; this is the same order.
  yield* sql.all('select 1 as locked from {webhooks} where tenant_id = :tenant {for_update}')
  yield* sql.all(
    'select 1 as locked from {pauses} where tenant_id = :tenant order by connector_id, pacer, origin {for_update}',
  )
  yield* sql.all(
    'select 1 as locked from {requests} where tenant_id = :tenant order by {requests_window}, caller {for_update}',
  )
  yield* sql.all('select 1 as locked from {destinations} where tenant_id = :tenant order by name {for_update}')
  const connections = yield* sql.all(
    'select 1 as locked from {connections} where tenant_id = :tenant order by name {for_update}',
  )
  // Invariant 3: the holder of an earlier lease, released or not, must never hold the newest epoch.
  const newest = (table: string): string => `coalesce((select max(epoch) from {${table}} where tenant_id = :tenant), 0)`
  yield* sql.run(
    `update {tenants} set epoch = {greatest}(epoch, ${newest('registry')}, ${newest('webhooks')}, ${newest('destinations')}) where tenant_id = :tenant`,
  )
  if (connections.length > 0) yield* recordChange(sql)
  const counts = { syncs: syncs.length, entries: yield* sql.kernel.eraseRows() }
  // A second request finds the audit entry of the first.
  if (counts.entries > 0) {
    // Last: the audit log can be deleted only once nothing it describes is left.
    yield* sql.run('delete from {audit} where tenant_id = :tenant')
    yield* sql.run(
      "update {tenants} set erased = true, audit_head = '', audit_count = 0, floor = sequence, floor_committed_at = committed_at where tenant_id = :tenant",
    )
    yield* sql.kernel.writeAudit(null, createEraseAuditEntry(counts, by))
  }
  return { kind: 'erased', ...counts, remains: null }
})
