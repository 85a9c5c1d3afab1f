import type { Change, SyncContext } from '../contract/index.ts'
import { canonicalizeInstant, instantToMs } from '../values/instant.ts'
import type { AnchoredExecute } from './kit/anchored-execute.ts'
import { confirmHorizon, keepAnswered, type AnsweredState } from './kit/answered-horizon.ts'
import { carryExtra, type ExtraAnswer, type ExtraState } from './kit/extra.ts'
import { countEndClaim, type EndClaimCount } from './kit/end-claim.ts'
import { binaryIds, type CompareIds } from './kit/compare-ids.ts'
import { lowerHorizon, pinHorizon, measureRequest, type ServerClock } from './kit/horizon.ts'
import { requireInstant, msToInstant, formatIso, subtractMicrosecond } from './kit/instants.ts'
import { sourceInvalidError, requireNumber, stateRejectedError } from './kit/strategy-errors.ts'
import { toChanges, type ItemChanges } from './kit/to-changes.ts'

/** Describes how to read a list that is sorted by time and id. */
export interface KeysetOptions<Item, Extra = never> {
  /** Reads items strictly after `after`, up to and including `until`, sorted by (timestamp, id). */
  read(query: KeysetQuery<Extra>, context: SyncContext): Promise<KeysetAnswer<Item, Extra>>
  /**
   * RFC 3339 with a zone. Kept as the source wrote it, compared to the microsecond. For a list that is swept, use a
   * timestamp that no write sets back, such as the creation time: a row that moves before the cursor is not seen, and
   * is deleted.
   */
  timestamp(item: Item): string
  id(item: Item): string
  toChange(item: Item): ItemChanges
  /** At least the source's indexing delay, plus its clock error, plus the resolution of its timestamps. */
  lagMs: number
  limit: number
  /** The source's own order of ids; binary by default. */
  compareIds?: CompareIds
  /** Where an incremental sync without state begins; at the first item by default. */
  since?: string | ((context: SyncContext) => string)
  /**
   * Every incremental cycle starts this far before its cursor and reads that range again; 0 re-reads only the cursor's
   * instant.
   */
  overlapMs?: number
  /**
   * Requests the first page of every cycle twice and commits the items of either answer. Nothing proves that a first
   * answer belongs to the cursor: an empty answer by mistake, or one to another request, would skip rows or end the
   * cycle. `compareIds` must match the source's order.
   */
  confirms?: boolean
}

/** The bounds of one page. */
export interface KeysetQuery<Extra = never> extends ExtraState<Extra> {
  /** After it means: a later timestamp, or the same timestamp and a greater id. The id '' sorts before every other. */
  readonly after: KeysetCursor | undefined
  /** Inclusive upper bound; undefined in replace mode. Items above it are left for the next cycle. */
  readonly until: string | undefined
  readonly limit: number
  /** Set when the previous answer was empty and returned a locator. */
  readonly locator: string | undefined
  /** The `left` of the previous answer; undefined on a cycle's first page. */
  readonly left?: number | undefined
}

/** The time and id of the last item that was read. */
export interface KeysetCursor {
  readonly timestamp: string
  readonly id: string
}

/** A page of items, in ascending order. */
export interface KeysetAnswer<Item, Extra = never> extends ServerClock, ExtraAnswer<Extra> {
  readonly items: readonly Item[]
  /** True when nothing follows, by the source's own combination of flags and lengths. */
  readonly end: boolean
  /** Where to continue after an empty page that is not the end. */
  readonly locator?: string | null
  /** See Page.left. */
  readonly left?: number
}

/** Between cycles only the cursor is kept; the other fields belong to one cycle. */
export interface KeysetState<Extra = never> extends ExtraState<Extra>, AnsweredState {
  /** As the source wrote it; null when nothing has been read yet. */
  readonly cursorTimestamp: string | null
  readonly cursorId: string | null
  /** The horizon of this cycle; see pinHorizon. */
  readonly untilMs?: number
  /** The end of the cycle's overlap: a cycle that finds nothing leaves the cursor here, not at the overlap's start. */
  readonly frontier?: KeysetCursor
  readonly locator?: string
  /**
   * In replace mode: the source has claimed the end at the cursor. A following item up to `horizonMs` refutes the
   * claim.
   */
  readonly ending?: EndClaimCount & { readonly horizonMs: number }
  /** The source's count of items after the cursor. */
  readonly left?: number
  /** The cycle's first answer, which does not move the cursor: whether it was at the end, and its last item. */
  readonly first?: { readonly isAtEnd: boolean; readonly last?: KeysetCursor }
}

