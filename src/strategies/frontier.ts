import { isSyncError, SyncError, type Change, type Execute, type Page, type SyncContext } from '../contract/index.ts'
import {
  matchAnchors,
  isAnchors,
  isCaughtUp,
  hasReachedAnchors,
  fingerprintItem,
  ANCHOR_COUNT,
  INITIAL_SEARCH,
  mergeAnchors,
  type Anchors,
  type ItemFingerprint,
  type AnchorSearch,
} from './kit/frontier-anchors.ts'
import { carryExtra, type ExtraAnswer, type ExtraState } from './kit/extra.ts'
import { countEndClaim, isEndConfirmed, type EndClaim } from './kit/end-claim.ts'
import { formatIso } from './kit/instants.ts'
import { sourceInvalidError, requireNumber, stateRejectedError } from './kit/strategy-errors.ts'
import type { ItemChanges } from './kit/to-changes.ts'

/** The sync context and the page to read. A source may use only `cursor`. */
export interface FetchContext<Extra = never> extends SyncContext, ExtraState<Extra> {
  /** Null: read from the newest item. */
  readonly cursor: string | null
  /** The newest item when the last forward pass ended; null without one, and always null in backfill. */
  readonly sinceItemId: string | null
  readonly phase: 'forward' | 'backfill'
}

/** A page of a list that is sorted newest first. */
export interface FrontierPage<Item, Extra = never> extends ExtraAnswer<Extra> {
  /** Newest first. */
  readonly items: readonly Item[]
  /** Null only at the end of the list. The page is requested again before the end is accepted. */
  readonly nextCursor: string | null
  /**
   * True when the source was asked for items newer than `sinceItemId` and returned all of them. Needed when the source
   * omits that item.
   */
  readonly reachedSince?: boolean
}

/** Describes the items of a list that is sorted newest first. */
export interface FrontierOptions<Item> {
  id(item: Item): string
  toChange(item: Item): ItemChanges
  /** The list's sort key, if items carry it: greater is newer, and an item that moves to the top gets a new value. */
  order?(item: Item): string | number
  /** How often a long backfill checks for new items; 15 minutes by default. */
  refreshMs?: number
  /**
   * How many of the newest items are remembered; 500 by default. Three pages of remembered items count as caught up
   * when every anchor is gone.
   */
  anchorsMax?: number
}

/** Head and tail are independent: a forward pass never moves the tail, backfill never moves the head. */
export interface FrontierState<Extra = never> extends ExtraState<Extra> {
  /** The phase of the next page. */
  readonly phase: 'forward' | 'backfill'
  /** The newest item when the last forward pass ended, and its order. */
  readonly headItemId?: string
  readonly headOrder?: string | number
  readonly anchors: Anchors
  /** When the last complete forward pass began. */
  readonly checkedAt: number
  /** The forward pass in progress; absent when there is none. */
  readonly pass?: ForwardPass
  /** Where backfill continues; absent at its start, after its end, and after the source rejected the cursor. */
  readonly tailCursor?: string
  /** Set only by a confirmed end of the list. */
  readonly tailComplete: boolean
  /** When a pass last restarted because the source rejected its cursor. */
  readonly restartedAt?: number
  /** The next page to read has already claimed to be the last one. */
  readonly ending?: EndClaim
}

/** Becomes the head only when the pass ends; until then the old anchors stay in force. */
interface ForwardPass extends AnchorSearch {
  readonly headCursor: string
  readonly startedAt: number
  /** The newest item of the pass. */
  readonly pending?: OrderedItem
  readonly anchors: Anchors
}

interface OrderedItem {
  readonly id: string
  readonly order?: string | number
}

