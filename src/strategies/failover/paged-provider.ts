import { SyncError, type SyncContext } from '../../contract/index.ts'
import { sourceInvalidError } from '../kit/strategy-errors.ts'
import { buildNextCursor, START_CURSOR, keepCursor, type CursorBuildInput } from './build-cursor.ts'
import {
  findCursorFault,
  findRegression,
  isComparableCursor,
  isSameCursor,
  requireMetadata,
  type CursorState,
  type CursorType,
  type ComparableCursor,
} from './cursors.ts'
import { DedupWindow } from './dedup-window.ts'
import type {
  ProviderBatch,
  FetchRequest,
  ProviderOperation,
  Provider,
  ProviderPage,
  ReplayWindow,
  StreamRequest,
} from './provider.ts'
import { err, ok, type FailoverResult } from './result.ts'

/** Declares how a provider reads one page. Looping, cursors, deduplication and end detection are shared. */
export interface PagedProvider<Item> {
  readonly name: string
  readonly supports: readonly CursorType[]
  readonly prefers: CursorType
  readonly operations?: readonly string[]
  /** Two blocks and five minutes by default. */
  readonly replay?: Partial<ReplayWindow>
  /** Whether a page without a next token is the last one. Otherwise only `end` decides. */
  readonly endsWithoutToken?: boolean
  fetchPage(request: FetchRequest, context: SyncContext): Promise<ProviderPage<Item>>
}

const PROVIDER_DEDUP_SIZE = 500
const REPLAY_WINDOW_DEFAULT: ReplayWindow = { blocks: 2, ms: 5 * 60_000 }
/** More consecutive pages than this without new items or progress are a cursor loop. */
const EMPTY_PAGES_MAX = 100

/** Creates a provider from a function that fetches one page. */
export function pagedProvider<Item>(options: PagedProvider<Item>): Provider<Item> {
  const { name, supports, prefers, operations, replay } = options
  if (typeof name !== 'string' || name === '')
    throw new SyncError('SYNC_INVALID', 'A provider has no `name`. Set one: its cursors are stored under it.')
  if (supports.length === 0 || !supports.includes(prefers))
    throw new SyncError('SYNC_INVALID', `${name}: \`prefers\` must be one of the cursor types in \`supports\`.`)
  return {
    name,
    supports,
    prefers,
    ...(operations !== undefined && { operations }),
    replay: { ...REPLAY_WINDOW_DEFAULT, ...replay },
    stream: (request, context) => streamPages(options, request, context),
  }
}

async function* streamPages<Item>(
  provider: PagedProvider<Item>,
  request: StreamRequest<Item>,
  context: SyncContext,
): AsyncGenerator<FailoverResult<ProviderBatch<Item>>, void> {
  const { operationName: name, operation } = request
  const window = DedupWindow.fromLastId(PROVIDER_DEDUP_SIZE, request.cursorState?.lastTransactionId)
  let current: CursorBuildInput['request'] = request
  for (;;) {
    let checked: CheckedPage<Item>
    let cursor: CursorState
    try {
      const page = await provider.fetchPage(
        { operation: name, cursor: current.cursor, own: current.isSameProvider ? current.cursorState : undefined },
        context,
      )
      checked = checkPage(page, operation)
      if (page.through !== undefined && !provider.supports.includes(page.through.type))
        throw sourceInvalidError(`${provider.name} returned \`through\` in a cursor type that it does not support.`)
      const isComplete = checked.fault === null && (page.end ?? (provider.endsWithoutToken === true && !hasNext(page)))
      cursor = checked.keepsCursor
        ? keepCursor(provider, current, context.clock.now())
        : buildNextCursor({
            provider,
            operation,
            page: checked.page,
            request: current,
            isComplete,
            now: context.clock.now(),
          })
      if (checked.fault === null) requireProgress(provider.name, current, page, cursor)
      // Items before a fault are committed whatever else is wrong with the page, but they do not move the cursor back.
      else if (findRegression(current.cursorState, cursor) !== null)
        cursor = keepCursor(provider, current, context.clock.now())
    } catch (thrown) {
      yield err(thrown)
      return
    }
    const items = window.takeNew(checked.page.items, operation.id)
    cursor = countEmptyPages(cursor, current.cursorState, items.length)
    if ((cursor.metadata?.barren ?? 0) > EMPTY_PAGES_MAX) {
      yield err(
        new SyncError(
          'CURSOR_CYCLE',
          `${provider.name}: ${EMPTY_PAGES_MAX} consecutive pages brought no new items and no progress. Check the pagination of the provider.`,
        ),
      )
      return
    }
    // Yielded even without new items: the new cursor and the end must be stored too.
    if (checked.fault === null || items.length > 0) yield ok(buildBatch(name, items, checked, cursor))
    if (checked.fault !== null) {
      yield err(sourceInvalidError(`${provider.name}: ${checked.fault}`))
      return
    }
    if (cursor.metadata?.isComplete === true) return
    current = { cursor: cursor.primary, cursorState: cursor, isSameProvider: true }
  }
}

