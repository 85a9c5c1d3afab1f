import type { Clock, QuerySyntax, SelectResult, Store } from '../contract/index.ts'
import type { DeclaredSync } from '../runner/declared-sync.ts'

/** What the tools work with: one tenant's store, and what the worker declares. */
export interface ToolContext {
  readonly tenant: string
  /** Null while nothing was ever kept for this tenant: looking makes nothing. */
  openExistingStore(): Promise<Store | null>
  /** Makes the store when there is none. */
  openOrCreateStore(): Promise<Store>
  /** Empty without a worker file. */
  readonly syncs: readonly DeclaredSync[]
  /** One statement on a connection that cannot write. */
  select(sql: string, limit: number): Promise<SelectResult>
  readonly syntax: QuerySyntax
  readonly clock: Clock
  /** Who a write is by, for the audit. */
  readonly actor: string
}
