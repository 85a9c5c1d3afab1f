import type { Page, SyncContext } from '../contract/index.ts'
import type { AnchoredExecute } from './kit/anchored-execute.ts'
import { numericIds, parseWholeNumber } from './kit/compare-ids.ts'
import { lowerHorizon, pinHorizon, measureRequest, type ServerClock } from './kit/horizon.ts'
import { formatIso } from './kit/instants.ts'
import { sourceInvalidError, requireMode, requireNumber, stateRejectedError } from './kit/strategy-errors.ts'
import { toChanges, type ItemChanges } from './kit/to-changes.ts'

export interface SearchOptions<Item> {
  read(query: SearchQuery, context: SyncContext): Promise<SearchAnswer<Item>>
  /** When it was last modified, in milliseconds. */
  modifiedMs(item: Item): number
  /** A whole number above 0, as text. */
  id(item: Item): string
  toChange(item: Item): ItemChanges
  /** At least the time the source needs to index a change, plus the error of its clock. */
  lagMs: number
  /** How many items make a full page. */
  limit: number
  /** How far back the first cycle begins. */
  lookBackMs: number
  /** Answers whose `total` is above this are not trusted: the source refuses or cuts them. */
  windowMax?: number
}

/** Both bounds are inclusive, and only the first page of the answer is wanted. */
export interface SearchQuery {
  readonly fromMs: number
  readonly untilMs: number
  /** By `id` within one millisecond, with `id > afterId`; by `modified` otherwise. Always ascending. */
  readonly sortBy: 'modified' | 'id'
  readonly afterId: string | undefined
  /** `id <= throughId`, when a millisecond holds more than the source will search through. */
  readonly throughId: string | undefined
  readonly limit: number
}

export interface SearchAnswer<Item> extends ServerClock {
  readonly items: readonly Item[]
  /** How many match in all, when the source says so. A page that holds fewer than this allows is refused and read again. */
  readonly total?: number
}

/** Between cycles only `cursorMs`. */
export type SearchState = SearchDeltaState | SearchDeadlockState

interface SearchDeltaState {
  readonly phase: 'delta'
  readonly cursorMs: number
  /** The horizon of this cycle; see pinHorizon. */
  readonly untilMs?: number
  /** How much time is searched at once, after all of it was too much. */
  readonly widthMs?: number
  /** The source did not keep the order: a window is left only when one page held all of it. */
  readonly isWhole?: true
  /** The page before: where it began, what it searched, and how many items it left to be found from `cursorMs` on. */
  readonly before?: { readonly cursorMs: number; readonly throughMs: number; readonly left: number }
  /** The window came back empty once. It is left after a second empty answer. */
  readonly isEmpty?: true
  /** The source has claimed the end once, and is asked again from the same cursor: the newest time found. */
  readonly endMs?: number
}

interface SearchDeadlockState {
  readonly phase: 'deadlock'
  readonly deadlockMs: number
  readonly lastId: string
  readonly resumeCursorMs: number
  readonly untilMs: number
  /** The upper end of the ids searched at once, after all of them were too many, and how many ids that were. */
  readonly throughId?: string
  readonly idSpan?: string
  readonly widthMs?: number
  readonly isWhole?: true
  /** The page before: the id it followed, and how many items it left above `lastId`. */
  readonly before?: { readonly lastId: string; readonly left: number }
  readonly isEmpty?: true
}

