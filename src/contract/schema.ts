import type { DeleteMode } from './delete-mode.ts'

/** What happens to a record that its database's columns do not fit; see docs/guides/tables.md. */
export type SchemaMode = 'evolve' | 'freeze' | 'quarantine'

/**
 * A member of the records of a database that its table does not show as it is. Noted once, and open until a schema change
 * of the member ends it.
 * - `conflict`: a value that its column cannot hold.
 * - `frozen`: a new member of a database whose columns are frozen.
 * - `taken`: a column that is not Tidemark's has the member's name; the member's column has another one.
 */
export interface SchemaDrift {
  readonly database: string
  readonly member: string
  readonly kind: 'conflict' | 'frozen' | 'taken'
  /** The column that the member has, and its type; null for none. */
  readonly column: string | null
  readonly type: string | null
  /** The type that the value has on its own. */
  readonly found: string
  /** Of the first record that was met. */
  readonly sequence: number
  readonly at: number
}

/** A table as its users see it. */
export interface SchemaInfo {
  readonly database: string
  readonly table: string
  readonly history: string
  /** Rows of the table, also deleted ones that it keeps; of a store that keeps statistics, by them. */
  readonly rows: number
  /** Where the table has `_deleted_at`: how rows are deleted now, and how many deleted ones it has. */
  readonly deletes?: DeleteMode
  readonly deletedRows?: number
  readonly isRowsExact: boolean
  readonly versions: number
  readonly columns: readonly SchemaColumn[]
  /** What waits in `_extra`, by member. Of at most `waitingScanned` rows that have any. */
  readonly waiting: readonly ExtraMember[]
  readonly waitingScanned: number
  readonly isWaitingExact: boolean
  /** Columns and indexes that are not Tidemark's. */
  readonly ownColumns: readonly string[]
  readonly ownIndexes: readonly string[]
  readonly drift: readonly SchemaDrift[]
  /** The change that is under way. */
  readonly change: SchemaChangeState | null
  /** By the type of a column, its name in the store's SQL. */
  readonly types: Readonly<Record<string, string>>
  /**
   * The locks of a change, in words for its plan: for each batch of rows, and for adding and swapping columns. Null when the
   * store cannot change columns.
   */
  readonly locks: { readonly batch: string; readonly swap: string } | null
}

export interface SchemaColumn {
  readonly member: string
  /** Null while the member has no column. */
  readonly column: string | null
  readonly type: string
  readonly sqlType: string | null
  /** Where the type comes from: the `values` of the first records, the declared `schema`, the `source`, or a `change` of the columns. */
  readonly origin: string
  /** The type that is declared for the member now, where the column has another one. */
  readonly wanted: string | null
  /** Kept in `_extra` by a schema change. */
  readonly isHeld: boolean
  /** Objects of the user that depend on the column. A change of its type, or its end, keeps some and loses others. */
  readonly dependents: ReadonlyArray<{ readonly name: string; readonly isKept: boolean }>
}

export interface ExtraMember {
  readonly member: string
  readonly rows: number
  /** The types of the values that wait, and how many have each. */
  readonly types: Readonly<Record<string, number>>
  /** Values that the column cannot hold. The others only need `_extra` for the way they are written. */
  readonly misfits: number
  /** The type of a column that would hold them; null when nothing has to change. */
  readonly proposal: string | null
}

/** What becomes of one member. */
export interface ColumnChange {
  readonly member: string
  /** Give it a column of this type: in place of the one it has, or a first one for what waits in `_extra`. */
  readonly type?: string
  /** The column's new name. */
  readonly column?: string
  /** Take the column away; its values move to `_extra`. */
  readonly drop?: true
}

export interface SchemaChangeRequest {
  readonly changes: readonly ColumnChange[]
  readonly actor: string
  readonly reason: string
  readonly at: number
  /** Also when objects that depend on a column are lost. */
  readonly allowDependentLoss?: boolean
}

/** `add` columns, copy the `rows`, then the `history`, build `indexes`, `swap` the columns. */
export type SchemaPhase = 'add' | 'rows' | 'history' | 'indexes' | 'swap'

export interface SchemaChangeState {
  readonly changes: readonly ColumnChange[]
  readonly phase: SchemaPhase
  /** How many rows and versions have been looked at, and how many were rewritten. */
  readonly scanned: number
  readonly rewritten: number
  readonly actor: string
  readonly reason: string
  readonly startedAt: number
}

export interface SchemaStepResult {
  readonly change: SchemaChangeState
  /** Nothing is left to do. */
  readonly isDone: boolean
  /** Somebody holds the table: nothing was changed, and the step has to be tried again. */
  readonly isLocked: boolean
}
