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

/** Selects rows up to the values of columns, included by default. */
export interface UpperBound {
  readonly columns: readonly SqlColumn[]
  readonly values: readonly string[]
  readonly bound?: '<' | '<='
}

/** The rows between two values of a column. Null for no bound. */
export interface ValueRange {
  readonly lower: LowerBound | null
  readonly upper: UpperBound | null
}

export interface RowSelection {
  readonly table: SqlTable
  /** All by default. */
  readonly columns?: readonly string[] | undefined
  readonly lower: LowerBound | null
  /** A second lower bound: the start date. */
  readonly since?: LowerBound | null
  readonly upper: UpperBound | null
  /** Only rows in one of these ranges. */
  readonly anyOf?: readonly ValueRange[]
  /** Only rows with one of these values. */
  readonly oneOf?: { readonly column: SqlColumn; readonly values: readonly string[] }
  /** Only rows whose text of a column is in this range of bytes. */
  readonly textRange?: { readonly column: SqlColumn; readonly after: string | null; readonly upTo: string | null }
  /** The order is that of the bytes of the values as text. */
  readonly isTextOrder?: boolean
  readonly order: readonly SqlColumn[]
  readonly limit: number
  /** Rows to skip; none by default. */
  readonly offset?: number
}

export function buildSelect(selection: RowSelection, dialect: SqlDialect): SqlStatement {
  const { table, columns, order, limit, offset = 0, isTextOrder = false } = selection
  const values: unknown[] = []
  const where = buildWhere(selection, dialect, values)
  const names = columns === undefined ? '*' : columns.map((name) => dialect.quote(name)).join(', ')
  const by = order.map((column) => (isTextOrder ? dialect.textOrder(column) : dialect.quote(column.name))).join(', ')
  return {
    text: `SELECT ${names} FROM ${table.quoted}${where} ORDER BY ${by} LIMIT ${limit}${offset > 0 ? ` OFFSET ${offset}` : ''}`,
    values,
  }
}

/** The conditions of a selection, with a space before them; '' if it selects every row. */
export function buildWhere(
  {
    lower,
    since = null,
    upper,
    anyOf,
    oneOf,
    textRange,
  }: Pick<RowSelection, 'lower' | 'since' | 'upper' | 'anyOf' | 'oneOf' | 'textRange'>,
  dialect: SqlDialect,
  values: unknown[],
): string {
  const addValue = (column: SqlColumn, text: string): string =>
    dialect.placeholder(values.push(dialect.bind(text, column)), column)
  const between = (range: ValueRange): string[] => [
    ...(range.lower === null ? [] : [buildBound(range.lower, range.lower.bound, dialect, addValue)]),
    ...(range.upper === null ? [] : [buildBound(range.upper, range.upper.bound ?? '<=', dialect, addValue)]),
  ]
  const conditions = between({ lower, upper })
  if (since !== null) conditions.push(buildBound(since, since.bound, dialect, addValue))
  if (anyOf !== undefined) {
    const ranges = anyOf.map((range) => `(${between(range).join(' AND ')})`)
    conditions.push(ranges.length === 0 ? '1 = 0' : `(${ranges.join(' OR ')})`)
  }
  if (oneOf !== undefined) {
    const { column } = oneOf
    const list = oneOf.values.map((text) => addValue(column, text))
    conditions.push(list.length === 0 ? '1 = 0' : `${dialect.quote(column.name)} IN (${list.join(', ')})`)
  }
  if (textRange !== undefined) {
    const { column, after, upTo } = textRange
    const text = dialect.textOrder(column)
    if (after !== null) conditions.push(`${text} > ${addValue(column, after)}`)
    if (upTo !== null) conditions.push(`${text} <= ${addValue(column, upTo)}`)
  }
  return conditions.length === 0 ? '' : ` WHERE ${conditions.join(' AND ')}`
}

function buildBound(
  { columns, values: texts }: Pick<LowerBound, 'columns' | 'values'>,
  bound: '>' | '>=' | '<' | '<=',
  dialect: SqlDialect,
  addValue: (column: SqlColumn, text: string) => string,
): string {
  const terms = columns.map((column, index) => {
    const text = required(texts[index], `the value of ${column.name}`)
    return { name: dialect.quote(column.name), addValue: () => addValue(column, text) }
  })
  const [first] = terms
  if (first === undefined) throw new Error('a bound has no columns')
  const strict = bound.startsWith('<') ? '<' : '>'
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
