import type { ApiKey } from '../feed.ts'

/** The keys of API consumers. */
export interface ApiKeyStore {
  /** By its id alone, of whichever tenant: a caller says who it is before anybody knows whose data it may see. */
  apiKey(id: string): Promise<ApiKey | null>
  /** This tenant's, oldest first. */
  apiKeys(): Promise<ApiKey[]>
  /** Belongs to this tenant, whatever it says. Audited; `by` defaults to `program`. */
  addApiKey(key: Omit<ApiKey, 'tenant'>, by?: string): Promise<void>
  /** Audited. False when this tenant has no such key, or it ends earlier. */
  revokeApiKey(id: string, endsAt: number, by: { actor: string; at: number; reason?: string }): Promise<boolean>
}
