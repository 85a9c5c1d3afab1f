import type { SyncRef } from '../checkpoint.ts'

/** The wrapped keys that encrypt states and secrets, and the ciphertexts sealed with them. */
export interface DataKeyStore {
  /**
   * The ids of the keys that wrap a data key of any tenant, sorted. Besides `tenants`, the only query across tenants.
   */
  wrappingKeys(): Promise<string[]>
  /**
   * The tenant's data keys, wrapped, oldest first. The newest key encrypts; the others still decrypt what they sealed.
   */
  dataKeys(): Promise<WrappedKey[]>
  /** False if a key with that id exists, or if it is no longer wrapped by the key in `replaces`. Audited. */
  putDataKey(key: WrappedKey, by: { actor: string; at: number; replaces?: string }): Promise<boolean>
  /**
   * Sealed texts that were sealed with a data key other than `except`. The audit log is not included: it is never
   * rewritten.
   */
  sealedTexts(query: { except: string; limit: number }): Promise<SealedText[]>
  /**
   * Compare-and-swap: replaces a sealed text with the same text under the newest key; false if it has changed since it
   * was read.
   */
  reseal(text: SealedText, sealed: string): Promise<boolean>
  /**
   * Audited. False while any text, including the audit log, is sealed with the key, for the newest key, and for an
   * unknown key.
   */
  removeDataKey(id: string, by: { actor: string; at: number }): Promise<boolean>
}

/**
 * A sealed text and its location: a column of a sync, the state of its partition `column`, the secrets of the webhook
 * `sync`, the credentials of the connection `sync`, the secrets of the connect session `sync`,
 * the cursor secret created at `column`, or the column key with the id
 * `column`.
 */
export interface SealedText extends SyncRef {
  readonly table:
    | 'registry'
    | 'partitions'
    | 'webhooks'
    | 'connections'
    | 'connect_sessions'
    | 'cursor_secrets'
    | 'column_keys'
  readonly column: string
  readonly text: string
}

/** A key for a tenant's states, encrypted with a key that is not in the store. */
export interface WrappedKey {
  readonly id: string
  /** The id of the key that wraps it. */
  readonly wrappedBy: string
  readonly wrapped: string
}
