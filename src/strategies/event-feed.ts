import {
  ERROR_CODES,
  isSyncError,
  SyncError,
  type Change,
  type Page,
  type Remedy,
  type SyncContext,
} from '../contract/index.ts'
import { canonicalizeInstant, instantToMs } from '../values/instant.ts'
import type { AnchoredExecute } from './kit/anchored-execute.ts'
import { confirmHorizon, type AnsweredState } from './kit/answered-horizon.ts'
import { carryExtra, type ExtraAnswer, type ExtraState } from './kit/extra.ts'
import { lowerHorizon, pinHorizon, measureRequest, type ServerClock } from './kit/horizon.ts'
import { requireInstant, msToInstant, subtractMicrosecond } from './kit/instants.ts'
import { sourceInvalidError, requireMode, requireNumber, stateRejectedError } from './kit/strategy-errors.ts'

/** Describes how to read an event log, and how its events become changes: one by one, or a page at a time. */
export type EventFeedOptions<Event, Extra = never> = EventFeedReader<Event, Extra> &
  (EventConversion<Event> | EventPageConversion<Event, Extra>)

export interface EventFeedReader<Event, Extra = never> {
  /**
   * Returns the newest event, or nothing when the log is empty: then every later event is new. An event younger than
   * `lagMs` delays the anchor, so prefer an older one.
   */
  anchor(context: SyncContext): Promise<Event | undefined | null>
  /**
   * Reads the events directly after the given one, in a page of the source's own size. An empty `after` means from the
   * start of the log: the log was empty when the anchor was captured.
   */
  read(
    query: { readonly after: string } & ExtraState<Extra>,
    context: SyncContext,
  ): Promise<EventFeedAnswer<Event, Extra>>
  /** When the event happened, RFC 3339 with a zone. */
  time(event: Event): string
  id(event: Event): string
  /** Events younger than this may still get older neighbours, so they are left for the next cycle. */
  lagMs: number
  /** How the source orders the events of one page. */
  order: 'newest-first' | 'oldest-first'
  /** How long the source keeps events; see Execute.retentionMs. */
  retentionMs?: number
}

/** Converts each event by itself. */
export interface EventConversion<Event> {
  /** Converts an event to any number of changes. Changes without `upstreamUpdatedAt` get the event's time. */
  toChanges(event: Event): readonly Change[]
  toPage?: never
}

/** Converts a page of events at once, for a source that needs its neighbours, its state or further requests. */
export interface EventPageConversion<Event, Extra = never> {
  toPage(events: EventPage<Event, Extra>, context: SyncContext): Promise<Page<EventFeedState<Extra>>>
  toChanges?: never
}

/** The events of one answer, in the order of the log. */
export interface EventPage<Event, Extra = never> {
  /** The events to convert, oldest first. */
  readonly events: readonly Event[]
  /** Events that are too young, and those after them: they are left for the next cycle. */
  readonly left: readonly Event[]
  /** Whether the source has newer events after those of the answer. */
  readonly hasMore: boolean
  /** The local clock before the request. */
  readonly requestedAt: number
  /** The state that the answer belongs to, with the extra state after the answer. */
  readonly state: EventFeedState<Extra>
  /** The page without its changes, if only the first `count` events are converted now. */
  end(count: number): EventPageEnd<Extra>
}

/** A page up to one of its events. */
export interface EventPageEnd<Extra = never> {
  readonly hasMore: boolean
  readonly nextState: EventFeedState<Extra>
  /** Absent if some of the events are not converted. */
  readonly tidemark?: string | null
}

/** A page of events. */
export interface EventFeedAnswer<Event, Extra = never> extends ServerClock, ExtraAnswer<Extra> {
  readonly events: readonly Event[]
  /** Newer events follow after this page. */
  readonly hasMore: boolean
}

/** `cursor` is null while the log has never held an event. It is a valid cursor: every later event is new. */
export type EventFeedState<Extra = never> = FeedCursorState & AnsweredState & ExtraState<Extra>

