import type { Row } from '../store.ts'

/** Reads of rows that a person explores: in any order, filtered, searched, and as of a time. */
export interface RowSearchStore {
  /**
   * A page of rows in an order, absent if the store cannot. Throws ARGUMENT_INVALID for a field without a column or a value
   * that does not fit it, and QUERY_TOO_LONG after the deadline.
   */
  searchRows?(search: RowSearch): Promise<RowSearchPage>
  /** Statistics of a field in the newest rows of a selection. Throws like `searchRows`. */
  columnStatistics?(request: ColumnStatisticsRequest): Promise<ColumnStatistics>
}

/** Rows of a database that satisfy every condition. */
export interface RowSelection {
  readonly database: string
  readonly filters: readonly RowFilter[]
  /**
   * Rows whose key or a value of a field contains this text, regardless of case. Flags and bytes are not searched; nested
   * values are searched as JSON text.
   */
  readonly search?: string | undefined
  /** In ms: the rows as of this time. Throws ARGUMENT_INVALID before the start of the history. */
  readonly asOf?: number | undefined
  readonly deadlineMs: number
}

/** A condition on the column of a field. `empty` and `present` have no value. */
export interface RowFilter {
  readonly field: string
  readonly test: RowTest
  readonly value?: string | undefined
}

/** `from` and `to` include their value; `contains` ignores case. */
export const ROW_TESTS = ['equals', 'contains', 'from', 'to', 'empty', 'present'] as const
/** The name of a condition. */
export type RowTest = (typeof ROW_TESTS)[number]

/** By key, by the sequence of the last change, or by the value of a field: rows without one come last. */
export type RowOrder =
  | { readonly by: 'key' | 'changed'; readonly descending: boolean }
  | { readonly by: 'field'; readonly field: string; readonly descending: boolean }

/** A request for a page of rows. */
export interface RowSearch extends RowSelection {
  readonly order: RowOrder
  /** The `next` of the page before. */
  readonly after?: RowPosition | undefined
  readonly limit: number
  /** The page ends once its records have this many bytes. */
  readonly bytesMax: number
  /** With `search`: rows to look at before the page ends. */
  readonly scanMax: number
}

/** A row in an order: the text of the value that the rows are ordered by, null for none, and the key. */
export interface RowPosition {
  readonly value: string | null
  readonly key: string
}

/** A page of a search. */
export interface RowSearchPage {
  readonly rows: readonly Row[]
  /** Null at the end: every row has been looked at. */
  readonly next: RowPosition | null
  /** With `search`: the rows that were looked at for this page. */
  readonly scanned: number
  /** Null if an index serves the order and the filters. Otherwise every row is read, and `index` is the one that helps. */
  readonly scan: { readonly index: string | null } | null
}

/** A request for the statistics of one field. */
export interface ColumnStatisticsRequest extends RowSelection {
  readonly field: string
  /** The newest rows of the selection to look at. */
  readonly scanMax: number
}

/** Exact for the rows that were looked at; values as text. */
export interface ColumnStatistics {
  readonly scanned: number
  /** The selection has more rows than were looked at. */
  readonly hasMore: boolean
  readonly empty: number
  readonly distinct: number
  readonly min: string | null
  readonly max: string | null
  /** The most frequent values, most frequent first. */
  readonly top: ReadonlyArray<{ readonly value: string; readonly rows: number }>
}
