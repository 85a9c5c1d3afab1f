import { SyncError, type SyncContext } from '../../contract/index.ts'
import { sourceInvalidError } from '../kit/strategy-errors.ts'
import { buildNextCursor, START_CURSOR, keepCursor, type CursorBuildInput } from './build-cursor.ts'
import { findCursorFault, findRegression, isComparableCursor, isSameCursor, type CursorState, type CursorType, type ComparableCursor } from './cursors.ts'
import { DedupWindow } from './dedup-window.ts'
import type { ProviderBatch, FetchRequest, ProviderOperation, Provider, ProviderPage, ReplayWindow, StreamRequest } from './provider.ts'
import { err, ok, type FailoverResult } from './result.ts'

/** A provider as it is declared: how one page is asked for. The loop, the cursors, the duplicates and the end are the same for all. */
export interface PagedProvider<Item> {
  readonly name: string
  readonly supports: readonly CursorType[]
  readonly prefers: CursorType
  readonly operations?: readonly string[]
  /** Two blocks and five minutes unless said otherwise. */
  readonly replay?: Partial<ReplayWindow>
  /** Whether a page without a next token is the last. Otherwise only `end` says so. */
  readonly endsWithoutToken?: boolean
  fetchPage(request: FetchRequest, context: SyncContext): Promise<ProviderPage<Item>>
}

const PROVIDER_DEDUP_SIZE = 500
const REPLAY_WINDOW_DEFAULT: ReplayWindow = { blocks: 2, ms: 5 * 60_000 }
/** So many pages in a row that bring nothing and get nowhere are a circle. */
const EMPTY_PAGES_MAX = 100

export function pagedProvider<Item>(options: PagedProvider<Item>): Provider<Item> {
  const { name, supports, prefers, operations, replay } = options
  if (typeof name !== 'string' || name === '') throw new SyncError('SYNC_INVALID', 'A provider needs a `name`: its cursors are kept under it.')
  if (supports.length === 0 || !supports.includes(prefers)) throw new SyncError('SYNC_INVALID', `${name}: \`prefers\` is one of the kinds of cursor that it \`supports\`.`)
  return {
    name, supports, prefers,
    ...(operations !== undefined && { operations }),
    replay: { ...REPLAY_WINDOW_DEFAULT, ...replay },
    stream: (request, context) => streamPages(options, request, context),
  }
}

async function* streamPages<Item>(provider: PagedProvider<Item>, request: StreamRequest<Item>, context: SyncContext): AsyncGenerator<FailoverResult<ProviderBatch<Item>>, void> {
  const { operationName: name, operation } = request
  const window = DedupWindow.fromLastId(PROVIDER_DEDUP_SIZE, request.cursorState?.lastTransactionId)
  let asked: CursorBuildInput['request'] = request
  for (;;) {
    let sound: CheckedPage<Item>
    let cursor: CursorState
    try {
      const page = await provider.fetchPage({ operation: name, cursor: asked.cursor, own: asked.isSameProvider ? asked.cursorState : undefined }, context)
      sound = checkPage(page, operation)
      if (page.through !== undefined && !provider.supports.includes(page.through.type)) throw sourceInvalidError(`${provider.name} tells how far it got in a form it could not go on from.`)
      const isComplete = sound.fault === null && (page.end ?? (provider.endsWithoutToken === true && !hasNext(page)))
      cursor = sound.keepsCursor ? keepCursor(provider, asked, context.clock.now()) : buildNextCursor({ provider, operation, page: sound.page, request: asked, isComplete, now: context.clock.now() })
      if (sound.fault === null) requireProgress(provider.name, asked, page, cursor)
      // The items of a page that broke are landed whatever else is wrong with it; they lead nowhere then.
      else if (findRegression(asked.cursorState, cursor) !== null) cursor = keepCursor(provider, asked, context.clock.now())
    } catch (thrown) {
      yield err(thrown)
      return
    }
    const items = window.takeNew(sound.page.items, operation.id)
    cursor = countEmptyPages(cursor, asked.cursorState, items.length)
    if (cursor.metadata!.barren! > EMPTY_PAGES_MAX) {
      yield err(new SyncError('CURSOR_CYCLE', `${provider.name}: ${EMPTY_PAGES_MAX} pages in a row brought nothing new and got nowhere.`))
      return
    }
    // Also when all of it is known, or there is nothing: the place it leads to, and the end, are news of their own.
    if (sound.fault === null || items.length > 0) yield ok(buildBatch(name, items, sound, cursor))
    if (sound.fault !== null) {
      yield err(sourceInvalidError(`${provider.name}: ${sound.fault}`))
      return
    }
    if (cursor.metadata!.isComplete === true) return
    asked = { cursor: cursor.primary, cursorState: cursor, isSameProvider: true }
  }
}

