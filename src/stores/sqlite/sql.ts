import { upsertOnConflict, StatementCompiler, type Dialect } from '../kit/sql/dialect.ts'
import { makeSql, native, runSteps, type Plan, type Sql, type Step, type Steps } from '../kit/sql/port.ts'
import type { Parameter, Session } from './connection.ts'
import { ensureEntry, welcomeTenant, writeAudit } from './registry.ts'

/** The SQL port on SQLite. One writer at a time: there is nothing to lock, and no other process to notify. */

const DIALECT: Dialect = {
  table: (name) => `tidemark_${name}`,
  words: {
    greatest: 'max', least: 'min', for_update: '', for_share: '', insert_new: 'insert', or_nothing: 'on conflict do nothing', text: 'text', requests_window: 'window',
  },
  parameters: { style: 'numbered', write: (number) => `?${number}` },
  clock: null,
  tenantName: (alias) => `(select name from tidemark_tenants n where n.tenant_id = ${alias}.tenant_id)`,
  upsert: upsertOnConflict,
  deleteUnlocked: (table, where) => `delete from {${table}} where tenant_id = :tenant and ${where}`,
  bind: (value) => (typeof value === 'boolean' ? Number(value) : value),
}

const COMPILER = new StatementCompiler(DIALECT)

function* nothing(): Steps<void> {}

export function sqlOf({ tenant }: Session): Sql {
  return makeSql(tenant, DIALECT, {
    lockTenant: nothing,
    welcomeTenant: () => native((session: Session) => welcomeTenant(session)),
    writeAudit: (entry, audit) => native((session: Session) => writeAudit(session, entry, audit)),
    ensureEntry: (ref) => native((session: Session) => ensureEntry(session, ref)),
    notify: nothing,
    lookBeyond: nothing,
  })
}

export function runPlan<Args extends readonly unknown[], T>(session: Session, plan: Plan<Args, T>, args: Args): T {
  const body = (): T => performSteps(session, plan.steps(sqlOf(session), ...args))
  return plan.access === 'read' ? session.connection.read(body) : session.connection.write(body)
}

/** Inside a transaction. */
export function performSteps<T>(session: Session, steps: Steps<T>): T {
  return runSteps(steps, (step) => performStep(session, step))
}

function performStep(session: Session, step: Step): unknown {
  if (step.kind === 'native') return (step.perform as (session: Session) => unknown)(session)
  const compiled = COMPILER.compile(step.sql)
  const values = COMPILER.bind(compiled, session.tenantId, step.values) as Parameter[]
  // The driver's rows have no prototype, which callers that compare objects notice.
  if (step.kind === 'all') return session.connection.all<object>(compiled.text, ...values).map((row) => ({ ...row }))
  return session.connection.run(compiled.text, ...values).changes
}
