import type { ColumnType, JsonObject } from '../../contract/index.ts'
import type { Written } from '../../values/written-upsert.ts'
import type { TableName } from '../kit/postgres/catalog.ts'
import type { Selection } from './statements.ts'

/** What a column's values can serve for: a moment, an integer, bytes, or anything else that can be compared. */
export type ColumnKind = 'instant' | 'integer' | 'binary' | 'other'

export interface Column {
  readonly name: string
  readonly kind: ColumnKind
  /** As the database calls it. */
  readonly type: string
  /** What its values are in records; null where only the values tell. */
  readonly columnType: ColumnType | null
  readonly nullable: boolean
  /** Whether its moments are of UTC, by their type or because the server's zone is. */
  readonly isUtc: boolean
}

export interface Table {
  /** As people write it: `public.customers`. */
  readonly id: string
  /** As SQL wants it. */
  readonly quoted: string
  readonly isView: boolean
  readonly columns: readonly Column[]
  readonly key: readonly string[]
  /** Sets of columns that no two rows share. */
  readonly unique: readonly (readonly string[])[]
}

export interface Row {
  /** Where the row is written already, only the members that were asked for. */
  readonly record: JsonObject
  readonly written?: Written
  /** About. */
  readonly bytes: number
}

export interface Horizon {
  /** The server's own time, UTC. */
  readonly now: string
  /** Whoever wrote before it can be seen by now, UTC. */
  readonly settled: string
  /** The same in the words of the cursor's column. */
  readonly until: string
}

/** How a database wants to be asked. */
export interface Dialect {
  quote(name: string): string
  /** Where the value of that number goes, compared with the column. */
  placeholder(number: number, column: Column): string
  /** A position as the driver wants it bound. */
  bind(text: string, column: Column): unknown
  /** `(a, b) > (x, y)` goes by the index; elsewhere it has to be spelled out. */
  readonly comparesRows: boolean
}

/** One connection, for one page. */
export interface Database extends AsyncDisposable {
  readonly dialect: Dialect
  describe(name: TableName): Promise<Table>
  tables(): Promise<Table[]>
  /** What the cursor's values are, where only the values tell. */
  cursorKind(table: Table, column: Column): Promise<ColumnKind>
  horizon(table: Table, column: Column, lagMs: number): Promise<Horizon>
  /** The greatest value of an integer column; null when there is none. */
  greatest(table: Table, column: Column): Promise<string | null>
  /** As they come; of each at least the members that are wanted. Leaving the loop ends the statement. */
  rows(selection: Selection, wanted: readonly string[]): AsyncIterable<readonly Row[]>
}
