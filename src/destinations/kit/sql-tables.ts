import type { ScalarType, TableColumn } from '../../stores/kit/tables/column.ts'
import type { ColumnValue, EncodedRecord } from '../../stores/kit/tables/encode-record.ts'
import type { DestinationColumnLimits } from './extend-columns.ts'
import type { DestinationChange } from '../../contract/index.ts'

/**
 * The statements of one SQL database, over one connection. `SqlSession` decides which are sent, and in which order. Errors
 * are SyncErrors.
 */
export interface SqlTables {
  /** Where the tables are, for messages: `schema billing`. */
  readonly scope: string
  /**
   * `transactional`: tables are created, changed and renamed in the transaction of the rows. `immediate`: each of these
   * statements commits by itself, so the session writes down what it is about to do; see `SqlStates`.
   */
  readonly ddl: 'transactional' | 'immediate'
  readonly columnLimits: DestinationColumnLimits
  /** Types of the columns of the state table: a key of up to 200 bytes, compared by bytes, and a long text. */
  readonly stateTypes: { readonly key: string; readonly text: string }

  /** If the answer to COMMIT is lost, the error is COMMIT_UNKNOWN. Other errors mean that nothing was committed. */
  transaction<T>(body: () => Promise<T>): Promise<T>
  /**
   * Waits until no other process holds the lock of this name. With transactional DDL it is called in a transaction and
   * ends with it; otherwise it is called outside of one and ends with `unlock`, or with the connection.
   */
  lock(name: string): Promise<void>
  /** Throws nothing: a connection that broke has lost the lock. */
  unlock(name: string): Promise<void>
  /** Runs a statement of `SqlStates`; parameters are `?`. */
  query<Row extends object>(sql: string, values: readonly (string | number | null)[]): Promise<Row[]>
  /** The name of a table in SQL: quoted, and qualified where necessary. */
  quote(table: string): string

  /** Creates the schema that contains the tables, where there is one to create. */
  createSchema(): Promise<void>
  exists(table: string): Promise<boolean>
  /** The names of all columns, also of those that a user added; empty if the table does not exist. */
  columnNames(table: string): Promise<string[]>
  create(table: TableSpec): Promise<void>
  addColumns(table: string, columns: readonly NamedColumn[]): Promise<void>
  /** Tables that do not exist are skipped. */
  drop(tables: readonly string[]): Promise<void>
  /** Renames tables at once, over those that have the new names; drops `obsolete`. With immediate DDL it is repeatable. */
  swap(renames: readonly TableRename[], obsolete: readonly string[]): Promise<void>
  /** Builds the primary key of a loaded table, unless `create` did. Called in the transaction of the last rows. */
  finishLoad(table: TableSpec): Promise<void>

  /** How records become values of these columns. `members` are the fields of versions that have values. */
  encoder(columns: readonly TableColumn[], members: readonly string[]): (version: RecordVersion) => EncodedRecord
  /** Adds rows, none of which has a key that the table has. */
  append(table: TableSpec, columns: readonly NamedColumn[], rows: TableValues): Promise<void>
  /** Adds rows, and replaces those with the same primary key. No key occurs twice. */
  merge(table: TableSpec, columns: readonly NamedColumn[], rows: TableValues): Promise<void>
  deleteRows(table: string, column: string, keys: readonly string[]): Promise<void>
  /** Sets `_is_current` and `_valid_to` (in ms) of the current versions in a history. */
  endVersions(table: string, ended: ReadonlyArray<readonly [key: string, at: number]>): Promise<void>
  close(): Promise<void>
}

/** A table without the columns of its fields. */
export interface TableSpec {
  readonly name: string
  readonly system: readonly SystemColumn[]
  /** The columns of the primary key, all of them among `system`. */
  readonly key: readonly string[]
}

export interface SystemColumn {
  readonly name: string
  readonly type: ScalarType
}

/** The column of a field. */
export type NamedColumn = TableColumn & { readonly name: string }

export interface TableRename {
  readonly from: string
  readonly to: string
}

/** Rows as values of the system columns, then of the named columns. */
export interface TableValues extends Iterable<readonly ColumnValue[]> {
  readonly length: number
}

/** The record of a version that has values is read only where the values are not enough. */
export type RecordVersion = Pick<DestinationChange, 'record' | 'text' | 'sequence' | 'values'>

/** The columns that exist in the table. */
export function namedColumns(columns: readonly TableColumn[]): NamedColumn[] {
  return columns.filter((column): column is NamedColumn => column.name !== null)
}
