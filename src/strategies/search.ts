import type { Page, SyncContext } from '../contract/index.ts'
import type { Anchored } from './kit/anchored.ts'
import { numericIds, wholeNumber } from './kit/compare-ids.ts'
import { lowerHorizon, pinHorizon, timed, type ServerClock } from './kit/horizon.ts'
import { isoOf } from './kit/instants.ts'
import { invalid, requireMode, requireNumber, unreadable } from './kit/refusals.ts'
import { toChanges, type Changes } from './kit/to-changes.ts'

export interface SearchOptions<Item> {
  read(query: SearchQuery, context: SyncContext): Promise<SearchAnswer<Item>>
  /** When it was last modified, in milliseconds. */
  modifiedMs(item: Item): number
  /** A whole number above 0, as text. */
  id(item: Item): string
  toChange(item: Item): Changes
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
  /** How many match in all, when the source says so. */
  readonly total?: number
}

/** Between cycles only `cursorMs`. */
export type SearchState = DeltaState | DeadlockState

interface DeltaState {
  readonly phase: 'delta'
  readonly cursorMs: number
  /** The horizon of this cycle; see pinHorizon. */
  readonly untilMs?: number
  /** How much time is searched at once, after all of it was too much. */
  readonly widthMs?: number
}

interface DeadlockState {
  readonly phase: 'deadlock'
  readonly deadlockMs: number
  readonly lastId: string
  readonly resumeCursorMs: number
  readonly untilMs: number
  /** The upper end of the ids searched at once, after all of them were too many, and how many ids that were. */
  readonly throughId?: string
  readonly idSpan?: string
  readonly widthMs?: number
}

/**
 * For searches that filter by a time and sort by one field only. When a whole page shares one millisecond, the time cannot
 * lead any further; then that millisecond is read by id, from the lowest on, because the order inside it means nothing.
 *
 *   delta ──a full page of one millisecond──▶ deadlock ──an empty page──▶ delta, one millisecond later
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
export function search<Item>(options: SearchOptions<Item>): Anchored<SearchState> {
  const { limit, lagMs, lookBackMs, windowMax = 10_000 } = options
  requireNumber('search', 'lagMs', lagMs, 0)
  requireNumber('search', 'lookBackMs', lookBackMs, 0)
  requireNumber('search', 'limit', limit, 1)
  requireNumber('search', 'windowMax', windowMax, limit)

  const execute: Anchored<SearchState> = async (state, context) => {
    requireMode('search', 'incremental', context, 'a search from a point in time does not list everything there is')
    checkState(state)
    const untilMs = pinHorizon('search', context.cycle, lagMs, state?.untilMs)
    const ask = async (query: Omit<SearchQuery, 'limit'>): Promise<Found<Item>> => {
      const { answer, tookMs } = await timed(context, () => options.read({ ...query, limit }, context))
      return {
        items: answer.items.map((item, index) => placed(item, index, options)),
        isFull: answer.items.length >= limit,
        isTooMany: answer.total !== undefined && answer.total > windowMax,
        total: answer.total,
        untilMs: lowerHorizon(untilMs, lagMs, answer, tookMs),
        page: (items, hasMore, nextState) => ({ changes: toChanges(items, ({ item }) => options.toChange(item), ({ modifiedMs }) => isoOf(modifiedMs)), hasMore, nextState, ...(answer.total !== undefined && { left: Math.max(0, answer.total - answer.items.length) }) }),
      }
    }
    if (state?.phase === 'deadlock') return readDeadlock(state, ask)
    if (state !== undefined) return readDelta({ ...begin(state, untilMs, context), untilMs }, ask)
    const cursorMs = Math.min(context.cycle.startedAt - lookBackMs, untilMs)
    return readDelta({ phase: 'delta', cursorMs, untilMs, isFirst: true }, ask)
  }
  execute.anchor = async (context) => {
    const pinnedMs = pinHorizon('search', context.cycle, lagMs, undefined)
    // One question, only to hear the source's time.
    const query: SearchQuery = { fromMs: pinnedMs, untilMs: pinnedMs, sortBy: 'modified', afterId: undefined, throughId: undefined, limit }
    const { answer, tookMs } = await timed(context, () => options.read(query, context))
    const aheadMs = pinnedMs - lowerHorizon(pinnedMs, lagMs, answer, tookMs)
    return { phase: 'delta', cursorMs: context.cycle.startedAt - lookBackMs - aheadMs }
  }
  return execute
}

type Ask<Item> = (query: Omit<SearchQuery, 'limit'>) => Promise<Found<Item>>

/** An answer, looked at. */
interface Found<Item> {
  readonly items: readonly Placed<Item>[]
  readonly isFull: boolean
  readonly isTooMany: boolean
  readonly total: number | undefined
  /** The horizon, after the source's clock had its say. */
  readonly untilMs: number
  page(items: readonly Placed<Item>[], hasMore: boolean, nextState: SearchState): Page<SearchState>
}

