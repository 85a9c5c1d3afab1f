import { isRoleMethod, ROLES, type RoleMethods } from '../kit/roles/roles.ts'
import type { Plan } from '../kit/sql/port.ts'
import { commit } from './commit.ts'
import type { Session } from './connection.ts'
import * as served from './feed.ts'
import * as reading from './reading.ts'
import * as columns from './schema-change.ts'
import { runPlan } from './sql.ts'
import { standings } from './standings.ts'
import { erase } from './tenants.ts'

/** The store's methods, at once instead of promised: SQLite answers in the thread that asks. */
const KERNEL = {
  commit,
  erase,
  compact: served.compact,
  cursorSecrets: served.cursorSecrets,
  standings: inRead(standings),
  changes: inRead(reading.changes),
  rows: inRead(reading.rows),
  row: inRead(reading.row),
  history: inRead(reading.history),
  databases: inRead(reading.databases),
  feed: inRead(served.feed),
  schemaDrift: inRead(columns.schemaDrift),
  schema: inRead(columns.schema),
  beginSchemaChange: columns.beginSchemaChange,
  advanceSchemaChange: columns.advanceSchemaChange,
}

type KernelMethods = typeof KERNEL

/** Every method of the store by name, as a caller sees it. */
export type LedgerMethods = RoleMethods & {
  readonly [M in keyof KernelMethods]: KernelMethods[M] extends (session: Session, ...args: infer Args) => infer T ? (...args: Args) => Promise<T> : never
}

export type LedgerMethod = keyof LedgerMethods

export const LEDGER_METHODS = [...Object.keys(KERNEL), ...Object.keys(ROLES)] as LedgerMethod[]

export function callMethod(session: Session, method: LedgerMethod, args: readonly unknown[]): unknown {
  if (isRoleMethod(method)) return runPlan(session, ROLES[method] as Plan<readonly unknown[], unknown>, args)
  return (KERNEL[method] as (session: Session, ...args: readonly unknown[]) => unknown)(session, ...args)
}

function inRead<Args extends readonly unknown[], T>(body: (session: Session, ...args: Args) => T): (session: Session, ...args: Args) => T {
  return (session, ...args) => session.connection.read(() => body(session, ...args))
}
