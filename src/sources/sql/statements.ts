import { required } from '../../values/required.ts'
import type { SqlColumn, SqlDialect, SqlTable } from './database.ts'

/** Values are bound, never inlined; names are quoted. */
export interface SqlStatement {
  readonly text: string
  readonly values: readonly unknown[]
}

/** Selects rows after a cursor, or from a value on. */
export interface LowerBound {
  readonly columns: readonly SqlColumn[]
  readonly values: readonly string[]
  readonly bound: '>' | '>='
}

/** Selects rows up to a key, inclusive. */
export interface UpperBound {
  readonly columns: readonly SqlColumn[]
  readonly values: readonly string[]
}

export interface RowSelection {
  readonly table: SqlTable
  /** All by default. */
  readonly columns?: readonly string[] | undefined
  readonly lower: LowerBound | null
  readonly upper: UpperBound | null
  readonly order: readonly SqlColumn[]
  readonly limit: number
  /** Rows to skip; none by default. */
  readonly offset?: number
}

export function buildSelect(
  { table, columns, lower, upper, order, limit, offset = 0 }: RowSelection,
  dialect: SqlDialect,
): SqlStatement {
  const values: unknown[] = []
  const addValue = (column: SqlColumn, text: string): string =>
    dialect.placeholder(values.push(dialect.bind(text, column)), column)
  const conditions: string[] = []
  if (lower !== null) conditions.push(buildBound(lower, lower.bound, dialect, addValue))
  if (upper !== null) conditions.push(buildBound(upper, '<=', dialect, addValue))
  const names = columns === undefined ? '*' : columns.map((name) => dialect.quote(name)).join(', ')
  const where = conditions.length === 0 ? '' : ` WHERE ${conditions.join(' AND ')}`
  const by = order.map(({ name }) => dialect.quote(name)).join(', ')
  return {
    text: `SELECT ${names} FROM ${table.quoted}${where} ORDER BY ${by} LIMIT ${limit}${offset > 0 ? ` OFFSET ${offset}` : ''}`,
    values,
  }
}

function buildBound(
  { columns, values: texts }: UpperBound,
  bound: '>' | '>=' | '<=',
  dialect: SqlDialect,
  addValue: (column: SqlColumn, text: string) => string,
): string {
  const terms = columns.map((column, index) => {
    const text = required(texts[index], `the value of ${column.name}`)
    return { name: dialect.quote(column.name), addValue: () => addValue(column, text) }
  })
  const [first] = terms
  if (first === undefined) throw new Error('a bound has no columns')
  const strict = bound === '<=' ? '<' : '>'
  if (terms.length === 1) return `${first.name} ${bound} ${first.addValue()}`
  if (dialect.supportsRowComparison)
    return `(${terms.map(({ name }) => name).join(', ')}) ${bound} (${terms.map((term) => term.addValue()).join(', ')})`
  // a >= x AND (a > x OR (a = x AND (b > y OR …))): an index serves the first condition.
  const nested = (term: typeof first, [next, ...rest]: typeof terms): string => {
    const beyond = `${term.name} ${next === undefined ? bound : strict} ${term.addValue()}`
    return next === undefined ? beyond : `(${beyond} OR (${term.name} = ${term.addValue()} AND ${nested(next, rest)}))`
  }
  return `${first.name} ${strict}= ${first.addValue()} AND ${nested(first, terms.slice(1))}`
}
