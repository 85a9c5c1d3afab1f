import type { AuditEntry, AuditLog, AuditChainEntry } from '../../../contract/index.ts'
import { SYNC_ID_SQL } from '../registry.ts'
import { defineRead, type PlansOf } from '../sql/port.ts'

export const AUDIT_PLANS = {
  audit: defineRead(function* (sql, { worker, sync }, { limit = 100 } = {}) {
    return yield* sql.all<AuditEntry>(
      `select version, at, actor, action, reason, cycle_id as cycle, state from {audit}
       where tenant_id = :tenant and sync_id = ${SYNC_ID_SQL} order by audit_id desc limit :limit`,
      { worker, sync, limit },
    )
  }),

  auditChain: defineRead(function* (sql, query) {
    const [where, from] =
      'after' in query
        ? ['a.audit_id > :from order by a.audit_id', query.after]
        : ['a.audit_id < :from order by a.audit_id desc', query.before]
    const entries = yield* sql.all<AuditChainEntry>(
      `select a.audit_id as id, coalesce(a.connector_id, g.connector_id) as worker, coalesce(a.stream_id, g.stream_id) as sync, a.epoch, a.version, a.at, a.actor, a.action,
         a.reason, a.cycle_id as cycle, a.state, a.hash
       from {audit} a left join {registry} g on g.tenant_id = a.tenant_id and g.sync_id = a.sync_id where a.tenant_id = :tenant and ${where} limit :limit`,
      { from, limit: query.limit },
    )
    const head = yield* sql.get<{ head: string; count: number }>(
      'select audit_head as head, audit_count as count from {tenants} where tenant_id = :tenant',
    )
    return { entries, head: head?.head ?? '', count: head?.count ?? 0 }
  }),
} satisfies PlansOf<AuditLog>
