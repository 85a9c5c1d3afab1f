import type { ConnectSession, ConnectSessionStatus, ConnectSessionStore } from '../../../contract/index.ts'
import { lockTenant, reviveTenant } from '../registry.ts'
import { defineRead, defineWrite, type PlansOf, type Sql, type Steps } from '../sql/port.ts'
import { checkSealingKey } from './data-keys.ts'

/** Expired sessions that a new one deletes: more than it adds, so that they do not accumulate. */
const EXPIRED_MAX = 100

export const CONNECT_SESSION_PLANS = {
  addConnectSession: defineWrite(function* (sql, { id, browser, createdAt, expiresAt }, secrets) {
    yield* reviveTenant(sql)
    yield* checkSealingKey(sql, secrets)
    yield* deleteExpired(sql, createdAt)
    yield* sql.run(
      `insert into {connect_sessions} (tenant_id, session_id, browser, status, version, secrets, created_at, expires_at)
       values (:tenant, :id, :browser, 'open', 1, :secrets, :createdAt, :expiresAt)`,
      { id, browser, secrets, createdAt, expiresAt },
    )
  }),

  connectSession: defineRead(function* (sql, id, at) {
    yield* sql.kernel.widenRowSecurity({ connectSession: id })
    const found = yield* sql.get<SessionRow>(
      `select s.session_id, ${sql.dialect.tenantName('s')} as tenant, s.browser, s.status, s.version, s.created_at, s.expires_at
       from {connect_sessions} s where s.session_id = :id and s.expires_at > :at`,
      { id, at },
    )
    return found === undefined ? null : toSession(found)
  }),

  connectSecrets: defineRead(function* (sql, id) {
    const found = yield* sql.get<{ version: number; secrets: string }>(
      'select version, secrets from {connect_sessions} where tenant_id = :tenant and session_id = :id',
      { id },
    )
    return found ?? null
  }),

  moveConnectSession: defineWrite(function* (sql, id, { replaces, status, secrets, at }) {
    yield* lockTenant(sql)
    yield* checkSealingKey(sql, secrets)
    const moved = yield* sql.run(
      `update {connect_sessions} set status = :status, secrets = :secrets, version = version + 1
       where tenant_id = :tenant and session_id = :id and version = :replaces and expires_at > :at`,
      { id, replaces, status, secrets, at },
    )
    return moved > 0
  }),
} satisfies PlansOf<ConnectSessionStore>

/** The oldest ones, up to the limit and its ties. */
function* deleteExpired(sql: Sql, at: number): Steps<void> {
  const last = yield* sql.get<{ until: number }>(
    `select expires_at as until from {connect_sessions} where tenant_id = :tenant and expires_at <= :at
     order by expires_at limit 1 offset ${EXPIRED_MAX - 1}`,
    { at },
  )
  yield* sql.run('delete from {connect_sessions} where tenant_id = :tenant and expires_at <= :until', {
    until: last?.until ?? at,
  })
}

interface SessionRow {
  session_id: string
  tenant: string
  browser: string
  status: ConnectSessionStatus
  version: number
  created_at: number
  expires_at: number
}

function toSession(row: SessionRow): ConnectSession {
  return {
    id: row.session_id,
    tenant: row.tenant,
    browser: row.browser,
    status: row.status,
    version: row.version,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  }
}