export interface EventFeedCursor {
  /** Id of the newest applied event, or of the anchor. */
  readonly cursor: string
  readonly cursorTime: string
  /** Number of earlier events with the same timestamp; see `stampUpdatedAt`. */
  readonly cursorRank?: number
}

/**
 * For event logs whose events are addressed by id. A sync without state only records the end of the log, so run the
 * first cycle before the backfill, or start the delta from the `anchor` captured before it.
 *
 * ```ts
 * import { eventFeed } from 'tidemark'
 *
 * type Event = { id: string; created: number; type: string; object: { id: string; name: string } }
 * type Events = { data: Event[]; has_more: boolean }
 *
 * export const customers = eventFeed<Event>({
 *   anchor: async ({ fetch }) => ((await (await fetch('https://pay.example/events?limit=1')).json()) as Events).data[0],
 *   read: async ({ after }, { fetch }) => {
 *     const { data, has_more } = (await (await fetch(`https://pay.example/events?ending_before=${after}`)).json()) as Events
 *     return { events: data, hasMore: has_more }
 *   },
 *   time: (event) => new Date(event.created * 1_000).toISOString(),
 *   id: (event) => event.id,
 *   toChanges: ({ type, object }) => [type.endsWith('.deleted') ? { type: 'delete', key: object.id } : { type: 'upsert', key: object.id, record: object }],
 *   lagMs: 10_000,
 *   order: 'newest-first',
 *   retentionMs: 30 * 86_400_000,
 * })
 * ```
 */
export function eventFeed<Event, Extra = never>(
  options: EventFeedOptions<Event, Extra>,
): AnchoredExecute<EventFeedState<Extra>> {
  requireNumber('eventFeed', 'lagMs', options.lagMs, 0)
  if (options.retentionMs !== undefined) requireNumber('eventFeed', 'retentionMs', options.retentionMs, 1)

  const execute = carryExtra<EventFeedState<Extra>, Extra>(async (state, context, extra) => {
    requireMode('eventFeed', 'incremental', context, 'a log of events does not list everything there is')
    if (state === undefined) return { changes: [], hasMore: false, nextState: await anchor(context) }
    checkState(state)
    if (state.cursor === null && isMissing(await options.anchor(context)))
      return { changes: [], hasMore: false, nextState: state }
    const after = isCursorExpired(state, options, context) ? null : state.cursor
    const requestedAt = context.clock.now()
    const { answer, tookMs } = await measureRequest(context, () =>
      extra.read((carried) =>
        after === null ? readFromStart(options, carried, context) : options.read({ after, ...carried }, context),
      ),
    )
    const untilMs = lowerHorizon(
      pinHorizon('eventFeed', context.cycle, options.lagMs, undefined),
      options.lagMs,
      answer,
      tookMs,
    )

    const events = sortOldestFirst(answer.events, state, options)
    const unsafe = events.findIndex(({ instant }) => instant >= msToInstant(untilMs))
    // Stop at the first event that is too young, even if older ones follow it: the cursor would pass it.
    const safe = unsafe === -1 ? events : events.slice(0, unsafe)
    const end = (count: number): EventPageEnd<Extra> => {
      const last = safe[count - 1]
      const nextState = { ...(last === undefined ? toCursor(state) : toEventFeedCursor(last)), ...extra.state }
      if (count < safe.length) return { hasMore: true, nextState }
      const hasMore = answer.hasMore && safe.length === events.length && safe.length > 0
      return {
        tidemark: computeTidemark(safe, events, state, untilMs, answer.hasMore),
        hasMore,
        nextState: hasMore || answer.hasMore ? nextState : { ...nextState, answeredMs: untilMs },
      }
    }
    if (options.toPage === undefined) return { changes: toStampedChanges(safe, options), ...end(safe.length) }
    const page = await options.toPage(
      {
        events: safe.map(({ event }) => event),
        left: events.slice(safe.length).map(({ event }) => event),
        hasMore: answer.hasMore,
        requestedAt,
        state: { ...state, ...extra.state },
        end,
      },
      context,
    )
    const converted = page.nextState?.extra
    extra.state = converted === undefined ? {} : { extra: converted }
    return page
  })
  const anchor = async (context: SyncContext): Promise<EventFeedState<Extra>> => {
    const event = await options.anchor(context)
    if (isMissing(event)) return { cursor: null }
    const newest = toRankedEvent(event, 0, options)
    // Events may still appear before the newest one, where a reader that follows it never sees them. Once it is older
    // than `lagMs` they are all visible, and a backfill that starts now covers them.
    const youngMs = Math.min(options.lagMs, instantToMs(newest.instant) + options.lagMs - context.clock.now()) + 1
    if (youngMs > 1) await context.clock.sleep(youngMs, context.signal)
    return toEventFeedCursor(newest)
  }
  return Object.assign(execute, {
    anchor,
    startsAtEnd: true,
    ...(options.retentionMs !== undefined && { retentionMs: Math.max(1, options.retentionMs - options.lagMs) }),
  })
}