/**
 * For sources that filter and sort by (timestamp, id): no row is skipped or read twice, however many share a timestamp.
 * Incremental cycles stay behind a horizon that is fixed when they begin. Replace cycles read to the end, which the
 * source must claim in two consecutive answers, after the same item: after a premature end the sweep would delete
 * existing rows. Items newer than the first claim do not contradict it.
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
export function keyset<Item, Extra = never>(options: KeysetOptions<Item, Extra>): AnchoredExecute<KeysetState<Extra>> {
  requireNumber('keyset', 'lagMs', options.lagMs, 0)
  requireNumber('keyset', 'limit', options.limit, 1)
  if (options.overlapMs !== undefined) requireNumber('keyset', 'overlapMs', options.overlapMs, 0)
  const { lagMs, limit, compareIds = binaryIds } = options

  const changesOf = (items: readonly KeysetItem<Item>[]): Change[] =>
    toChanges(
      items,
      ({ item }) => options.toChange(item),
      ({ cursor }) => cursor.timestamp,
    )

  const execute = carryExtra<KeysetState<Extra>, Extra>(async (state, context, extra) => {
    const bounded = context.cycle.mode === 'incremental'
    const pinnedMs = bounded ? pinHorizon('keyset', context.cycle, lagMs, state?.untilMs) : Number.POSITIVE_INFINITY
    const { after, frontier } =
      state?.untilMs === undefined && bounded ? beginCycle(state, pinnedMs, options, context) : resumeCycle(state)

    const query = {
      after,
      until: bounded ? formatIso(pinnedMs) : undefined,
      limit,
      locator: state?.locator,
      left: state?.left,
    }
    const { answer, tookMs } = await measureRequest(context, () =>
      extra.read((carried) => options.read({ ...query, ...carried }, context)),
    )
    const now = context.clock.now()
    const untilMs = bounded ? lowerHorizon(pinnedMs, lagMs, answer, tookMs) : pinnedMs

    const items = checkOrder(answer.items, after, options, compareIds)
    const safe = bounded ? items.filter(({ instant }) => instant <= msToInstant(untilMs)) : items
    // Items are sorted, so none below the horizon can follow one above it.
    const isAtEnd = answer.end || safe.length < items.length
    const isFirst = bounded ? state?.untilMs === undefined : state === undefined
    // The cursor stays, so the same request is sent again.
    if (isFirst && options.confirms === true && (isAtEnd || items.length > 0)) {
      const kept = {
        cursorTimestamp: after?.timestamp ?? null,
        cursorId: after?.id ?? null,
        ...(bounded && { untilMs }),
        ...(frontier !== undefined && { frontier }),
      }
      const last = safe.at(-1)?.cursor
      const first = { isAtEnd, ...(last !== undefined && { last }) }
      return {
        changes: changesOf(safe),
        hasMore: true,
        ...(answer.left !== undefined && { left: answer.left }),
        nextState: { ...kept, first },
      }
    }
    const { first } = state ?? {}
    const isClaimed = isAtEnd && first?.isAtEnd !== false
    // The cursor is the last item before the claimed end, so only items written since may follow it.
    const [next] = items
    const ending = state?.ending
    const isConfirmed = ending !== undefined && (next === undefined || next.instant > msToInstant(ending.horizonMs))
    const end = isClaimed && (bounded || isConfirmed)
    if (!isAtEnd && items.length === 0 && typeof answer.locator !== 'string') {
      throw sourceInvalidError(
        'The source returned an empty page that is not the end, without a locator to continue from.',
      )
    }
    // The cursor moves only to an item that was read; an empty page proves nothing.
    const last = pickAgreedCursor(safe.at(-1)?.cursor, isAtEnd, first, compareIds) ?? after
    const horizonMs = bounded
      ? untilMs
      : lowerHorizon(pinHorizon('keyset', context.cycle, lagMs, undefined), lagMs, answer, tookMs)
    // Rows with the cursor's own timestamp may still follow it.
    const reached = last === undefined ? undefined : subtractMicrosecond(requireInstant(last.timestamp, 'The cursor'))
    // A second answer to the same request was empty too.
    const isProven = items.length > 0 || !bounded || first !== undefined
    return {
      tidemark: !end ? reached : isProven ? formatIso(horizonMs) : latest(reached, confirmHorizon(state, untilMs)),
      changes: changesOf(safe),
      hasMore: !end,
      ...(answer.left !== undefined && { left: answer.left }),
      nextState: end
        ? buildEndState(laterKeysetCursor(last, frontier, compareIds), bounded ? untilMs : null)
        : {
            cursorTimestamp: last?.timestamp ?? null,
            cursorId: last?.id ?? null,
            ...(bounded && { untilMs, ...(items.length === 0 && keepAnswered(state)) }),
            ...(frontier !== undefined && { frontier }),
            ...(!isAtEnd && items.length === 0 && typeof answer.locator === 'string' && { locator: answer.locator }),
            ...(isClaimed && {
              ending: {
                ...countEndClaim(ending, now),
                horizonMs: lowerHorizon(now - tookMs - lagMs, lagMs, answer, tookMs),
              },
            }),
            // A count is valid only for the cursor it was returned with.
            ...(answer.left !== undefined && first === undefined && { left: answer.left }),
          },
    }
  })
  const anchor = async (context: SyncContext): Promise<KeysetState<Extra>> => {
    const pinnedMs = pinHorizon('keyset', context.cycle, lagMs, undefined)
    // One request, only to read the source's clock.
    const query = {
      after: { timestamp: formatIso(pinnedMs), id: '' },
      until: formatIso(pinnedMs),
      limit,
      locator: undefined,
    }
    const { answer, tookMs } = await measureRequest(context, () => options.read(query, context))
    const { timestamp, id } = makeSyntheticCursor(lowerHorizon(pinnedMs, lagMs, answer, tookMs))
    return { cursorTimestamp: timestamp, cursorId: id }
  }
  return Object.assign(execute, { anchor })
}

type KeysetCursorState = Pick<KeysetState, 'cursorTimestamp' | 'cursorId' | 'frontier'>

interface KeysetStart {
  readonly after: KeysetCursor | undefined
  readonly frontier: KeysetCursor | undefined
}

function beginCycle(
  state: KeysetCursorState | undefined,
  untilMs: number,
  { since, overlapMs }: Pick<KeysetOptions<unknown>, 'since' | 'overlapMs'>,
  context: SyncContext,
): KeysetStart {
  let stored = readStoredCursor(state)
  if (stored === undefined) {
    // Stored by the first cycle, even if it finds nothing: recomputing the start each time would leave gaps.
    const start = typeof since === 'function' ? since(context) : since
    if (start === undefined) return { after: undefined, frontier: undefined }
    requireInstant(start, '`since`')
    return { after: { timestamp: start, id: '' }, frontier: undefined }
  }
  const aheadMs = instantToMs(requireInstant(stored.timestamp, 'The stored cursor')) - untilMs
  if (aheadMs > 0) {
    context.log.warn('the stored cursor is ahead of the horizon and was moved back to it', { aheadMs })
    // The id belonged to the discarded timestamp: every row of the new timestamp is still unread.
    stored = makeSyntheticCursor(untilMs)
  }
  if (overlapMs === undefined) return { after: stored, frontier: undefined }
  return {
    after: makeSyntheticCursor(instantToMs(requireInstant(stored.timestamp, 'The stored cursor')) - overlapMs),
    frontier: stored,
  }
}

/**
 * A cursor that no item has. It is rounded down to a whole second: for a source with second resolution, items of that
 * second would otherwise sort before the cursor, in this and every later cycle.
 */
