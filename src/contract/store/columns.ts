import type { SyncRef } from '../checkpoint.ts'

/** The keys behind hashed and encrypted columns, and the column rules that the stored rows follow. */
export interface ColumnStore {
  /** The tenant's column keys, oldest first; empty before the first rule that needs one. */
  columnKeys(): Promise<ColumnKey[]>
  /**
   * Stores the key if the tenant has none, and returns all of them. Audited. Null for a new key, which only a store that
   * seals its secrets can make.
   */
  offerColumnKey(key: ColumnKey | null, by: { actor: string; at: number }): Promise<ColumnKey[]>
  /** The column rules of the rows that the syncs of a worker wrote. A sync that never had rules is absent. */
  columnRules(worker: string): Promise<StoredColumnRules[]>
  /**
   * Notes that rows of the sync follow these rules from now on. With `isApplied` all of them do, unless a cycle has begun
   * with other rules since: then null, and nothing is written. Audited if it is applied.
   */
  changeColumnRules(
    change: SyncRef & { readonly database: string; readonly rules: string; readonly isApplied: boolean },
    by: { actor: string; reason: string; at: number },
  ): Promise<StoredColumnRules | null>
  /** Records in the audit log that encrypted values were shown. */
  recordReveal(by: { actor: string; reason: string; at: number }): Promise<void>
}

/** A secret from which hashes and ciphertexts of columns are computed. It is sealed like a state. */
export interface ColumnKey {
  readonly id: string
  readonly secret: string
}

/** The rules that the rows of a sync in a database follow. */
export interface StoredColumnRules extends SyncRef {
  readonly database: string
  /** '' for rows without rules. */
  readonly fingerprint: string
  /**
   * The sequence at which the listing began that applied them. A row that is older and whose record is quarantined does
   * not follow them.
   */
  readonly since: number
  /** The rules by which rows were written, oldest first. Empty if that was not recorded. */
  readonly used: readonly UsedColumnRules[]
}

/** Later rows of a sync were written by these rules, up to the next ones of the sync. */
export interface UsedColumnRules {
  /** The sync that wrote the rows: this one, or its delta. '' for both. */
  readonly sync: string
  readonly since: number
  /** '' for none. */
  readonly rules: string
}
