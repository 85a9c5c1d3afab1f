import type { Clock, QuerySyntax, SelectResult, Store } from '../contract/index.ts'
import type { DeclaredSync } from '../runner/declared-sync.ts'

/** The context of the tools: the store of one tenant, and the syncs that the worker declares. */
export interface ToolContext {
  readonly tenant: string
  /** Null if this tenant does not exist: read tools do not create it. */
  openExistingStore(): Promise<Store | null>
  /** Creates the store if it does not exist. */
  openOrCreateStore(): Promise<Store>
  /** Empty without a worker file. */
  readonly syncs: readonly DeclaredSync[]
  /** Runs one statement on a read-only connection. */
  select(sql: string, limit: number): Promise<SelectResult>
  readonly syntax: QuerySyntax
  readonly clock: Clock
  /** The actor that the audit log records for writes. */
  readonly actor: string
}