function makeSyntheticCursor(ms: number): KeysetCursor {
  return { timestamp: formatIso(Math.floor(ms / 1_000) * 1_000), id: '' }
}

function resumeCycle(state: KeysetCursorState | undefined): KeysetStart {
  return { after: readStoredCursor(state), frontier: state?.frontier }
}

function readStoredCursor(state: KeysetCursorState | undefined): KeysetCursor | undefined {
  if (state === undefined || state.cursorTimestamp === null) return undefined
  const { cursorTimestamp, cursorId } = state
  if (typeof cursorTimestamp !== 'string' || canonicalizeInstant(cursorTimestamp) === null)
    throw stateRejectedError('keyset', '`cursorTimestamp` is not an instant')
  if (typeof cursorId !== 'string') throw stateRejectedError('keyset', '`cursorId` is not a string')
  return cursorId === ''
    ? makeSyntheticCursor(instantToMs(requireInstant(cursorTimestamp, '`cursorTimestamp`')))
    : { timestamp: cursorTimestamp, id: cursorId }
}

interface KeysetItem<Item> {
  readonly item: Item
  readonly instant: string
  readonly cursor: KeysetCursor
}

/** Fails closed: an unsorted page may hide rows that no later page returns. */
function checkOrder<Item>(
  items: readonly Item[],
  after: KeysetCursor | undefined,
  options: Pick<KeysetOptions<Item>, 'timestamp' | 'id'>,
  compareIds: CompareIds,
): KeysetItem<Item>[] {
  let previous = after
  return items.map((item, index) => {
    const cursor = { timestamp: options.timestamp(item), id: options.id(item) }
    const instant = requireInstant(cursor.timestamp, `The timestamp of item ${index + 1} on the page`)
    if (typeof cursor.id !== 'string' || cursor.id === '')
      throw sourceInvalidError(`The id of item ${index + 1} on the page is not a non-empty string.`)
    if (previous !== undefined && compareKeysetCursors(cursor, previous, compareIds) <= 0) {
      throw sourceInvalidError(
        index === 0
          ? 'The page begins at or before the requested cursor.'
          : `Item ${index + 1} on the page does not sort after the previous one.`,
      )
    }
    previous = cursor
    return { item, instant, cursor }
  })
}

