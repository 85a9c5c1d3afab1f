import type { SqlValue, SqlValues } from './port.ts'

/** How a database writes what databases write differently. */
export interface Dialect {
  /** The full name of one of the store's own tables. */
  table(name: string): string
  readonly tokens: Readonly<Record<DialectToken, string>>
  /** A parameter that is numbered can be used twice; one that is not is bound once for each use. */
  readonly parameters: { readonly style: 'numbered'; write(number: number): string } | { readonly style: 'positional' }
  /** The database's own clock in milliseconds, as an expression; null to judge by the caller's. */
  readonly clock: string | null
  /** The name of the tenant that the row `alias` belongs to. */
  tenantName(alias: string): string
  upsert(upsert: UpsertSpec): string
  /** Deletes rows of the tenant, and may leave those that another transaction has locked to the next call. */
  deleteSkipLocked(table: string, where: string): string
  bind(value: SqlValue): unknown
}

/**
 * `insert_new` and `or_nothing` begin and end an insert that leaves a row that is there alone; `text` is the type to cast to;
 * `requests_window` is a column; `open_cycles` is the table of cycles, with a hint where the database needs one to use its index
 * of unfinished cycles.
 */
export type DialectToken = 'greatest' | 'least' | 'for_update' | 'for_share' | 'insert_new' | 'or_nothing' | 'text' | 'requests_window' | 'open_cycles'

/** An insert whose parameters are named like its columns; of a row that is there, `update` is replaced and `add` is added to. */
export interface UpsertSpec {
  readonly table: string
  readonly key: readonly string[]
  readonly insert: readonly string[]
  readonly update?: readonly string[]
  readonly add?: readonly string[]
}

/** The upsert of SQLite and PostgreSQL. */
export function upsertOnConflict({ table, key, insert, update = [], add = [] }: UpsertSpec): string {
  const sets = [...update.map((name) => `${name} = excluded.${name}`), ...add.map((name) => `${name} = stored.${name} + excluded.${name}`)]
  return `insert into {${table}} as stored (${[...key, ...insert].join(', ')}) values (${[...key, ...insert].map(parameterFor).join(', ')})
    on conflict (${key.join(', ')}) do update set ${sets.join(', ')}`
}

function parameterFor(column: string): string {
  return column === 'tenant_id' ? ':tenant' : `:${column.replace(/[{}]/g, '')}`
}

export interface CompiledStatement {
  readonly text: string
  /** The parameters in the order of their placeholders. */
  readonly parameterNames: readonly string[]
}

/** Statements are few, and each is compiled once. */
export class StatementCompiler {
  readonly #dialect: Dialect
  readonly #compiled = new Map<string, CompiledStatement>()

  constructor(dialect: Dialect) {
    this.#dialect = dialect
  }

  compile(sql: string): CompiledStatement {
    let known = this.#compiled.get(sql)
    if (known === undefined) this.#compiled.set(sql, (known = compile(sql, this.#dialect)))
    return known
  }

  /** The values for a compiled statement, as the driver takes them. */
  bind({ parameterNames: names }: CompiledStatement, tenant: SqlValue, values: SqlValues): unknown[] {
    return names.map((name) => {
      const value = name === 'tenant' ? tenant : values[name === 'now' ? 'at' : name]
      if (value === undefined) throw new Error(`The statement has a parameter ${name}, and no value for it.`)
      return this.#dialect.bind(value)
    })
  }
}

function compile(sql: string, dialect: Dialect): CompiledStatement {
  const names: string[] = []
  const words: Readonly<Record<string, string>> = dialect.tokens
  const text = sql.replaceAll(/\{(\w+)\}|(?<!:):([a-zA-Z]\w*)/g, (_match, token: string | undefined, name: string | undefined) => {
    if (token !== undefined) return words[token] ?? dialect.table(token)
    if (name === 'now' && dialect.clock !== null) return dialect.clock
    if (dialect.parameters.style === 'positional') {
      names.push(name!)
      return '?'
    }
    const at = names.indexOf(name!)
    return dialect.parameters.write(at < 0 ? names.push(name!) : at + 1)
  })
  return { text, parameterNames: names }
}
