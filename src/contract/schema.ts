import type { DeleteMode } from './delete-mode.ts'

/** The handling of a record that does not fit the columns of its database; see docs/guides/tables.md. */
export type SchemaMode = 'evolve' | 'freeze' | 'quarantine'

/**
 * A field of the records of a database that its table does not show as it is. Recorded once, and open until a schema
 * change of the field resolves it.
 *   - `conflict`: a value that its column cannot hold.
 *   - `frozen`: a new field of a database whose columns are frozen.
 *   - `taken`: a column that does not belong to Tidemark has the field's name; the field's column has another name.
 */
export interface SchemaDrift {
  readonly database: string
  readonly member: string
  readonly kind: 'conflict' | 'frozen' | 'taken'
  /** The field's column and its type; null if it has none. */
  readonly column: string | null
  readonly type: string | null
  /** The inferred type of the value. */
  readonly found: string
  /** The first record that showed the drift. */
  readonly sequence: number
  readonly at: number
}

/** A table as its users see it. */
export interface SchemaInfo {
  readonly database: string
  readonly table: string
  readonly history: string
  /** Rows of the table, including deleted rows that it keeps. An estimate in stores that keep statistics. */
  readonly rows: number
  /** Set if the table has `_deleted_at`: the current delete mode, and the number of deleted rows in the table. */
  readonly deletes?: DeleteMode
  readonly deletedRows?: number
  readonly isRowsExact: boolean
  readonly versions: number
  readonly columns: readonly SchemaColumn[]
  /** Values in `_extra` by field, from at most `waitingScanned` rows that have any. */
  readonly waiting: readonly ExtraMember[]
  readonly waitingScanned: number
  readonly isWaitingExact: boolean
  /** Columns and indexes that do not belong to Tidemark. */
  readonly ownColumns: readonly string[]
  readonly ownIndexes: readonly string[]
  readonly drift: readonly SchemaDrift[]
  /** The change in progress. */
  readonly change: SchemaChangeState | null
  /** Column type → its name in the store's SQL. */
  readonly types: Readonly<Record<string, string>>
  /**
   * The locks that a change takes, as text for its plan: per batch of rows, and for adding and swapping columns. Null
   * if the store cannot change columns.
   */
  readonly locks: { readonly batch: string; readonly swap: string } | null
}

export interface SchemaColumn {
  readonly member: string
  /** Null while the field has no column. */
  readonly column: string | null
  readonly type: string
  readonly sqlType: string | null
  /**
   * The origin of the type: the `values` of the first records, the declared `schema`, the `source`, or a schema
   * `change`.
   */
  readonly origin: string
  /** The type now declared for the field, if the column has another one. */
  readonly wanted: string | null
  /** A schema change keeps the field in `_extra`. */
  readonly isHeld: boolean
  /** User objects that depend on the column. Changing its type, or dropping it, keeps some and drops others. */
  readonly dependents: ReadonlyArray<{ readonly name: string; readonly isKept: boolean }>
}

export interface ExtraMember {
  readonly member: string
  readonly rows: number
  /** Value type → number of values. */
  readonly types: Readonly<Record<string, number>>
  /** Values that the column cannot hold. The others are in `_extra` only to preserve their exact notation. */
  readonly misfits: number
  /** The column type that would hold them; null if no change is needed. */
  readonly proposal: string | null
}

/** A change of the column of one field. */
export interface ColumnChange {
  readonly member: string
  /** Creates a column of this type: it replaces the current one, or is the first one for values in `_extra`. */
  readonly type?: string
  /** The column's new name. */
  readonly column?: string
  /** Drops the column; its values move to `_extra`. */
  readonly drop?: true
}

/** Column changes to apply to a table, with the actor and reason for the audit log. */
export interface SchemaChangeRequest {
  readonly changes: readonly ColumnChange[]
  readonly actor: string
  readonly reason: string
  readonly at: number
  /** Proceed even if objects that depend on a column are dropped. */
  readonly allowDependentLoss?: boolean
}

/** `add` columns, copy the `rows`, then the `history`, build `indexes`, `swap` the columns. */
export type SchemaPhase = 'add' | 'rows' | 'history' | 'indexes' | 'swap'

export interface SchemaChangeState {
  readonly changes: readonly ColumnChange[]
  readonly phase: SchemaPhase
  /** Rows and versions scanned, and the number of them that were rewritten. */
  readonly scanned: number
  readonly rewritten: number
  readonly actor: string
  readonly reason: string
  readonly startedAt: number
}

/** The state of a column change after one step. */
export interface SchemaStepResult {
  readonly change: SchemaChangeState
  readonly isDone: boolean
  /** Another transaction locks the table: nothing was changed, and the step has to be retried. */
  readonly isLocked: boolean
}