/**
 * For lists that are sorted newest first and do not report changes: bookmarks, stars, likes, timelines.
 *
 *               ┌──── pages, until the anchors are met (reached_since), three pages are known (caught_up) or the list ends
 *   begin ──▶ forward ──the tail is complete──────────────────────────▶ end of the cycle
 *               │  ▲                                                          ▲
 *               │  └──────────every `refreshMs`───────────┐                   │
 *               └──the first page, or the pass, is done──▶ backfill ──the list ends (end_of_data)
 *
 * The end of the list needs evidence, or a truncated page would hide the rest of the list for good: the source must
 * claim it in two consecutive answers, after the same item. If a pass reaches the end without a known item, its items
 * do not become anchors: the next cycle has none and reads the whole list.
 *
 * After an interruption (crash, error, cancellation or engine budget) the state of the last committed page applies: the
 * pass continues from its `headCursor`, and the anchors are still the old ones.
 *
 * Deleted items are not detected. In a replace sync the same function reads the whole list, then its top once more for
 * items that moved there meanwhile, and the engine sweeps the rest: pass it to `worker.track` as both halves.
 *
 * ```ts
 * import { frontier } from 'tidemark'
 *
 * type Bookmark = { id: string; url: string }
 *
 * export const bookmarks = frontier<Bookmark>(
 *   async ({ cursor, fetch }) => {
 *     const response = await fetch(`https://reader.example/bookmarks?limit=100${cursor === null ? '' : `&cursor=${cursor}`}`)
 *     const { data, next } = (await response.json()) as { data: Bookmark[]; next?: string }
 *     return { items: data, nextCursor: next ?? null }
 *   },
 *   { id: ({ id }) => id, toChange: (bookmark) => ({ type: 'upsert', key: bookmark.id, record: bookmark }) },
 * )
 * ```
 */
export function frontier<Item, Extra = never>(
  fetchPage: (context: FetchContext<Extra>) => Promise<FrontierPage<Item, Extra>>,
  options: FrontierOptions<Item>,
): Execute<FrontierState<Extra>> {
  if (typeof fetchPage !== 'function')
    throw new SyncError('SYNC_INVALID', `frontier: \`fetchPage\` is ${typeof fetchPage}, not a function.`)
  const { refreshMs = 15 * 60_000, anchorsMax = 500 } = options
  requireNumber('frontier', 'refreshMs', refreshMs, 0)
  requireNumber('frontier', 'anchorsMax', anchorsMax, ANCHOR_COUNT)

  return carryExtra<FrontierState<Extra>, Extra>(async (state, context, extra) => {
    const list = new FrontierList<Item>(
      (query) => extra.read((carried) => fetchPage({ ...query, ...carried })),
      options,
      anchorsMax,
    )
    if (state === undefined) return readFirstPage(list, context)
    checkState(state)
    switch (state.phase) {
      case 'forward':
        return readForward(state, list, context)
      case 'backfill':
        return readBackfill(state, list, refreshMs, context)
      default:
        state.phase satisfies never
        throw stateRejectedError('frontier', '`phase` is neither "forward" nor "backfill"')
    }
  })
}

type FrontierPassState = Omit<FrontierState, 'extra'>

/** The first page has no anchors to reach: it defines the head, and backfill continues where it ends. */
async function readFirstPage<Item>(list: FrontierList<Item>, context: SyncContext): Promise<Page<FrontierPassState>> {
  const checkedAt = context.clock.now()
  const query = { cursor: null, sinceItemId: null, phase: 'forward' } as const
  const { newest, fingerprints, changes, nextCursor } = await list.read(query, context)
  return buildPage(changes, null, {
    phase: 'backfill',
    ...toHeadState(newest),
    anchors: list.mergeAnchors(fingerprints),
    checkedAt,
    // Backfill without a cursor reads from the top of the list.
    ...(nextCursor === null
      ? { tailComplete: false, ending: buildEndClaim(fingerprints, undefined, context) }
      : toTailState(nextCursor)),
  })
}

function buildEndClaim(
  fingerprints: readonly ItemFingerprint[],
  previous: EndClaim | undefined,
  { clock }: SyncContext,
): EndClaim {
  return { mark: getLastFingerprint(fingerprints), ...countEndClaim(previous, clock.now()) }
}

