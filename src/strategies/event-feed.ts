import { ERROR_CODES, isSyncError, SyncError, type Change, type Execute, type Remedy, type SyncContext } from '../contract/index.ts'
import { canonicalizeInstant, instantToMs } from '../values/instant.ts'
import type { AnchoredExecute } from './kit/anchored-execute.ts'
import { lowerHorizon, pinHorizon, measureRequest, type ServerClock } from './kit/horizon.ts'
import { requireInstant, msToInstant, subtractMicrosecond } from './kit/instants.ts'
import { sourceInvalidError, requireMode, requireNumber, stateRejectedError } from './kit/strategy-errors.ts'

export interface EventFeedOptions<Event> {
  /** The newest event there is, or nothing when the log is empty: then all that comes later is new. One younger than `lagMs` is waited for, so prefer one that is older. */
  anchor(context: SyncContext): Promise<Event | undefined | null>
  /**
   * The events that follow directly after the one named, on a page of the source's own size. `after` is empty for the log
   * from its beginning: it held no event when the anchor was taken.
   */
  read(query: { readonly after: string }, context: SyncContext): Promise<EventFeedAnswer<Event>>
  /** When it happened, RFC 3339 with a zone. */
  time(event: Event): string
  id(event: Event): string
  /** An event often says more than one thing, or nothing of interest. Changes without `upstreamUpdatedAt` get the event's time. */
  toChanges(event: Event): readonly Change[]
  /** Events younger than this may still get neighbours and are left for the next cycle. */
  lagMs: number
  /** How the source orders the events of one page. */
  order: 'newest-first' | 'oldest-first'
  /** How long the source keeps events; see Execute.retentionMs. */
  retentionMs?: number
}

export interface EventFeedAnswer<Event> extends ServerClock {
  readonly events: readonly Event[]
  /** Newer events follow after this page. */
  readonly hasMore: boolean
}

/** `cursor` is null while the log has never held an event. That is a place too: everything that comes is new. */
export type EventFeedState = EventFeedCursor | { readonly cursor: null }

export interface EventFeedCursor {
  /** The id of the newest event that was applied, or of the anchor. */
  readonly cursor: string
  readonly cursorTime: string
  /** How many events of that very time came before it: see `stamp`. */
  readonly cursorRank?: number
}

/**
 * For logs of events with an id as position. A sync without state only notes where the log stands, so let the first cycle
 * come before the backfill, or give the delta the `anchor` that was captured before it.
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
export function eventFeed<Event>(options: EventFeedOptions<Event>): AnchoredExecute<EventFeedState> {
  requireNumber('eventFeed', 'lagMs', options.lagMs, 0)
  if (options.retentionMs !== undefined) requireNumber('eventFeed', 'retentionMs', options.retentionMs, 1)

  const read: Execute<EventFeedState> = async (state, context) => {
    requireMode('eventFeed', 'incremental', context, 'a log of events does not list everything there is')
    if (state === undefined) return { changes: [], hasMore: false, nextState: await anchor(context) }
    checkState(state)
    if (state.cursor === null && isMissing(await options.anchor(context))) return { changes: [], hasMore: false, nextState: state }
    const after = isCursorExpired(state, options, context) ? null : state.cursor
    const { answer, tookMs } = await measureRequest(context, () => (after === null ? readFromStart(options, context) : options.read({ after }, context)))
    const untilMs = lowerHorizon(pinHorizon('eventFeed', context.cycle, options.lagMs, undefined), options.lagMs, answer, tookMs)

    const events = sortOldestFirst(answer.events, state, options)
    const unsafe = events.findIndex(({ instant }) => instant >= msToInstant(untilMs))
    // Not beyond the first that is too young, whatever follows it: the cursor would pass it.
    const safe = unsafe === -1 ? events : events.slice(0, unsafe)
    const hasMore = answer.hasMore && safe.length === events.length && safe.length > 0
    return {
      tidemark: computeTidemark(safe, events, state, untilMs, answer.hasMore),
      changes: safe.flatMap(({ event, instant, rank }) => options.toChanges(event).map((change) => stampUpdatedAt(change, instant, rank))),
      hasMore,
      nextState: safe.length === 0 ? state : toEventFeedCursor(safe.at(-1)!),
    }
  }
  const anchor = async (context: SyncContext): Promise<EventFeedState> => {
    const event = await options.anchor(context)
    if (isMissing(event)) return { cursor: null }
    const newest = toRankedEvent(event, 0, options)
    // Others may still show below it, where nobody who follows it would see them. Once it is old enough, all of those are there, and a
    // backfill that begins now lists what they tell.
    const youngMs = Math.min(options.lagMs, instantToMs(newest.instant) + options.lagMs - context.clock.now()) + 1
    if (youngMs > 1) await context.clock.sleep(youngMs, context.signal)
    return toEventFeedCursor(newest)
  }
  return Object.assign(read, { anchor, startsAtEnd: true, ...(options.retentionMs !== undefined && { retentionMs: Math.max(1, options.retentionMs - options.lagMs) }) })
}

/**
 * In a quiet log the event of the cursor is dropped although no cycle was missed: the engine has checked that (see
 * Execute.retentionMs). Then everything that the log still holds is newer.
 */
