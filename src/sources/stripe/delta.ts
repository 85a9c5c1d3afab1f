import { SyncError, type Change, type Page, type SyncContext } from '../../contract/index.ts'
import {
  eventFeed,
  type AnchoredExecute,
  type EventFeedState,
  type EventFeedAnswer,
  type EventPage,
  type EventPageEnd,
} from '../../strategies/index.ts'
import { PAGE_SIZE_MAX, type StripeApi } from './api.ts'
import { toUpserts, type StreamDatabases } from './changes.ts'
import type { CreatedRange } from './created-range.ts'
import { EventScan } from './event-scan.ts'
import { secondToIso, formatOrderedTime, type StripeEvent } from './events.ts'
import { PageBudget } from './page-budget.ts'
import { PendingObjects } from './pending-objects.ts'
import { addReads, canSettle, ObjectReads, settleReads, SETTLE_AFTER_MS, type ObjectReadBatch } from './object-reads.ts'
import type { StripeResource } from './resources.ts'

/** The state of a Stripe delta: a cursor in the event log, and objects that are still to be read. */
export type StripeDeltaState = EventFeedState<DeltaProgress>

type CursorState = Extract<StripeDeltaState, { readonly cursor: string }>

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
  readonly #created: CreatedRange
  readonly #feed: AnchoredExecute<StripeDeltaState>

  constructor(
    api: StripeApi,
    stream: StripeResource,
    databases: StreamDatabases,
    requestsMax: number,
    created: CreatedRange,
  ) {
    this.#api = api
    this.#stream = stream
    this.#databases = databases
    this.#requestsMax = requestsMax
    this.#created = created
    this.#feed = eventFeed<StripeEvent, DeltaProgress>({
      anchor: (context) => this.#readNewestSafeEvent(context),
      read: ({ after, extra }, context) => this.#readEvents(after, extra?.waiting, context),
      id: ({ id }) => id,
      time: ({ created }) => secondToIso(created),
      toPage: (events, context) => this.#scanEvents(events, context),
      lagMs: EVENT_LAG_MS,
      order: 'newest-first',
      retentionMs: EVENT_RETENTION_MS,
    })
  }

  async anchor(context: SyncContext): Promise<StripeDeltaState> {
    return (await this.#feed.anchor(context)) ?? { cursor: null }
  }

  async readPage(stored: StripeDeltaState | undefined, context: SyncContext): Promise<Page<StripeDeltaState>> {
    const state = stored === undefined ? undefined : readState(stored)
    if (state === undefined) return this.#feed(undefined, context)
    if (state.cursor === null) return this.#startFromFirstEvent(state.extra?.waiting, context)
    return state.extra?.reading === undefined
      ? this.#feed(state, context)
      : this.#readPending(state, state.extra, state.extra.reading, context)
  }

  async #readEvents(
    after: string,
    waiting: EventWait | undefined,
    context: SyncContext,
  ): Promise<EventFeedAnswer<StripeEvent>> {
    const requestedAt = context.clock.now()
    const page = await this.#api.listEvents(
      { ...(after !== '' && { ending_before: after }), limit: this.#api.limit },
      context,
    )
    if (waiting === undefined || !isWaitOver(waiting, requestedAt)) return page
    const tookMs = Math.max(0, context.clock.now() - requestedAt)
    return {
      ...page,
      serverTime: Math.max(page.serverTime ?? 0, (waiting.second + 1) * 1_000 + EVENT_LAG_MS + tookMs),
    }
  }

  async #scanEvents(
    { events, left, hasMore, requestedAt, state, end }: EventPage<StripeEvent, DeltaProgress>,
    context: SyncContext,
  ): Promise<Page<StripeDeltaState>> {
    const { waiting, read: reads = [], pending } = state.extra ?? {}
    const second = state.cursor === null ? null : toSecond(state.cursorTime)
    const isBlocked = left.some(({ created }) => created * 1_000 < context.cycle.startedAt - EVENT_LAG_MS)
    const isNewWait = isBlocked && (waiting === undefined || isWaitOver(waiting, requestedAt))
    let newest = Math.max(second ?? 0, ...[...events, ...left].map(({ created }) => created))
    if (hasMore && (isNewWait || canSettle(reads, requestedAt))) newest = await this.#readNewestSecond(newest, context)
    const read = settleReads(reads, requestedAt, newest)

    const scan = this.#createScan(pending, read, second, context)
    const firstLeft = events.findIndex((event) => !scan.tryProcess(event))
    // A later newest event means that more of the log is known to be older than the objects read now.
    if (hasMore && scan.pending.isFull) newest = await this.#readNewestSecond(newest, context)
    const wait = isNewWait ? { second: newest, atMs: requestedAt } : waiting
    return buildPage(
      scan,
      { read, ...(wait !== undefined && { waiting: wait }) },
      newest,
      end(firstLeft === -1 ? events.length : firstLeft),
    )
  }

  async #readPending(
    state: CursorState,
    progress: DeltaProgress,
    reading: PendingRead,
    context: SyncContext,
  ): Promise<Page<StripeDeltaState>> {
    const pending = new PendingObjects(progress.pending)
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
    const read = recordReads(progress.read ?? [], changes, assembled, reading.since, context.clock.now())
    const { waiting } = progress
    const nextState = buildState(state, { read, ...(waiting !== undefined && { waiting }) }, pending, reading)
    if (pending.size > 0) return { changes, hasMore: true, nextState }
    const { hasMore, tidemark } = reading
    return { changes, hasMore, nextState, ...(tidemark !== undefined && { tidemark }) }
  }

  /** The log was empty when the sync began, so all of its events are new. */
  async #startFromFirstEvent(waiting: EventWait | undefined, context: SyncContext): Promise<Page<StripeDeltaState>> {
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
        nextState: { cursor: null, extra: { waiting: isNewWait ? { second: newest, atMs: requestedAt } : waiting } },
      }
    }
    const scan = this.#createScan(undefined, [], null, context)
    scan.tryProcess(first)
    return buildPage(scan, { ...(waiting !== undefined && { waiting }) }, newest, {
      hasMore: true,
      nextState: { cursor: first.id, cursorTime: secondToIso(first.created) },
    })
  }

  #createScan(
    pending: DeltaProgress['pending'],
    read: readonly ObjectReadBatch[],
    previousPageSecond: number | null,
    { unordered }: SyncContext,
  ): EventScan {
    return new EventScan({
      databases: this.#databases,
      created: this.#created,
      expand: this.#api.expand,
      pending: new PendingObjects(pending),
      objectReads: new ObjectReads(read),
      unordered: new Set(unordered),
      previousPageSecond,
    })
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

/** Events of the last seconds before the read may be newer than the cached pages that an object was assembled from. */
function recordReads(
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

/** The page up to `end` of the log. Pending objects are read at the end of the log, or when there are many. */
function buildPage(
  { changes, pending }: EventScan,
  { waiting, read = [] }: Pick<DeltaProgress, 'waiting' | 'read'>,
  since: number,
  { hasMore, tidemark, nextState }: EventPageEnd<DeltaProgress>,
): Page<StripeDeltaState> {
  const second = nextState.cursor === null ? 0 : toSecond(nextState.cursorTime)
  const isPassed = (until: number): boolean => second > until || (second === until && !hasMore)
  const progress = {
    // A batch is dropped when no ambiguous event can follow.
    read: read.filter(({ until }) => until === undefined || !isPassed(until)),
    ...(waiting !== undefined && !isPassed(waiting.second) && { waiting }),
  }
  const isReading = pending.size > 0 && (!hasMore || pending.isFull)
  const reading = { since, hasMore, ...(tidemark !== undefined && { tidemark }) }
  return {
    changes,
    hasMore: hasMore || isReading,
    nextState: buildState(nextState, progress, pending, isReading ? reading : undefined),
    ...(tidemark !== undefined && pending.size === 0 && { tidemark }),
  }
}

/** Omits empty fields: an idle state is the cursor alone. */
function buildState(
  state: StripeDeltaState,
  { waiting, read = [] }: Pick<DeltaProgress, 'waiting' | 'read'>,
  pending: PendingObjects,
  reading: PendingRead | undefined,
): StripeDeltaState {
  const { extra: _, ...cursor } = state
  const extra: DeltaProgress = {
    ...(waiting !== undefined && { waiting }),
    ...(pending.size > 0 && { pending: pending.toState() }),
    ...(pending.size > 0 && reading !== undefined && { reading }),
    ...(read.length > 0 && { read }),
  }
  return Object.keys(extra).length > 0 ? { ...cursor, extra } : cursor
}

/** Version 0.2.0 stored the progress beside the cursor. */
function readState(stored: StripeDeltaState & DeltaProgress): StripeDeltaState {
  const { waiting, pending, reading, read, ...state } = stored
  const extra: DeltaProgress = {
    ...(waiting !== undefined && { waiting }),
    ...(pending !== undefined && { pending }),
    ...(reading !== undefined && { reading }),
    ...(read !== undefined && { read }),
  }
  return Object.keys(extra).length > 0 ? { ...state, extra } : state
}

function toSecond(time: string): number {
  return Math.floor(Date.parse(time) / 1_000)
}
