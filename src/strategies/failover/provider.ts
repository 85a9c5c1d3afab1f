import type { JsonValue, SyncContext } from '../../contract/index.ts'
import type { ItemChanges } from '../kit/to-changes.ts'
import type { CursorState, CursorType, PaginationCursor, ComparableCursor } from './cursors.ts'
import type { FailoverResult } from './result.ts'

/** An operation is independent of the provider: providers must agree on items, or each would commit its own version. */
export interface ProviderOperation<Item> {
  /**
   * Items with the same id have the same content. If content can change under its key, include a part that changes with
   * it, such as the block.
   */
  id(item: Item): string
  /** Every cursor form of the item. */
  cursors(item: Item): readonly PaginationCursor[]
  toChange(item: Item): ItemChanges
  /**
   * Describes what is wrong with an item, or returns null. The items before it are committed; then the provider has
   * failed.
   */
  check?(item: Item): string | null
}

/** One of several providers of the same data. */
export interface Provider<Item> {
  readonly name: string
  /** The cursor types it can resume from. */
  readonly supports: readonly CursorType[]
  /** The type of its own cursor when it returns no page token. */
  readonly prefers: CursorType
  /** The operations it offers; all by default. */
  readonly operations?: readonly string[]
  readonly replay: ReplayWindow
  /** Yields batches from a cursor on. Failures are yielded, never thrown. */
  stream(request: StreamRequest<Item>, context: SyncContext): AsyncGenerator<FailoverResult<ProviderBatch<Item>>, void>
}

/** How far before another provider's cursor this one starts to read. */
export interface ReplayWindow {
  readonly blocks: number
  readonly ms: number
}

/** A request to stream one operation from a cursor. */
export interface StreamRequest<Item> {
  readonly operationName: string
  readonly operation: ProviderOperation<Item>
  /** Undefined at the start of the stream. */
  readonly cursor: PaginationCursor | undefined
  /** The state that the cursor was taken from, even if another provider wrote it. */
  readonly cursorState: CursorState | undefined
  /** Whether this provider wrote the state: then the cursor is its own, and nothing is read again. */
  readonly isSameProvider: boolean
}

/** A unit that can be committed by itself, with the cursor that follows it. */
export interface ProviderBatch<Item> {
  readonly operationType: string
  readonly items: readonly Item[]
  readonly cursor: CursorState
  /** Always equal to the flag in the cursor's metadata. */
  readonly isComplete: boolean
  readonly stats: BatchStats
  /** All items of the page, including duplicates. */
  readonly fetchedItems: readonly Item[]
  /** The page has an invalid item: these are the items before it, and the failure follows. */
  readonly isTruncated: boolean
}

/** The number of items of a batch before and after deduplication. */
export interface BatchStats {
  readonly fetched: number
  readonly deduplicated: number
  readonly yielded: number
}

/** A request for one page of a provider. */
export interface FetchRequest {
  readonly operation: string
  readonly cursor: PaginationCursor | undefined
  /** The state as this provider wrote it; undefined if it is another provider's, or missing. */
  readonly own: CursorState | undefined
}

/** One response of an API. */
export interface ProviderPage<Item> {
  /** Oldest first, unless `through` declares how far the page is complete. */
  readonly items: readonly Item[]
  /** The token of the next page. */
  readonly next?: string | null
  /** Whether the API reports that nothing follows for now. */
  readonly end?: boolean
  /** Everything before this cursor has been returned: where to continue, even if the page is empty. */
  readonly through?: ComparableCursor
  /** Passed back with the next request to this provider. */
  readonly custom?: JsonValue
  /** Stored in the cursor's metadata by name. */
  readonly metadata?: Readonly<Record<string, JsonValue>>
}
