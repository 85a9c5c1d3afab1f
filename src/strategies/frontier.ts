import { isSyncError, SyncError, type Change, type Execute, type Page, type SyncContext } from '../contract/index.ts'
import { matchAnchors, isAnchors, isCaughtUp, hasReachedAnchors, fingerprintItem, ANCHOR_COUNT, INITIAL_SEARCH, mergeAnchors, type Anchors, type ItemFingerprint, type AnchorSearch } from './kit/frontier-anchors.ts'
import { countEndClaim, isEndConfirmed, type EndClaim } from './kit/end-claim.ts'
import { formatIso } from './kit/instants.ts'
import { sourceInvalidError, requireNumber, stateRejectedError } from './kit/strategy-errors.ts'
import type { ItemChanges } from './kit/to-changes.ts'

/** All a sync is given, and where to read. A source may take the `cursor` alone and leave the rest. */
export interface FetchContext extends SyncContext {
  /** Null: from the newest end. */
  readonly cursor: string | null
  /** The newest item known when the last forward pass had ended; null without one, and always in backfill. */
  readonly sinceItemId: string | null
  readonly phase: 'forward' | 'backfill'
}

export interface FrontierPage<Item> {
  /** Newest first. */
  readonly items: readonly Item[]
  /** Null at the true end of the list, and only there. The page is asked for again before it is believed. */
  readonly nextCursor: string | null
  /** The source itself was asked for what is newer than `sinceItemId` and has told all of it. Needed when it leaves that item out. */
  readonly reachedSince?: boolean
}

export interface FrontierOptions<Item> {
  id(item: Item): string
  toChange(item: Item): ItemChanges
  /** What the list is sorted by, where an item shows it: greater is newer, and an item that moves to the top gets a new one. */
  order?(item: Item): string | number
  /** While a long backfill is under way, new items are looked for this often: every quarter of an hour unless said otherwise. */
  refreshMs?: number
  /** How many of the newest items are remembered; 500 unless said otherwise. Three pages of them tell a known part of the list when every anchor is gone. */
  anchorsMax?: number
}

/** Head and tail apart: a forward pass never touches the tail, backfill never touches the head. */
export interface FrontierState {
  /** What the next page is for. */
  readonly phase: 'forward' | 'backfill'
  /** The newest item when the last forward pass had ended, and its order. */
  readonly headItemId?: string
  readonly headOrder?: string | number
  readonly anchors: Anchors
  /** When the last complete forward pass began. */
  readonly checkedAt: number
  /** The forward pass under way; absent when there is none. */
  readonly pass?: ForwardPass
  /** Where backfill goes on; absent at its start, after its end, and when the source has forgotten the place. */
  readonly tailCursor?: string
  /** Set by a true end of the list and by nothing else. */
  readonly tailComplete: boolean
  /** When a pass was last begun anew because the source had forgotten its place. */
  readonly restartedAt?: number
  /** The page that is asked for next has claimed to be the last one. */
  readonly ending?: EndClaim
}

/** What becomes the head once the pass has ended, and not before: until then the old anchors are in force. */
interface ForwardPass extends AnchorSearch {
  readonly headCursor: string
  readonly startedAt: number
  /** Its newest item. */
  readonly pending?: OrderedItem
  readonly anchors: Anchors
}

interface OrderedItem {
  readonly id: string
  readonly order?: string | number
}

