import {
  appendAuditEntry,
  createSql,
  runNative,
  noSteps,
  quoteIdentifier,
  runStepsAsync,
  StatementCompiler,
  type Dialect,
  type TransactionPlan,
  type Sql,
  type Steps,
} from 'tidemark/store'
import type { Connection, Transaction } from './connection.ts'
import { eraseRows, pruneVersions } from './retention.ts'
import { ensureTables, tableOf } from './table.ts'

/** A tenant of the database. */
export interface TenantSession {
  readonly connection: Connection
  readonly tenant: string
}

/** The SQL port on MariaDB. */
const DIALECT: Dialect = {
  table: (name) => `tidemark_${name}`,
  tokens: {
    greatest: 'greatest',
    least: 'least',
    for_update: 'for update',
    for_share: 'lock in share mode',
    insert_new: 'insert ignore',
    or_nothing: '',
    text: 'char',
    requests_window: '"window"',
    open_cycles: 'tidemark_cycles',
    cycles_by_id: 'tidemark_cycles',
  },
  parameters: { style: 'positional' },
  clock: 'cast(floor(unix_timestamp(sysdate(3)) * 1000) as signed)',
  tenantName: (alias) => `${alias}.tenant_id`,
  upsert({ table, key, insert, update = [], add = [] }) {
    const columns = [...key, ...insert]
    const named = (column: string): string => (column.startsWith('{') ? column : quoteIdentifier(column))
    const parameters = columns.map((column) => (column === 'tenant_id' ? ':tenant' : `:${column.replace(/[{}]/g, '')}`))
    const sets = [
      ...update.map((column) => `${named(column)} = values(${named(column)})`),
      ...add.map((column) => `${named(column)} = ${named(column)} + values(${named(column)})`),
    ]
    return `insert into {${table}} (${columns.map(named).join(', ')}) values (${parameters.join(', ')}) on duplicate key update ${sets.join(', ')}`
  },
  // Two deletes that wait for each other deadlock, and the transaction is then retried.
  deleteSkipLocked: (table, where) => `delete from {${table}} where tenant_id = :tenant and ${where}`,
  bind: (value) => value,
}

const COMPILER = new StatementCompiler(DIALECT)

function sqlOf(session: TenantSession): Sql {
  return createSql(session.tenant, DIALECT, (sql) => ({
    ensureTables: (databases) =>
      runNative(async (transaction: Transaction) => {
        const tables = await ensureTables(session, transaction, databases)
        return Object.fromEntries(databases.map((name) => [name, tableOf(tables, name).memberKinds]))
      }),
    pruneVersions: (id, floor, next) =>
      runNative((transaction: Transaction) => pruneVersions(session, transaction, id, { floor, next })),
    eraseRows: () => runNative((transaction: Transaction) => eraseRows(session, transaction)),
    writeAudit: (entry, audit) => appendAuditEntry(sql, entry, audit),
    notify: noSteps,
    lockConnectionChanges: () =>
      runNative(async (transaction: Transaction) => {
        await transaction.one('select version from tidemark_schema for update')
      }),
    widenRowSecurity: noSteps,
  }))
}

export function runPlan<Args extends readonly unknown[], T>(
  session: TenantSession,
  plan: TransactionPlan<Args, T>,
  args: Args,
): Promise<T> {
  const body = (transaction: Transaction): Promise<T> =>
    performSteps(session, transaction, (sql) => plan.steps(sql, ...args))
  return plan.access === 'read' ? session.connection.read(body) : session.connection.write(body)
}

/** Performs steps of the kit inside a transaction of this store. */
export function performSteps<T>(
  session: TenantSession,
  transaction: Transaction,
  steps: (sql: Sql) => Steps<T>,
): Promise<T> {
  return runStepsAsync(steps(sqlOf(session)), (step) => {
    if (step.kind === 'native') return (step.perform as (transaction: Transaction) => unknown)(transaction)
    const compiled = COMPILER.compile(step.sql)
    const values = COMPILER.bind(compiled, session.tenant, step.values)
    return step.kind === 'all' ? transaction.all(compiled.text, ...values) : transaction.run(compiled.text, ...values)
  })
}
