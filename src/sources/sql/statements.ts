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

/** Selects rows up to a value, included by default. */
export interface UpperBound {
  readonly column: SqlColumn
  readonly text: string
  readonly bound?: '<' | '<='
}

export interface RowSelection {
  readonly table: SqlTable
  /** All by default. */
  readonly columns?: readonly string[] | undefined
  readonly lower: LowerBound | null
  /** A second lower bound: the start date. */
  readonly since?: LowerBound | null
  readonly upper: UpperBound | null
  readonly order: readonly SqlColumn[]
  readonly limit: number
}

export function buildSelect(
  { table, columns, lower, since = null, upper, order, limit }: RowSelection,
  dialect: SqlDialect,
): SqlStatement {
  const values: unknown[] = []
  const addValue = (column: SqlColumn, text: string): string =>
    dialect.placeholder(values.push(dialect.bind(text, column)), column)
  const conditions: string[] = []
  if (lower !== null) conditions.push(buildLowerCondition(lower, dialect, addValue))
  if (since !== null) conditions.push(buildLowerCondition(since, dialect, addValue))
  if (upper !== null)
    conditions.push(`${dialect.quote(upper.column.name)} ${upper.bound ?? '<='} ${addValue(upper.column, upper.text)}`)
  const names = columns === undefined ? '*' : columns.map((name) => dialect.quote(name)).join(', ')
  const where = conditions.length === 0 ? '' : ` WHERE ${conditions.join(' AND ')}`
  const by = order.map(({ name }) => dialect.quote(name)).join(', ')
  return { text: `SELECT ${names} FROM ${table.quoted}${where} ORDER BY ${by} LIMIT ${limit}`, values }
}

function buildLowerCondition(
  { columns, values: texts, bound }: LowerBound,
  dialect: SqlDialect,
  addValue: (column: SqlColumn, text: string) => string,
): string {
  const terms = columns.map((column, index) => {
    const text = required(texts[index], `the value of ${column.name}`)
    return { name: dialect.quote(column.name), addValue: () => addValue(column, text) }
  })
  const [first] = terms
  if (first === undefined) throw new Error('a lower bound has no columns')
  if (terms.length === 1) return `${first.name} ${bound} ${first.addValue()}`
  if (dialect.supportsRowComparison)
    return `(${terms.map(({ name }) => name).join(', ')}) ${bound} (${terms.map((term) => term.addValue()).join(', ')})`
  // a >= x AND (a > x OR (a = x AND (b > y OR …))): an index serves the first condition.
  const nested = (term: typeof first, [next, ...rest]: typeof terms): string => {
    const greater = `${term.name} ${next === undefined ? bound : '>'} ${term.addValue()}`
    return next === undefined
      ? greater
      : `(${greater} OR (${term.name} = ${term.addValue()} AND ${nested(next, rest)}))`
  }
  return `${first.name} >= ${first.addValue()} AND ${nested(first, terms.slice(1))}`
}
