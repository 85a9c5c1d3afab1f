import type { Page, SyncContext } from '../contract/index.ts'
import type { AnchoredExecute } from './kit/anchored-execute.ts'
import { numericIds, parseWholeNumber } from './kit/compare-ids.ts'
import { carryExtra, type ExtraAnswer, type ExtraState } from './kit/extra.ts'
import { lowerHorizon, pinHorizon, measureRequest, type ServerClock } from './kit/horizon.ts'
import { formatIso } from './kit/instants.ts'
import { sourceInvalidError, requireMode, requireNumber, stateRejectedError } from './kit/strategy-errors.ts'
import { toChanges, type ItemChanges } from './kit/to-changes.ts'

/** Describes how to read changes from a search with a limited number of results. */
export interface SearchOptions<Item, Extra = never> {
  read(query: SearchQuery<Extra>, context: SyncContext): Promise<SearchAnswer<Item, Extra>>
  /** Time of the last modification, in milliseconds. */
  modifiedMs(item: Item): number
  /** A positive whole number, as text. */
  id(item: Item): string
  toChange(item: Item): ItemChanges
  /** At least the source's indexing delay plus its clock error. */
  lagMs: number
  /** Items on a full page. */
  limit: number
  /** How far back the first cycle begins. */
  lookBackMs: number
  /** Answers with a larger `total` are not trusted: the source rejects or truncates them. */
  windowMax?: number
}

/** Both bounds are inclusive, and only the first page of the answer is used. */
export interface SearchQuery<Extra = never> extends ExtraState<Extra> {
  readonly fromMs: number
  readonly untilMs: number
  /** By `id` within one millisecond, with `id > afterId`; otherwise by `modified`. Always ascending. */
  readonly sortBy: 'modified' | 'id'
  readonly afterId: string | undefined
  /** `id <= throughId`, set when one millisecond has more items than the source can search. */
  readonly throughId: string | undefined
  readonly limit: number
}

/** A page of search results. */
export interface SearchAnswer<Item, Extra = never> extends ServerClock, ExtraAnswer<Extra> {
  readonly items: readonly Item[]
  /**
   * Total matches, if the source reports them. A page with fewer items than this requires is rejected and read again.
   */
  readonly total?: number
}

/** Between cycles only `cursorMs` is kept. */
export type SearchState<Extra = never> = (SearchDeltaState | SearchDeadlockState) & ExtraState<Extra>

interface SearchDeltaState {
  readonly phase: 'delta'
  readonly cursorMs: number
  /** The horizon of this cycle; see pinHorizon. */
  readonly untilMs?: number
  /** Width of the time window, once the full range was too large. */
  readonly widthMs?: number
  /** The source returned unsorted items: a window is complete only when one page contains all of it. */
  readonly isWhole?: true
  /** The previous page: its start, the end of its window, and the number of items it left from `cursorMs` on. */
  readonly before?: { readonly cursorMs: number; readonly throughMs: number; readonly left: number }
  /** The window was empty once. It is skipped after a second empty answer. */
  readonly isEmpty?: true
  /** The source has claimed the end once and is asked again from the same cursor: the newest time found. */
  readonly endMs?: number
}

interface SearchDeadlockState {
  readonly phase: 'deadlock'
  readonly deadlockMs: number
  readonly lastId: string
  readonly resumeCursorMs: number
  readonly untilMs: number
  /** The upper end of the id range, once all ids were too many, and the width of that range. */
  readonly throughId?: string
  readonly idSpan?: string
  readonly widthMs?: number
  readonly isWhole?: true
  /** The previous page: the id it started after, and the number of items it left above `lastId`. */
  readonly before?: { readonly lastId: string; readonly left: number }
  readonly isEmpty?: true
}

