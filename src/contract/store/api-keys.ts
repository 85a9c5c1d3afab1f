import type { ApiKey } from '../feed.ts'

/** The keys of API consumers. */
export interface ApiKeyStore {
  /** Looks up a key by id, of any tenant: authentication happens before the tenant of the caller is known. */
  apiKey(id: string): Promise<ApiKey | null>
  /** The keys of this tenant, oldest first. */
  apiKeys(): Promise<ApiKey[]>
  /** Adds a key to this tenant. Audited; `by` defaults to `program`. */
  addApiKey(key: Omit<ApiKey, 'tenant'>, by?: string): Promise<void>
  /** Audited. False if this tenant has no such key, or if the key ends earlier. */
  revokeApiKey(id: string, endsAt: number, by: { actor: string; at: number; reason?: string }): Promise<boolean>
}
