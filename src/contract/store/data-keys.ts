import type { SyncRef } from '../checkpoint.ts'

/** The wrapped keys that seal states and secrets, and the texts they sealed. */
export interface DataKeyStore {
  /** The ids of the keys that wrap a data key of any tenant, sorted: beside `tenants`, the only look beyond its own. */
  wrappingKeys(): Promise<string[]>
  /** The tenant's data keys, wrapped, oldest first. The newest seals; the others still open what they sealed. */
  dataKeys(): Promise<WrappedKey[]>
  /** False when a key of that id is there already, or is no longer wrapped by the one named in `replaces`. Audited. */
  putDataKey(key: WrappedKey, by: { actor: string; at: number; replaces?: string }): Promise<boolean>
  /** Sealed texts at rest that another data key than `except` sealed. Those of the audit log are not among them: it is never rewritten. */
  sealedTexts(query: { except: string; limit: number }): Promise<SealedText[]>
  /** Replaces one with the same text under the newest key; false when it is no longer what was read. */
  reseal(text: SealedText, sealed: string): Promise<boolean>
  /** Audited. False while anything, the audit log included, is sealed with it, for the newest, and for one that is not there. */
  removeDataKey(id: string, by: { actor: string; at: number }): Promise<boolean>
}

/** A sealed text and where it is: a column of a sync, the secrets of the webhook `sync`, or the cursor secret of the time `column`. */
export interface SealedText extends SyncRef {
  readonly table: 'registry' | 'webhooks' | 'cursor_secrets'
  readonly column: string
  readonly text: string
}

/** A key for a tenant's states, itself encrypted with a key that is not in the store. */
export interface WrappedKey {
  readonly id: string
  /** The id of the key that wraps it. */
  readonly wrappedBy: string
  readonly wrapped: string
}