/**
 * For searches that filter by a time and sort by one field only. When a whole page shares one millisecond, the time cannot
 * lead any further; then that millisecond is read by id, from the lowest on, because the order inside it means nothing.
 *
 *   delta ──a full page of one millisecond──▶ deadlock ──two answers that agree──▶ delta, one millisecond later
 *
 * Every answer is held against the source's own count. A page that is shorter than its `total` is read again. When a page
 * finds other than the page before it left, or is out of order, the order is not trusted for the rest of the cycle: time is
 * then read in windows that fit on one page, and a millisecond in ranges of ids that do. An end needs two answers that agree:
 * the last page holds as many items as the page before it left, or the question is asked twice.
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
export function search<Item>(options: SearchOptions<Item>): AnchoredExecute<SearchState> {
  const { limit, lagMs, lookBackMs, windowMax = 10_000 } = options
  requireNumber('search', 'lagMs', lagMs, 0)
  requireNumber('search', 'lookBackMs', lookBackMs, 0)
  requireNumber('search', 'limit', limit, 1)
  requireNumber('search', 'windowMax', windowMax, limit)

  const execute: AnchoredExecute<SearchState> = async (state, context) => {
    requireMode('search', 'incremental', context, 'a search from a point in time does not list everything there is')
    checkState(state)
    const untilMs = pinHorizon('search', context.cycle, lagMs, state?.untilMs)
    const ask = async (query: Omit<SearchQuery, 'limit'>): Promise<CheckedSearchPage<Item>> => {
      const { answer, tookMs } = await measureRequest(context, () => options.read({ ...query, limit }, context))
      const { items, total } = answer
      const isTooMany = total !== undefined && total > windowMax
      if (!isTooMany && total !== undefined && items.length < Math.min(total, limit)) {
        throw sourceInvalidError(`The search sent ${items.length} items and says that ${total} match: the answer is not complete.`)
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
        buildPage: (shown, hasMore, nextState) => ({
          changes: toChanges(shown, ({ item }) => options.toChange(item), ({ modifiedMs }) => formatIso(modifiedMs)),
          hasMore,
          nextState,
          // Items of the cursor's own millisecond may follow it.
          tidemark: formatIso((hasMore ? getCompleteMs(nextState) : horizonMs) - 1),
          ...(total !== undefined && { left: Math.max(0, total - items.length) }),
        }),
      }
    }
    if (state?.phase === 'deadlock') return readDeadlock(state, ask)
    if (state !== undefined) return readDelta({ ...beginCycle(state, untilMs, context), untilMs }, ask)
    const cursorMs = Math.min(context.cycle.startedAt - lookBackMs, untilMs)
    return readDelta({ phase: 'delta', cursorMs, untilMs, isFirst: true }, ask)
  }
  execute.anchor = async (context) => {
    const pinnedMs = pinHorizon('search', context.cycle, lagMs, undefined)
    // One question, only to hear the source's time.
    const query: SearchQuery = { fromMs: pinnedMs, untilMs: pinnedMs, sortBy: 'modified', afterId: undefined, throughId: undefined, limit }
    const { answer, tookMs } = await measureRequest(context, () => options.read(query, context))
    const aheadMs = pinnedMs - lowerHorizon(pinnedMs, lagMs, answer, tookMs)
    return { phase: 'delta', cursorMs: context.cycle.startedAt - lookBackMs - aheadMs }
  }
  return Object.assign(execute, { startsAtEnd: true })
}

/** Up to where nothing is missing. What a page has passed is certain once the next page has found what it left. */
function getCompleteMs(state: SearchState): number {
  return state.phase === 'delta' ? (state.before?.cursorMs ?? state.cursorMs) : state.deadlockMs
}

type RunSearch<Item> = (query: Omit<SearchQuery, 'limit'>) => Promise<CheckedSearchPage<Item>>

/** An answer, looked at. */
interface CheckedSearchPage<Item> {
  readonly items: readonly SearchItem<Item>[]
  readonly isFull: boolean
  readonly exceedsWindow: boolean
  /** Which share of what matches the source will search through. */
  readonly searchableShare: number
  readonly windowMax: number
  readonly total: number | undefined
  /** The horizon, after the source's clock had its say. */
  readonly untilMs: number
  buildPage(items: readonly SearchItem<Item>[], hasMore: boolean, nextState: SearchState): Page<SearchState>
}

interface SearchItem<Item> {
  readonly item: Item
  readonly id: string
  readonly modifiedMs: number
}