function getLastFingerprint(fingerprints: readonly ItemFingerprint[]): string {
  return fingerprints.at(-1)?.fingerprint ?? ''
}

async function readForward<Item>(
  { pass, ending: claimed, ...state }: FrontierPassState,
  list: FrontierList<Item>,
  context: SyncContext,
): Promise<Page<FrontierPassState>> {
  const now = context.clock.now()
  const query = { cursor: pass?.headCursor ?? null, sinceItemId: state.headItemId ?? null, phase: 'forward' } as const
  const { newest, fingerprints, changes, nextCursor, reachedSince, restart } = await list.read(query, context, state)
  const resumed = restart === undefined ? pass : undefined
  const ending = restart === undefined ? claimed : undefined
  const search = matchAnchors(state.anchors, fingerprints, resumed ?? INITIAL_SEARCH)
  const anchors = list.mergeAnchors(resumed?.anchors ?? '', fingerprints)
  const pending = resumed?.pending ?? newest
  const startedAt = resumed?.startedAt ?? now
  const reason =
    reachedSince || hasReachedAnchors(search)
      ? 'reached_since'
      : nextCursor === null
        ? 'end_of_data'
        : isCaughtUp(search)
          ? 'caught_up'
          : null
  if (nextCursor !== null && reason === null) {
    const nextPass = { headCursor: nextCursor, startedAt, ...(pending && { pending }), anchors, ...search }
    const isOpen = ending !== undefined && fingerprints.length === 0
    return buildPage(changes, null, { ...state, ...restart, pass: nextPass, ...(isOpen && { ending }) })
  }
  if (reason === 'end_of_data' && !isEndConfirmed(ending, getLastFingerprint(fingerprints))) {
    return buildPage(changes, null, {
      ...state,
      ...restart,
      ...(resumed && { pass: resumed }),
      ending: buildEndClaim(fingerprints, ending, context),
    })
  }

  const { headItemId, headOrder, ...rest } = state
  // Known items are expected below the last item of the pass. If all of them are gone, the list may also have been
  // truncated.
  if (reason === 'end_of_data' && state.anchors !== '' && search.rank === -1) {
    if (!state.tailComplete) return buildPage(changes, null, { ...state, ...restart, phase: 'backfill' })
    return buildPage(changes, context.cycle.mode === 'incremental' ? reason : null, {
      ...rest,
      ...restart,
      anchors: '',
    })
  }
  const head =
    headItemId === undefined ? undefined : { id: headItemId, ...(headOrder !== undefined && { order: headOrder }) }
  // At the end of the list without enough known items, the items of this pass replace the anchors.
  const isMet = reason !== 'end_of_data'
  const settled: FrontierPassState = {
    ...rest,
    ...restart,
    phase: state.tailComplete ? 'forward' : 'backfill',
    ...toHeadState(pickNewerHead(pending, head, isMet)),
    anchors: list.mergeAnchors(anchors, isMet ? state.anchors : ''),
    checkedAt: startedAt,
  }
  // An item that moved to the top during a replace cycle is not deleted. The cycle is complete when a pass over the top
  // fits in one page or finds nothing new.
  const isSettled = context.cycle.mode === 'incremental' || resumed === undefined || !search.isNews
  return buildPage(changes, state.tailComplete && isSettled ? reason : null, settled)
}

