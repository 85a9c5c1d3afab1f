import type { Change, SyncContext } from '../contract/index.ts'
import { canonicalizeInstant, instantToMs } from '../values/instant.ts'
import type { AnchoredExecute } from './kit/anchored-execute.ts'
import { countEndClaim, type EndClaimCount } from './kit/end-claim.ts'
import { binaryIds, type CompareIds } from './kit/compare-ids.ts'
import { lowerHorizon, pinHorizon, measureRequest, type ServerClock } from './kit/horizon.ts'
import { requireInstant, msToInstant, formatIso, subtractMicrosecond } from './kit/instants.ts'
import { sourceInvalidError, requireNumber, stateRejectedError } from './kit/strategy-errors.ts'
import { toChanges, type ItemChanges } from './kit/to-changes.ts'

export interface KeysetOptions<Item> {
  /** Asks the source for items strictly above `after`, up to and including `until`, sorted by (timestamp, id). */
  read(query: KeysetQuery, context: SyncContext): Promise<KeysetAnswer<Item>>
  /**
   * RFC 3339 with a zone. Kept as the source wrote it, compared to the microsecond. For a list that is swept it must be one that
   * no write sets back, such as the creation: a row that moves in front of the position is not seen, and deleted.
   */
  timestamp(item: Item): string
  id(item: Item): string
  toChange(item: Item): ItemChanges
  /** At least the time the source needs until a row can be found, plus the error of its clock, plus the coarseness of its timestamps. */
  lagMs: number
  limit: number
  /** The source's own order of ids; by bytes unless said otherwise. */
  compareIds?: CompareIds
  /** Where an incremental sync without state begins; without it, at the very first item. */
  since?: string | ((context: SyncContext) => string)
  /** Every incremental cycle begins this far before its position, which is then read again; 0 reads only its instant again. */
  overlapMs?: number
  /**
   * Ask for the first page of every cycle twice, and land what either answer holds. Nothing proves that a first answer follows
   * the position: one that is empty by mistake, or was meant for another question, would pass rows over or end the cycle.
   * It needs `compareIds` to be the source's order.
   */
  confirms?: boolean
}

export interface KeysetQuery {
  /** Above it means: a later timestamp, or the same and a greater id. The id '' is below every other. */
  readonly after: KeysetCursor | undefined
  /** Not later than this; undefined in replace mode. What the source sends above it all the same is left for the next cycle. */
  readonly until: string | undefined
  readonly limit: number
  /** Given when the answer before was empty and named it. */
  readonly locator: string | undefined
  /** What the answer before said of `left`; undefined on a cycle's first page. */
  readonly left?: number | undefined
}

export interface KeysetCursor {
  readonly timestamp: string
  readonly id: string
}

export interface KeysetAnswer<Item> extends ServerClock {
  readonly items: readonly Item[]
  /** By the source's own rule: which combination of flags and lengths means that nothing follows. */
  readonly end: boolean
  /** Where to go on after an empty page that is not the end. */
  readonly locator?: string | null
  /** See Page.left. */
  readonly left?: number
}

/** Between cycles only the cursor; the rest lives within one cycle. */
export interface KeysetState {
  /** As the source wrote it; null when nothing has been read yet. */
  readonly cursorTimestamp: string | null
  readonly cursorId: string | null
  /** The horizon of this cycle; see pinHorizon. */
  readonly untilMs?: number
  /** Where the cycle's overlap ends: a cycle that finds nothing there leaves the cursor here, not at the overlap's beginning. */
  readonly frontier?: KeysetCursor
  readonly locator?: string
  /** In replace mode: the source has claimed the end at the cursor. An item up to `horizonMs` that follows denies it. */
  readonly ending?: EndClaimCount & { readonly horizonMs: number }
  /** How many items the source said are left behind the cursor. */
  readonly left?: number
  /** The cycle's first answer, which has not moved the cursor: whether it was at the end, and its last item. */
  readonly first?: { readonly isAtEnd: boolean; readonly last?: KeysetCursor }
}