/**
 * For searches that filter by time and sort by one field only. When a whole page shares one millisecond, the time
 * cannot advance; that millisecond is then read by id, from the lowest, because its items have no other order.
 *
 *   delta ──a full page of one millisecond──▶ deadlock ──two answers that agree──▶ delta, one millisecond later
 *
 * Every answer is checked against the source's own count. A page shorter than its `total` requires is read again. When
 * a page does not match the count that the previous page left, or is out of order, the order is not trusted for the
 * rest of the cycle: time is read in windows that fit on one page, and a millisecond in id ranges that do. An end needs
 * two answers that agree: the last page holds as many items as the previous page left, or the request is sent twice.
 *
 * ```ts
 * import { search } from 'tidemark'
 *
 * type Contact = { id: string; modifiedMs: number; email: string }
 *
 * export const contacts = search<Contact>({
 *   read: async ({ fromMs, untilMs, sortBy, afterId, throughId, limit }, { fetch }) => {
 *     const body = JSON.stringify({ modified: { from: fromMs, until: untilMs }, id: { above: afterId, upTo: throughId }, sortBy, limit })
 *     const response = await fetch('https://crm.example/contacts/search', { method: 'POST', body })
 *     return (await response.json()) as { items: Contact[]; total: number }
 *   },
 *   modifiedMs: (contact) => contact.modifiedMs,
 *   id: (contact) => contact.id,
 *   toChange: (contact) => ({ type: 'upsert', key: contact.id, record: contact }),
 *   lagMs: 10_000,
 *   limit: 100,
 *   lookBackMs: 300_000,
 * })
 * ```
 */
export function search<Item, Extra = never>(options: SearchOptions<Item, Extra>): AnchoredExecute<SearchState<Extra>> {
  const { limit, lagMs, lookBackMs, windowMax = 10_000 } = options
  requireNumber('search', 'lagMs', lagMs, 0)
  requireNumber('search', 'lookBackMs', lookBackMs, 0)
  requireNumber('search', 'limit', limit, 1)
  requireNumber('search', 'windowMax', windowMax, limit)

  const execute = carryExtra<SearchState<Extra>, Extra>(async (state, context, extra) => {
    requireMode('search', 'incremental', context, 'a search from a point in time does not list all records')
    checkState(state)
    const untilMs = pinHorizon('search', context.cycle, lagMs, state?.untilMs)
    const runSearch = async (query: Omit<SearchQuery, 'limit'>): Promise<CheckedSearchPage<Item>> => {
      const { answer, tookMs } = await measureRequest(context, () =>
        extra.read((carried) => options.read({ ...query, limit, ...carried }, context)),
      )
      const { items, total } = answer
      const isTooMany = total !== undefined && total > windowMax
      if (!isTooMany && total !== undefined && items.length < Math.min(total, limit)) {
        throw sourceInvalidError(
          `The search returned ${items.length} items but reports ${total} matches: the response is incomplete.`,
        )
      }
      const horizonMs = lowerHorizon(untilMs, lagMs, answer, tookMs)
      return {
        items: items.map((item, index) => toSearchItem(item, index, options)),
        isFull: items.length >= limit,
        exceedsWindow: isTooMany,
        searchableShare: total === undefined ? 1 : windowMax / Math.max(1, total),
        windowMax,
        total,
        untilMs: horizonMs,
        buildPage: (pageItems, hasMore, nextState) => ({
          changes: toChanges(
            pageItems,
            ({ item }) => options.toChange(item),
            ({ modifiedMs }) => formatIso(modifiedMs),
          ),
          hasMore,
          nextState,
          // Items with the cursor's own millisecond may still follow it.
          tidemark: formatIso((hasMore ? getCompleteMs(nextState) : horizonMs) - 1),
          ...(total !== undefined && { left: Math.max(0, total - items.length) }),
        }),
      }
    }
    if (state?.phase === 'deadlock') return readDeadlock(state, runSearch)
    if (state !== undefined) return readDelta({ ...beginCycle(state, untilMs, context), untilMs }, runSearch)
    const cursorMs = Math.min(context.cycle.startedAt - lookBackMs, untilMs)
    return readDelta({ phase: 'delta', cursorMs, untilMs, isFirst: true }, runSearch)
  })
  const anchor = async (context: SyncContext): Promise<SearchState<Extra>> => {
    const pinnedMs = pinHorizon('search', context.cycle, lagMs, undefined)
    // One request, only to read the source's clock.
    const query: SearchQuery = {
      fromMs: pinnedMs,
      untilMs: pinnedMs,
      sortBy: 'modified',
      afterId: undefined,
      throughId: undefined,
      limit,
    }
    const { answer, tookMs } = await measureRequest(context, () => options.read(query, context))
    const aheadMs = pinnedMs - lowerHorizon(pinnedMs, lagMs, answer, tookMs)
    return { phase: 'delta', cursorMs: context.cycle.startedAt - lookBackMs - aheadMs }
  }
  return Object.assign(execute, { anchor, startsAtEnd: true })
}

