import { SyncError, type Change, type Page, type SyncContext } from '../../contract/index.ts'
import { eventFeed, type AnchoredExecute, type EventFeedCursor, type EventFeedState } from '../../strategies/index.ts'
import { PAGE_SIZE_MAX, type EventsPage, type StripeApi } from './api.ts'
import { toUpserts, type StreamDatabases } from './changes.ts'
import { EventScan } from './event-scan.ts'
import { secondToIso, formatOrderedTime, type StripeEvent } from './events.ts'
import { PageBudget } from './page-budget.ts'
import { PendingObjects } from './pending-objects.ts'
import { addReads, canSettle, ObjectReads, settleReads, SETTLE_AFTER_MS, type ObjectReadBatch } from './object-reads.ts'
import type { StripeResource } from './resources.ts'

export type StripeDeltaState = (EventFeedCursor & DeltaProgress) | ({ readonly cursor: null } & Pick<DeltaProgress, 'waiting'>)

interface DeltaProgress {
  readonly waiting?: EventWait
  /** See PendingObjects. */
  readonly pending?: Readonly<Record<string, readonly string[]>>
  readonly reading?: PendingRead
  readonly read?: readonly ObjectReadBatch[]
}

/**
 * Events that the `Date` header says are too young, though our own clock says otherwise. The header may be wrong, so
 * they do not wait for it for ever: once they have been visible for long enough, everything below them is too.
 */
interface EventWait {
  /** The second of the newest event. */
  readonly second: number
  /** Our clock when it was seen. It only tells how long ago that was. */
  readonly atMs: number
}

/** Set while pending objects are read. */
interface PendingRead {
  /** The second of the newest event seen before. */
  readonly since: number
  /** The log goes on. */
  readonly hasMore: boolean
  /** Of the page of the log, true once all of them are read. */
  readonly tidemark?: string | null
}

/** Events may show seconds after the time they are stamped with, below events that were listed before. */
export const EVENT_LAG_MS = 10_000
/** How long Stripe keeps events. */
export const EVENT_RETENTION_MS = 30 * 86_400_000
const FIRST_EVENT_PAGES_MAX = 100

/**
 * Follows the log of events. An event carries its object as it was then, and that is what is landed, where it is known
 * to be newer than the row. Elsewhere the object is read as it is now:
 *
 *   scan   reads a page of the log, and notes the objects to be read in the state
 *   read   reads some of them, at the end of the log or when there are many; each page is committed
 *
 * Each object is read once, after all of its events that were scanned, so the cost is one request per object.
 */
export class StripeDelta {
  readonly #api: StripeApi
  readonly #stream: StripeResource
  readonly #databases: StreamDatabases
  readonly #requestsMax: number

  constructor(api: StripeApi, stream: StripeResource, databases: StreamDatabases, requestsMax: number) {
    this.#api = api
    this.#stream = stream
    this.#databases = databases
    this.#requestsMax = requestsMax
  }

  async anchor(context: SyncContext): Promise<StripeDeltaState> {
    const { feed } = this.#createFeed(undefined)
    return (await feed.anchor(context)) ?? { cursor: null }
  }

  async readPage(state: StripeDeltaState | undefined, context: SyncContext): Promise<Page<StripeDeltaState>> {
    if (state === undefined) return { changes: [], hasMore: false, nextState: await this.anchor(context) }
    if (state.cursor === null) return this.#startFromFirstEvent(state, context)
    return state.reading === undefined ? this.#scanEvents(state, context) : this.#readPending(state, state.reading, context)
  }

  async #scanEvents(state: EventFeedCursor & DeltaProgress, context: SyncContext): Promise<Page<StripeDeltaState>> {
    const { cursor, cursorTime, waiting } = state
    const { feed, told, answer } = this.#createFeed(waiting)
    const askedAt = context.clock.now()
    const page = await feed({ cursor, cursorTime }, context)
    const { events, hasMore } = answer()
    const left = events.filter((event) => event.id !== cursor && !told.includes(event))
    const isBlocked = left.some(({ created }) => created * 1_000 < context.cycle.startedAt - EVENT_LAG_MS)
    const isNewWait = isBlocked && (waiting === undefined || isWaitOver(waiting, askedAt))
    const isSettled = canSettle(state.read ?? [], askedAt)
    let newest = Math.max(toSecond(cursorTime), ...events.map(({ created }) => created))
    if (hasMore && (isNewWait || isSettled)) newest = await this.#readNewestSecond(newest, context)
    const read = settleReads(state.read ?? [], askedAt, newest)

