import type { ColumnType, TableColumn } from '../tables/column.ts'

/** A value that a statement binds. */
export type SearchParameter = string | number | bigint

/** Binds a value to a statement, and returns its place in the SQL. Values of users enter a statement only so. */
export type Bind = (value: SearchParameter) => string

/** The differences between the databases in the SQL of a search. `column` is a quoted name. */
export interface SearchDialect {
  /** The place of the parameter with this number, from 1. */
  parameter(number: number): string
  /** The values of a column in the order of their type. An index on this expression serves it. */
  ordered(column: string, type: ColumnType): string
  /** Selects a value of `ordered` so that its text restores it exactly. */
  position(ordered: string, type: ColumnType): string
  /** The value of such a text. */
  restore(text: string, type: ColumnType, bind: Bind): string
  /** A value that a user wrote, comparable with `ordered`. Its form has been checked. */
  given(text: string, type: ColumnType, bind: Bind): string
  /** The value as text, as a user reads it. */
  display(column: string, type: ColumnType): string
  /** True where a text contains another one, regardless of case. */
  contains(text: string, wanted: string, bind: Bind): string
  /** A condition that stops a statement after the deadline; null if the database does so itself. */
  readonly deadline: string | null
  /** The statement that creates an index on the expression. */
  createIndex(table: string, column: string, ordered: string): string
}

/** The rows to search, and their columns. */
export interface SearchTable {
  /** For statements that the user reads. */
  readonly name: string
  /** For a FROM clause, followed by an alias. */
  readonly source: string
  readonly columns: readonly TableColumn[]
  /** Whether an index begins with the column, or with the expression. */
  isIndexed(column: string, ordered: string): boolean
  /** Past versions have no index of the user's. */
  readonly isPast: boolean
}

/** The characters that differ from a character only in case, with the character itself. */
export function caseVariants(character: string): string[] {
  const variants = [character, character.toLowerCase(), character.toUpperCase()]
  return [...new Set(variants.filter((variant) => Array.from(variant).length === 1))]
}

/** Databases fold the case of ASCII letters in every locale, and of others only in some. */
export function isAscii(text: string): boolean {
  // oxlint-disable-next-line no-control-regex -- every ASCII character
  return /^[\u0000-\u007f]*$/.test(text)
}

/** A pattern of LIKE with `!` as its escape character. */
export function likePattern(wanted: string): string {
  return `%${wanted.replace(/[!%_]/g, '!$&')}%`
}