function isCursorExpired<Event>(state: EventFeedState, { retentionMs = Infinity }: EventFeedOptions<Event>, { cycle }: SyncContext): boolean {
  return state.cursor !== null && cycle.startedAt - instantToMs(canonicalizeInstant(state.cursorTime)!) > retentionMs
}

/**
 * The log was empty when it was last read, so all that it holds now is new. Newest first, a page that others follow is
 * the end of the log and not its beginning: then only a backfill can tell what the events before it said.
 */
async function readFromStart<Event>(options: EventFeedOptions<Event>, context: SyncContext): Promise<EventFeedAnswer<Event>> {
  const lost = (why: string, cause?: unknown): SyncError => new SyncError('HISTORY_LOST', `The log of events held nothing to go on from, and ${why}.`, { cause })
  const answer = await options.read({ after: '' }, context).catch((error: unknown) => {
    // A source that has no such question refuses it in a way of its own. Anything that may pass is tried again.
    const mayPass = context.signal.aborted || (isSyncError(error) && RETRYABLE_REMEDIES.has(ERROR_CODES[error.code].remedy))
    throw mayPass ? error : lost('the source cannot be asked for it from its beginning', error)
  })
  if (options.order === 'newest-first' && answer.hasMore) throw lost('now holds more than a page')
  return answer
}

const RETRYABLE_REMEDIES: ReadonlySet<Remedy> = new Set(['retry', 'wait', 'reauth'])

function isMissing(event: unknown): event is undefined | null {
  return event === undefined || event === null
}

/**
 * At the end of the log everything below the horizon has been read. Elsewhere everything below the last event; and an
 * event that is left for the next cycle may be older than its neighbours.
 */
function computeTidemark<Event>(safe: readonly RankedEvent<Event>[], events: readonly RankedEvent<Event>[], state: EventFeedState, untilMs: number, hasMore: boolean): string | null {
  const left = events.slice(safe.length)
  const isAtEnd = left.length > 0 || !hasMore
  const last = safe.at(-1)?.instant ?? (state.cursor === null ? null : canonicalizeInstant(state.cursorTime))
  const reached = isAtEnd ? msToInstant(untilMs) : last
  if (reached === null) return null
  return subtractMicrosecond(left.reduce((earliest, { instant }) => (instant < earliest ? instant : earliest), reached))
}

interface RankedEvent<Event> {
  readonly event: Event
  readonly id: string
  readonly time: string
  readonly instant: string
  readonly rank: number
}

function toRankedEvent<Event>(event: Event, rank: number, options: EventFeedOptions<Event>): RankedEvent<Event> {
  const id = options.id(event)
  if (typeof id !== 'string' || id === '') throw sourceInvalidError('An event has no id.')
  const time = options.time(event)
  return { event, id, time, instant: requireInstant(time, 'The time of an event'), rank }
}

/** In the order of the log, whatever order the page is in; the event of the cursor itself is known already. */
function sortOldestFirst<Event>(events: readonly Event[], state: EventFeedState, options: EventFeedOptions<Event>): RankedEvent<Event>[] {
  const ordered = options.order === 'newest-first' ? events.toReversed() : events
  const placed: RankedEvent<Event>[] = []
  let previous = state.cursor === null ? { instant: '', rank: 0 } : { instant: canonicalizeInstant(state.cursorTime)!, rank: state.cursorRank ?? 0 }
  for (const event of ordered) {
    const { instant, id } = toRankedEvent(event, 0, options)
    if (id === state.cursor) continue
    const next = toRankedEvent(event, instant === previous.instant ? previous.rank + 1 : 0, options)
    placed.push(next)
    previous = next
  }
  const [first] = placed
  const last = placed.at(-1)
  if (first !== undefined && instantToMs(first.instant) - instantToMs(last!.instant) > options.lagMs) {
    throw sourceInvalidError(`The page is not sorted ${options.order}, as \`order\` says it is.`)
  }
  return placed
}

function toEventFeedCursor<Event>({ id, time, rank }: RankedEvent<Event>): EventFeedCursor {
  return { cursor: id, cursorTime: time, ...(rank > 0 && { cursorRank: rank }) }
}

/**
 * Two events of one second happened one after the other, and their place in the log says which first. The rank goes into
 * the microseconds, so that what is landed later is also known to be later: a key deleted and made anew within a second lives.
 */
function stampUpdatedAt(change: Change, instant: string, rank: number): Change {
  if (change.upstreamUpdatedAt !== undefined) return change
  const micros = Math.min(999_999, Number(instant.slice(20, 26)) + rank)
  return { ...change, upstreamUpdatedAt: `${instant.slice(0, 20)}${String(micros).padStart(6, '0')}Z` }
}

function checkState(state: EventFeedState): void {
  if (state.cursor === null) return
  const { cursor, cursorTime } = state
  if (typeof cursor !== 'string' || cursor === '') throw stateRejectedError('eventFeed', '`cursor` is not an id')
  if (typeof cursorTime !== 'string' || canonicalizeInstant(cursorTime) === null) throw stateRejectedError('eventFeed', '`cursorTime` is not an instant')
}
