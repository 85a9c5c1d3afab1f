import type { ApiKey, ApiKeyStore } from '../../../contract/index.ts'
import { endApiKeyEntry, newApiKeyEntry, PROGRAM } from '../audit-entries.ts'
import { lockTenant, welcomeTenant } from '../registry.ts'
import { read, write, type PlansOf, type Sql } from '../sql/port.ts'

export const API_KEYS = {
  apiKey: read(function* (sql, id) {
    yield* sql.kernel.lookBeyond({ apiKey: id })
    const found = yield* sql.get<ApiKeyRow>(`${keysOf(sql)} where k.key_id = :id`, { id })
    return found === undefined ? null : toApiKey(found)
  }),

  apiKeys: read(function* (sql) {
    const found = yield* sql.all<ApiKeyRow>(`${keysOf(sql)} where k.tenant_id = :tenant order by k.key_id`)
    return found.map(toApiKey).toSorted((a, b) => a.createdAt - b.createdAt)
  }),

  addApiKey: write(function* (sql, key, actor = PROGRAM) {
    yield* welcomeTenant(sql)
    const { id, name, hash, scopes, rateLimit, createdAt, endsAt } = key
    yield* sql.run(
      `insert into {api_keys} (tenant_id, key_id, name, hash, scopes, rate_limit, created_at, ends_at)
       values (:tenant, :id, :name, :hash, :scopes, :rateLimit, :createdAt, :endsAt)`,
      { id, name, hash, scopes: JSON.stringify(scopes), rateLimit, createdAt, endsAt },
    )
    yield* sql.kernel.writeAudit(null, newApiKeyEntry(key, { actor, at: createdAt }))
  }),

  endApiKey: write(function* (sql, id, endsAt, by) {
    yield* lockTenant(sql)
    const changed = yield* sql.run(
      'update {api_keys} set ends_at = :endsAt where tenant_id = :tenant and key_id = :id and (ends_at is null or ends_at > :endsAt)', { id, endsAt },
    )
    if (changed > 0) yield* sql.kernel.writeAudit(null, endApiKeyEntry(id, endsAt, by))
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

function keysOf({ dialect }: Sql): string {
  return `select k.key_id, ${dialect.tenantName('k')} as tenant, k.name, k.hash, k.scopes, k.rate_limit, k.created_at, k.ends_at from {api_keys} k`
}

function toApiKey(row: ApiKeyRow): ApiKey {
  return {
    id: row.key_id, tenant: row.tenant, name: row.name, hash: row.hash, scopes: JSON.parse(row.scopes) as string[],
    rateLimit: row.rate_limit, createdAt: row.created_at, endsAt: row.ends_at,
  }
}