async function readBackfill<Item>(
  { tailCursor, ending: claimed, ...state }: FrontierPassState,
  list: FrontierList<Item>,
  refreshMs: number,
  context: SyncContext,
): Promise<Page<FrontierPassState>> {
  const query = { cursor: tailCursor ?? null, sinceItemId: null, phase: 'backfill' } as const
  const { fingerprints, changes, nextCursor, restart } = await list.read(query, context, state)
  const anchors = list.mergeAnchors(state.anchors, fingerprints)
  const ending = restart === undefined ? claimed : undefined
  if (nextCursor === null && !isEndConfirmed(ending, getLastFingerprint(fingerprints))) {
    const requested = restart === undefined && tailCursor !== undefined ? { tailCursor } : {}
    return buildPage(changes, null, {
      ...state,
      ...restart,
      anchors,
      ...requested,
      tailComplete: false,
      ending: buildEndClaim(fingerprints, ending, context),
    })
  }
  // An empty page in between neither confirms the end nor refutes it.
  const isOpen = ending !== undefined && nextCursor !== null && fingerprints.length === 0
  // In replace mode another pass over the top follows, unless this page was both the top and the end.
  const isDone = nextCursor === null && (context.cycle.mode === 'incremental' || tailCursor === undefined)
  // Decided after the page, so both phases still alternate when one page takes longer than `refreshMs`.
  const isNext = isOpen || (nextCursor !== null && isWithin(refreshMs, state.checkedAt, context))
  const phase = isNext ? 'backfill' : 'forward'
  return buildPage(changes, isDone ? 'end_of_data' : null, {
    ...state,
    ...restart,
    phase,
    anchors,
    ...toTailState(nextCursor),
    ...(isOpen && { ending }),
  })
}

function buildPage(changes: Change[], endReason: string | null, nextState: FrontierPassState): Page<FrontierPassState> {
  // At the end of a cycle, every item listed when the last complete pass began has been read.
  return {
    changes,
    hasMore: endReason === null,
    nextState,
    ...(endReason !== null && { endReason, tidemark: formatIso(nextState.checkedAt) }),
  }
}

function toTailState(nextCursor: string | null): Pick<FrontierPassState, 'tailCursor' | 'tailComplete'> {
  return nextCursor === null ? { tailComplete: true } : { tailCursor: nextCursor, tailComplete: false }
}

function toHeadState(head: OrderedItem | undefined): Pick<FrontierPassState, 'headItemId' | 'headOrder'> {
  return head === undefined ? {} : { headItemId: head.id, ...(head.order !== undefined && { headOrder: head.order }) }
}

/** Returns the newest item of the pass, unless the previous head has a newer order and was only removed. */
function pickNewerHead(
  pending: OrderedItem | undefined,
  head: OrderedItem | undefined,
  isMet: boolean,
): OrderedItem | undefined {
  if (pending === undefined) return isMet ? head : undefined
  return isOlderOrder(pending.order, head?.order) ? head : pending
}

function isOlderOrder(order: OrderedItem['order'], other: OrderedItem['order']): boolean {
  return order !== undefined && other !== undefined && order < other
}

/** Treats a clock that was set back as elapsed time, so nothing waits on it. */
function isWithin(ms: number, since: number, { clock }: SyncContext): boolean {
  const passedMs = clock.now() - since
  return passedMs >= 0 && passedMs < ms
}

/** A source that rejects every cursor soon after issuing it would otherwise be read from the top forever. */
const RESTART_INTERVAL_MS = 10 * 60_000

interface FrontierRead {
  readonly newest: OrderedItem | undefined
  readonly fingerprints: readonly ItemFingerprint[]
  readonly changes: Change[]
  readonly nextCursor: string | null
  readonly reachedSince: boolean
  /** Set when the source rejected the cursor and this page is the top of the list. */
  readonly restart: { readonly restartedAt: number } | undefined
}

/** Reads and validates pages of the source's list. */
class FrontierList<Item> {
  readonly #fetchPage: (context: FetchContext) => Promise<Omit<FrontierPage<Item>, 'extra'>>
  readonly #options: FrontierOptions<Item>
  readonly #anchorsMax: number

  constructor(
    fetchPage: (context: FetchContext) => Promise<Omit<FrontierPage<Item>, 'extra'>>,
    options: FrontierOptions<Item>,
    anchorsMax: number,
  ) {
    this.#fetchPage = fetchPage
    this.#options = options
    this.#anchorsMax = anchorsMax
  }