async function readDelta<Item>(state: SearchDeltaState & { untilMs: number; isFirst?: boolean }, ask: RunSearch<Item>): Promise<Page<SearchState>> {
  const { cursorMs, widthMs, isWhole, before } = state
  // Counts are compared over one and the same end of the window.
  const throughMs = before?.throughMs ?? Math.min(state.untilMs, cursorMs + (widthMs ?? Number.POSITIVE_INFINITY))
  const found = await ask({ fromMs: cursorMs, untilMs: throughMs, sortBy: 'modified', afterId: undefined, throughId: undefined })
  const { untilMs, total } = found
  const here = { phase: 'delta', cursorMs, untilMs, ...(widthMs !== undefined && { widthMs }), ...(isWhole && { isWhole }) } as const
  // The first cycle's beginning was reckoned with a clock that is ahead: begin as much earlier as it is.
  if (state.isFirst === true && untilMs < state.untilMs) return found.buildPage([], true, { ...here, cursorMs: cursorMs - (state.untilMs - untilMs) })

  if (found.exceedsWindow) return found.buildPage([], true, throughMs > cursorMs ? { ...here, widthMs: fitWindowMs(cursorMs, throughMs, found) } : enterDeadlock(here))
  if (found.items.some(({ modifiedMs }) => modifiedMs < cursorMs)) throw sourceInvalidError('The search found an item from before the time it was asked to begin with.')
  // Modified again since the source found it: it will be found again, at its new time.
  const asked = found.items.filter(({ modifiedMs }) => modifiedMs <= throughMs)
  const safe = asked.filter(({ modifiedMs }) => modifiedMs <= untilMs)
  const times = asked.map(({ modifiedMs }) => modifiedMs)
  // No items, no new cursor; and the maximum of what was seen, not the last of it.
  const newestMs = safe.reduce((most, { modifiedMs }) => Math.max(most, modifiedMs), cursorMs)

  // Items were modified since, or one of the two pages was not the one that was asked for. Only reading it again can tell.
  if (before !== undefined && total !== undefined && total !== before.left) {
    return found.buildPage(safe, true, { phase: 'delta', cursorMs: before.cursorMs, untilMs, widthMs: cursorMs - before.cursorMs, isWhole: true })
  }
  if (found.isFull) {
    if (times.length === 0) throw sourceInvalidError('A full page of the search has only items from after the time it was asked to end with.')
    const isSorted = times.every((ms, index) => index === 0 || ms >= times[index - 1]!)
    if (isWhole || !isSorted) {
      return found.buildPage(safe, true, throughMs > cursorMs ? { ...here, widthMs: narrowWindowMs(cursorMs, throughMs, times), isWhole: true } : enterDeadlock({ ...here, isWhole: true }))
    }
  }
  // The page before left as many, or this is the second answer to one question. Behind the horizon items only leave the
  // window: one that is newer than all of the first answer shows that it broke off, and this one is a first claim again.
  const isClaimed = state.endMs !== undefined && newestMs <= state.endMs
  const isAgreed = (before !== undefined && total !== undefined) || isClaimed
  const ended = (): Page<SearchState> => (isAgreed
    ? found.buildPage(safe, false, { phase: 'delta', cursorMs: Math.max(newestMs, Math.min(state.endMs ?? cursorMs, untilMs)) })
    : found.buildPage(safe, true, { ...here, endMs: newestMs }))
  // Cut by the source's clock: sorted, so nothing below the horizon can follow.
  if (safe.length < asked.length) return ended()
  if (found.isFull) {
    // A tie is entered from its own beginning, so that a page which left out what comes before it is found out first.
    if (newestMs === cursorMs || (total === undefined && times.every((ms) => ms === newestMs))) return found.buildPage(safe, true, enterDeadlock({ ...here, cursorMs: newestMs }))
    const left = total === undefined ? undefined : total - times.filter((ms) => ms < newestMs).length
    return found.buildPage(safe, true, { ...here, cursorMs: newestMs, ...(left !== undefined && { before: { cursorMs, throughMs, left } }) })
  }
  if (throughMs >= untilMs) return ended()
  // A window in the middle is left without a row to prove that it is over, so an empty one is confirmed first.
  if (found.items.length === 0 && state.isEmpty === undefined) return found.buildPage([], true, { ...here, ...(before !== undefined && { before }), isEmpty: true })
  const growth = found.items.length === 0 ? EMPTY_WINDOW_GROWTH : 2
  // The window's own width: what is left of it on its last page is no measure of how much fits.
  return found.buildPage(safe, true, { ...here, cursorMs: throughMs + 1, widthMs: growth * Math.max(widthMs ?? 0, throughMs - cursorMs + 1) })
}

/** A long time without items is left in few steps. */
const EMPTY_WINDOW_GROWTH = 16

