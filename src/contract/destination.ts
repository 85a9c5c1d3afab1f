import type { DestinationBatch, DestinationMode, DestinationSchema } from './destination-batch.ts'
import type { ScalarType } from './table-shape.ts'

/** Another system that receives databases of a store. `describeDestination` in tidemark/testing is the same contract as tests. */
export interface Destination {
  /** The product, such as `postgres`. */
  readonly kind: string
  /** Where the rows go, for messages: without a password. */
  readonly location: string
  readonly supports: DestinationSupport
  open(context: { readonly tenant: string; readonly signal: AbortSignal }): Promise<DestinationSession>
}

/** The abilities of a destination. The loop and the suite follow them. */
export interface DestinationSupport {
  readonly modes: readonly DestinationMode[]
  /** How rows and token become visible together: one transaction, one snapshot of a table, or an acknowledged message. */
  readonly commit: 'transaction' | 'snapshot' | 'acknowledgement'
  /** A key is replaced or deleted. Otherwise every change is added, and readers merge. */
  readonly mergeByKey: boolean
  /** A new field gets a column. Otherwise it stays in the record. */
  readonly addColumn: boolean
  /** A load is built beside the live rows and replaces them at once. Otherwise it is written over them. */
  readonly swap: boolean
  /** Arrays of objects can be stored in child tables: see `DestinationSchema.children`. */
  readonly children?: boolean
  /** Rows of a mirror are read from `DestinationChange.values`, which is faster for columns than the record. */
  readonly values?: boolean
  /** The column types that have a type of their own; others are stored as text or JSON. */
  readonly types: readonly ScalarType[]
}

/** One connection to a destination. Calls are made one at a time. Errors are SyncErrors; `retry` ones are tried again. */
export interface DestinationSession {
  /** The tokens that are stored with the rows. */
  position(database: string): Promise<DestinationPosition>
  /** Called before the first batch. Throws DESTINATION_FOREIGN if rows that are not Tidemark's are in the way. */
  prepare(schema: DestinationSchema): Promise<void>
  /**
   * Stores the rows and `step.next` atomically, if the target has the token `step.previous` and no newer epoch. If not, it
   * returns `refused` and changes nothing. After an error, `position` shows whether the batch was applied.
   */
  apply(batch: DestinationBatch, step: TokenStep): Promise<'applied' | 'refused'>
  /** Deletes the rows and tokens of a database. */
  remove(database: string): Promise<void>
  close(): Promise<void>
}

/** The state of the target that a batch leads to. */
export interface DestinationToken {
  readonly storeId: string
  /** Rises with every claim of the destination. A token with an older epoch never follows one with a newer epoch. */
  readonly epoch: number
  /** Every change of the database up to this sequence is applied. */
  readonly sequence: number
  /** When that sequence was committed; 0 if unknown. It differs in a store that was restored from a backup. */
  readonly committedAt: number
  /** During a load, the last key that was loaded (empty before the first); null once every row is loaded. */
  readonly after: string | null
}

/** The token that a batch follows, and the one that it leads to. */
export interface TokenStep {
  readonly previous: DestinationToken | null
  readonly next: DestinationToken
}

/** The tokens of one database in a destination. */
export interface DestinationPosition {
  readonly live: DestinationToken | null
  /** An unfinished load, beside the live rows or over them. */
  readonly loading: DestinationToken | null
}