/** The time below which nothing is missing. A page's range is complete once the next page has matched its count. */
function getCompleteMs(state: SearchState): number {
  return state.phase === 'delta' ? (state.before?.cursorMs ?? state.cursorMs) : state.deadlockMs
}

type RunSearch<Item> = (query: Omit<SearchQuery, 'limit'>) => Promise<CheckedSearchPage<Item>>

interface CheckedSearchPage<Item> {
  readonly items: readonly SearchItem<Item>[]
  readonly isFull: boolean
  readonly exceedsWindow: boolean
  /** The share of the matches that the source can search. */
  readonly searchableShare: number
  readonly windowMax: number
  readonly total: number | undefined
  /** The horizon, lowered by the source's clock. */
  readonly untilMs: number
  buildPage(items: readonly SearchItem<Item>[], hasMore: boolean, nextState: SearchState): Page<SearchState>
}

interface SearchItem<Item> {
  readonly item: Item
  readonly id: string
  readonly modifiedMs: number
}

async function readDelta<Item>(
  state: SearchDeltaState & { untilMs: number; isFirst?: boolean },
  runSearch: RunSearch<Item>,
): Promise<Page<SearchState>> {
  const { cursorMs, widthMs, isWhole, before } = state
  // Counts are compared over the same end of the window.
  const throughMs = before?.throughMs ?? Math.min(state.untilMs, cursorMs + (widthMs ?? Number.POSITIVE_INFINITY))
  const found = await runSearch({
    fromMs: cursorMs,
    untilMs: throughMs,
    sortBy: 'modified',
    afterId: undefined,
    throughId: undefined,
  })
  const { untilMs, total } = found
  const current = {
    phase: 'delta',
    cursorMs,
    untilMs,
    ...(widthMs !== undefined && { widthMs }),
    ...(isWhole && { isWhole }),
  } as const
  // The first cycle's start was computed from a clock that is ahead, so start that much earlier.
  if (state.isFirst === true && untilMs < state.untilMs)
    return found.buildPage([], true, { ...current, cursorMs: cursorMs - (state.untilMs - untilMs) })

  if (found.exceedsWindow)
    return found.buildPage(
      [],
      true,
      throughMs > cursorMs ? { ...current, widthMs: fitWindowMs(cursorMs, throughMs, found) } : enterDeadlock(current),
    )
  if (found.items.some(({ modifiedMs }) => modifiedMs < cursorMs))
    throw sourceInvalidError('The search returned an item from before the requested start time.')
  // Modified again since the source matched it: it will match again at its new time.
  const inWindow = found.items.filter(({ modifiedMs }) => modifiedMs <= throughMs)
  const safe = inWindow.filter(({ modifiedMs }) => modifiedMs <= untilMs)
  const times = inWindow.map(({ modifiedMs }) => modifiedMs)
  // The cursor is the maximum time seen, not the last one; without items it does not move.
  const newestMs = safe.reduce((most, { modifiedMs }) => Math.max(most, modifiedMs), cursorMs)

  // Either items were modified since, or one of the two pages was wrong. Reading the range again decides.
  if (before !== undefined && total !== undefined && total !== before.left) {
    return found.buildPage(safe, true, {
      phase: 'delta',
      cursorMs: before.cursorMs,
      untilMs,
      widthMs: cursorMs - before.cursorMs,
      isWhole: true,
    })
  }
  if (found.isFull) {
    if (times.length === 0)
      throw sourceInvalidError('A full search page has only items from after the requested end time.')
    const isSorted = times.every((ms, index) => ms >= (times[index - 1] ?? Number.NEGATIVE_INFINITY))
    if (isWhole || !isSorted) {
      return found.buildPage(
        safe,
        true,
        throughMs > cursorMs
          ? { ...current, widthMs: narrowWindowMs(cursorMs, throughMs, times), isWhole: true }
          : enterDeadlock({ ...current, isWhole: true }),
      )
    }
  }
  // The previous page left as many, or this is the second answer to one request. Behind the horizon items can only
  // leave the window: an item newer than the whole first answer shows that it was truncated, so this is a new first
  // claim.
  const isClaimed = state.endMs !== undefined && newestMs <= state.endMs
  const isAgreed = (before !== undefined && total !== undefined) || isClaimed
  const endPage = (): Page<SearchState> =>
    isAgreed
      ? found.buildPage(safe, false, {
          phase: 'delta',
          cursorMs: Math.max(newestMs, Math.min(state.endMs ?? cursorMs, untilMs)),
        })
      : found.buildPage(safe, true, { ...current, endMs: newestMs })
  // Cut off by the source's clock. Items are sorted, so none below the horizon can follow.
  if (safe.length < inWindow.length) return endPage()
  if (found.isFull) {
    // A tie is read from its own start, so a page that skipped earlier items is detected first.
    if (newestMs === cursorMs || (total === undefined && times.every((ms) => ms === newestMs)))
      return found.buildPage(safe, true, enterDeadlock({ ...current, cursorMs: newestMs }))
    const left = total === undefined ? undefined : total - times.filter((ms) => ms < newestMs).length
    return found.buildPage(safe, true, {
      ...current,
      cursorMs: newestMs,
      ...(left !== undefined && { before: { cursorMs, throughMs, left } }),
    })
  }
  if (throughMs >= untilMs) return endPage()
  // No row proves that a window in the middle is complete, so an empty one must be confirmed.
  if (found.items.length === 0 && state.isEmpty === undefined)
    return found.buildPage([], true, { ...current, ...(before !== undefined && { before }), isEmpty: true })
  const growth = found.items.length === 0 ? EMPTY_WINDOW_GROWTH : 2
  // Use the window's full width: the remainder on its last page does not show how much fits.
  return found.buildPage(safe, true, {
    ...current,
    cursorMs: throughMs + 1,
    widthMs: growth * Math.max(widthMs ?? 0, throughMs - cursorMs + 1),
  })
}

