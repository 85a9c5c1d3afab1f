import type { InboundStore, KeptMessage } from '../../../contract/index.ts'
import { read, write, type PlansOf } from '../sql/port.ts'
import { tenantErased } from '../tenant-erased.ts'

const MESSAGE = 'tenant_id = :tenant and source = :source and message_id = :id'

export const INBOUND = {
  claimInbound: write(function* (sql, { source, id }, { at, busyMs, forgetBefore, payload = null }) {
    // Locked whether erased or not, so that an erasure comes before all of this or after.
    const tenant = yield* sql.get<{ erased: boolean | number }>('select erased from {tenants} where tenant_id = :tenant {for_share}')
    if (tenant?.erased === true || tenant?.erased === 1) throw tenantErased(sql.tenant)
    yield* sql.run(sql.dialect.deleteUnlocked('inbound', 'source = :source and at < :forgetBefore and done'), { source, forgetBefore })
    const added = yield* sql.run(
      `{insert_new} into {inbound} (tenant_id, source, message_id, at, done, payload) values (:tenant, :source, :id, :at, false, :payload) {or_nothing}`,
      { source, id, at, payload },
    )
    if (added > 0) return 'new'
    const found = yield* sql.get<{ at: number; done: boolean | number }>(`select at, done from {inbound} where ${MESSAGE} {for_update}`, { source, id })
    // Settled by another call since the insert: it is sent again.
    if (found === undefined) return 'busy'
    const done = Boolean(found.done)
    if (done && found.at >= forgetBefore) return 'done'
    if (!done && found.at > at - busyMs) return 'busy'
    // A message that is forgotten, but was locked when it was to be deleted, comes as new.
    const sets = done ? 'at = :at, done = false, payload = :payload' : 'at = :at'
    yield* sql.run(`update {inbound} set ${sets} where ${MESSAGE}`, { source, id, at, ...(done && { payload }) })
    return 'new'
  }),

  keptInbound: read(function* (sql, { source, before, limit }) {
    return yield* sql.all<KeptMessage>(
      `select message_id as id, payload from {inbound} where tenant_id = :tenant and source = :source and at <= :before and payload is not null
       order by at, message_id limit :limit`, { source, before, limit },
    )
  }),

  settleInbound: write(function* (sql, { source, id }, { done, at }) {
    if (done) yield* sql.run(`update {inbound} set done = true, at = :at, payload = null where ${MESSAGE}`, { source, id, at })
    else yield* sql.run(`delete from {inbound} where ${MESSAGE} and not done`, { source, id })
  }),
} satisfies PlansOf<InboundStore>
