import type { JsonObject, JsonValue } from './json.ts'
import type { ChangeAction } from './store.ts'
import type { ColumnType } from './table-shape.ts'

/** An ordered run of changes of one database, bounded in bytes. It may be empty: then only the token moves. */
export interface DestinationBatch {
  /** With every field that occurs in the batch. New columns are added in the same transaction. */
  readonly schema: DestinationSchema
  readonly target: 'live' | 'loading'
  /** The first batch of a load: an earlier unfinished load is discarded. `step.previous` is its token, or null. */
  readonly isFirst: boolean
  /** The last batch of a load: `loading` becomes `live`. */
  readonly isLast: boolean
  /** In order of sequence. For `mirror`, only the last version of a key. During a load, in order of key. */
  readonly changes: readonly DestinationChange[]
  /** The fields of `DestinationChange.values`, in order. */
  readonly members?: readonly string[]
}

/** The fields of a database, with their types in the store. */
export interface DestinationSchema {
  readonly database: string
  readonly mode: DestinationMode
  readonly columns: ReadonlyArray<{ readonly member: string; readonly type: ColumnType }>
  /**
   * Fields of a mirror whose arrays of objects are rows of a child table, `orders__items`, and no column. A changed row
   * replaces its children. The list is part of the table: another one needs a load.
   */
  readonly children?: readonly string[]
}

/** One version of a row, or its deletion. */
export interface DestinationChange {
  readonly key: string
  readonly action: ChangeAction
  readonly sequence: number
  readonly committedAt: number
  /** The record and its JSON text, with all digits; null for a delete. */
  readonly record: JsonObject | null
  readonly text: string | null
  /**
   * The values of the record by the fields of `DestinationBatch.members`; undefined if it lacks the field. Only in a load,
   * and only for a destination that supports `values`. Such a change is computed as it is read: read each member once.
   */
  readonly values?: ReadonlyArray<JsonValue | undefined>
}

/** `mirror`: the current rows. `append`: every change is a row. `history`: every version is a row with its validity. */
export type DestinationMode = 'mirror' | 'append' | 'history'