function compareKeysetCursors(a: KeysetCursor, b: KeysetCursor, compareIds: CompareIds): number {
  const x = requireInstant(a.timestamp, 'The cursor')
  const y = requireInstant(b.timestamp, 'The cursor')
  if (x !== y) return x < y ? -1 : 1
  if (a.id === '' || b.id === '') return a.id.length - b.id.length
  return compareIds(a.id, b.id)
}

/** Returns the cursor that two answers to one request both reached: the end, or where the shorter answer stopped. */
function pickAgreedCursor(
  last: KeysetCursor | undefined,
  isAtEnd: boolean,
  first: KeysetState['first'],
  compareIds: CompareIds,
): KeysetCursor | undefined {
  if (first?.last === undefined) return last
  if (isAtEnd !== first.isAtEnd) return isAtEnd ? first.last : (last ?? first.last)
  const furthest = laterKeysetCursor(last, first.last, compareIds)
  return isAtEnd || last === undefined ? furthest : furthest === last ? first.last : last
}

function laterKeysetCursor(
  a: KeysetCursor | undefined,
  b: KeysetCursor | undefined,
  compareIds: CompareIds,
): KeysetCursor | undefined {
  if (a === undefined || b === undefined) return a ?? b
  return compareKeysetCursors(a, b, compareIds) >= 0 ? a : b
}

/** A replace cycle always starts from the beginning, so it leaves no state. */
function buildEndState(cursor: KeysetCursor | undefined, untilMs: number | null): KeysetState | undefined {
  if (untilMs === null) return undefined
  // Written without a cursor too: the horizon and the locator of this cycle must not remain in the state.
  return { cursorTimestamp: cursor?.timestamp ?? null, cursorId: cursor?.id ?? null, answeredMs: untilMs }
}

function latest(a: string | undefined, b: string | undefined): string | undefined {
  if (a === undefined || b === undefined) return a ?? b
  return requireInstant(a, 'The cursor') > requireInstant(b, 'The horizon') ? a : b
}