    const scan = this.#createScan(state, read, context)
    const taken = told.findIndex((event) => !scan.tryProcess(event))
    const isCut = taken !== -1
    const next = isCut ? toCursor(told[taken - 1]!) : (page.nextState as EventFeedCursor)
    // The later the newest event, the more of the log is known to be older than what is read now.
    if (hasMore && scan.pending.isFull) newest = await this.#readNewestSecond(newest, context)
    const wait = isNewWait ? { second: newest, atMs: askedAt } : waiting
    return this.#buildPage(scan, { ...next, read, ...(wait !== undefined && { waiting: wait }) }, {
      since: newest, hasMore: isCut || page.hasMore, ...(page.tidemark !== undefined && !isCut && { tidemark: page.tidemark }),
    })
  }

  async #readPending(state: EventFeedCursor & DeltaProgress, reading: PendingRead, context: SyncContext): Promise<Page<StripeDeltaState>> {
    const pending = new PendingObjects(state.pending)
    const budget = new PageBudget(this.#requestsMax, context)
    const changes: Change[] = []
    const joined: Change[] = []
    // The log had shown all events up to the cursor by then, so the object is not older than that.
    const facts = { upstreamUpdatedAt: formatOrderedTime(toSecond(state.cursorTime), 'changed'), asOf: 'read' } as const
    await budget.processWithinBudget(pending.list(), context, async ({ type, id }) => {
      const whole = await this.#api.readObject(type, id, this.#stream, budget, context)
      // Gone: the log has the event that says so.
      const found = whole === null ? [] : toUpserts(whole.object, this.#databases, facts)
      changes.push(...found)
      if (whole?.isAssembled === true) joined.push(...found)
      pending.delete(type, id)
    })
    const read = this.#recordReads(state.read ?? [], changes, joined, reading.since, context.clock.now())
    if (pending.size > 0) return { changes, hasMore: true, nextState: buildState({ ...state, read, reading }, pending) }
    const { hasMore, tidemark } = reading
    return { changes, hasMore, nextState: buildState({ ...state, read, reading: undefined }, pending), ...(tidemark !== undefined && { tidemark }) }
  }

  /** Events of the last seconds before the reading may be newer than the pages that were joined to an object. */
  #recordReads(
    read: readonly ObjectReadBatch[], changes: readonly Change[], joined: readonly Change[], since: number, atMs: number,
  ): ObjectReadBatch[] {
    const keysOf = (found: readonly Change[]): string[] => found.map(({ key }) => key)
    const plain = changes.filter((change) => !joined.includes(change))
    const added = plain.length === 0 ? read : addReads(read, keysOf(plain), since, atMs)
    return joined.length === 0 ? [...added] : addReads(added, keysOf(joined), since - EVENT_LAG_MS / 1_000, atMs)
  }

  /** The log was empty when the sync began, so all that it holds is new. */
  async #startFromFirstEvent({ waiting }: { readonly waiting?: EventWait }, context: SyncContext): Promise<Page<StripeDeltaState>> {
    const askedAt = context.clock.now()
    const { first, newest, serverTime } = await this.#findFirstEvent(context)
    if (first === undefined) return { changes: [], hasMore: false, nextState: { cursor: null } }
    const isAwaited = waiting !== undefined && isWaitOver(waiting, askedAt) && first.created <= waiting.second
    const safeMs = Math.min(context.cycle.startedAt, isAwaited ? Infinity : (serverTime ?? Infinity)) - EVENT_LAG_MS
    if (first.created * 1_000 >= safeMs) {
      // Another event may still show below it.
      const isNewWait = waiting === undefined || isWaitOver(waiting, askedAt)
      return { changes: [], hasMore: false, nextState: { cursor: null, waiting: isNewWait ? { second: newest, atMs: askedAt } : waiting } }
    }
    const scan = this.#createScan(undefined, [], context)
    scan.tryProcess(first)
    return this.#buildPage(scan, { ...toCursor(first), ...(waiting !== undefined && { waiting }) }, { since: newest, hasMore: true })
  }

  #createScan(state: (EventFeedCursor & DeltaProgress) | undefined, read: readonly ObjectReadBatch[], { unordered }: SyncContext): EventScan {
    return new EventScan({
      databases: this.#databases, expand: this.#api.expand, pending: new PendingObjects(state?.pending), objectReads: new ObjectReads(read),
      unordered: new Set(unordered), previousPageSecond: state === undefined ? null : toSecond(state.cursorTime),
    })
  }

  #buildPage({ changes, pending }: EventScan, { waiting, ...scannedTo }: EventFeedCursor & DeltaProgress, scanned: PendingRead): Page<StripeDeltaState> {
    const { hasMore, tidemark } = scanned
    const second = toSecond(scannedTo.cursorTime)
    const isPassed = (until: number): boolean => second > until || (second === until && !hasMore)
    // A reading is over when no event can follow that it may be newer than.
    const read = (scannedTo.read ?? []).filter(({ until }) => until === undefined || !isPassed(until))
    const state = { ...scannedTo, read, ...(waiting !== undefined && !isPassed(waiting.second) && { waiting }) }
    const isReading = pending.size > 0 && (!hasMore || pending.isFull)
    if (isReading) return { changes, hasMore: true, nextState: buildState({ ...state, reading: scanned }, pending) }
    const isTold = tidemark !== undefined && pending.size === 0
    return { changes, hasMore, nextState: buildState({ ...state, reading: undefined }, pending), ...(isTold && { tidemark }) }
  }

  /** A page of the log, with the events that are old enough, oldest first. */
  #createFeed(waiting: EventWait | undefined): { feed: AnchoredExecute<EventFeedState>; told: StripeEvent[]; answer: () => EventsPage } {
    const told: StripeEvent[] = []
    let answered: EventsPage | undefined
    const feed = eventFeed<StripeEvent>({
      anchor: (context) => this.#readNewestSafeEvent(context),
      read: async ({ after }, context) => {
        const askedAt = context.clock.now()
        answered = await this.#api.listEvents({ ...(after !== '' && { ending_before: after }), limit: this.#api.limit }, context)
        if (waiting === undefined || !isWaitOver(waiting, askedAt)) return answered
        const tookMs = Math.max(0, context.clock.now() - askedAt)
        return { ...answered, serverTime: Math.max(answered.serverTime ?? 0, (waiting.second + 1) * 1_000 + EVENT_LAG_MS + tookMs) }
      },
      id: ({ id }) => id,
      time: ({ created }) => secondToIso(created),
      toChanges: (event) => {
        told.push(event)
        return []
      },
      lagMs: EVENT_LAG_MS,
      order: 'newest-first',
      retentionMs: EVENT_RETENTION_MS,
    })
    return { feed, told, answer: () => answered! }
  }

  async #readNewestSecond(atLeast: number, context: SyncContext): Promise<number> {
    const { events } = await this.#api.listEvents({ limit: 1 }, context)
    return Math.max(atLeast, ...events.map(({ created }) => created))
  }

  /** The newest event, unless others may still show below it; then the newest that is old enough. */
  async #readNewestSafeEvent(context: SyncContext): Promise<StripeEvent | undefined> {
    const askedAt = context.clock.now()
    const { events: [newest], serverTime } = await this.#api.listEvents({ limit: 1 }, context)
    if (newest === undefined) return undefined
    const tookMs = Math.max(0, context.clock.now() - askedAt)
    // No clock is behind an event that has happened.
    const nowMs = Math.max(newest.created * 1_000, Math.min(context.cycle.startedAt, serverTime === null ? Infinity : serverTime - tookMs))
    if (newest.created * 1_000 < nowMs - EVENT_LAG_MS) return newest
    return (await this.#api.listEvents({ 'created[lt]': Math.floor((nowMs - EVENT_LAG_MS) / 1_000), limit: 1 }, context)).events[0]
  }

  /** The log is listed newest first, so its first event is at the other end. */
  async #findFirstEvent(context: SyncContext): Promise<{ first: StripeEvent | undefined; newest: number; serverTime: number | null }> {
    let first: StripeEvent | undefined
    let newest = 0
    let earliest: number | null = null
    for (let pages = 0; pages < FIRST_EVENT_PAGES_MAX; pages++) {
      const { events, hasMore, serverTime } = await this.#api.listEvents({ ...(first !== undefined && { starting_after: first.id }), limit: PAGE_SIZE_MAX }, context)
      if (serverTime !== null) earliest = Math.min(earliest ?? Infinity, serverTime)
      newest = Math.max(newest, ...events.map(({ created }) => created))
      first = events.at(-1) ?? first
      if (!hasMore) return { first, newest, serverTime: earliest }
    }
    throw new SyncError('HISTORY_LOST', `The first event lies more than ${FIRST_EVENT_PAGES_MAX} pages back. Reset the state, let the sync take a new anchor, then run a backfill.`)
  }
}

function isWaitOver({ atMs }: EventWait, nowMs: number): boolean {
  return nowMs - atMs >= SETTLE_AFTER_MS
}

/** Without members that are empty: a state at rest is the cursor alone. */
function buildState(state: EventFeedCursor & Omit<DeltaProgress, 'reading'> & { reading: PendingRead | undefined }, pending: PendingObjects): StripeDeltaState {
  const { pending: _, reading, read = [], ...rest } = state
  return {
    ...rest,
    ...(pending.size > 0 && { pending: pending.toState() }),
    ...(reading !== undefined && { reading }),
    ...(read.length > 0 && { read }),
  }
}

function toCursor({ id, created }: StripeEvent): EventFeedCursor {
  return { cursor: id, cursorTime: secondToIso(created) }
}

function toSecond(time: string): number {
  return Math.floor(Date.parse(time) / 1_000)
}