function buildBatch<Item>(operationType: string, items: readonly Item[], { page, fault }: CheckedPage<Item>, cursor: CursorState): ProviderBatch<Item> {
  const fetched = page.items.length
  return {
    operationType, items, cursor, isComplete: cursor.metadata?.isComplete ?? false, fetchedItems: page.items, isTruncated: fault !== null,
    stats: { fetched, deduplicated: fetched - items.length, yielded: items.length },
  }
}

interface CheckedPage<Item> {
  readonly page: ProviderPage<Item>
  readonly fault: string | null
  /** The items before a fault do not tell how far the page reaches. */
  readonly keepsCursor: boolean
}

/** The items up to the first that cannot be trusted. What is left of such a page leads to its last good item, not to the next page. */
function checkPage<Item>(page: ProviderPage<Item>, operation: ProviderOperation<Item>): CheckedPage<Item> {
  if (typeof page !== 'object' || page === null || !Array.isArray(page.items)) throw sourceInvalidError('A page of a provider has no list of items.')
  if (hasNext(page) && typeof page.next !== 'string') throw sourceInvalidError('The token of the next page is not a text.')
  const place = page.through === undefined ? null : findCursorFault(page.through)
  if (place !== null) throw sourceInvalidError(`The place up to which a page is complete ${place}.`)
  const fault = findFirstFault(page, operation)
  if (fault === null) return { page, fault: null, keepsCursor: false }
  return { page: { items: page.items.slice(0, fault.at) }, fault: `item ${fault.at + 1} of the page ${fault.what}.`, keepsCursor: page.through !== undefined || fault.at === 0 }
}

function findFirstFault<Item>({ items, through }: ProviderPage<Item>, operation: ProviderOperation<Item>): { at: number; what: string } | null {
  let previous: ComparableCursor | undefined
  for (const [at, item] of (items as readonly Item[]).entries()) {
    const { what, place } = inspectItem(item, operation)
    if (what !== null) return { at, what }
    // Out of order, the last item would not tell how far the page reaches, and another provider would go on too late.
    if (through === undefined && previous !== undefined && place?.type === previous.type && place.value < previous.value) return { at, what: 'is older than the one before it' }
    previous = place ?? previous
  }
  return null
}

/** Whatever an operation throws at the sight of an item, the item is to blame: the ones before it were fine. */
function inspectItem<Item>(item: Item, operation: ProviderOperation<Item>): { what: string | null; place?: ComparableCursor | undefined } {
  try {
    const what = operation.check?.(item) ?? null
    if (what !== null || typeof operation.id(item) !== 'string') return { what: what ?? 'has no id' }
    return { what: null, place: operation.cursors(item).find(isComparableCursor) }
  } catch {
    return { what: 'cannot be read' }
  }
}

function hasNext({ next }: ProviderPage<unknown>): boolean {
  return next !== undefined && next !== null
}

/** A page that leads back, nowhere, or to an end that lies before what another provider has shown. */
function requireProgress(name: string, asked: CursorBuildInput['request'], { through }: ProviderPage<unknown>, next: CursorState): void {
  const fault = findRegression(asked.cursorState, next)
  if (fault !== null) throw sourceInvalidError(`${name}: the position of the page ${fault}.`)
  if (next.metadata!.isComplete === true) {
    const replay = asked.cursorState?.metadata?.replay
    if (replay === undefined || replay.isRepair === true || through?.type !== replay.until.type || through.value >= replay.until.value) return
    throw new SyncError('SOURCE_UNAVAILABLE', `${name} is behind what another provider has shown.`)
  }
  if (isSameCursor(asked.cursor ?? START_CURSOR, next.primary) && serializeProviderState(asked.isSameProvider ? asked.cursorState : undefined) === serializeProviderState(next)) {
    throw new SyncError('CURSOR_STALLED', `${name}: the page is not the last, and says no way on.`)
  }
}

/** What a provider keeps in the cursor beside the place: the next question depends on it. */
function serializeProviderState(state: CursorState | undefined): string {
  const { providerName: _p, updatedAt: _u, isComplete: _c, reached: _r, lastAt: _l, replay: _y, barren: _b, fallback: _f, ...own } = state?.metadata ?? {}
  return JSON.stringify(own)
}

function countEmptyPages(next: CursorState, from: CursorState | undefined, fresh: number): CursorState {
  const before: Readonly<Record<string, number>> = from?.metadata?.reached ?? {}
  const isFurther = Object.entries(next.metadata?.reached ?? {}).some(([type, at]) => before[type] !== at)
  const isBarren = fresh === 0 && next.metadata!.isComplete !== true && !isFurther
  return { ...next, totalFetched: (from?.totalFetched ?? 0) + fresh, metadata: { ...next.metadata!, barren: isBarren ? (from?.metadata?.barren ?? 0) + 1 : 0 } }
}
