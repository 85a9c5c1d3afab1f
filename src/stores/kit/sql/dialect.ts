import type { SqlValue, SqlValues } from './port.ts'

/** The parts of SQL that databases write differently. */
export interface Dialect {
  /** Full name of one of the store's own tables. */
  table(name: string): string
  readonly tokens: Readonly<Record<DialectToken, string>>
  /** A numbered parameter can be used twice; a positional one is bound once per use. */
  readonly parameters: { readonly style: 'numbered'; write(number: number): string } | { readonly style: 'positional' }
  /** Expression for the database's own clock in milliseconds; null to use the caller's clock. */
  readonly clock: string | null
  /** Expression for the name of the tenant that the row `alias` belongs to. */
  tenantName(alias: string): string
  upsert(upsert: UpsertSpec): string
  /** Deletes rows of the tenant, and may leave rows that another transaction has locked to the next call. */
  deleteSkipLocked(table: string, where: string): string
  bind(value: SqlValue): unknown
}

/**
 * `insert_new` and `or_nothing` begin and end an insert that leaves an existing row alone; `text` is the type to cast
 * to; `requests_window` is a column; `open_cycles` is the table of cycles, with a hint where the database needs one to
 * use its index of unfinished cycles, and `cycles_by_id` with one to read it in the order of its numbers.
 */
export type DialectToken =
  | 'greatest'
  | 'least'
  | 'for_update'
  | 'for_share'
  | 'insert_new'
  | 'or_nothing'
  | 'text'
  | 'requests_window'
  | 'open_cycles'
  | 'cycles_by_id'

/**
 * An insert whose parameters are named like its columns. For an existing row, `update` columns are replaced and `add`
 * columns are added to.
 */
export interface UpsertSpec {
  readonly table: string
  readonly key: readonly string[]
  readonly insert: readonly string[]
  readonly update?: readonly string[]
  readonly add?: readonly string[]
}

/** The upsert of SQLite and PostgreSQL. */
export function upsertOnConflict({ table, key, insert, update = [], add = [] }: UpsertSpec): string {
  const sets = [
    ...update.map((name) => `${name} = excluded.${name}`),
    ...add.map((name) => `${name} = stored.${name} + excluded.${name}`),
  ]
  return `insert into {${table}} as stored (${[...key, ...insert].join(', ')}) values (${[...key, ...insert].map(parameterFor).join(', ')})
    on conflict (${key.join(', ')}) do update set ${sets.join(', ')}`
}

function parameterFor(column: string): string {
  return column === 'tenant_id' ? ':tenant' : `:${column.replace(/[{}]/g, '')}`
}

/** A statement in the syntax of one database. */
export interface CompiledStatement {
  readonly text: string
  /** Parameter names in the order of their placeholders. */
  readonly parameterNames: readonly string[]
}

/** Caches compiled statements: there are few, and each is compiled once. */
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

  /** Returns the values for a compiled statement, as the driver takes them. */
  bind({ parameterNames }: CompiledStatement, tenant: SqlValue, values: SqlValues): unknown[] {
    return parameterNames.map((name) => {
      const value = name === 'tenant' ? tenant : values[name === 'now' ? 'at' : name]
      if (value === undefined) throw new Error(`The statement parameter ${name} has no value.`)
      return this.#dialect.bind(value)
    })
  }
}

function compile(sql: string, dialect: Dialect): CompiledStatement {
  const parameterNames: string[] = []
  const tokens: Readonly<Record<string, string>> = dialect.tokens
  const text = sql.replaceAll(
    /\{(\w+)\}|(?<!:):([a-zA-Z]\w*)/g,
    (_match, token: string | undefined, name: string | undefined) => {
      if (token !== undefined) return tokens[token] ?? dialect.table(token)
      if (name === undefined) return ''
      if (name === 'now' && dialect.clock !== null) return dialect.clock
      if (dialect.parameters.style === 'positional') {
        parameterNames.push(name)
        return '?'
      }
      const at = parameterNames.indexOf(name)
      return dialect.parameters.write(at < 0 ? parameterNames.push(name) : at + 1)
    },
  )
  return { text, parameterNames }
}