/** Long periods without items are skipped in few requests. */
const EMPTY_WINDOW_GROWTH = 16

/** Estimates, from the items returned, the end of a window that the source can search. */
function fitWindowMs<Item>(
  fromMs: number,
  throughMs: number,
  { items, searchableShare }: CheckedSearchPage<Item>,
): number {
  const times = items.map(({ modifiedMs }) => modifiedMs).filter((ms) => ms >= fromMs && ms <= throughMs)
  const oldestMs = Math.min(throughMs, ...times)
  // Time without items is skipped in one request.
  if (times.length > 0 && oldestMs > fromMs) return oldestMs - 1 - fromMs
  if (times.length > 0 && times.every((ms) => ms === fromMs)) return 0
  return Math.min(narrowWindowMs(fromMs, throughMs), Math.floor((throughMs - fromMs) * searchableShare))
}

/** Returns a smaller window: at most half the time, or up to the median item if that is earlier. */
function narrowWindowMs(fromMs: number, throughMs: number, times: readonly number[] = []): number {
  const median = times.toSorted((a, b) => a - b)[times.length >> 1] ?? throughMs
  return Math.min(median - fromMs, Math.floor((throughMs - fromMs) / 2))
}

function enterDeadlock({
  cursorMs,
  untilMs,
  widthMs,
  isWhole,
}: SearchDeltaState & { untilMs: number }): SearchDeadlockState {
  return {
    phase: 'deadlock',
    deadlockMs: cursorMs,
    lastId: LOWEST_ID,
    resumeCursorMs: cursorMs,
    untilMs,
    ...(widthMs !== undefined && { widthMs }),
    ...(isWhole && { isWhole }),
  }
}