/**
 * For lists that come newest first and tell nothing of what changed: bookmarks, stars, likes, timelines.
 *
 *               ┌──── pages, until the anchors are met (reached_since), three pages are known (caught_up) or the list ends
 *   begin ──▶ forward ──the tail is complete──────────────────────────▶ end of the cycle
 *               │  ▲                                                          ▲
 *               │  └──────────every `refreshMs`───────────┐                   │
 *               └──the first page, or the pass, is done──▶ backfill ──the list ends (end_of_data)
 *
 * The end of the list needs evidence, or a page that broke off would hide the rest of the list for good: the source
 * claims it in two answers in a row, after the same item. If a pass arrives there without a known item, its items do not become anchors: the
 * next cycle has none and reads the whole list.
 *
 * An interruption, be it a crash, an error, a cancel or a budget of the engine, leaves the state of the last landed page:
 * the pass goes on from its `headCursor`, and the anchors are still the old ones.
 *
 * Nothing here tells of items that are gone. The same function in a replace sync reads the whole list, then its top once
 * more for what moved there meanwhile, and lets the engine sweep the rest: `worker.track` takes it as both halves.
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
export function frontier<Item>(fetchPage: (context: FetchContext) => Promise<FrontierPage<Item>>, options: FrontierOptions<Item>): Execute<FrontierState> {
  if (typeof fetchPage !== 'function') throw new SyncError('SYNC_INVALID', `frontier: \`fetchPage\` is ${typeof fetchPage}, not a function.`)
  const { refreshMs = 15 * 60_000, anchorsMax = 500 } = options
  requireNumber('frontier', 'refreshMs', refreshMs, 0)
  requireNumber('frontier', 'anchorsMax', anchorsMax, ANCHOR_COUNT)
  const list = new FrontierList(fetchPage, options, anchorsMax)

  return async (state, context) => {
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
  }
}

/** Without an anchor there is nothing to reach: the first page makes the head, and backfill goes on where it ends. */
async function readFirstPage<Item>(list: FrontierList<Item>, context: SyncContext): Promise<Page<FrontierState>> {
  const checkedAt = context.clock.now()
  const query = { cursor: null, sinceItemId: null, phase: 'forward' } as const
  const { newest, fingerprints: marks, changes, nextCursor } = await list.read(query, context)
  return buildPage(changes, null, {
    phase: 'backfill', ...toHeadState(newest), anchors: list.mergeAnchors(marks), checkedAt,
    // Backfill without a cursor asks for the top of the list.
    ...(nextCursor === null ? { tailComplete: false, ending: buildEndClaim(marks, undefined, context) } : toTailState(nextCursor)),
  })
}

function buildEndClaim(marks: readonly ItemFingerprint[], before: EndClaim | undefined, { clock }: SyncContext): EndClaim {
  return { mark: getLastFingerprint(marks), ...countEndClaim(before, clock.now()) }
}

function getLastFingerprint(marks: readonly ItemFingerprint[]): string {
  return marks.at(-1)?.fingerprint ?? ''
}

async function readForward<Item>(
  { pass, ending: claimed, ...state }: FrontierState, list: FrontierList<Item>, context: SyncContext,
): Promise<Page<FrontierState>> {
  const now = context.clock.now()
  const query = { cursor: pass?.headCursor ?? null, sinceItemId: state.headItemId ?? null, phase: 'forward' } as const
  const { newest, fingerprints: marks, changes, nextCursor, reachedSince, restart } = await list.read(query, context, state)
  const before = restart === undefined ? pass : undefined
  const ending = restart === undefined ? claimed : undefined
  const search = matchAnchors(state.anchors, marks, before ?? INITIAL_SEARCH)
  const anchors = list.mergeAnchors(before?.anchors ?? '', marks)
  const pending = before?.pending ?? newest
  const startedAt = before?.startedAt ?? now
  const reason = reachedSince || hasReachedAnchors(search) ? 'reached_since' : nextCursor === null ? 'end_of_data' : isCaughtUp(search) ? 'caught_up' : null
  if (nextCursor !== null && reason === null) {
    const under = { headCursor: nextCursor, startedAt, ...(pending && { pending }), anchors, ...search }
    const isOpen = ending !== undefined && marks.length === 0
    return buildPage(changes, null, { ...state, ...restart, pass: under, ...(isOpen && { ending }) })
  }
  if (reason === 'end_of_data' && !isEndConfirmed(ending, getLastFingerprint(marks))) {
    return buildPage(changes, null, { ...state, ...restart, ...(before && { pass: before }), ending: buildEndClaim(marks, ending, context) })
  }

  const { headItemId, headOrder, ...rest } = state
  // Known items stood below the last one of the pass. If all of them are gone, the list may also have broken off.
  if (reason === 'end_of_data' && state.anchors !== '' && search.rank === -1) {
    if (!state.tailComplete) return buildPage(changes, null, { ...state, ...restart, phase: 'backfill' })
    return buildPage(changes, context.cycle.mode === 'incremental' ? reason : null, { ...rest, ...restart, anchors: '' })
  }
  const head = headItemId === undefined ? undefined : { id: headItemId, ...(headOrder !== undefined && { order: headOrder }) }
  // The end of the list without enough known items: those of this pass take the place of the anchors.
  const isMet = reason !== 'end_of_data'
  const settled: FrontierState = {
    ...rest, ...restart, phase: state.tailComplete ? 'forward' : 'backfill', ...toHeadState(pickNewerHead(pending, head, isMet)),
    anchors: list.mergeAnchors(anchors, isMet ? state.anchors : ''), checkedAt: startedAt,
  }
  // What moved to the top while a replace cycle was reading below is not gone: it has seen all when a look at the top, in
  // one page or without anything new, follows.
  const isSettled = context.cycle.mode === 'incremental' || before === undefined || !search.isNews
  return buildPage(changes, state.tailComplete && isSettled ? reason : null, settled)
}

