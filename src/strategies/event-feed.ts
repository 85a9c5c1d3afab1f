import { SyncError, type Change, type SyncContext } from '../contract/index.ts'
import { canonicalInstant, instantMs } from '../values/instant.ts'
import type { Anchored } from './kit/anchored.ts'
import { lowerHorizon, pinHorizon, timed, type ServerClock } from './kit/horizon.ts'
import { instantOf, instantOfMs } from './kit/instants.ts'
import { invalid, requireMode, requireNumber, unreadable } from './kit/refusals.ts'

export interface EventFeedOptions<Event> {
  /** The newest event there is, or nothing when the log is empty. One younger than `lagMs` is waited for, so prefer one that is older. */
  anchor(context: SyncContext): Promise<Event | undefined | null>
  /** The events that follow directly after the one named, on a page of the source's own size. */
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
  /** How long the source keeps events; a position older than that has lost its place in the log. */
  retentionMs?: number
}

export interface EventFeedAnswer<Event> extends ServerClock {
  readonly events: readonly Event[]
  /** Newer events follow after this page. */
  readonly hasMore: boolean
}

export interface EventFeedState {
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
export function eventFeed<Event>(options: EventFeedOptions<Event>): Anchored<EventFeedState> {
  requireNumber('eventFeed', 'lagMs', options.lagMs, 0)
  if (options.retentionMs !== undefined) requireNumber('eventFeed', 'retentionMs', options.retentionMs, 1)

  const execute: Anchored<EventFeedState> = async (state, context) => {
    requireMode('eventFeed', 'incremental', context, 'a log of events does not list everything there is')
    if (state === undefined) {
      const anchor = await execute.anchor(context)
      // An empty log has no position: without state, the next cycle asks again.
      return { changes: [], hasMore: false, nextState: anchor }
    }
    checkState(state)
    checkRetention(state, options.retentionMs, context)
    const { answer, tookMs } = await timed(context, () => options.read({ after: state.cursor }, context))
    const untilMs = lowerHorizon(pinHorizon('eventFeed', context.cycle, options.lagMs, undefined), options.lagMs, answer, tookMs)

    const events = oldestFirst(answer.events, state, options)
    const unsafe = events.findIndex(({ instant }) => instant >= instantOfMs(untilMs))
    // Not beyond the first that is too young, whatever follows it: the cursor would pass it.
    const safe = unsafe === -1 ? events : events.slice(0, unsafe)
    return {
      changes: safe.flatMap(({ event, instant, rank }) => options.toChanges(event).map((change) => stamp(change, instant, rank))),
      hasMore: answer.hasMore && safe.length === events.length && safe.length > 0,
      nextState: safe.length === 0 ? state : stateAt(safe.at(-1)!),
    }
  }
  execute.anchor = async (context) => {
    const event = await options.anchor(context)
    if (event === undefined || event === null) return undefined
    const anchor = place(event, 0, options)
    // Others may still show below it, where nobody who follows it would see them. Once it is old enough, all of those are there, and a
    // backfill that begins now lists what they tell.
    const youngMs = Math.min(options.lagMs, instantMs(anchor.instant) + options.lagMs - context.clock.now()) + 1
    if (youngMs > 1) await context.clock.sleep(youngMs, context.signal)
    return stateAt(anchor)
  }
  return execute
}

interface Placed<Event> {
  readonly event: Event
  readonly id: string
  readonly time: string
  readonly instant: string
  readonly rank: number
}

function place<Event>(event: Event, rank: number, options: EventFeedOptions<Event>): Placed<Event> {
  const id = options.id(event)
  if (typeof id !== 'string' || id === '') throw invalid('An event has no id.')
  const time = options.time(event)
  return { event, id, time, instant: instantOf(time, 'The time of an event'), rank }
}

/** In the order of the log, whatever order the page is in; the event of the cursor itself is known already. */
function oldestFirst<Event>(events: readonly Event[], state: EventFeedState, options: EventFeedOptions<Event>): Placed<Event>[] {
  const ordered = options.order === 'newest-first' ? events.toReversed() : events
  const placed: Placed<Event>[] = []
  let previous: { instant: string; rank: number } = { instant: canonicalInstant(state.cursorTime)!, rank: state.cursorRank ?? 0 }
  for (const event of ordered) {
    const { instant, id } = place(event, 0, options)
    if (id === state.cursor) continue
    const next = place(event, instant === previous.instant ? previous.rank + 1 : 0, options)
    placed.push(next)
    previous = next
  }
  const [first] = placed
  const last = placed.at(-1)
  if (first !== undefined && instantMs(first.instant) - instantMs(last!.instant) > options.lagMs) {
    throw invalid(`The page is not sorted ${options.order}, as \`order\` says it is.`)
  }
  return placed
}

function stateAt<Event>({ id, time, rank }: Placed<Event>): EventFeedState {
  return { cursor: id, cursorTime: time, ...(rank > 0 && { cursorRank: rank }) }
}

/**
 * Two events of one second happened one after the other, and their place in the log says which first. The rank goes into
 * the microseconds, so that what is landed later is also known to be later: a key deleted and made anew within a second lives.
 */
function stamp(change: Change, instant: string, rank: number): Change {
  if (change.upstreamUpdatedAt !== undefined) return change
  const micros = Math.min(999_999, Number(instant.slice(20, 26)) + rank)
  return { ...change, upstreamUpdatedAt: `${instant.slice(0, 20)}${String(micros).padStart(6, '0')}Z` }
}

function checkState({ cursor, cursorTime }: EventFeedState): void {
  if (typeof cursor !== 'string' || cursor === '') throw unreadable('eventFeed', '`cursor` is not an id')
  if (typeof cursorTime !== 'string' || canonicalInstant(cursorTime) === null) throw unreadable('eventFeed', '`cursorTime` is not an instant')
}

function checkRetention({ cursorTime }: EventFeedState, retentionMs: number | undefined, { cycle }: SyncContext): void {
  const ageMs = cycle.startedAt - instantMs(canonicalInstant(cursorTime)!)
  if (retentionMs === undefined || ageMs <= retentionMs) return
  throw new SyncError('HISTORY_LOST', `The last event read is ${days(ageMs)} old, and the source keeps events for ${days(retentionMs)}: what happened in between may be gone. Reset the state, let the sync take a new anchor, then run a backfill.`)
}

function days(ms: number): string {
  return ms >= 2 * 86_400_000 ? `${Math.floor(ms / 86_400_000)} days` : `${Math.floor(ms / 3_600_000)} hours`
}
