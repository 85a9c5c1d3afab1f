import type { EraseResult, TenantBusy } from '../../contract/index.ts'
import { createEraseAuditEntry } from './audit-entries.ts'
import { lockTenant } from './registry.ts'
import { defineWrite, type Steps } from './sql/port.ts'

/** `Kernel.eraseTenant`. `remains` is for the store to say. */
export const ERASE_TENANT_PLAN = defineWrite(function* (sql, by: { actor: string; at: number }): Steps<EraseResult | TenantBusy> {
  yield* lockTenant(sql)
  const syncs = yield* sql.all<{ worker: string; sync: string; by: string | null; until: number | null; now: number }>(
    'select connector_id as worker, stream_id as sync, holder as "by", held_until as until, :now as now from {registry} where tenant_id = :tenant {for_update}', { at: by.at },
  )
  const held = syncs.find(({ until, now }) => until !== null && until > now)
  if (held !== undefined) return { kind: 'held', ref: { worker: held.worker, sync: held.sync }, holder: held.by!, expiresAt: held.until! }
  // Rows of which others lock several without the tenant, in the order in which they do.
  yield* sql.all('select 1 as locked from {webhooks} where tenant_id = :tenant {for_update}')
  yield* sql.all('select 1 as locked from {pauses} where tenant_id = :tenant order by connector_id, pacer, origin {for_update}')
  yield* sql.all('select 1 as locked from {requests} where tenant_id = :tenant order by {requests_window}, who {for_update}')
  // Invariant 3: a holder of a lease from before, ended or not, must never hold a newest one.
  const newest = (table: string): string => `coalesce((select max(epoch) from {${table}} where tenant_id = :tenant), 0)`
  yield* sql.run(`update {tenants} set epoch = {greatest}(epoch, ${newest('registry')}, ${newest('webhooks')}) where tenant_id = :tenant`)
  const counts = { syncs: syncs.length, entries: yield* sql.kernel.eraseRows() }
  // A second request finds the record of the first.
  if (counts.entries > 0) {
    // Last of all: the audit log can be deleted only once nothing is left that it describes.
    yield* sql.run('delete from {audit} where tenant_id = :tenant')
    yield* sql.run(
      "update {tenants} set erased = true, audit_head = '', audit_count = 0, floor = sequence, floor_committed_at = committed_at where tenant_id = :tenant",
    )
    yield* sql.kernel.writeAudit(null, createEraseAuditEntry(counts, by))
  }
  return { kind: 'erased', ...counts, remains: null }
})