type FeedCursorState = EventFeedCursor | { readonly cursor: null }

function toCursor(state: FeedCursorState): FeedCursorState {
  if (state.cursor === null) return { cursor: null }
  const { cursor, cursorTime, cursorRank } = state
  return { cursor, cursorTime, ...(cursorRank !== undefined && { cursorRank }) }
}

/**
 * In a quiet log the source drops the cursor's event although no cycle was missed: the engine has checked that (see
 * Execute.retentionMs). Then every event still in the log is newer.
 */
function isCursorExpired(
  state: FeedCursorState,
  { retentionMs = Infinity }: Pick<EventFeedReader<never>, 'retentionMs'>,
  { cycle }: SyncContext,
): boolean {
  return (
    state.cursor !== null &&
    cycle.startedAt - instantToMs(requireInstant(state.cursorTime, '`cursorTime`')) > retentionMs
  )
}

/**
 * The log was empty when it was last read, so everything in it is new. Newest first, a page with more behind it is the
 * end of the log, not its start: only a backfill can recover the earlier events.
 */
async function readFromStart<Event, Extra>(
  options: Pick<EventFeedReader<Event, Extra>, 'read' | 'order'>,
  extra: ExtraState<Extra>,
  context: SyncContext,
): Promise<EventFeedAnswer<Event, Extra>> {
  const lost = (why: string, cause?: unknown): SyncError =>
    new SyncError('HISTORY_LOST', `The event log was empty at the last read, and ${why}.`, { cause })
  const answer = await options.read({ after: '', ...extra }, context).catch((error: unknown) => {
    // A source that does not support this request rejects it with an error of its own. Transient errors are retried.
    const mayPass =
      context.signal.aborted || (isSyncError(error) && RETRYABLE_REMEDIES.has(ERROR_CODES[error.code].remedy))
    throw mayPass ? error : lost('the source cannot be read from the start of the log', error)
  })
  if (options.order === 'newest-first' && answer.hasMore) throw lost('it now holds more than one page')
  return answer
}

const RETRYABLE_REMEDIES: ReadonlySet<Remedy> = new Set(['retry', 'wait', 'reauth'])

function isMissing(event: unknown): event is undefined | null {
  return event === undefined || event === null
}

/**
 * At the end of the log everything below the horizon has been read; elsewhere, everything below the last event. An
 * event left for the next cycle may be older than its neighbours.
 */
