import { upsertOnConflict, StatementCompiler, type Dialect } from '../kit/sql/dialect.ts'
import { makeSql, native, runStepsAsync, type Plan, type Sql, type Step, type Steps } from '../kit/sql/port.ts'
import type { Parameter, Session, Transaction } from './connection.ts'
import { tell } from './listen.ts'
import { NOW_MS } from './now.ts'
import { ensureEntry, lockTenant, welcomeTenant, writeAudit } from './registry.ts'

/** The SQL port on PostgreSQL. */

const DIALECT: Dialect = {
  table: (name) => `tidemark.${name}`,
  words: {
    greatest: 'greatest', least: 'least', for_update: 'for update', for_share: 'for share', insert_new: 'insert', or_nothing: 'on conflict do nothing', text: 'text',
    requests_window: 'time_window',
  },
  parameters: { style: 'numbered', write: (number) => `$${number}` },
  clock: NOW_MS,
  tenantName: (alias) => `${alias}.tenant_id`,
  upsert: upsertOnConflict,
  // Waiting for rows that another transaction has locked, in an order that it does not keep, could end in a deadlock.
  deleteUnlocked: (table, where) => `delete from {${table}} where ctid = any(array(select ctid from {${table}} where tenant_id = :tenant and ${where} for update skip locked))`,
  bind: (value) => value,
}

const COMPILER = new StatementCompiler(DIALECT)

export function sqlOf(tenant: string): Sql {
  return makeSql(tenant, DIALECT, {
    lockTenant: () => native(async (transaction: Transaction) => void (await lockTenant(transaction))),
    welcomeTenant: () => native((transaction: Transaction) => welcomeTenant(transaction)),
    writeAudit: (entry, audit) => native((transaction: Transaction) => writeAudit(transaction, entry, audit)),
    ensureEntry: (ref) => native((transaction: Transaction) => ensureEntry(transaction, ref)),
    notify: () => native(tell),
    lookBeyond: (scope) => native(async (transaction: Transaction) => {
      const [setting, value] = 'apiKey' in scope ? ['tidemark.api_key', scope.apiKey] : ['tidemark.lists_tenants', 'yes']
      transaction.send('select set_config($1, $2, true)', setting, value)
    }),
  })
}

export function runPlan<Args extends readonly unknown[], T>({ connection, tenant }: Session, plan: Plan<Args, T>, args: Args): Promise<T> {
  const body = (transaction: Transaction): Promise<T> => performSteps(transaction, plan.steps(sqlOf(tenant), ...args))
  return plan.access === 'read' ? connection.read(tenant, body) : connection.write(tenant, body)
}

export function performSteps<T>(transaction: Transaction, steps: Steps<T>): Promise<T> {
  return runStepsAsync(steps, (step) => performStep(transaction, step))
}

function performStep(transaction: Transaction, step: Step): unknown {
  if (step.kind === 'native') return (step.perform as (transaction: Transaction) => unknown)(transaction)
  const compiled = COMPILER.compile(step.sql)
  const values = COMPILER.bind(compiled, transaction.tenant, step.values) as Parameter[]
  return transaction[step.kind](compiled.text, ...values)
}
