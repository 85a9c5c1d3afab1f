import type { Column } from '../../contract/index.ts'
import { upsertOnConflict, StatementCompiler, type Dialect } from '../kit/sql/dialect.ts'
import { appendAuditEntry } from '../kit/registry.ts'
import {
  createSql,
  runNative,
  noSteps,
  runSteps,
  type TransactionPlan,
  type Sql,
  type Step,
  type Steps,
} from '../kit/sql/port.ts'
import type { Parameter, TenantSession } from './connection.ts'
import { purgeTables } from './delete-mode.ts'
import { eraseRows } from './erase-rows.ts'
import { pruneVersions } from './history-retention.ts'
import { ensureTable } from './table.ts'

/**
 * The SQL port on SQLite. It has one writer at a time, so no locks are needed, and no notification of other processes.
 */

const DIALECT: Dialect = {
  table: (name) => `tidemark_${name}`,
  tokens: {
    greatest: 'max',
    least: 'min',
    for_update: '',
    for_share: '',
    insert_new: 'insert',
    or_nothing: 'on conflict do nothing',
    text: 'text',
    requests_window: 'window',
    cycles_by_id: 'tidemark_cycles not indexed',
    open_cycles: 'tidemark_cycles indexed by tidemark_cycles_open',
  },
  parameters: { style: 'numbered', write: (number) => `?${number}` },
  clock: null,
  tenantName: (alias) => `(select name from tidemark_tenants n where n.tenant_id = ${alias}.tenant_id)`,
  upsert: upsertOnConflict,
  deleteSkipLocked: (table, where) => `delete from {${table}} where tenant_id = :tenant and ${where}`,
  bind: (value) => (typeof value === 'boolean' ? Number(value) : value),
}

const COMPILER = new StatementCompiler(DIALECT)

export function sqlOf({ tenant }: TenantSession): Sql {
  return createSql(tenant, DIALECT, (sql) => ({
    ensureTables: (databases) =>
      runNative((session: TenantSession) =>
        Object.fromEntries(databases.map((name) => [name, ensureMemberKinds(session, name)])),
      ),
    pruneVersions: (id, _floor, next) => runNative((session: TenantSession) => pruneVersions(session, id, next)),
    purgeTables: (scanMax) => runNative((session: TenantSession) => purgeTables(session, scanMax)),
    eraseRows: () => runNative(eraseRows),
    writeAudit: (entry, audit) => appendAuditEntry(sql, entry, audit),
    notify: noSteps,
    lockConnectionChanges: noSteps,
    widenRowSecurity: noSteps,
  }))
}

/** Creates the table if it is missing, and returns the fields of the database's records. */
function ensureMemberKinds(session: TenantSession, database: string): Column[] {
  ensureTable(session, database, [])
  const { connection, tenantId } = session
  return JSON.parse(
    connection.one<{ columns: string }>(
      'select columns from tidemark_databases where tenant_id = ? and name = ?',
      tenantId,
      database,
    ).columns,
  ) as Column[]
}

export function runPlan<Args extends readonly unknown[], T>(
  session: TenantSession,
  plan: TransactionPlan<Args, T>,
  args: Args,
): T {
  const body = (): T => performSteps(session, plan.steps(sqlOf(session), ...args))
  return plan.access === 'read' ? session.connection.read(body) : session.connection.write(body)
}

/** Legal inside a transaction. */
export function performSteps<T>(session: TenantSession, steps: Steps<T>): T {
  return runSteps(steps, (step) => performStep(session, step))
}

/** Turns steps into a function that performs them, inside a transaction. */
export function bindSteps<Args extends readonly unknown[], T>(
  steps: (sql: Sql, ...args: Args) => Steps<T>,
): (session: TenantSession, ...args: Args) => T {
  return (session, ...args) => performSteps(session, steps(sqlOf(session), ...args))
}

function performStep(session: TenantSession, step: Step): unknown {
  if (step.kind === 'native') return (step.perform as (session: TenantSession) => unknown)(session)
  const compiled = COMPILER.compile(step.sql)
  const values = COMPILER.bind(compiled, session.tenantId, step.values) as Parameter[]
  // The driver's rows have no prototype, which breaks callers that compare objects.
  if (step.kind === 'all') return session.connection.all<object>(compiled.text, ...values).map((row) => ({ ...row }))
  return session.connection.run(compiled.text, ...values).changes
}