/**
 * For sources that filter and sort by (timestamp, id): no row is skipped and none read twice, however many share a timestamp.
 * Incremental cycles stay behind a horizon that is fixed when they begin; replace cycles read to the end, which the source
 * has to claim in two answers in a row, after the same item: after an end that came too early, the sweep would delete
 * rows that exist. Items that are newer than the first claim do not contradict it.
 *
 * ```ts
 * import { keyset } from 'tidemark'
 *
 * type Account = { id: string; updatedAt: string; name: string }
 *
 * export const accounts = keyset<Account>({
 *   read: async ({ after, until, limit }, { fetch }) => {
 *     const above = after === undefined ? '' : `&after=${after.timestamp},${after.id}`
 *     const response = await fetch(`https://crm.example/accounts?sort=updatedAt,id&limit=${limit}&until=${until ?? ''}${above}`)
 *     const items = (await response.json()) as Account[]
 *     return { items, end: items.length < limit, serverTime: response.headers.get('date') }
 *   },
 *   timestamp: (account) => account.updatedAt,
 *   id: (account) => account.id,
 *   toChange: (account) => ({ type: 'upsert', key: account.id, record: account, upstreamUpdatedAt: account.updatedAt }),
 *   lagMs: 15_000,
 *   limit: 100,
 * })
 * ```
 */
