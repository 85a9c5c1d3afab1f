import type { StateText, SyncRef } from '../checkpoint.ts'

/** The hash-chained record of checkpoint and admin actions. */
export interface AuditLog {
  /** Newest first. */
  audit(ref: SyncRef, options?: { limit?: number }): Promise<AuditEntry[]>
  /**
   * The complete audit log of the tenant with the hashes that chain it; see registry/verify-audit-chain.ts. Oldest
   * first with `after`, newest first with `before`.
   */
  auditChain(query: AuditChainQuery): Promise<AuditChain>
}

/** An entry of the audit log: an action on a checkpoint or of an administrator. */
export interface AuditEntry {
  readonly version: number
  readonly at: number
  readonly actor: string
  /**
   * complete, set, abandon, replay, drift, conflict, pause, resume; for the tenant: new-key, rewrap-key, erase, and the
   * actions of kit/audit-entries.ts for API keys and webhooks
   */
  readonly action: string
  readonly reason: string
  readonly cycle: number | null
  /** The value that this entry wrote to `committed`; null if it wrote none. */
  readonly state: StateText
}

/** An entry of the hash chain: the hash covers every field. Entries of the tenant as a whole name no sync. */
export interface AuditChainEntry extends AuditEntry {
  readonly id: number
  readonly worker: string | null
  readonly sync: string | null
  /** The epoch of the lease under which it was written; 0 if none is needed. */
  readonly epoch: number
  readonly hash: string
}

/** Selects entries of the audit chain, forward or backward from an entry. */
export type AuditChainQuery =
  | { readonly after: number; readonly limit: number }
  | { readonly before: number; readonly limit: number }

/** Entries of the audit chain, with the stored head to verify them against. */
export interface AuditChain {
  readonly entries: readonly AuditChainEntry[]
  /**
   * The hash of the newest entry, stored separately, so that removing entries from the end is detected. '' before the
   * first.
   */
  readonly head: string
  readonly count: number
}
