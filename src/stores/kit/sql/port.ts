import type { AuditEntry, SyncRef } from '../../../contract/index.ts'
import type { RegistryEntry } from '../registry-rows.ts'
import type { Dialect } from './dialect.ts'

/**
 * What the roles of a store are written on. A role is a generator: it yields statements, and the store's driver performs
 * them, at once (SQLite) or with promises (PostgreSQL). So one text serves a database that answers in its own thread and
 * one that answers over a network, and no statement of another call comes between those of a transaction.
 *
 * In a statement `{webhooks}` is a table or a word of the dialect, and `:id` a parameter. `:tenant` is always bound. `:now`
 * is the database's clock, or the parameter `at` where the database has none of its own.
 */
export interface Sql {
  /** The tenant's name. */
  readonly tenant: string
  readonly dialect: Dialect
  all<Row extends object>(sql: string, values?: SqlValues): Steps<Row[]>
  get<Row extends object>(sql: string, values?: SqlValues): Steps<Row | undefined>
  /** The number of rows it changed. */
  run(sql: string, values?: SqlValues): Steps<number>
  /** A statement whose answer is not needed; the end of the transaction waits for it and fails with it. */
  send(sql: string, values?: SqlValues): Steps<void>
  readonly kernel: KernelSteps
}

/** What a role needs of the kernel. Each is a step of the transaction that the role runs in. */
export interface KernelSteps {
  /** Makes the tenant's row if there is none, and locks it. The first lock of every transaction that takes it. */
  lockTenant(): Steps<void>
  /** For the first of its name, which begins with this epoch. Locks the tenant; brings an erased one back. */
  welcomeTenant(): Steps<number>
  /** Chained to the entry before it. Legal once the tenant is locked. Null for the tenant as a whole. */
  writeAudit(entry: RegistryEntry | null, audit: AuditEntry): Steps<void>
  /** The sync's row of the registry, made if there is none, and locked. */
  ensureEntry(ref: SyncRef): Steps<RegistryEntry>
  /** Notifies listeners of other processes when the transaction commits. */
  notify(): Steps<void>
  /** Opens row-level security for this transaction: to the names of all tenants, or to one API key of any tenant. */
  lookBeyond(scope: { readonly tenants: true } | { readonly apiKey: string }): Steps<void>
}

export type SqlValue = string | number | boolean | null
export type SqlValues = Readonly<Record<string, SqlValue>>

export interface Statement {
  readonly kind: 'all' | 'run' | 'send'
  readonly sql: string
  readonly values: SqlValues
}

/** Work that the driver does with its own transaction. */
export interface NativeStep<Transaction> {
  readonly kind: 'native'
  perform(transaction: Transaction): unknown
}

export type Step = Statement | NativeStep<never>

/** A part of a transaction: `const row = yield* sql.get(…)`. */
export type Steps<T> = Generator<Step, T, unknown>

/** A method of a role: its steps, and whether they only read. */
export interface Plan<Args extends readonly unknown[], T> {
  readonly access: 'read' | 'write'
  steps(sql: Sql, ...args: Args): Steps<T>
}

export function read<Args extends readonly unknown[], T>(steps: (sql: Sql, ...args: Args) => Steps<T>): Plan<Args, T> {
  return { access: 'read', steps }
}

export function write<Args extends readonly unknown[], T>(steps: (sql: Sql, ...args: Args) => Steps<T>): Plan<Args, T> {
  return { access: 'write', steps }
}

/** A plan for every method of a role of the contract. */
export type PlansOf<Role> = {
  readonly [M in keyof Role]: Role[M] extends (...args: infer Args) => Promise<infer T> ? Plan<Args, T> : never
}

/** The role that a set of plans makes once they are bound to a driver. */
export type RoleOf<Plans> = {
  readonly [M in keyof Plans]: Plans[M] extends Plan<infer Args, infer T> ? (...args: Args) => Promise<T> : never
}

export function makeSql(tenant: string, dialect: Dialect, kernel: KernelSteps): Sql {
  function* all<Row extends object>(sql: string, values: SqlValues = {}): Steps<Row[]> {
    return (yield { kind: 'all', sql, values }) as Row[]
  }
  return {
    tenant, dialect, kernel, all,
    *get<Row extends object>(sql: string, values?: SqlValues) {
      return (yield* all<Row>(sql, values))[0]
    },
    *run(sql, values = {}) {
      return (yield { kind: 'run', sql, values }) as number
    },
    *send(sql, values = {}) {
      yield { kind: 'send', sql, values }
    },
  }
}

export function* native<Transaction, T>(perform: (transaction: Transaction) => T | Promise<T>): Steps<T> {
  return (yield { kind: 'native', perform }) as T
}

/** Performs the steps one after the other, in this thread. */
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

/** As `runSteps`, for a database that answers later. */
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
