import type { ApiKey } from '../../contract/index.ts'

/** A row of the table, as both stores read it. */
export interface ApiKeyRow {
  key_id: string
  tenant: string
  name: string
  hash: string
  scopes: string
  rate_limit: number
  created_at: number
  ends_at: number | null
}

export function toApiKey(row: ApiKeyRow): ApiKey {
  return {
    id: row.key_id, tenant: row.tenant, name: row.name, hash: row.hash, scopes: JSON.parse(row.scopes) as string[],
    rateLimit: row.rate_limit, createdAt: row.created_at, endsAt: row.ends_at,
  }
}