const LOWEST_ID = '0'

async function readDeadlock<Item>(state: SearchDeadlockState, runSearch: RunSearch<Item>): Promise<Page<SearchState>> {
  const { deadlockMs, lastId, throughId, idSpan, resumeCursorMs, widthMs, isWhole, before } = state
  const found = await runSearch({ fromMs: deadlockMs, untilMs: deadlockMs, sortBy: 'id', afterId: lastId, throughId })
  const { untilMs, total } = found
  const kept = { untilMs, ...(widthMs !== undefined && { widthMs }), ...(isWhole && { isWhole }) }
  const unmoved: SearchDeadlockState = {
    phase: 'deadlock',
    deadlockMs,
    lastId,
    resumeCursorMs,
    ...kept,
    ...(idSpan !== undefined && { idSpan }),
  }
  const ids = found.items.map(({ id }) => id)
  if (found.exceedsWindow)
    return found.buildPage([], true, {
      ...unmoved,
      ...narrowIdRange(lastId, throughId, idSpan, estimateIdSpan(lastId, ids, found.windowMax)),
    })

  if (ids.some((id) => numericIds(id, lastId) <= 0 || (throughId !== undefined && numericIds(id, throughId) > 0)))
    throw sourceInvalidError('The search by id returned ids outside the requested range.')
  if (found.items.some(({ modifiedMs }) => modifiedMs < deadlockMs))
    throw sourceInvalidError('The search returned an item from before the requested millisecond.')

  if (before !== undefined && total !== undefined && total < before.left) {
    return found.buildPage(found.items, true, { ...unmoved, lastId: before.lastId, throughId: lastId, isWhole: true })
  }
  const isSorted = ids.every((id, index) => numericIds(id, ids[index - 1] ?? lastId) > 0)
  const range = throughId !== undefined && { throughId }
  // More than the previous page left: read it again, without a count to compare with.
  if (before !== undefined && total !== undefined && total > before.left)
    return found.buildPage(found.items, true, { ...unmoved, ...range })
  const leaveRange = (): Page<SearchState> => {
    if (throughId !== undefined) return found.buildPage(found.items, true, { ...unmoved, lastId: throughId })
    // Only a millisecond behind the horizon is final; otherwise the next cycle reads it again.
    if (resumeCursorMs < untilMs)
      return found.buildPage(found.items, true, { phase: 'delta', cursorMs: resumeCursorMs + 1, ...kept })
    return found.buildPage(found.items, false, { phase: 'delta', cursorMs: resumeCursorMs })
  }
  // This page holds all that the previous page left: two answers agree.
  if (before !== undefined && total === before.left && total === ids.length) return leaveRange()
  if (found.isFull && (isWhole || !isSorted) && !isSingleId(lastId, throughId)) {
    return found.buildPage(found.items, true, { ...unmoved, throughId: pickMiddleId(lastId, ids), isWhole: true })
  }
  const highest = ids.reduce<string | undefined>(
    (most, id) => (most === undefined || numericIds(id, most) > 0 ? id : most),
    undefined,
  )
  if (highest !== undefined) {
    return found.buildPage(found.items, true, {
      ...unmoved,
      ...range,
      lastId: highest,
      ...(total !== undefined && { before: { lastId, left: total - ids.length } }),
    })
  }
  // Only an empty page shows that an id range, or the millisecond, is complete, so two are required.
  if (state.isEmpty === undefined)
    return found.buildPage([], true, { ...unmoved, ...range, ...(before !== undefined && { before }), isEmpty: true })
  return leaveRange()
}

function isSingleId(lastId: string, throughId: string | undefined): boolean {
  return throughId !== undefined && parseWholeNumber(throughId) - parseWholeNumber(lastId) <= 1n
}

