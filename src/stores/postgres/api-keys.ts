import type { ApiKey } from '../../contract/index.ts'
import { endApiKeyEntry, newApiKeyEntry, PROGRAM } from '../kit/audit-entries.ts'
import { toApiKey, type ApiKeyRow } from '../kit/api-key-rows.ts'
import type { Session } from './connection.ts'
import { lockTenant, welcomeTenant, writeAudit } from './registry.ts'

/** The keys of the served side. */

export function apiKey({ connection, tenant }: Session, id: string): Promise<ApiKey | null> {
  return connection.read(tenant, async (transaction) => {
    // For this transaction alone, the wall has a window as large as this one key.
    await transaction.run("select set_config('tidemark.api_key', $1, true)", id)
    const found = await transaction.get<ApiKeyRow>(`${KEYS} where key_id = $1`, id)
    return found === undefined ? null : toApiKey(found)
  })
}

export function apiKeys({ connection, tenant }: Session): Promise<ApiKey[]> {
  return connection.read(tenant, async (transaction) => {
    const found = await transaction.all<ApiKeyRow>(`${KEYS} where tenant_id = $1 order by key_id`, tenant)
    return found.map(toApiKey).toSorted((a, b) => a.createdAt - b.createdAt)
  })
}

export async function addApiKey({ connection, tenant }: Session, key: Omit<ApiKey, 'tenant'>, actor = PROGRAM): Promise<void> {
  await connection.write(tenant, async (transaction) => {
    await welcomeTenant(transaction)
    await transaction.run(
      'insert into tidemark.api_keys (tenant_id, key_id, name, hash, scopes, rate_limit, created_at, ends_at) values ($1, $2, $3, $4, $5, $6, $7, $8)',
      tenant, key.id, key.name, key.hash, JSON.stringify(key.scopes), key.rateLimit, key.createdAt, key.endsAt,
    )
    writeAudit(transaction, null, newApiKeyEntry(key, { actor, at: key.createdAt }))
  })
}

export function endApiKey({ connection, tenant }: Session, id: string, endsAt: number, by: { actor: string; at: number; reason?: string }): Promise<boolean> {
  return connection.write(tenant, async (transaction) => {
    await lockTenant(transaction)
    const changed = await transaction.run(
      'update tidemark.api_keys set ends_at = $3 where tenant_id = $1 and key_id = $2 and (ends_at is null or ends_at > $3)', tenant, id, endsAt,
    )
    if (changed > 0) writeAudit(transaction, null, endApiKeyEntry(id, endsAt, by))
    return changed > 0
  })
}

const KEYS = 'select key_id, tenant_id as tenant, name, hash, scopes, rate_limit, created_at, ends_at from tidemark.api_keys'