function buildBatch<Item>(
  operationType: string,
  items: readonly Item[],
  { page, fault }: CheckedPage<Item>,
  cursor: CursorState,
): ProviderBatch<Item> {
  const fetched = page.items.length
  return {
    operationType,
    items,
    cursor,
    isComplete: cursor.metadata?.isComplete ?? false,
    fetchedItems: page.items,
    isTruncated: fault !== null,
    stats: { fetched, deduplicated: fetched - items.length, yielded: items.length },
  }
}

interface CheckedPage<Item> {
  readonly page: ProviderPage<Item>
  readonly fault: string | null
  /** The items before a fault do not show how far the page extends. */
  readonly keepsCursor: boolean
}

/**
 * Keeps the items before the first invalid one. The cursor then points to the last valid item, not to the next page.
 */
function checkPage<Item>(page: ProviderPage<Item>, operation: ProviderOperation<Item>): CheckedPage<Item> {
  if (typeof page !== 'object' || page === null || !Array.isArray(page.items))
    throw sourceInvalidError('A provider page has no `items` array.')
  if (hasNext(page) && typeof page.next !== 'string')
    throw sourceInvalidError('The token of the next page is not a string.')
  const throughFault = page.through === undefined ? null : findCursorFault(page.through)
  if (throughFault !== null) throw sourceInvalidError(`The \`through\` of a page ${throughFault}.`)
  const fault = findFirstFault(page, operation)
  if (fault === null) return { page, fault: null, keepsCursor: false }
  return {
    page: { items: page.items.slice(0, fault.at) },
    fault: `item ${fault.at + 1} on the page ${fault.what}.`,
    keepsCursor: page.through !== undefined || fault.at === 0,
  }
}

function findFirstFault<Item>(
  { items, through }: ProviderPage<Item>,
  operation: ProviderOperation<Item>,
): { at: number; what: string } | null {
  let previous: ComparableCursor | undefined
  for (const [at, item] of (items as readonly Item[]).entries()) {
    const { what, cursor } = inspectItem(item, operation)
    if (what !== null) return { at, what }
    // Unsorted, the last item would not show how far the page extends, and another provider would resume too late.
    if (
      through === undefined &&
      previous !== undefined &&
      cursor?.type === previous.type &&
      cursor.value < previous.value
    )
      return { at, what: 'is older than the previous one' }
    previous = cursor ?? previous
  }
  return null
}

/** An exception of the operation marks this item as invalid; the items before it are valid. */
function inspectItem<Item>(
  item: Item,
  operation: ProviderOperation<Item>,
): { what: string | null; cursor?: ComparableCursor | undefined } {
  try {
    const what = operation.check?.(item) ?? null
    if (what !== null || typeof operation.id(item) !== 'string') return { what: what ?? 'has no id' }
    return { what: null, cursor: operation.cursors(item).find(isComparableCursor) }
  } catch {
    return { what: 'cannot be read' }
  }
}

function hasNext({ next }: ProviderPage<unknown>): boolean {
  return next !== undefined && next !== null
}

/** Rejects a page that moves the cursor back or not at all, or that ends before what another provider has returned. */
function requireProgress(
  name: string,
  current: CursorBuildInput['request'],
  { through }: ProviderPage<unknown>,
  next: CursorState,
): void {
  const fault = findRegression(current.cursorState, next)
  if (fault !== null) throw sourceInvalidError(`${name}: the cursor of the page ${fault}.`)
  if (next.metadata?.isComplete === true) {
    const replay = current.cursorState?.metadata?.replay
    if (
      replay === undefined ||
      replay.isRepair === true ||
      through?.type !== replay.until.type ||
      through.value >= replay.until.value
    )
      return
    throw new SyncError('SOURCE_UNAVAILABLE', `${name} is behind another provider. Another provider is tried next.`)
  }
  if (
    isSameCursor(current.cursor ?? START_CURSOR, next.primary) &&
    serializeProviderState(current.isSameProvider ? current.cursorState : undefined) === serializeProviderState(next)
  ) {
    throw new SyncError('CURSOR_STALLED', `${name}: the page is not the last one, but its cursor does not advance.`)
  }
}

/** Provider-specific values in the cursor, which the next request depends on. */
function serializeProviderState(state: CursorState | undefined): string {
  const {
    providerName: _p,
    updatedAt: _u,
    isComplete: _c,
    reached: _r,
    lastAt: _l,
    replay: _y,
    barren: _b,
    fallback: _f,
    ...own
  } = state?.metadata ?? {}
  return JSON.stringify(own)
}

function countEmptyPages(next: CursorState, from: CursorState | undefined, newItems: number): CursorState {
  const reached: Readonly<Record<string, number>> = from?.metadata?.reached ?? {}
  const isFurther = Object.entries(next.metadata?.reached ?? {}).some(([type, at]) => reached[type] !== at)
  const isEmpty = newItems === 0 && next.metadata?.isComplete !== true && !isFurther
  return {
    ...next,
    totalFetched: (from?.totalFetched ?? 0) + newItems,
    metadata: { ...requireMetadata(next), barren: isEmpty ? (from?.metadata?.barren ?? 0) + 1 : 0 },
  }
}