/** The end of a window that the source will search through, guessed from the items that it showed. */
function fitWindowMs<Item>(fromMs: number, throughMs: number, { items, searchableShare: fits }: CheckedSearchPage<Item>): number {
  const times = items.map(({ modifiedMs }) => modifiedMs).filter((ms) => ms >= fromMs && ms <= throughMs)
  const oldestMs = Math.min(throughMs, ...times)
  // Time without items is left in one step.
  if (times.length > 0 && oldestMs > fromMs) return oldestMs - 1 - fromMs
  if (times.length > 0 && times.every((ms) => ms === fromMs)) return 0
  return Math.min(narrowWindowMs(fromMs, throughMs), Math.floor((throughMs - fromMs) * fits))
}

/** The end of a smaller window: at most half of its time, and less where half of the items found are older than that. */
function narrowWindowMs(fromMs: number, throughMs: number, times: readonly number[] = []): number {
  const median = times.toSorted((a, b) => a - b)[times.length >> 1] ?? throughMs
  return Math.min(median - fromMs, Math.floor((throughMs - fromMs) / 2))
}

function enterDeadlock({ cursorMs, untilMs, widthMs, isWhole }: SearchDeltaState & { untilMs: number }): SearchDeadlockState {
  return { phase: 'deadlock', deadlockMs: cursorMs, lastId: LOWEST_ID, resumeCursorMs: cursorMs, untilMs, ...(widthMs !== undefined && { widthMs }), ...(isWhole && { isWhole }) }
}

const LOWEST_ID = '0'

async function readDeadlock<Item>(state: SearchDeadlockState, ask: RunSearch<Item>): Promise<Page<SearchState>> {
  const { deadlockMs, lastId, throughId, idSpan, resumeCursorMs, widthMs, isWhole, before } = state
  const found = await ask({ fromMs: deadlockMs, untilMs: deadlockMs, sortBy: 'id', afterId: lastId, throughId })
  const { untilMs, total } = found
  const kept = { untilMs, ...(widthMs !== undefined && { widthMs }), ...(isWhole && { isWhole }) }
  const staying: SearchDeadlockState = { phase: 'deadlock', deadlockMs, lastId, resumeCursorMs, ...kept, ...(idSpan !== undefined && { idSpan }) }
  const ids = found.items.map(({ id }) => id)
  if (found.exceedsWindow) return found.buildPage([], true, { ...staying, ...narrowIdRange(lastId, throughId, idSpan, estimateIdSpan(lastId, ids, found.windowMax)) })

  if (ids.some((id) => numericIds(id, lastId) <= 0 || (throughId !== undefined && numericIds(id, throughId) > 0))) throw sourceInvalidError('The search by id found ids other than those it was asked for.')
  if (found.items.some(({ modifiedMs }) => modifiedMs < deadlockMs)) throw sourceInvalidError('The search found an item of another time than the one it was asked for.')

  if (before !== undefined && total !== undefined && total < before.left) {
    return found.buildPage(found.items, true, { ...staying, lastId: before.lastId, throughId: lastId, isWhole: true })
  }
  const isSorted = ids.every((id, index) => index === 0 || numericIds(id, ids[index - 1]!) > 0)
  const range = throughId !== undefined && { throughId }
  // More than the page before left: it is asked for again, without a count to hold it against.
  if (before !== undefined && total !== undefined && total > before.left) return found.buildPage(found.items, true, { ...staying, ...range })
  const over = (): Page<SearchState> => {
    if (throughId !== undefined) return found.buildPage(found.items, true, { ...staying, lastId: throughId })
    // Only a millisecond behind the horizon can get no more rows; another is begun again by the next cycle.
    if (resumeCursorMs < untilMs) return found.buildPage(found.items, true, { phase: 'delta', cursorMs: resumeCursorMs + 1, ...kept })
    return found.buildPage(found.items, false, { phase: 'delta', cursorMs: resumeCursorMs })
  }
  // All that the page before left is on this one: two answers agree on it.
  if (before !== undefined && total === before.left && total === ids.length) return over()
  if (found.isFull && (isWhole || !isSorted) && !isSingleId(lastId, throughId)) {
    return found.buildPage(found.items, true, { ...staying, throughId: pickMiddleId(lastId, ids), isWhole: true })
  }
  const highest = ids.reduce<string | undefined>((most, id) => (most === undefined || numericIds(id, most) > 0 ? id : most), undefined)
  if (highest !== undefined) {
    return found.buildPage(found.items, true, { ...staying, ...range, lastId: highest, ...(total !== undefined && { before: { lastId, left: total - ids.length } }) })
  }
  // Nothing but an empty page says that a range of ids, or the millisecond, is over: so it has to say it twice.
  if (state.isEmpty === undefined) return found.buildPage([], true, { ...staying, ...range, ...(before !== undefined && { before }), isEmpty: true })
  return over()
}

