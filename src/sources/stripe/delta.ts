import { SyncError, type Change, type Page, type SyncContext } from '../../contract/index.ts'
import { eventFeed, type AnchoredExecute, type EventFeedCursor, type EventFeedState } from '../../strategies/index.ts'
import { PAGE_SIZE_MAX, type EventsPage, type StripeApi } from './api.ts'
import { toUpserts, type StreamDatabases } from './changes.ts'
import { EventScan } from './event-scan.ts'
import { secondToIso, formatOrderedTime, type StripeEvent } from './events.ts'
import { PageBudget } from './page-budget.ts'
import { required } from '../../values/required.ts'
import { PendingObjects } from './pending-objects.ts'
import { addReads, canSettle, ObjectReads, settleReads, SETTLE_AFTER_MS, type ObjectReadBatch } from './object-reads.ts'
import type { StripeResource } from './resources.ts'

/** The state of a Stripe delta: a cursor in the event log, and objects that are still to be read. */
export type StripeDeltaState =
  | (EventFeedCursor & DeltaProgress)
  | ({ readonly cursor: null } & Pick<DeltaProgress, 'waiting'>)

interface DeltaProgress {
  readonly waiting?: EventWait
  /** See PendingObjects. */
  readonly pending?: Readonly<Record<string, readonly string[]>>
  readonly reading?: PendingRead
  readonly read?: readonly ObjectReadBatch[]
}

/**
 * Events that are too young by the `Date` header but not by the local clock. The header may be wrong, so the wait is limited:
 * once the events have been visible for long enough, all earlier events are visible too.
 */
interface EventWait {
  /** The second of the newest event. */
  readonly second: number
  /** The local clock when it was seen. Used to measure elapsed time only. */
  readonly atMs: number
}

/** Set while pending objects are read. */
interface PendingRead {
  /** The second of the newest event seen before the read. */
  readonly since: number
  /** Whether the log has further pages. */
  readonly hasMore: boolean
  /** The tidemark of the log page, valid once all pending objects are read. */
  readonly tidemark?: string | null
}

/** Events may become visible seconds after their timestamp, below events that were already listed. */
export const EVENT_LAG_MS = 10_000
/** How long Stripe keeps events. */
export const EVENT_RETENTION_MS = 30 * 86_400_000
const FIRST_EVENT_PAGES_MAX = 100