async function readBackfill<Item>(
  { tailCursor, ending: claimed, ...state }: FrontierState, list: FrontierList<Item>, refreshMs: number, context: SyncContext,
): Promise<Page<FrontierState>> {
  const query = { cursor: tailCursor ?? null, sinceItemId: null, phase: 'backfill' } as const
  const { fingerprints: marks, changes, nextCursor, restart } = await list.read(query, context, state)
  const anchors = list.mergeAnchors(state.anchors, marks)
  const ending = restart === undefined ? claimed : undefined
  if (nextCursor === null && !isEndConfirmed(ending, getLastFingerprint(marks))) {
    const asked = restart === undefined && tailCursor !== undefined ? { tailCursor } : {}
    return buildPage(changes, null, { ...state, ...restart, anchors, ...asked, tailComplete: false, ending: buildEndClaim(marks, ending, context) })
  }
  // An empty page in between neither confirms the end nor refutes it.
  const isOpen = ending !== undefined && nextCursor !== null && marks.length === 0
  // In replace mode a look at the top follows, unless this page was the top and the end at once.
  const isDone = nextCursor === null && (context.cycle.mode === 'incremental' || tailCursor === undefined)
  // Decided after a page and not before it: where a page takes longer than that, both still have their turns.
  const isNext = isOpen || (nextCursor !== null && isWithin(refreshMs, state.checkedAt, context))
  const phase = isNext ? 'backfill' : 'forward'
  return buildPage(changes, isDone ? 'end_of_data' : null, {
    ...state, ...restart, phase, anchors, ...toTailState(nextCursor), ...(isOpen && { ending }),
  })
}

function buildPage(changes: Change[], endReason: string | null, nextState: FrontierState): Page<FrontierState> {
  // At the end of a cycle nothing is missing that was on the list when the last complete pass began.
  return { changes, hasMore: endReason === null, nextState, ...(endReason !== null && { endReason, tidemark: formatIso(nextState.checkedAt) }) }
}

function toTailState(nextCursor: string | null): Pick<FrontierState, 'tailCursor' | 'tailComplete'> {
  return nextCursor === null ? { tailComplete: true } : { tailCursor: nextCursor, tailComplete: false }
}

function toHeadState(head: OrderedItem | undefined): Pick<FrontierState, 'headItemId' | 'headOrder'> {
  return head === undefined ? {} : { headItemId: head.id, ...(head.order !== undefined && { headOrder: head.order }) }
}

/** The newest item of a pass, unless its order says that the head of before was newer and is only gone. */
function pickNewerHead(pending: OrderedItem | undefined, head: OrderedItem | undefined, isMet: boolean): OrderedItem | undefined {
  if (pending === undefined) return isMet ? head : undefined
  return isOlderOrder(pending.order, head?.order) ? head : pending
}

function isOlderOrder(order: OrderedItem['order'], other: OrderedItem['order']): boolean {
  return order !== undefined && other !== undefined && order < other
}

/** A clock that was set back must not keep anything waiting. */
function isWithin(ms: number, since: number, { clock }: SyncContext): boolean {
  const passedMs = clock.now() - since
  return passedMs >= 0 && passedMs < ms
}

/** A source that forgets each place as soon as it has given it would be read from the top for ever. */
const RESTART_INTERVAL_MS = 10 * 60_000

interface FrontierRead {
  readonly newest: OrderedItem | undefined
  readonly fingerprints: readonly ItemFingerprint[]
  readonly changes: Change[]
  readonly nextCursor: string | null
  readonly reachedSince: boolean
  /** The source had forgotten the place, and this is the top of the list. */
  readonly restart: { readonly restartedAt: number } | undefined
}