function isSingleId(lastId: string, throughId: string | undefined): boolean {
  return throughId !== undefined && parseWholeNumber(throughId) - parseWholeNumber(lastId) <= 1n
}

/** Half of the ids found lie above it, so that the next range holds fewer of them. */
function pickMiddleId(lastId: string, ids: readonly string[]): string {
  const sorted = ids.toSorted(numericIds)
  const below = sorted[(sorted.length >> 1) - 1]
  if (below !== undefined) return below
  const last = parseWholeNumber(lastId)
  const middle = (last + parseWholeNumber(sorted[0]!)) / 2n
  return String(middle > last ? middle : last + 1n)
}

/** So many ids as would hold half of what the source will search through, if the ids it showed are like the others. */
function estimateIdSpan(lastId: string, ids: readonly string[], windowMax: number): bigint | null {
  const highest = ids.toSorted(numericIds).at(-1)
  if (highest === undefined || numericIds(highest, lastId) <= 0) return null
  return (parseWholeNumber(highest) - parseWholeNumber(lastId)) * BigInt(Math.max(1, Math.floor(windowMax / (2 * ids.length))))
}

/**
 * Ids have no known end: without any to guess from, the first guess is far beyond any. Each refusal halves it; the next range
 * begins with twice what went well.
 */
function narrowIdRange(lastId: string, throughId: string | undefined, idSpan: string | undefined, guess: bigint | null): { throughId: string; idSpan: string } {
  const low = parseWholeNumber(lastId)
  const halved = halveIdSpan(low, throughId, idSpan)
  const span = guess !== null && guess < halved ? guess : halved
  if (span < 1n) throw sourceInvalidError('The search refuses even a single id.')
  return { throughId: String(low + span), idSpan: String(span) }
}

function halveIdSpan(low: bigint, throughId: string | undefined, idSpan: string | undefined): bigint {
  return throughId !== undefined ? (parseWholeNumber(throughId) - low) / 2n : idSpan === undefined ? 2n ** 63n : parseWholeNumber(idSpan) * 2n
}

function toSearchItem<Item>(item: Item, index: number, options: SearchOptions<Item>): SearchItem<Item> {
  const modifiedMs = options.modifiedMs(item)
  if (!Number.isSafeInteger(modifiedMs) || modifiedMs < 0 || modifiedMs > YEAR_9999_MS) throw sourceInvalidError(`\`modifiedMs\` of item ${index + 1} of the page is not a time in milliseconds.`)
  const id = options.id(item)
  if (typeof id !== 'string') throw sourceInvalidError(`The id of item ${index + 1} of the page is not a text.`)
  return { item, id, modifiedMs }
}

/** Beyond it lie microseconds and nanoseconds taken for milliseconds. */
const YEAR_9999_MS = 253_402_300_799_999

/** The first page of a cycle brings no horizon of its own. */
function beginCycle(state: SearchDeltaState, untilMs: number, { log }: SyncContext): SearchDeltaState {
  if (state.untilMs !== undefined || state.cursorMs <= untilMs) return state
  log.warn('the stored position lies ahead of the horizon and was set back to it', { aheadMs: state.cursorMs - untilMs })
  return { phase: 'delta', cursorMs: untilMs }
}

function checkState(state: SearchState | undefined): void {
  if (state === undefined) return
  switch (state.phase) {
    case 'delta':
      if (!Number.isSafeInteger(state.cursorMs)) throw stateRejectedError('search', '`cursorMs` is not a time in milliseconds')
      return
    case 'deadlock':
      if (!Number.isSafeInteger(state.deadlockMs) || !Number.isSafeInteger(state.resumeCursorMs)) throw stateRejectedError('search', '`deadlockMs` and `resumeCursorMs` are not times in milliseconds')
      if (typeof state.lastId !== 'string') throw stateRejectedError('search', '`lastId` is not an id')
      return
    default:
      state satisfies never
      throw stateRejectedError('search', '`phase` is neither "delta" nor "deadlock"')
  }
}
