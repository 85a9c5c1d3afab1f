import type { ApiKey, ApiKeyStore } from '../../../contract/index.ts'
import { createEndApiKeyAuditEntry, createNewApiKeyAuditEntry, PROGRAM_ACTOR } from '../audit-entries.ts'
import { lockTenant, reviveTenant } from '../registry.ts'
import { defineRead, defineWrite, type PlansOf, type Sql } from '../sql/port.ts'

export const API_KEY_PLANS = {
  apiKey: defineRead(function* (sql, id) {
    yield* sql.kernel.widenRowSecurity({ apiKey: id })
    const found = yield* sql.get<ApiKeyRow>(`${selectApiKeys(sql)} where k.key_id = :id`, { id })
    return found === undefined ? null : toApiKey(found)
  }),

  apiKeys: defineRead(function* (sql) {
    const found = yield* sql.all<ApiKeyRow>(`${selectApiKeys(sql)} where k.tenant_id = :tenant order by k.key_id`)
    return found.map(toApiKey).toSorted((a, b) => a.createdAt - b.createdAt)
  }),

  addApiKey: defineWrite(function* (sql, key, actor = PROGRAM_ACTOR) {
    yield* reviveTenant(sql)
    const { id, name, hash, scopes, rateLimit, createdAt, endsAt } = key
    yield* sql.run(
      `insert into {api_keys} (tenant_id, key_id, name, hash, scopes, rate_limit, created_at, ends_at)
       values (:tenant, :id, :name, :hash, :scopes, :rateLimit, :createdAt, :endsAt)`,
      { id, name, hash, scopes: JSON.stringify(scopes), rateLimit, createdAt, endsAt },
    )
    yield* sql.kernel.writeAudit(null, createNewApiKeyAuditEntry(key, { actor, at: createdAt }))
  }),

  revokeApiKey: defineWrite(function* (sql, id, endsAt, by) {
    yield* lockTenant(sql)
    const changed = yield* sql.run(
      'update {api_keys} set ends_at = :endsAt where tenant_id = :tenant and key_id = :id and (ends_at is null or ends_at > :endsAt)',
      { id, endsAt },
    )
    if (changed > 0) yield* sql.kernel.writeAudit(null, createEndApiKeyAuditEntry(id, endsAt, by))
    return changed > 0
  }),
} satisfies PlansOf<ApiKeyStore>

interface ApiKeyRow {
  key_id: string
  tenant: string
  name: string
  hash: string
  scopes: string
  rate_limit: number
  created_at: number
  ends_at: number | null
}

function selectApiKeys({ dialect }: Sql): string {
  return `select k.key_id, ${dialect.tenantName('k')} as tenant, k.name, k.hash, k.scopes, k.rate_limit, k.created_at, k.ends_at from {api_keys} k`
}

function toApiKey(row: ApiKeyRow): ApiKey {
  return {
    id: row.key_id,
    tenant: row.tenant,
    name: row.name,
    hash: row.hash,
    scopes: JSON.parse(row.scopes) as string[],
    rateLimit: row.rate_limit,
    createdAt: row.created_at,
    endsAt: row.ends_at,
  }
}
