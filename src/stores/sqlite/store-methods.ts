import { isRoleMethod, ROLE_PLANS, type RoleMethods } from '../kit/roles/roles.ts'
import type { TransactionPlan } from '../kit/sql/port.ts'
import { commit } from './commit.ts'
import type { TenantSession } from './connection.ts'
import * as served from './feed.ts'
import { packRows } from './packed-rows.ts'
import * as reading from './queries.ts'
import * as search from './row-search.ts'
import * as columns from './schema-change.ts'
import { runPlan } from './sql.ts'
import { listSyncStatus } from './sync-status.ts'
import { eraseTenant } from './erase-tenant.ts'

/** The store's methods, synchronous: SQLite answers in the calling thread. */
const KERNEL_METHODS = {
  commit,
  eraseTenant,
  compact: served.compact,
  cursorSecrets: served.cursorSecrets,
  listSyncStatus: inReadTransaction(listSyncStatus),
  changes: inReadTransaction(reading.changes),
  rows: inReadTransaction(reading.rows),
  /** Unpacked by `bindStore`. */
  rowValues: inReadTransaction(packRows),
  row: inReadTransaction(reading.row),
  history: inReadTransaction(reading.history),
  databases: inReadTransaction(reading.databases),
  feed: inReadTransaction(served.feed),
  searchRows: inReadTransaction(search.searchRows),
  columnStatistics: inReadTransaction(search.columnStatistics),
  schemaDrift: inReadTransaction(columns.schemaDrift),
  schema: inReadTransaction(columns.schema),
  beginSchemaChange: columns.beginSchemaChange,
  advanceSchemaChange: columns.advanceSchemaChange,
}

type KernelMethods = typeof KERNEL_METHODS

/** Every method of the store by name, as its callers see it. */
export type StoreMethods = RoleMethods & {
  readonly [M in keyof KernelMethods]: KernelMethods[M] extends (session: TenantSession, ...args: infer Args) => infer T
    ? (...args: Args) => Promise<T>
    : never
}

export type StoreMethod = keyof StoreMethods

export const STORE_METHODS = [...Object.keys(KERNEL_METHODS), ...Object.keys(ROLE_PLANS)] as StoreMethod[]

export function callStoreMethod(session: TenantSession, method: StoreMethod, args: readonly unknown[]): unknown {
  if (isRoleMethod(method))
    return runPlan(session, ROLE_PLANS[method] as TransactionPlan<readonly unknown[], unknown>, args)
  return (KERNEL_METHODS[method] as (session: TenantSession, ...args: readonly unknown[]) => unknown)(session, ...args)
}

function inReadTransaction<Args extends readonly unknown[], T>(
  body: (session: TenantSession, ...args: Args) => T,
): (session: TenantSession, ...args: Args) => T {
  return (session, ...args) => session.connection.read(() => body(session, ...args))
}
