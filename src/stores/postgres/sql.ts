import type { Column } from '../../contract/index.ts'
import { upsertOnConflict, StatementCompiler, type Dialect } from '../kit/sql/dialect.ts'
import {
  createSql,
  runNative,
  runSteps,
  runStepsAsync,
  type TransactionPlan,
  type Sql,
  type Step,
  type Steps,
} from '../kit/sql/port.ts'
import { writeAudit } from './audit.ts'
import type { Parameter, TenantSession, Transaction } from './connection.ts'
import { purgeTables } from './delete-mode.ts'
import { eraseRows } from './erase-rows.ts'
import { pruneVersions } from './history-retention.ts'
import { notify } from './subscribe.ts'
import { NOW_MS_SQL } from './server-clock.ts'
import { ensureTables, readTables } from './table.ts'

/** The SQL port on PostgreSQL. */

const DIALECT: Dialect = {
  table: (name) => `tidemark.${name}`,
  tokens: {
    greatest: 'greatest',
    least: 'least',
    for_update: 'for update',
    for_share: 'for share',
    insert_new: 'insert',
    or_nothing: 'on conflict do nothing',
    text: 'text',
    requests_window: 'time_window',
    cycles_by_id: 'tidemark.cycles',
    open_cycles: 'tidemark.cycles',
  },
  parameters: { style: 'numbered', write: (number) => `$${number}` },
  clock: NOW_MS_SQL,
  tenantName: (alias) => `${alias}.tenant_id`,
  upsert: upsertOnConflict,
  // Waiting for locked rows in another order than their holder's could deadlock.
  deleteSkipLocked: (table, where) =>
    `delete from {${table}} where ctid = any(array(select ctid from {${table}} where tenant_id = :tenant and ${where} for update skip locked))`,
  bind: (value) => value,
}

const COMPILER = new StatementCompiler(DIALECT)

export function sqlOf(tenant: string): Sql {
  return createSql(tenant, DIALECT, () => ({
    ensureTables: (databases) => runNative((transaction: Transaction) => ensureMemberKinds(transaction, databases)),
    pruneVersions: (id, floor, next) =>
      runNative((transaction: Transaction) => pruneVersions(transaction, id, floor, next)),
    purgeTables: (scanMax) => runNative((transaction: Transaction) => purgeTables(transaction, scanMax)),
    eraseRows: () => runNative(eraseRows),
    writeAudit: (entry, audit) => runNative((transaction: Transaction) => writeAudit(transaction, entry, audit)),
    notify: (topic) => runNative((transaction: Transaction) => notify(transaction, topic)),
    lockConnectionChanges: () =>
      runNative((transaction: Transaction) =>
        transaction.send("select pg_advisory_xact_lock(hashtext('tidemark.connections'))"),
      ),
    widenRowSecurity: (scope) =>
      runNative((transaction: Transaction) => {
        const [setting, value] =
          'apiKey' in scope
            ? ['tidemark.api_key', scope.apiKey]
            : 'connectSession' in scope
              ? ['tidemark.connect_session', scope.connectSession]
              : ['tidemark.lists_tenants', 'yes']
        transaction.send('select set_config($1, $2, true)', setting, value)
      }),
  }))
}

/** Creates missing tables, and returns the fields of the records by database. */
async function ensureMemberKinds(
  transaction: Transaction,
  databases: readonly string[],
): Promise<Record<string, readonly Column[]>> {
  const known = await readTables(transaction, databases)
  await ensureTables(transaction, known, Object.fromEntries(databases.map((name) => [name, []])))
  return Object.fromEntries(databases.map((name) => [name, known.get(name)?.memberKinds ?? []]))
}

export function runPlan<Args extends readonly unknown[], T>(
  { connection, tenant }: TenantSession,
  plan: TransactionPlan<Args, T>,
  args: Args,
): Promise<T> {
  const body = (transaction: Transaction): Promise<T> => performSteps(transaction, plan.steps(sqlOf(tenant), ...args))
  return plan.access === 'read' ? connection.read(tenant, body) : connection.write(tenant, body)
}

export function performSteps<T>(transaction: Transaction, steps: Steps<T>): Promise<T> {
  return runStepsAsync(steps, (step) => performStep(transaction, step))
}

/** Turns steps into a function that performs them. */
export function bindSteps<Args extends readonly unknown[], T>(
  steps: (sql: Sql, ...args: Args) => Steps<T>,
): (transaction: Transaction, ...args: Args) => Promise<T> {
  return (transaction, ...args) => performSteps(transaction, steps(sqlOf(transaction.tenant), ...args))
}

/** Like `bindSteps`, for steps that are only sent: they are in flight when the function returns. */
export function bindPipelinedSteps<Args extends readonly unknown[], T>(
  steps: (sql: Sql, ...args: Args) => Steps<T>,
): (transaction: Transaction, ...args: Args) => T {
  return (transaction, ...args) =>
    runSteps(steps(sqlOf(transaction.tenant), ...args), (step) => performStep(transaction, step))
}

function performStep(transaction: Transaction, step: Step): unknown {
  if (step.kind === 'native') return (step.perform as (transaction: Transaction) => unknown)(transaction)
  const compiled = COMPILER.compile(step.sql)
  const values = COMPILER.bind(compiled, transaction.tenant, step.values) as Parameter[]
  return transaction[step.kind](compiled.text, ...values)
}