/**
 * Follows the event log. An event carries a version of its object, which is landed if it is known to be newer than the row.
 * Otherwise the current version of the object is read:
 *
 *   scan   reads a page of the log, and records in the state which objects to read
 *   read   reads some of them, at the end of the log or when there are many; each page is committed
 *
 * Each object is read once, after all of its scanned events, so the cost is one request per object.
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
    return state.reading === undefined
      ? this.#scanEvents(state, context)
      : this.#readPending(state, state.reading, context)
  }

  async #scanEvents(state: EventFeedCursor & DeltaProgress, context: SyncContext): Promise<Page<StripeDeltaState>> {
    const { cursor, cursorTime, waiting } = state
    const { feed, safeEvents, getPage } = this.#createFeed(waiting)
    const requestedAt = context.clock.now()
    const page = await feed({ cursor, cursorTime }, context)
    const { events, hasMore } = getPage()
    const tooYoung = events.filter((event) => event.id !== cursor && !safeEvents.includes(event))
    const isBlocked = tooYoung.some(({ created }) => created * 1_000 < context.cycle.startedAt - EVENT_LAG_MS)
    const isNewWait = isBlocked && (waiting === undefined || isWaitOver(waiting, requestedAt))
    const isSettled = canSettle(state.read ?? [], requestedAt)
    let newest = Math.max(toSecond(cursorTime), ...events.map(({ created }) => created))
    if (hasMore && (isNewWait || isSettled)) newest = await this.#readNewestSecond(newest, context)
    const read = settleReads(state.read ?? [], requestedAt, newest)

    const scan = this.#createScan(state, read, context)
    const taken = safeEvents.findIndex((event) => !scan.tryProcess(event))
    const isCut = taken !== -1
    const next = isCut
      ? toCursor(required(safeEvents[taken - 1], 'The last scanned event'))
      : (page.nextState as EventFeedCursor)
    // A later newest event means that more of the log is known to be older than the objects read now.
    if (hasMore && scan.pending.isFull) newest = await this.#readNewestSecond(newest, context)
    const wait = isNewWait ? { second: newest, atMs: requestedAt } : waiting
    return this.#buildPage(
      scan,
      { ...next, read, ...(wait !== undefined && { waiting: wait }) },
      {
        since: newest,
        hasMore: isCut || page.hasMore,
        ...(page.tidemark !== undefined && !isCut && { tidemark: page.tidemark }),
      },
    )
  }

  async #readPending(
    state: EventFeedCursor & DeltaProgress,
    reading: PendingRead,
    context: SyncContext,
  ): Promise<Page<StripeDeltaState>> {
    const pending = new PendingObjects(state.pending)
    const budget = new PageBudget(this.#requestsMax, context)
    const changes: Change[] = []
    const assembled: Change[] = []
    // The log had all events up to the cursor by then, so the object is not older than the cursor.
    const facts = { upstreamUpdatedAt: formatOrderedTime(toSecond(state.cursorTime), 'changed'), asOf: 'read' } as const
    await budget.processWithinBudget(pending.list(), context, async ({ type, id }) => {
      const complete = await this.#api.readObject(type, id, this.#stream, budget, context)
      // A deleted object has an event in the log.
      const found = complete === null ? [] : toUpserts(complete.object, this.#databases, facts)
      changes.push(...found)
      if (complete?.isAssembled === true) assembled.push(...found)
      pending.delete(type, id)
    })
    const read = this.#recordReads(state.read ?? [], changes, assembled, reading.since, context.clock.now())
    if (pending.size > 0) return { changes, hasMore: true, nextState: buildState({ ...state, read, reading }, pending) }
    const { hasMore, tidemark } = reading
    return {
      changes,
      hasMore,
      nextState: buildState({ ...state, read, reading: undefined }, pending),
      ...(tidemark !== undefined && { tidemark }),
    }
  }

  /** Events of the last seconds before the read may be newer than the cached pages that an object was assembled from. */
  #recordReads(
    read: readonly ObjectReadBatch[],
    changes: readonly Change[],
    assembled: readonly Change[],
    since: number,
    atMs: number,
  ): ObjectReadBatch[] {
    const getChangeKeys = (found: readonly Change[]): string[] => found.flatMap(({ key }) => key ?? [])
    const plain = changes.filter((change) => !assembled.includes(change))
    const added = plain.length === 0 ? read : addReads(read, getChangeKeys(plain), since, atMs)
    return assembled.length === 0
      ? [...added]
      : addReads(added, getChangeKeys(assembled), since - EVENT_LAG_MS / 1_000, atMs)
  }

  /** The log was empty when the sync began, so all of its events are new. */
  async #startFromFirstEvent(
    { waiting }: { readonly waiting?: EventWait },
    context: SyncContext,
  ): Promise<Page<StripeDeltaState>> {
    const requestedAt = context.clock.now()
    const { first, newest, serverTime } = await this.#findFirstEvent(context)
    if (first === undefined) return { changes: [], hasMore: false, nextState: { cursor: null } }
    const isWaitSatisfied = waiting !== undefined && isWaitOver(waiting, requestedAt) && first.created <= waiting.second
    const safeMs =
      Math.min(context.cycle.startedAt, isWaitSatisfied ? Infinity : (serverTime ?? Infinity)) - EVENT_LAG_MS
    if (first.created * 1_000 >= safeMs) {
      // Another event may still become visible below it.
      const isNewWait = waiting === undefined || isWaitOver(waiting, requestedAt)
      return {
        changes: [],
        hasMore: false,
        nextState: { cursor: null, waiting: isNewWait ? { second: newest, atMs: requestedAt } : waiting },
      }
    }
    const scan = this.#createScan(undefined, [], context)
    scan.tryProcess(first)
    return this.#buildPage(
      scan,
      { ...toCursor(first), ...(waiting !== undefined && { waiting }) },
      { since: newest, hasMore: true },
    )
  }

  #createScan(
    state: (EventFeedCursor & DeltaProgress) | undefined,
    read: readonly ObjectReadBatch[],
    { unordered }: SyncContext,
  ): EventScan {
    return new EventScan({
      databases: this.#databases,
      expand: this.#api.expand,
      pending: new PendingObjects(state?.pending),
      objectReads: new ObjectReads(read),
      unordered: new Set(unordered),
      previousPageSecond: state === undefined ? null : toSecond(state.cursorTime),
    })
  }

  #buildPage(
    { changes, pending }: EventScan,
    { waiting, ...scannedTo }: EventFeedCursor & DeltaProgress,
    scanned: PendingRead,
  ): Page<StripeDeltaState> {
    const { hasMore, tidemark } = scanned
    const second = toSecond(scannedTo.cursorTime)
    const isPassed = (until: number): boolean => second > until || (second === until && !hasMore)
    // A batch is dropped when no ambiguous event can follow.
    const read = (scannedTo.read ?? []).filter(({ until }) => until === undefined || !isPassed(until))
    const state = { ...scannedTo, read, ...(waiting !== undefined && !isPassed(waiting.second) && { waiting }) }
    const isReading = pending.size > 0 && (!hasMore || pending.isFull)
    if (isReading) return { changes, hasMore: true, nextState: buildState({ ...state, reading: scanned }, pending) }
    const hasTidemark = tidemark !== undefined && pending.size === 0
    return {
      changes,
      hasMore,
      nextState: buildState({ ...state, reading: undefined }, pending),
      ...(hasTidemark && { tidemark }),
    }
  }

  /** Creates a reader for one page of the log. `safeEvents` receives the events that are old enough, oldest first. */
  #createFeed(waiting: EventWait | undefined): {
    feed: AnchoredExecute<EventFeedState>
    safeEvents: StripeEvent[]
    getPage: () => EventsPage
  } {
    const safeEvents: StripeEvent[] = []
    let page: EventsPage | undefined
    const feed = eventFeed<StripeEvent>({
      anchor: (context) => this.#readNewestSafeEvent(context),
      read: async ({ after }, context) => {
        const requestedAt = context.clock.now()
        page = await this.#api.listEvents(
          { ...(after !== '' && { ending_before: after }), limit: this.#api.limit },
          context,
        )
        if (waiting === undefined || !isWaitOver(waiting, requestedAt)) return page
        const tookMs = Math.max(0, context.clock.now() - requestedAt)
        return {
          ...page,
          serverTime: Math.max(page.serverTime ?? 0, (waiting.second + 1) * 1_000 + EVENT_LAG_MS + tookMs),
        }
      },
      id: ({ id }) => id,
      time: ({ created }) => secondToIso(created),
      toChanges: (event) => {
        safeEvents.push(event)
        return []
      },
      lagMs: EVENT_LAG_MS,
      order: 'newest-first',
      retentionMs: EVENT_RETENTION_MS,
    })
    return { feed, safeEvents, getPage: () => required(page, 'The page of events') }
  }

  async #readNewestSecond(atLeast: number, context: SyncContext): Promise<number> {
    const { events } = await this.#api.listEvents({ limit: 1 }, context)
    return Math.max(atLeast, ...events.map(({ created }) => created))
  }

  /** Returns the newest event below which no other can become visible any more. */
  async #readNewestSafeEvent(context: SyncContext): Promise<StripeEvent | undefined> {
    const requestedAt = context.clock.now()
    const {
      events: [newest],
      serverTime,
    } = await this.#api.listEvents({ limit: 1 }, context)
    if (newest === undefined) return undefined
    const tookMs = Math.max(0, context.clock.now() - requestedAt)
    // An event that exists is a lower bound for the current time.
    const nowMs = Math.max(
      newest.created * 1_000,
      Math.min(context.cycle.startedAt, serverTime === null ? Infinity : serverTime - tookMs),
    )
    if (newest.created * 1_000 < nowMs - EVENT_LAG_MS) return newest
    return (
      await this.#api.listEvents({ 'created[lt]': Math.floor((nowMs - EVENT_LAG_MS) / 1_000), limit: 1 }, context)
    ).events[0]
  }

  /** The log is listed newest first, so the first event is on the last page. */
  async #findFirstEvent(
    context: SyncContext,
  ): Promise<{ first: StripeEvent | undefined; newest: number; serverTime: number | null }> {
    let first: StripeEvent | undefined
    let newest = 0
    let earliest: number | null = null
    for (let pages = 0; pages < FIRST_EVENT_PAGES_MAX; pages++) {
      const { events, hasMore, serverTime } = await this.#api.listEvents(
        { ...(first !== undefined && { starting_after: first.id }), limit: PAGE_SIZE_MAX },
        context,
      )
      if (serverTime !== null) earliest = Math.min(earliest ?? Infinity, serverTime)
      newest = Math.max(newest, ...events.map(({ created }) => created))
      first = events.at(-1) ?? first
      if (!hasMore) return { first, newest, serverTime: earliest }
    }
    throw new SyncError(
      'HISTORY_LOST',
      `The first event is more than ${FIRST_EVENT_PAGES_MAX} pages back. Reset the state, let the sync take a new anchor, then run a backfill.`,
    )
  }
}

function isWaitOver({ atMs }: EventWait, nowMs: number): boolean {
  return nowMs - atMs >= SETTLE_AFTER_MS
}

/** Omits empty fields: an idle state is the cursor alone. */
function buildState(
  state: EventFeedCursor & Omit<DeltaProgress, 'reading'> & { reading: PendingRead | undefined },
  pending: PendingObjects,
): StripeDeltaState {
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