function computeTidemark<Event>(
  safe: readonly RankedEvent<Event>[],
  events: readonly RankedEvent<Event>[],
  state: FeedCursorState & AnsweredState,
  untilMs: number,
  hasMore: boolean,
): string | null {
  if (events.length === 0 && !hasMore) return confirmHorizon(state, untilMs) ?? toCursorTime(state)
  const left = events.slice(safe.length)
  const isAtEnd = left.length > 0 || !hasMore
  const last = safe.at(-1)?.instant ?? toCursorTime(state)
  const reached = isAtEnd ? msToInstant(untilMs) : last
  if (reached === null) return null
  return subtractMicrosecond(left.reduce((earliest, { instant }) => (instant < earliest ? instant : earliest), reached))
}

function toCursorTime(state: FeedCursorState): string | null {
  return state.cursor === null ? null : canonicalizeInstant(state.cursorTime)
}

interface RankedEvent<Event> {
  readonly event: Event
  readonly id: string
  readonly time: string
  readonly instant: string
  readonly rank: number
}

type EventFacts<Event> = Pick<EventFeedReader<Event>, 'id' | 'time'>

function toRankedEvent<Event>(event: Event, rank: number, options: EventFacts<Event>): RankedEvent<Event> {
  const id = options.id(event)
  if (typeof id !== 'string' || id === '') throw sourceInvalidError('An event has no id.')
  const time = options.time(event)
  return { event, id, time, instant: requireInstant(time, 'The time of an event'), rank }
}

/** Sorts a page into log order and drops the cursor's own event, which is already applied. */
function sortOldestFirst<Event>(
  events: readonly Event[],
  state: FeedCursorState,
  options: EventFacts<Event> & Pick<EventFeedReader<Event>, 'order' | 'lagMs'>,
): RankedEvent<Event>[] {
  const ordered = options.order === 'newest-first' ? events.toReversed() : events
  const ranked: RankedEvent<Event>[] = []
  let previous =
    state.cursor === null
      ? { instant: '', rank: 0 }
      : { instant: requireInstant(state.cursorTime, '`cursorTime`'), rank: state.cursorRank ?? 0 }
  for (const event of ordered) {
    const { instant, id } = toRankedEvent(event, 0, options)
    if (id === state.cursor) continue
    const next = toRankedEvent(event, instant === previous.instant ? previous.rank + 1 : 0, options)
    ranked.push(next)
    previous = next
  }
  const [first] = ranked
  const last = ranked.at(-1)
  if (
    first !== undefined &&
    last !== undefined &&
    instantToMs(first.instant) - instantToMs(last.instant) > options.lagMs
  ) {
    throw sourceInvalidError(
      `The event page is not sorted ${options.order}. Set \`order\` to the order the source uses.`,
    )
  }
  return ranked
}

function toEventFeedCursor<Event>({ id, time, rank }: RankedEvent<Event>): EventFeedCursor {
  return { cursor: id, cursorTime: time, ...(rank > 0 && { cursorRank: rank }) }
}

function toStampedChanges<Event>(safe: readonly RankedEvent<Event>[], options: EventConversion<Event>): Change[] {
  return safe.flatMap(({ event, instant, rank }) =>
    options.toChanges(event).map((change) => stampUpdatedAt(change, instant, rank)),
  )
}

/**
 * Events with the same timestamp are ordered by the log. Their rank goes into the microseconds, so a key that was
 * deleted and recreated within one second keeps its newer version.
 */
function stampUpdatedAt(change: Change, instant: string, rank: number): Change {
  if (change.type === 'invalid' || change.upstreamUpdatedAt !== undefined) return change
  const micros = Math.min(999_999, Number(instant.slice(20, 26)) + rank)
  return { ...change, upstreamUpdatedAt: `${instant.slice(0, 20)}${String(micros).padStart(6, '0')}Z` }
}

function checkState(state: FeedCursorState): void {
  if (state.cursor === null) return
  const { cursor, cursorTime } = state
  if (typeof cursor !== 'string' || cursor === '') throw stateRejectedError('eventFeed', '`cursor` is not an id')
  if (typeof cursorTime !== 'string' || canonicalizeInstant(cursorTime) === null)
    throw stateRejectedError('eventFeed', '`cursorTime` is not an instant')
}
