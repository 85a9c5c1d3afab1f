import type { InboundStore, PendingInboundMessage } from '../../../contract/index.ts'
import { defineRead, defineWrite, type PlansOf } from '../sql/port.ts'
import { createTenantErasedError } from '../tenant-erased-error.ts'

const MESSAGE_CONDITION = 'tenant_id = :tenant and source = :source and message_id = :id'

export const INBOUND_PLANS = {
  claimInbound: defineWrite(function* (sql, { source, id }, { at, claimTtlMs, purgeBefore, payload = null }) {
    // Locked even when not erased, so that an erasure is ordered entirely before or after this claim.
    const tenant = yield* sql.get<{ erased: boolean | number }>(
      'select erased from {tenants} where tenant_id = :tenant {for_share}',
    )
    if (tenant?.erased === true || tenant?.erased === 1) throw createTenantErasedError(sql.tenant)
    yield* sql.run(sql.dialect.deleteSkipLocked('inbound', 'source = :source and at < :purgeBefore and done'), {
      source,
      purgeBefore,
    })
    const added = yield* sql.run(
      `{insert_new} into {inbound} (tenant_id, source, message_id, at, done, payload) values (:tenant, :source, :id, :at, false, :payload) {or_nothing}`,
      { source, id, at, payload },
    )
    if (added > 0) return 'new'
    const found = yield* sql.get<{ at: number; done: boolean | number }>(
      `select at, done from {inbound} where ${MESSAGE_CONDITION} {for_update}`,
      { source, id },
    )
    // Another call settled it after the insert, so the sender retries.
    if (found === undefined) return 'busy'
    const done = Boolean(found.done)
    if (done && found.at >= purgeBefore) return 'done'
    if (!done && found.at > at - claimTtlMs) return 'busy'
    // An expired message that could not be deleted because it was locked counts as new.
    const sets = done ? 'at = :at, done = false, payload = :payload' : 'at = :at'
    yield* sql.run(`update {inbound} set ${sets} where ${MESSAGE_CONDITION}`, {
      source,
      id,
      at,
      ...(done && { payload }),
    })
    return 'new'
  }),

  pendingInbound: defineRead(function* (sql, { source, before, limit }) {
    return yield* sql.all<PendingInboundMessage>(
      `select message_id as id, payload from {inbound} where tenant_id = :tenant and source = :source and at <= :before and payload is not null
       order by at, message_id limit :limit`,
      { source, before, limit },
    )
  }),

  settleInbound: defineWrite(function* (sql, { source, id }, { done, at }) {
    if (done)
      yield* sql.run(`update {inbound} set done = true, at = :at, payload = null where ${MESSAGE_CONDITION}`, {
        source,
        id,
        at,
      })
    else yield* sql.run(`delete from {inbound} where ${MESSAGE_CONDITION} and not done`, { source, id })
  }),
} satisfies PlansOf<InboundStore>
