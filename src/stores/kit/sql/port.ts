import type { AuditEntry, Column } from '../../../contract/index.ts'
import type { RegistryEntry } from '../registry-rows.ts'
import type { Dialect } from './dialect.ts'
import { required } from '../../../values/required.ts'

/**
 * The port that store roles are written on. A role is a generator: it yields statements, and the store's driver
 * performs them, synchronously (SQLite) or with promises (PostgreSQL). One implementation serves both, and no statement
 * of another call runs between those of a transaction.
 *
 * In a statement `{webhooks}` is a table or a dialect token, and `:id` a parameter. `:tenant` is always bound. `:now`
 * is the database's clock, or the parameter `at` where the database has none of its own.
 */
export interface Sql {
  readonly tenant: string
  readonly dialect: Dialect
  all<Row extends object>(sql: string, values?: SqlValues): Steps<Row[]>
  get<Row extends object>(sql: string, values?: SqlValues): Steps<Row | undefined>
  /** Like `get`, for a statement that always returns a row. */
  one<Row extends object>(sql: string, values?: SqlValues): Steps<Row>
  /** Returns the number of changed rows. */
  run(sql: string, values?: SqlValues): Steps<number>
  /** Sends a statement whose result is not needed; the end of the transaction waits for it and fails with it. */
  send(sql: string, values?: SqlValues): Steps<void>
  readonly kernel: KernelSteps
}

/** The store operations that roles need. Each is a step of the role's own transaction. */
export interface KernelSteps {
  /**
   * Creates a table for each of these databases that has none, and returns the fields of their records. The tenant is
   * locked.
   */
  ensureTables(databases: readonly string[]): Steps<Record<string, readonly Column[]>>
  /** Deletes replaced versions and deletions of a database above one floor and up to the next; returns their number. */
  pruneVersions(databaseId: number, floor: number, next: number): Steps<number>
  /** For a store that keeps deleted rows: performs one step in each table whose deleted rows are no longer kept. */
  purgeTables?(scanMax: number): Steps<{ removed: number; more: boolean }>
  /**
   * Erases the tenant's tables and its rows in all others except tenants and the audit log; returns the number of rows.
   */
  eraseRows(): Steps<number>
  /**
   * `appendAuditEntry`, or the same in fewer round trips. Legal once the tenant is locked. `entry` is null for the
   * tenant as a whole.
   */
  writeAudit(entry: RegistryEntry | null, audit: AuditEntry): Steps<void>
  /** Notifies listeners of other processes when the transaction commits: of this tenant, or of all connections. */
  notify(topic?: 'tenant' | 'connections'): Steps<void>
  /** Locks the numbers of connection changes, of all tenants, until the transaction ends. */
  lockConnectionChanges(): Steps<void>
  /** Widens row-level security for this transaction. */
  widenRowSecurity(scope: RowSecurityScope): Steps<void>
}

/** The names of all tenants; or one API key, or one session of the connect flow, of any tenant. */
export type RowSecurityScope =
  | { readonly tenants: true }
  | { readonly apiKey: string }
  | { readonly connectSession: string }

/** A value of a SQL parameter or column. */
export type SqlValue = string | number | boolean | null
/** SQL values by parameter name. */
export type SqlValues = Readonly<Record<string, SqlValue>>

/** A statement for the driver. `all` returns rows, `run` the number of rows, `send` nothing. */
export interface Statement {
  readonly kind: 'all' | 'run' | 'send'
  readonly sql: string
  readonly values: SqlValues
}

/** Work that the driver performs with its own transaction. */
export interface NativeStep<Transaction> {
  readonly kind: 'native'
  perform(transaction: Transaction): unknown
}

/** An operation that a plan yields and the driver performs. */
export type Step = Statement | NativeStep<never>

/** A part of a transaction: `const row = yield* sql.get(…)`. */
export type Steps<T> = Generator<Step, T, unknown>

/** A method of a role: its steps, and whether they only read. */
export interface TransactionPlan<Args extends readonly unknown[], T> {
  readonly access: 'read' | 'write'
  steps(sql: Sql, ...args: Args): Steps<T>
}

export function defineRead<Args extends readonly unknown[], T>(
  steps: (sql: Sql, ...args: Args) => Steps<T>,
): TransactionPlan<Args, T> {
  return { access: 'read', steps }
}

export function defineWrite<Args extends readonly unknown[], T>(
  steps: (sql: Sql, ...args: Args) => Steps<T>,
): TransactionPlan<Args, T> {
  return { access: 'write', steps }
}

/** One plan for every method of a role of the contract. */
export type PlansOf<Role> = {
  readonly [M in keyof Role]: Role[M] extends (...args: infer Args) => Promise<infer T>
    ? TransactionPlan<Args, T>
    : never
}

/** The role that a set of plans implements once they are bound to a driver. */
export type RoleOf<Plans> = {
  readonly [M in keyof Plans]: Plans[M] extends TransactionPlan<infer Args, infer T>
    ? (...args: Args) => Promise<T>
    : never
}

/** `kernel` receives the port that it becomes a part of. */
export function createSql(tenant: string, dialect: Dialect, kernel: (sql: Sql) => KernelSteps): Sql {
  function* all<Row extends object>(sql: string, values: SqlValues = {}): Steps<Row[]> {
    return (yield { kind: 'all', sql, values }) as Row[]
  }
  const sql: Omit<Sql, 'kernel'> = {
    tenant,
    dialect,
    all,
    *get<Row extends object>(sql: string, values?: SqlValues) {
      return (yield* all<Row>(sql, values))[0]
    },
    *one<Row extends object>(sql: string, values?: SqlValues) {
      return required((yield* all<Row>(sql, values))[0], 'The row of a statement that always returns one')
    },
    *run(sql, values = {}) {
      return (yield { kind: 'run', sql, values }) as number
    },
    *send(sql, values = {}) {
      yield { kind: 'send', sql, values }
    },
  }
  return Object.assign(sql, { kernel: kernel(sql as Sql) })
}

/** For a store that has nothing to do in a step. */
export function* noSteps(): Steps<void> {}

/** Yields a step that uses the transaction of the database driver directly. */
export function* runNative<Transaction, T>(perform: (transaction: Transaction) => T | Promise<T>): Steps<T> {
  return (yield { kind: 'native', perform }) as T
}

/** Performs the steps synchronously, one after the other. */
export function runSteps<T>(steps: Steps<T>, perform: (step: Step) => unknown): T {
  let next = steps.next()
  while (!next.done) {
    let answer: unknown
    try {
      answer = perform(next.value)
    } catch (error) {
      next = steps.throw(error)
      continue
    }
    next = steps.next(answer)
  }
  return next.value
}

/** Like `runSteps`, for a database that answers asynchronously. */
export async function runStepsAsync<T>(steps: Steps<T>, perform: (step: Step) => unknown): Promise<T> {
  let next = steps.next()
  while (!next.done) {
    let answer: unknown
    try {
      answer = await perform(next.value)
    } catch (error) {
      next = steps.throw(error)
      continue
    }
    next = steps.next(answer)
  }
  return next.value
}