interface Placed<Item> {
  readonly item: Item
  readonly id: string
  readonly modifiedMs: number
}

async function readDelta<Item>(state: DeltaState & { untilMs: number; isFirst?: boolean }, ask: Ask<Item>): Promise<Page<SearchState>> {
  const { cursorMs, widthMs } = state
  const throughMs = Math.min(state.untilMs, cursorMs + (widthMs ?? Number.POSITIVE_INFINITY))
  const found = await ask({ fromMs: cursorMs, untilMs: throughMs, sortBy: 'modified', afterId: undefined, throughId: undefined })
  const { untilMs } = found
  // The first cycle's beginning was reckoned with a clock that is ahead: begin as much earlier as it is.
  if (state.isFirst === true && untilMs < state.untilMs) return found.page([], true, { phase: 'delta', cursorMs: cursorMs - (state.untilMs - untilMs), untilMs })

  if (found.isTooMany) {
    if (throughMs > cursorMs) return found.page([], true, { phase: 'delta', cursorMs, untilMs, widthMs: Math.floor((throughMs - cursorMs) / 2) })
    return found.page([], true, deadlock(cursorMs, untilMs, widthMs))
  }
  if (found.items.some(({ modifiedMs }) => modifiedMs < cursorMs)) throw invalid('The search found an item from before the time it was asked to begin with.')
  // Modified again since the source found it: it will be found again, at its new time.
  const asked = found.items.filter(({ modifiedMs }) => modifiedMs <= throughMs)
  const safe = asked.filter(({ modifiedMs }) => modifiedMs <= untilMs)
  const times = safe.map(({ modifiedMs }) => modifiedMs)
  // No items, no new cursor; and the maximum of what was seen, not the last of it.
  const newestMs = times.reduce((most, ms) => Math.max(most, ms), cursorMs)

  if (found.isFull) {
    if (asked.some(({ modifiedMs }, index) => index > 0 && modifiedMs < asked[index - 1]!.modifiedMs)) throw invalid('A full page of the search is not sorted by the time of modification.')
    if (asked.length === 0) throw invalid('A full page of the search has only items from after the time it was asked to end with.')
  }
  // Cut by the source's clock: sorted, so nothing below the horizon can follow.
  if (safe.length < asked.length) return found.page(safe, false, { phase: 'delta', cursorMs: newestMs })
  if (found.isFull) {
    const isDeadlock = times.every((ms) => ms === newestMs)
    return found.page(safe, true, isDeadlock ? deadlock(newestMs, untilMs, widthMs) : { phase: 'delta', cursorMs: newestMs, untilMs, ...(widthMs !== undefined && { widthMs }) })
  }
  if (throughMs >= untilMs) return found.page(safe, false, { phase: 'delta', cursorMs: newestMs })
  // A window in the middle is over. It is left without a row to prove it, so the source's own count must.
  if (found.total !== found.items.length) throw invalid('The search sent fewer items than it says there are, on a page that is not full.')
  return found.page(safe, true, { phase: 'delta', cursorMs: throughMs + 1, untilMs, widthMs: 2 * (widthMs! + 1) })
}

function deadlock(atMs: number, untilMs: number, widthMs: number | undefined): DeadlockState {
  return { phase: 'deadlock', deadlockMs: atMs, lastId: LOWEST_ID, resumeCursorMs: atMs, untilMs, ...(widthMs !== undefined && { widthMs }) }
}

const LOWEST_ID = '0'