export function keyset<Item>(options: KeysetOptions<Item>): AnchoredExecute<KeysetState> {
  requireNumber('keyset', 'lagMs', options.lagMs, 0)
  requireNumber('keyset', 'limit', options.limit, 1)
  if (options.overlapMs !== undefined) requireNumber('keyset', 'overlapMs', options.overlapMs, 0)
  const { lagMs, limit, compareIds = binaryIds } = options

  const changesOf = (items: readonly KeysetItem<Item>[]): Change[] => toChanges(items, ({ item }) => options.toChange(item), ({ cursor: place }) => place.timestamp)

  const execute: AnchoredExecute<KeysetState> = async (state, context) => {
    const bounded = context.cycle.mode === 'incremental'
    const pinnedMs = bounded ? pinHorizon('keyset', context.cycle, lagMs, state?.untilMs) : Number.POSITIVE_INFINITY
    const { after, frontier } = state?.untilMs === undefined && bounded ? beginCycle(state, pinnedMs, options, context) : resumeCycle(state)

    const query = { after, until: bounded ? formatIso(pinnedMs) : undefined, limit, locator: state?.locator, left: state?.left }
    const { answer, tookMs } = await measureRequest(context, () => options.read(query, context))
    const now = context.clock.now()
    const untilMs = bounded ? lowerHorizon(pinnedMs, lagMs, answer, tookMs) : pinnedMs

    const items = checkOrder(answer.items, after, options, compareIds)
    const safe = bounded ? items.filter(({ instant }) => instant <= msToInstant(untilMs)) : items
    // Sorted, so nothing below the horizon can follow an item above it.
    const isAtEnd = answer.end || safe.length < items.length
    const isFirst = bounded ? state?.untilMs === undefined : state === undefined
    // The position stays, so the same question is asked again.
    if (isFirst && options.confirms === true && (isAtEnd || items.length > 0)) {
      const kept = { cursorTimestamp: after?.timestamp ?? null, cursorId: after?.id ?? null, ...(bounded && { untilMs }), ...(frontier !== undefined && { frontier }) }
      const first = { isAtEnd, ...(safe.length > 0 && { last: safe.at(-1)!.cursor }) }
      return { changes: changesOf(safe), hasMore: true, ...(answer.left !== undefined && { left: answer.left }), nextState: { ...kept, first } }
    }
    const { first } = state ?? {}
    const isClaimed = isAtEnd && first?.isAtEnd !== false
    // The cursor is the last item above the claimed end: nothing follows it, or only what came since.
    const [next] = items
    const ending = state?.ending
    const isConfirmed = ending !== undefined && (next === undefined || next.instant > msToInstant(ending.horizonMs))
    const end = isClaimed && (bounded || isConfirmed)
    if (!isAtEnd && items.length === 0 && typeof answer.locator !== 'string') {
      throw sourceInvalidError('The source sent an empty page that is not the end, and no locator to go on with.')
    }
    // The position moves only to an item that was seen; an empty page proves nothing.
    const last = pickAgreedCursor(safe.at(-1)?.cursor, isAtEnd, first, compareIds) ?? after
    const horizonMs = bounded ? untilMs : lowerHorizon(pinHorizon('keyset', context.cycle, lagMs, undefined), lagMs, answer, tookMs)
    return {
      // Rows of the cursor's own moment may follow it.
      tidemark: end ? formatIso(horizonMs) : last === undefined ? undefined : subtractMicrosecond(canonicalizeInstant(last.timestamp)!),
      changes: changesOf(safe),
      hasMore: !end,
      ...(answer.left !== undefined && { left: answer.left }),
      nextState: end ? buildEndState(state, laterKeysetCursor(last, frontier, compareIds), bounded) : {
        cursorTimestamp: last?.timestamp ?? null,
        cursorId: last?.id ?? null,
        ...(bounded && { untilMs }),
        ...(frontier !== undefined && { frontier }),
        ...(!isAtEnd && items.length === 0 && typeof answer.locator === 'string' && { locator: answer.locator }),
        ...(isClaimed && {
          ending: { ...countEndClaim(ending, now), horizonMs: lowerHorizon(now - tookMs - lagMs, lagMs, answer, tookMs) },
        }),
        // A count belongs to the position it was told with.
        ...(answer.left !== undefined && first === undefined && { left: answer.left }),
      },
    }
  }
  execute.anchor = async (context) => {
    const pinnedMs = pinHorizon('keyset', context.cycle, lagMs, undefined)
    // One question, only to hear the source's time.
    const query = { after: { timestamp: formatIso(pinnedMs), id: '' }, until: formatIso(pinnedMs), limit, locator: undefined }
    const { answer, tookMs } = await measureRequest(context, () => options.read(query, context))
    const { timestamp, id } = makeSyntheticCursor(lowerHorizon(pinnedMs, lagMs, answer, tookMs))
    return { cursorTimestamp: timestamp, cursorId: id }
  }
  return execute
}

interface KeysetStart {
  readonly after: KeysetCursor | undefined
  readonly frontier: KeysetCursor | undefined
}

/** The first page of an incremental cycle. */
function beginCycle<Item>(state: KeysetState | undefined, untilMs: number, { since, overlapMs }: KeysetOptions<Item>, context: SyncContext): KeysetStart {
  let stored = readStoredCursor(state)
  if (stored === undefined) {
    // Kept from the first cycle on, also when that finds nothing: a start reckoned anew each time would leave gaps.
    const start = typeof since === 'function' ? since(context) : since
    if (start === undefined) return { after: undefined, frontier: undefined }
    requireInstant(start, '`since`')
    return { after: { timestamp: start, id: '' }, frontier: undefined }
  }
  const aheadMs = instantToMs(canonicalizeInstant(stored.timestamp)!) - untilMs
  if (aheadMs > 0) {
    context.log.warn('the stored position lies ahead of the horizon and was set back to it', { aheadMs })
    // The id belonged to the timestamp that is given up: rows of the new one are all still to come.
    stored = makeSyntheticCursor(untilMs)
  }
  if (overlapMs === undefined) return { after: stored, frontier: undefined }
  return { after: makeSyntheticCursor(instantToMs(canonicalizeInstant(stored.timestamp)!) - overlapMs), frontier: stored }
}

