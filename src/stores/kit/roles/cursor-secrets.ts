import type { CursorSecret, CursorSecretOffer } from '../../../contract/index.ts'
import { lockTenant } from '../registry.ts'
import { read, write, type Sql } from '../sql/port.ts'
import { checkSealingKey } from './data-keys.ts'

/**
 * The secrets of cursors in two plans, so that the usual question locks nothing: `renew` is for a newest one that `isFresh`
 * refuses.
 */
export const CURSOR_SECRETS = {
  known: read(function* (sql) {
    return yield* secretsOf(sql)
  }),

  renew: write(function* (sql, offer: CursorSecretOffer) {
    // Two processes that offer at once must agree on one.
    yield* lockTenant(sql)
    const known = yield* secretsOf(sql)
    if (isFresh(known, offer)) return known
    const { secret, createdAt, keepMs } = offer
    yield* checkSealingKey(sql, secret)
    yield* sql.run('insert into {cursor_secrets} (tenant_id, created_at, secret) values (:tenant, :createdAt, :secret)', { createdAt, secret })
    // One stays valid for so long after the next was made.
    const replaced = known.find((other) => other.createdAt < createdAt - keepMs)
    if (replaced !== undefined) yield* sql.run('delete from {cursor_secrets} where tenant_id = :tenant and created_at < :replaced', { replaced: replaced.createdAt })
    return yield* secretsOf(sql)
  }),
}

export function isFresh([newest]: readonly CursorSecret[], { createdAt, renewMs }: CursorSecretOffer): boolean {
  return newest !== undefined && newest.createdAt > createdAt - renewMs
}

/** Newest first. */
function secretsOf(sql: Sql) {
  return sql.all<CursorSecret>('select secret, created_at as "createdAt" from {cursor_secrets} where tenant_id = :tenant order by created_at desc')
}
