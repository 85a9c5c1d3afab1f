import type { ApiKey } from '../../contract/index.ts'
import { toApiKey, type ApiKeyRow } from '../kit/api-key-rows.ts'
import type { Session } from './connection.ts'
import { welcomeTenant } from './registry.ts'

/** The keys of the served side. */

export function apiKey({ connection }: Session, id: string): ApiKey | null {
  const found = connection.get<ApiKeyRow>(`${KEYS} where k.key_id = ?`, id)
  return found === undefined ? null : toApiKey(found)
}

export function apiKeys({ connection, tenantId }: Session): ApiKey[] {
  return connection.all<ApiKeyRow>(`${KEYS} where k.tenant_id = ? order by k.created_at, k.key_id`, tenantId).map(toApiKey)
}

export function addApiKey(session: Session, key: Omit<ApiKey, 'tenant'>): void {
  session.connection.write(() => {
    welcomeTenant(session)
    session.connection.run(
      'insert into tidemark_api_keys (key_id, tenant_id, name, hash, scopes, rate_limit, created_at, ends_at) values (?, ?, ?, ?, ?, ?, ?, ?)',
      key.id, session.tenantId, key.name, key.hash, JSON.stringify(key.scopes), key.rateLimit, key.createdAt, key.endsAt,
    )
  })
}

export function endApiKey({ connection, tenantId }: Session, id: string, at: number): boolean {
  return connection.write(() => connection.run(
    'update tidemark_api_keys set ends_at = ?1 where tenant_id = ?2 and key_id = ?3 and (ends_at is null or ends_at > ?1)', at, tenantId, id,
  ).changes > 0)
}

const KEYS = `select k.key_id, t.name as tenant, k.name, k.hash, k.scopes, k.rate_limit, k.created_at, k.ends_at
  from tidemark_api_keys k join tidemark_tenants t using (tenant_id)`