/**
 * A position that no item has. On a whole second: a source that stamps in those is asked in those, and its items of that second
 * would otherwise come before the position, in this cycle and in every one that takes it up.
 */
function makeSyntheticCursor(ms: number): KeysetCursor {
  return { timestamp: formatIso(Math.floor(ms / 1_000) * 1_000), id: '' }
}

function resumeCycle(state: KeysetState | undefined): KeysetStart {
  return { after: readStoredCursor(state), frontier: state?.frontier }
}

function readStoredCursor(state: KeysetState | undefined): KeysetCursor | undefined {
  if (state === undefined || state.cursorTimestamp === null) return undefined
  const { cursorTimestamp, cursorId } = state
  if (typeof cursorTimestamp !== 'string' || canonicalizeInstant(cursorTimestamp) === null) throw stateRejectedError('keyset', '`cursorTimestamp` is not an instant')
  if (typeof cursorId !== 'string') throw stateRejectedError('keyset', '`cursorId` is not a string')
  return cursorId === '' ? makeSyntheticCursor(instantToMs(canonicalizeInstant(cursorTimestamp)!)) : { timestamp: cursorTimestamp, id: cursorId }
}

interface KeysetItem<Item> {
  readonly item: Item
  readonly instant: string
  readonly cursor: KeysetCursor
}

/** Fails closed: a page out of order may hide rows that no later page will show. */
function checkOrder<Item>(items: readonly Item[], after: KeysetCursor | undefined, options: KeysetOptions<Item>, compareIds: CompareIds): KeysetItem<Item>[] {
  let previous = after
  return items.map((item, index) => {
    const place = { timestamp: options.timestamp(item), id: options.id(item) }
    const instant = requireInstant(place.timestamp, `The timestamp of item ${index + 1} of the page`)
    if (typeof place.id !== 'string' || place.id === '') throw sourceInvalidError(`The id of item ${index + 1} of the page is not a text.`)
    if (previous !== undefined && compareKeysetCursors(place, previous, compareIds) <= 0) {
      throw sourceInvalidError(index === 0 ? 'The page begins at or before the position it was asked to follow.' : `Item ${index + 1} of the page does not come after the one before it.`)
    }
    previous = place
    return { item, instant, cursor: place }
  })
}

function compareKeysetCursors(a: KeysetCursor, b: KeysetCursor, compareIds: CompareIds): number {
  const x = canonicalizeInstant(a.timestamp)!
  const y = canonicalizeInstant(b.timestamp)!
  if (x !== y) return x < y ? -1 : 1
  if (a.id === '' || b.id === '') return a.id.length - b.id.length
  return compareIds(a.id, b.id)
}

/** Of two answers to one question, what both have come to: the end, or the place where the first of them stopped. */
function pickAgreedCursor(last: KeysetCursor | undefined, isAtEnd: boolean, first: KeysetState['first'], compareIds: CompareIds): KeysetCursor | undefined {
  if (first?.last === undefined) return last
  if (isAtEnd !== first.isAtEnd) return isAtEnd ? first.last : (last ?? first.last)
  const furthest = laterKeysetCursor(last, first.last, compareIds)
  return isAtEnd || last === undefined ? furthest : furthest === last ? first.last : last
}

function laterKeysetCursor(a: KeysetCursor | undefined, b: KeysetCursor | undefined, compareIds: CompareIds): KeysetCursor | undefined {
  if (a === undefined || b === undefined) return a ?? b
  return compareKeysetCursors(a, b, compareIds) >= 0 ? a : b
}

/** A replace cycle begins anew each time. */
function buildEndState(asked: KeysetState | undefined, place: KeysetCursor | undefined, bounded: boolean): KeysetState | undefined {
  if (!bounded || (asked === undefined && place === undefined)) return undefined
  // Also without a place: the horizon and the locator of this cycle must not stay behind.
  return { cursorTimestamp: place?.timestamp ?? null, cursorId: place?.id ?? null }
}
