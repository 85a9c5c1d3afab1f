import type { ColumnType, JsonObject } from '../../contract/index.ts'
import type { SerializedRecord } from '../../values/serialized-upsert.ts'
import type { TableName } from '../kit/postgres/catalog.ts'
import type { RowSelection, SqlStatement } from './statements.ts'

/** How a column's values can be used: as a timestamp, an integer, bytes, or any other comparable value. */
export type SqlColumnKind = 'instant' | 'integer' | 'binary' | 'other'

export interface SqlColumn {
  readonly name: string
  readonly kind: SqlColumnKind
  /** The database's own type name. */
  readonly type: string
  /** The type in records; null if it must be inferred from the values. */
  readonly columnType: ColumnType | null
  readonly nullable: boolean
  /** Whether its timestamps are UTC, by type or by the server's time zone. */
  readonly isUtc: boolean
}

export interface SqlTable {
  /** Readable name: `public.customers`. */
  readonly id: string
  /** Quoted name for SQL. */
  readonly quoted: string
  readonly isView: boolean
  readonly columns: readonly SqlColumn[]
  readonly key: readonly string[]
  /** Sets of columns with a unique constraint. */
  readonly unique: readonly (readonly string[])[]
}

export interface SqlRow {
  /** Only the requested fields if the row is already serialized. */
  readonly record: JsonObject
  readonly serialized?: SerializedRecord
  /** Approximate size. */
  readonly bytes: number
}

export interface ReadHorizon {
  /** The server's own time, UTC. */
  readonly now: string
  /** Every write before this time is visible, UTC. */
  readonly settled: string
  /** The same time, in the format of the cursor's column. */
  readonly until: string
}

/** The SQL syntax of a database. */
export interface SqlDialect {
  quote(name: string): string
  /** The placeholder of a value that is compared with the column. */
  placeholder(number: number, column: SqlColumn): string
  /** Converts a cursor value to the driver's bind value. */
  bind(text: string, column: SqlColumn): unknown
  /** Whether `(a, b) > (x, y)` can use the index; otherwise the comparison is expanded. */
  readonly supportsRowComparison: boolean
  /** An expression that orders values like the bytes of their text. */
  textOrder(column: SqlColumn): string
  /** Null if the database cannot compute digests. */
  readonly digests: SqlDigests | null
}

/** How the database computes the digests of rows; see RecordSummaries. */
export interface SqlDigests {
  /**
   * The text of a column's value as it is in records; null for a type whose text differs between systems, such as
   * floating point, JSON, bytes and arrays.
   */
  text(column: SqlColumn): string | null
  /** The text of a row, from the texts of its columns, which may be null. */
  rowText(texts: readonly string[]): string
  /** The sum of the digests of row texts: an integer that may be negative, or null for no rows. */
  sum(rowText: string): string
  /** The condition that the database can compute them; true without one. */
  readonly condition: string
}

/** One connection, for one page. */
export interface SqlDatabase extends AsyncDisposable {
  readonly dialect: SqlDialect
  describeTable(name: TableName): Promise<SqlTable>
  listTables(): Promise<SqlTable[]>
  /** The kind of the cursor's values, if it must be detected from the values. */
  detectCursorKind(table: SqlTable, column: SqlColumn): Promise<SqlColumnKind>
  readHorizon(table: SqlTable, column: SqlColumn, lagMs: number): Promise<ReadHorizon>
  /** The maximum of an integer column; null for an empty table. */
  readMaxValue(table: SqlTable, column: SqlColumn): Promise<string | null>
  readRowCount(table: SqlTable): Promise<number>
  /** The values of the only row of a statement, as text. */
  readValues(statement: SqlStatement): Promise<ReadonlyArray<string | null>>
  /** Streams rows with at least the wanted fields. Leaving the loop ends the statement. */
  readRows(selection: RowSelection, wanted: readonly string[]): AsyncIterable<readonly SqlRow[]>
}
