import type { ApiKey } from '../../contract/index.ts'
import { endApiKeyEntry, newApiKeyEntry, PROGRAM } from '../kit/audit-entries.ts'
import { toApiKey, type ApiKeyRow } from '../kit/api-key-rows.ts'
import type { Session } from './connection.ts'
import { welcomeTenant, writeAudit } from './registry.ts'

/** The keys of the served side. */

export function apiKey({ connection }: Session, id: string): ApiKey | null {
  const found = connection.get<ApiKeyRow>(`${KEYS} where k.key_id = ?`, id)
  return found === undefined ? null : toApiKey(found)
}

export function apiKeys({ connection, tenantId }: Session): ApiKey[] {
  return connection.all<ApiKeyRow>(`${KEYS} where k.tenant_id = ? order by k.created_at, k.key_id`, tenantId).map(toApiKey)
}

export function addApiKey(session: Session, key: Omit<ApiKey, 'tenant'>, actor = PROGRAM): void {
  session.connection.write(() => {
    welcomeTenant(session)
    session.connection.run(
      'insert into tidemark_api_keys (key_id, tenant_id, name, hash, scopes, rate_limit, created_at, ends_at) values (?, ?, ?, ?, ?, ?, ?, ?)',
      key.id, session.tenantId, key.name, key.hash, JSON.stringify(key.scopes), key.rateLimit, key.createdAt, key.endsAt,
    )
    writeAudit(session, null, newApiKeyEntry(key, { actor, at: key.createdAt }))
  })
}

export function endApiKey(session: Session, id: string, endsAt: number, by: { actor: string; at: number; reason?: string }): boolean {
  const { connection, tenantId } = session
  return connection.write(() => {
    const { changes } = connection.run(
      'update tidemark_api_keys set ends_at = ?1 where tenant_id = ?2 and key_id = ?3 and (ends_at is null or ends_at > ?1)', endsAt, tenantId, id,
    )
    if (changes > 0) writeAudit(session, null, endApiKeyEntry(id, endsAt, by))
    return changes > 0
  })
}

const KEYS = `select k.key_id, t.name as tenant, k.name, k.hash, k.scopes, k.rate_limit, k.created_at, k.ends_at
  from tidemark_api_keys k join tidemark_tenants t using (tenant_id)`
