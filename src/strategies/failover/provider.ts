import type { JsonValue, SyncContext } from '../../contract/index.ts'
import type { ItemChanges } from '../kit/to-changes.ts'
import type { CursorState, CursorType, PaginationCursor, ComparableCursor } from './cursors.ts'
import type { FailoverResult } from './result.ts'

/** What is read, whoever provides it: providers must agree on items, or each would land its own. */
export interface ProviderOperation<Item> {
  /**
   * Two items with one id are the same item with the same content. Where content can change under its key, a part of it that
   * changes with it belongs into the id, such as the block.
   */
  id(item: Item): string
  /** Every form in which the item tells its place. */
  cursors(item: Item): readonly PaginationCursor[]
  toChange(item: Item): ItemChanges
  /** What is wrong with an item, or null. The items before it are landed; then the provider has failed. */
  check?(item: Item): string | null
}

/** One of several that can tell the same. */
export interface Provider<Item> {
  readonly name: string
  /** The kinds of cursor it can go on from. */
  readonly supports: readonly CursorType[]
  /** The kind its own position is kept as, when it gives no page token. */
  readonly prefers: CursorType
  /** The operations it offers; all of them when absent. */
  readonly operations?: readonly string[]
  readonly replay: ReplayWindow
  /** Batch after batch from a place on. Yields its failures and never throws them. */
  stream(request: StreamRequest<Item>, context: SyncContext): AsyncGenerator<FailoverResult<ProviderBatch<Item>>, void>
}

/** How far before another provider's position this one begins to read. */
export interface ReplayWindow {
  readonly blocks: number
  readonly ms: number
}

export interface StreamRequest<Item> {
  readonly operationName: string
  readonly operation: ProviderOperation<Item>
  /** Undefined at the very beginning. */
  readonly cursor: PaginationCursor | undefined
  /** What the cursor was taken from, also when another provider wrote it. */
  readonly cursorState: CursorState | undefined
  /** Whether this provider wrote it: then `from` is its own, and nothing is to be read again. */
  readonly isSameProvider: boolean
}

/** What can be landed by itself, with the place it leads to. */
export interface ProviderBatch<Item> {
  readonly operationType: string
  readonly items: readonly Item[]
  readonly cursor: CursorState
  /** Always what the cursor's metadata says. */
  readonly isComplete: boolean
  readonly stats: BatchStats
  /** All that the page held, duplicates too. */
  readonly fetchedItems: readonly Item[]
  /** The page broke in the middle: these are the items before, and the failure follows. */
  readonly isTruncated: boolean
}

export interface BatchStats {
  readonly fetched: number
  readonly deduplicated: number
  readonly yielded: number
}

export interface FetchRequest {
  readonly operation: string
  readonly cursor: PaginationCursor | undefined
  /** The position as this provider left it; undefined when it is another's, or none. */
  readonly own: CursorState | undefined
}

/** One answer of an API. */
export interface ProviderPage<Item> {
  /** Oldest first, unless `through` says how far the page is complete. */
  readonly items: readonly Item[]
  /** The token of the next page. */
  readonly next?: string | null
  /** The API's own word on whether this is all there is now. */
  readonly end?: boolean
  /** Everything before this place has been told: where to go on, also when the page is empty. */
  readonly through?: ComparableCursor
  /** Given back with the next request to this provider. */
  readonly custom?: JsonValue
  /** Kept in the cursor's metadata by name. */
  readonly metadata?: Readonly<Record<string, JsonValue>>
}