/** Half of the ids found are above it, so the next range has fewer of them. */
function pickMiddleId(lastId: string, ids: readonly string[]): string {
  const sorted = ids.toSorted(numericIds)
  const [lowest] = sorted
  const below = sorted[(sorted.length >> 1) - 1]
  if (below !== undefined || lowest === undefined) return below ?? lastId
  const last = parseWholeNumber(lastId)
  const middle = (last + parseWholeNumber(lowest)) / 2n
  return String(middle > last ? middle : last + 1n)
}

/** Estimates an id range that holds half of what the source can search, if ids are evenly distributed. */
function estimateIdSpan(lastId: string, ids: readonly string[], windowMax: number): bigint | null {
  const highest = ids.toSorted(numericIds).at(-1)
  if (highest === undefined || numericIds(highest, lastId) <= 0) return null
  return (
    (parseWholeNumber(highest) - parseWholeNumber(lastId)) *
    BigInt(Math.max(1, Math.floor(windowMax / (2 * ids.length))))
  )
}

/**
 * Ids have no known maximum: without ids to estimate from, the first guess exceeds any. Each rejection halves the
 * range; the next range starts with twice the last size that worked.
 */
function narrowIdRange(
  lastId: string,
  throughId: string | undefined,
  idSpan: string | undefined,
  guess: bigint | null,
): { throughId: string; idSpan: string } {
  const low = parseWholeNumber(lastId)
  const halved = halveIdSpan(low, throughId, idSpan)
  const span = guess !== null && guess < halved ? guess : halved
  if (span < 1n) throw sourceInvalidError('The search exceeds its limit even for a single id.')
  return { throughId: String(low + span), idSpan: String(span) }
}

function halveIdSpan(low: bigint, throughId: string | undefined, idSpan: string | undefined): bigint {
  return throughId !== undefined
    ? (parseWholeNumber(throughId) - low) / 2n
    : idSpan === undefined
      ? 2n ** 63n
      : parseWholeNumber(idSpan) * 2n
}

function toSearchItem<Item>(
  item: Item,
  index: number,
  options: Pick<SearchOptions<Item>, 'modifiedMs' | 'id'>,
): SearchItem<Item> {
  const modifiedMs = options.modifiedMs(item)
  if (!Number.isSafeInteger(modifiedMs) || modifiedMs < 0 || modifiedMs > YEAR_9999_MS)
    throw sourceInvalidError(`\`modifiedMs\` of item ${index + 1} on the page is not a time in milliseconds.`)
  const id = options.id(item)
  if (typeof id !== 'string') throw sourceInvalidError(`The id of item ${index + 1} on the page is not a string.`)
  return { item, id, modifiedMs }
}

/** Larger values are microseconds or nanoseconds mistaken for milliseconds. */
const YEAR_9999_MS = 253_402_300_799_999

/** A cycle's first page has no horizon in its state. */
function beginCycle(state: SearchDeltaState, untilMs: number, { log }: SyncContext): SearchDeltaState {
  if (state.untilMs !== undefined || state.cursorMs <= untilMs) return state
  log.warn('the stored cursor is ahead of the horizon and was moved back to it', { aheadMs: state.cursorMs - untilMs })
  return { phase: 'delta', cursorMs: untilMs }
}

function checkState(state: SearchDeltaState | SearchDeadlockState | undefined): void {
  if (state === undefined) return
  switch (state.phase) {
    case 'delta':
      if (!Number.isSafeInteger(state.cursorMs))
        throw stateRejectedError('search', '`cursorMs` is not a time in milliseconds')
      return
    case 'deadlock':
      if (!Number.isSafeInteger(state.deadlockMs) || !Number.isSafeInteger(state.resumeCursorMs))
        throw stateRejectedError('search', '`deadlockMs` and `resumeCursorMs` are not times in milliseconds')
      if (typeof state.lastId !== 'string') throw stateRejectedError('search', '`lastId` is not an id')
      return
    default:
      state satisfies never
      throw stateRejectedError('search', '`phase` is neither "delta" nor "deadlock"')
  }
}