/** The source's list, as pages that have been looked at. */
class FrontierList<Item> {
  readonly #fetchPage: (context: FetchContext) => Promise<FrontierPage<Item>>
  readonly #options: FrontierOptions<Item>
  readonly #anchorsMax: number

  constructor(fetchPage: (context: FetchContext) => Promise<FrontierPage<Item>>, options: FrontierOptions<Item>, anchorsMax: number) {
    this.#fetchPage = fetchPage
    this.#options = options
    this.#anchorsMax = anchorsMax
  }

  async read(query: Pick<FetchContext, 'cursor' | 'sinceItemId' | 'phase'>, context: SyncContext, { restartedAt, headOrder }: Partial<FrontierState> = {}): Promise<FrontierRead> {
    try {
      return this.#parsePage(await this.#fetchPage({ ...context, ...query }), headOrder)
    } catch (error) {
      if (query.cursor === null || !isSyncError(error) || error.code !== 'CURSOR_REJECTED') throw error
      if (restartedAt !== undefined && isWithin(RESTART_INTERVAL_MS, restartedAt, context)) {
        throw new SyncError('SOURCE_UNAVAILABLE', 'The source has forgotten its place in the list again, soon after the list was begun anew.', { cause: error })
      }
      context.log.info('the source has forgotten its place in the list; reading from the newest item', { phase: query.phase })
      return { ...(await this.read({ ...query, cursor: null }, context, { ...(headOrder !== undefined && { headOrder }) })), restart: { restartedAt: context.clock.now() } }
    }
  }

  /** The newer ones first, each once, as many as are worth it. */
  mergeAnchors(newer: Anchors | readonly ItemFingerprint[], older: Anchors | readonly ItemFingerprint[] = ''): Anchors {
    return mergeAnchors(serializeAnchors(newer), serializeAnchors(older), this.#anchorsMax)
  }

  #parsePage({ items, nextCursor, reachedSince = false }: FrontierPage<Item>, headOrder: OrderedItem['order']): FrontierRead {
    if (!Array.isArray(items)) throw sourceInvalidError('A page of the list has no items.')
    // Not even a missing cursor is taken for the end: a tail that is wrongly complete is never read again.
    if (nextCursor !== null && typeof nextCursor !== 'string') throw sourceInvalidError('A page of the list says neither where the next one begins nor, with null, that it is the last.')
    const placed = items.map((item: Item) => this.#toOrderedItem(item))
    return {
      newest: placed[0], fingerprints: placed.map(({ id, order }) => ({ fingerprint: fingerprintItem(id, order), isOlder: isOlderOrder(order, headOrder) })),
      changes: items.flatMap((item: Item): readonly Change[] => [this.#options.toChange(item) ?? []].flat()),
      nextCursor, reachedSince, restart: undefined,
    }
  }

  #toOrderedItem(item: Item): OrderedItem {
    const id = this.#options.id(item)
    if (typeof id !== 'string' || id === '') throw sourceInvalidError('An item of the list has no id.')
    const order = this.#options.order?.(item)
    if (this.#options.order !== undefined && typeof order !== 'string' && !(typeof order === 'number' && Number.isFinite(order))) throw sourceInvalidError('An item of the list has no order.')
    return { id, ...(order !== undefined && { order }) }
  }
}

function serializeAnchors(anchors: Anchors | readonly ItemFingerprint[]): Anchors {
  return typeof anchors === 'string' ? anchors : anchors.map(({ fingerprint: mark }) => mark).join('')
}

function checkState(state: FrontierState): void {
  const { anchors, checkedAt, pass, tailCursor, tailComplete } = state
  if (!isAnchors(anchors) || (pass !== undefined && !isAnchors(pass.anchors))) throw stateRejectedError('frontier', '`anchors` are not marks of items')
  if (typeof checkedAt !== 'number') throw stateRejectedError('frontier', '`checkedAt` is not a time')
  if (pass !== undefined && typeof pass.headCursor !== 'string') throw stateRejectedError('frontier', '`headCursor` is not a cursor')
  if (typeof tailComplete !== 'boolean' || (tailCursor !== undefined && typeof tailCursor !== 'string')) throw stateRejectedError('frontier', 'the tail is neither complete nor at a cursor')
}
