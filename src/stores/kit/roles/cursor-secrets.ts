import type { CursorSecret, CursorSecretCandidate } from '../../../contract/index.ts'
import { lockTenant } from '../registry.ts'
import { defineRead, defineWrite, type Sql } from '../sql/port.ts'
import { checkSealingKey } from './data-keys.ts'

/**
 * Cursor secrets in two plans, so that the usual read takes no lock; `renew` is for when `hasFreshSecret` returns
 * false.
 */
export const CURSOR_SECRET_PLANS = {
  known: defineRead(function* (sql) {
    return yield* readCursorSecrets(sql)
  }),

  renew: defineWrite(function* (sql, candidate: CursorSecretCandidate) {
    // Locks the tenant: concurrent processes must agree on one secret.
    yield* lockTenant(sql)
    const known = yield* readCursorSecrets(sql)
    if (hasFreshSecret(known, candidate)) return known
    const { secret, createdAt, retainMs } = candidate
    yield* checkSealingKey(sql, secret)
    yield* sql.run(
      'insert into {cursor_secrets} (tenant_id, created_at, secret) values (:tenant, :createdAt, :secret)',
      { createdAt, secret },
    )
    // A secret stays valid for this long after its successor was created.
    const replaced = known.find((other) => other.createdAt < createdAt - retainMs)
    if (replaced !== undefined)
      yield* sql.run('delete from {cursor_secrets} where tenant_id = :tenant and created_at < :replaced', {
        replaced: replaced.createdAt,
      })
    return yield* readCursorSecrets(sql)
  }),
}

/** Whether the newest secret is younger than its rotation age, so that the candidate is not stored. */
export function hasFreshSecret(
  [newest]: readonly CursorSecret[],
  { createdAt, rotateAfterMs }: CursorSecretCandidate,
): boolean {
  return newest !== undefined && newest.createdAt > createdAt - rotateAfterMs
}

/** Newest first. */
function readCursorSecrets(sql: Sql) {
  return sql.all<CursorSecret>(
    'select secret, created_at as "createdAt" from {cursor_secrets} where tenant_id = :tenant order by created_at desc',
  )
}
