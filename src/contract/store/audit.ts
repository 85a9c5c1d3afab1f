import type { StateText, SyncRef } from '../checkpoint.ts'

/** The hash-chained record of checkpoint and admin actions. */
export interface AuditLog {
  /** Newest first. */
  audit(ref: SyncRef, options?: { limit?: number }): Promise<AuditEntry[]>
  /** The whole trail of the tenant, with the hashes that chain it; see registry/verify-audit-chain.ts. Oldest first, and newest first below `before`. */
  auditChain(query: AuditChainQuery): Promise<AuditChain>
}

export interface AuditEntry {
  readonly version: number
  readonly at: number
  readonly actor: string
  /** complete, set, abandon, replay, drift, conflict, pause, resume; of the tenant: new-key, rewrap-key, erase, and those of kit/audit-entries.ts for API keys and webhooks */
  readonly action: string
  readonly reason: string
  readonly cycle: number | null
  /** The state this entry left in `committed`; null when it did not move it to a value. */
  readonly state: StateText
}

/** An entry as it was chained: every field is in the hash. Those of the tenant as a whole name no sync. */
export interface AuditChainEntry extends AuditEntry {
  readonly id: number
  readonly worker: string | null
  readonly sync: string | null
  /** The lease under which it was written; 0 where none is needed. */
  readonly epoch: number
  readonly hash: string
}

export type AuditChainQuery = { readonly after: number; readonly limit: number } | { readonly before: number; readonly limit: number }

export interface AuditChain {
  readonly entries: readonly AuditChainEntry[]
  /** The hash of the newest entry, kept apart from it: an entry taken from the end is missed. '' before the first. */
  readonly head: string
  readonly count: number
}
