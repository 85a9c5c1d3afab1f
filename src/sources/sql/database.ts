import type { ColumnType, JsonObject } from '../../contract/index.ts'
import type { SerializedRecord } from '../../values/serialized-upsert.ts'
import type { TableName } from '../kit/postgres/catalog.ts'
import type { RowSelection } from './statements.ts'

/** What a column's values can serve for: a moment, an integer, bytes, or anything else that can be compared. */
export type SqlColumnKind = 'instant' | 'integer' | 'binary' | 'other'

export interface SqlColumn {
  readonly name: string
  readonly kind: SqlColumnKind
  /** As the database calls it. */
  readonly type: string
  /** What its values are in records; null where only the values tell. */
  readonly columnType: ColumnType | null
  readonly nullable: boolean
  /** Whether its moments are of UTC, by their type or because the server's zone is. */
  readonly isUtc: boolean
}

export interface SqlTable {
  /** As people write it: `public.customers`. */
  readonly id: string
  /** As SQL wants it. */
  readonly quoted: string
  readonly isView: boolean
  readonly columns: readonly SqlColumn[]
  readonly key: readonly string[]
  /** Sets of columns that no two rows share. */
  readonly unique: readonly (readonly string[])[]
}

export interface SqlRow {
  /** Where the row is written already, only the members that were asked for. */
  readonly record: JsonObject
  readonly serialized?: SerializedRecord
  /** About. */
  readonly bytes: number
}

export interface ReadHorizon {
  /** The server's own time, UTC. */
  readonly now: string
  /** Whoever wrote before it can be seen by now, UTC. */
  readonly settled: string
  /** The same in the words of the cursor's column. */
  readonly until: string
}

/** How a database wants to be asked. */
export interface SqlDialect {
  quote(name: string): string
  /** Where the value of that number goes, compared with the column. */
  placeholder(number: number, column: SqlColumn): string
  /** A position as the driver wants it bound. */
  bind(text: string, column: SqlColumn): unknown
  /** `(a, b) > (x, y)` goes by the index; elsewhere it has to be spelled out. */
  readonly supportsRowComparison: boolean
}

/** One connection, for one page. */
export interface SqlDatabase extends AsyncDisposable {
  readonly dialect: SqlDialect
  describeTable(name: TableName): Promise<SqlTable>
  listTables(): Promise<SqlTable[]>
  /** What the cursor's values are, where only the values tell. */
  detectCursorKind(table: SqlTable, column: SqlColumn): Promise<SqlColumnKind>
  readHorizon(table: SqlTable, column: SqlColumn, lagMs: number): Promise<ReadHorizon>
  /** The greatest value of an integer column; null when there is none. */
  readMaxValue(table: SqlTable, column: SqlColumn): Promise<string | null>
  /** As they come; of each at least the members that are wanted. Leaving the loop ends the statement. */
  readRows(selection: RowSelection, wanted: readonly string[]): AsyncIterable<readonly SqlRow[]>
}
