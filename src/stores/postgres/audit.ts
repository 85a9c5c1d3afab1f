import { serializeLink } from '../../registry/audit-chain.ts'
import type { AuditEntry } from '../../contract/index.ts'
import { toAuditChainInput } from '../kit/registry.ts'
import type { RegistryEntry } from '../kit/registry-rows.ts'
import type { Transaction } from './connection.ts'

/**
 * Like `appendAuditEntry`, in one statement. The database computes the hash chain itself: the tenant's row is locked by
 * then, so no prior read is needed.
 */
export function writeAudit(transaction: Transaction, entry: RegistryEntry | null, audit: AuditEntry): void {
  const chained = toAuditChainInput(entry, audit)
  const { version, at, actor, action, reason, cycle, state, epoch, worker, sync } = chained
  transaction.send(
    `with head as (
       insert into tidemark.tenants (tenant_id, audit_head, audit_count) values ($1, encode(sha256(convert_to($11, 'UTF8')), 'hex'), 1)
       on conflict (tenant_id) do update set audit_head = encode(sha256(convert_to(tenants.audit_head || $11, 'UTF8')), 'hex'), audit_count = tenants.audit_count + 1
       returning audit_head
     )
     insert into tidemark.audit (tenant_id, sync_id, version, at, actor, action, reason, cycle_id, state, epoch, hash, connector_id, stream_id)
     select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, audit_head, $12, $13 from head`,
    transaction.tenant,
    entry?.sync_id ?? 0,
    version,
    at,
    actor,
    action,
    reason,
    cycle,
    state,
    epoch,
    serializeLink(chained),
    worker,
    sync,
  )
}