async function readDeadlock<Item>(state: DeadlockState, ask: Ask<Item>): Promise<Page<SearchState>> {
  const { deadlockMs, lastId, throughId, idSpan, resumeCursorMs, widthMs } = state
  const found = await ask({ fromMs: deadlockMs, untilMs: deadlockMs, sortBy: 'id', afterId: lastId, throughId })
  const { untilMs } = found
  const width = widthMs !== undefined && { widthMs }
  const staying: DeadlockState = { phase: 'deadlock', deadlockMs, lastId, resumeCursorMs, untilMs, ...width, ...(idSpan !== undefined && { idSpan }) }
  if (found.isTooMany) return found.page([], true, { ...staying, ...narrower(lastId, throughId, idSpan) })

  found.items.reduce((previous, { id }) => {
    if (numericIds(id, previous) <= 0 || (throughId !== undefined && numericIds(id, throughId) > 0)) throw invalid('The search by id is not sorted by it, or goes beyond the ids it was asked for.')
    return id
  }, lastId)
  if (found.items.some(({ modifiedMs }) => modifiedMs < deadlockMs)) throw invalid('The search found an item of another time than the one it was asked for.')
  const last = found.items.at(-1)
  if (last !== undefined) return found.page(found.items, true, { ...staying, lastId: last.id, ...(throughId !== undefined && { throughId }) })
  if (throughId !== undefined) return found.page([], true, { ...staying, lastId: throughId })
  // Only a millisecond behind the horizon can get no more rows; another is begun again by the next cycle.
  if (resumeCursorMs < untilMs) return found.page([], true, { phase: 'delta', cursorMs: resumeCursorMs + 1, untilMs, ...width })
  return found.page([], false, { phase: 'delta', cursorMs: resumeCursorMs })
}

/** Ids have no known end, so the first guess is far beyond any. Each refusal halves it; the next range begins with twice what went well. */
function narrower(lastId: string, throughId: string | undefined, idSpan: string | undefined): { throughId: string; idSpan: string } {
  const low = wholeNumber(lastId)
  const span = throughId !== undefined ? (wholeNumber(throughId) - low) / 2n : idSpan === undefined ? 2n ** 63n : wholeNumber(idSpan) * 2n
  if (span < 1n) throw invalid('The search refuses even a single id.')
  return { throughId: String(low + span), idSpan: String(span) }
}

function placed<Item>(item: Item, index: number, options: SearchOptions<Item>): Placed<Item> {
  const modifiedMs = options.modifiedMs(item)
  if (!Number.isSafeInteger(modifiedMs) || modifiedMs < 0 || modifiedMs > YEAR_9999_MS) throw invalid(`\`modifiedMs\` of item ${index + 1} of the page is not a time in milliseconds.`)
  const id = options.id(item)
  if (typeof id !== 'string') throw invalid(`The id of item ${index + 1} of the page is not a text.`)
  return { item, id, modifiedMs }
}

/** Beyond it lie microseconds and nanoseconds taken for milliseconds. */
const YEAR_9999_MS = 253_402_300_799_999

/** The first page of a cycle brings no horizon of its own. */
function begin(state: DeltaState, untilMs: number, { log }: SyncContext): DeltaState {
  if (state.untilMs !== undefined || state.cursorMs <= untilMs) return state
  log.warn('the stored position lies ahead of the horizon and was set back to it', { aheadMs: state.cursorMs - untilMs })
  return { phase: 'delta', cursorMs: untilMs }
}

function checkState(state: SearchState | undefined): void {
  if (state === undefined) return
  switch (state.phase) {
    case 'delta':
      if (!Number.isSafeInteger(state.cursorMs)) throw unreadable('search', '`cursorMs` is not a time in milliseconds')
      return
    case 'deadlock':
      if (!Number.isSafeInteger(state.deadlockMs) || !Number.isSafeInteger(state.resumeCursorMs)) throw unreadable('search', '`deadlockMs` and `resumeCursorMs` are not times in milliseconds')
      if (typeof state.lastId !== 'string') throw unreadable('search', '`lastId` is not an id')
      return
    default:
      state satisfies never
      throw unreadable('search', '`phase` is neither "delta" nor "deadlock"')
  }
}
