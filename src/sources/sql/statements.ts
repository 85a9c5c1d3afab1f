import type { SqlColumn, SqlDialect, SqlTable } from './database.ts'

/** Values are bound, never written into the text; names are quoted. */
export interface SqlStatement {
  readonly text: string
  readonly values: readonly unknown[]
}

/** Above a place, or at a value and above. */
export interface LowerBound {
  readonly columns: readonly SqlColumn[]
  readonly values: readonly string[]
  readonly bound: '>' | '>='
}

export interface RowSelection {
  readonly table: SqlTable
  /** All unless given. */
  readonly columns?: readonly string[] | undefined
  readonly lower: LowerBound | null
  readonly upper: { readonly column: SqlColumn; readonly text: string } | null
  readonly order: readonly SqlColumn[]
  readonly limit: number
}

export function buildSelect({ table, columns, lower, upper, order, limit }: RowSelection, dialect: SqlDialect): SqlStatement {
  const values: unknown[] = []
  const place = (column: SqlColumn, text: string): string => dialect.placeholder(values.push(dialect.bind(text, column)), column)
  const conditions: string[] = []
  if (lower !== null) conditions.push(buildLowerCondition(lower, dialect, place))
  if (upper !== null) conditions.push(`${dialect.quote(upper.column.name)} <= ${place(upper.column, upper.text)}`)
  const names = columns === undefined ? '*' : columns.map((name) => dialect.quote(name)).join(', ')
  const where = conditions.length === 0 ? '' : ` WHERE ${conditions.join(' AND ')}`
  const by = order.map(({ name }) => dialect.quote(name)).join(', ')
  return { text: `SELECT ${names} FROM ${table.quoted}${where} ORDER BY ${by} LIMIT ${limit}`, values }
}

function buildLowerCondition({ columns, values: texts, bound }: LowerBound, dialect: SqlDialect, place: (column: SqlColumn, text: string) => string): string {
  const names = columns.map(({ name }) => dialect.quote(name))
  if (columns.length === 1) return `${names[0]} ${bound} ${place(columns[0]!, texts[0]!)}`
  if (dialect.supportsRowComparison) return `(${names.join(', ')}) ${bound} (${columns.map((column, index) => place(column, texts[index]!)).join(', ')})`
  // a >= x AND (a > x OR (a = x AND (b > y OR …))): the first condition is the one an index serves.
  const nested = (index: number): string => {
    const last = index === columns.length - 1
    const greater = `${names[index]} ${last ? bound : '>'} ${place(columns[index]!, texts[index]!)}`
    return last ? greater : `(${greater} OR (${names[index]} = ${place(columns[index]!, texts[index]!)} AND ${nested(index + 1)}))`
  }
  return `${names[0]} >= ${place(columns[0]!, texts[0]!)} AND ${nested(0)}`
}