  async read(
    query: Pick<FetchContext, 'cursor' | 'sinceItemId' | 'phase'>,
    context: SyncContext,
    { restartedAt, headOrder }: Partial<FrontierPassState> = {},
  ): Promise<FrontierRead> {
    try {
      return this.#parsePage(await this.#fetchPage({ ...context, ...query }), headOrder)
    } catch (error) {
      if (query.cursor === null || !isSyncError(error) || error.code !== 'CURSOR_REJECTED') throw error
      if (restartedAt !== undefined && isWithin(RESTART_INTERVAL_MS, restartedAt, context)) {
        throw new SyncError(
          'SOURCE_UNAVAILABLE',
          'The source rejected the list cursor again, less than 10 minutes after the list was restarted. The next attempt retries.',
          { cause: error },
        )
      }
      context.log.info('the source rejected the list cursor; reading from the newest item', { phase: query.phase })
      return {
        ...(await this.read({ ...query, cursor: null }, context, { ...(headOrder !== undefined && { headOrder }) })),
        restart: { restartedAt: context.clock.now() },
      }
    }
  }

  /** Merges anchors, newest first, without duplicates, up to the limit. */
  mergeAnchors(newer: Anchors | readonly ItemFingerprint[], older: Anchors | readonly ItemFingerprint[] = ''): Anchors {
    return mergeAnchors(serializeAnchors(newer), serializeAnchors(older), this.#anchorsMax)
  }

  #parsePage(
    { items, nextCursor, reachedSince = false }: Omit<FrontierPage<Item>, 'extra'>,
    headOrder: OrderedItem['order'],
  ): FrontierRead {
    if (!Array.isArray(items)) throw sourceInvalidError('A list page has no `items` array.')
    // A missing cursor is not the end: a tail that is wrongly marked complete is never read again.
    if (nextCursor !== null && typeof nextCursor !== 'string')
      throw sourceInvalidError('A list page has no `nextCursor`. Return a string, or null on the last page.')
    const ordered = items.map((item: Item) => this.#toOrderedItem(item))
    return {
      newest: ordered[0],
      fingerprints: ordered.map(({ id, order }) => ({
        fingerprint: fingerprintItem(id, order),
        isOlder: isOlderOrder(order, headOrder),
      })),
      changes: items.flatMap((item: Item): readonly Change[] => [this.#options.toChange(item) ?? []].flat()),
      nextCursor,
      reachedSince,
      restart: undefined,
    }
  }

  #toOrderedItem(item: Item): OrderedItem {
    const id = this.#options.id(item)
    if (typeof id !== 'string' || id === '') throw sourceInvalidError('A list item has no id.')
    const order = this.#options.order?.(item)
    if (
      this.#options.order !== undefined &&
      typeof order !== 'string' &&
      !(typeof order === 'number' && Number.isFinite(order))
    )
      throw sourceInvalidError('A list item has no order: `order` must return a string or a finite number.')
    return { id, ...(order !== undefined && { order }) }
  }
}

function serializeAnchors(anchors: Anchors | readonly ItemFingerprint[]): Anchors {
  return typeof anchors === 'string' ? anchors : anchors.map(({ fingerprint }) => fingerprint).join('')
}

function checkState(state: FrontierPassState): void {
  const { anchors, checkedAt, pass, tailCursor, tailComplete } = state
  if (!isAnchors(anchors) || (pass !== undefined && !isAnchors(pass.anchors)))
    throw stateRejectedError('frontier', '`anchors` are not item fingerprints')
  if (typeof checkedAt !== 'number') throw stateRejectedError('frontier', '`checkedAt` is not a time')
  if (pass !== undefined && typeof pass.headCursor !== 'string')
    throw stateRejectedError('frontier', '`headCursor` is not a cursor')
  if (typeof tailComplete !== 'boolean' || (tailCursor !== undefined && typeof tailCursor !== 'string'))
    throw stateRejectedError('frontier', '`tailComplete` is not a boolean or `tailCursor` is not a string')
}
