import type { Change, Execute, JsonValue, SyncContext } from '../../contract/index.ts'
import type { Anchored } from '../../strategies/kit/anchored.ts'
import { lowerHorizon, pinHorizon, timed, type ServerClock } from '../../strategies/kit/horizon.ts'
import { instantOf, instantOfMs, isoOf, justBefore } from '../../strategies/kit/instants.ts'
import { invalid, requireNumber, unreadable } from '../../strategies/kit/refusals.ts'
import { canonicalInstant, instantMs } from '../../values/instant.ts'

export interface LadderOptions {
  /** Records from `since` on, that moment included, sorted by it, oldest first; only the first page of them. */
  read(query: { readonly since: string | undefined; readonly until: string | undefined }, context: SyncContext): Promise<LadderAnswer>
  timestamp(record: JsonValue): string | undefined
  toChange(record: JsonValue): Change
  lagMs: number
  /** How many records make a full page, as the source really gives them. */
  size: number
}

export interface LadderAnswer extends ServerClock {
  readonly records: readonly JsonValue[]
}

export interface LadderState {
  /** As the source wrote it; null before the first record. */
  readonly cursor: string | null
  /** The horizon of this cycle; see pinHorizon. */
  readonly untilMs?: number
  /** In replace mode: the page came back empty once. The list ends with a second empty answer. */
  readonly isEmpty?: true
}

/**
 * For sources that filter and sort by a timestamp and by nothing else. Each page begins with the moment the last one
 * ended with, so records that share it are read again and none is passed over; the end is a page that leads no further.
 * A full page of one single moment has no next: that is an error, never a gap.
 */
export function ladder(options: LadderOptions): Anchored<LadderState> {
  const { lagMs, size } = options
  requireNumber('ladder', 'lagMs', lagMs, 0)
  requireNumber('ladder', 'size', size, 2)

  const execute: Execute<LadderState> = async (state, context) => {
    const bounded = context.cycle.mode === 'incremental'
    const pinnedMs = bounded ? pinHorizon('ladder', context.cycle, lagMs, state?.untilMs) : Number.POSITIVE_INFINITY
    const since = notAhead(cursorIn(state), pinnedMs)
    const { answer, tookMs } = await timed(context, () => options.read({ since, until: bounded ? isoOf(pinnedMs) : undefined }, context))
    const untilMs = bounded ? lowerHorizon(pinnedMs, lagMs, answer, tookMs) : pinnedMs

    const placed = inOrder(answer.records, options)
    const safe = bounded ? placed.filter(({ instant }) => instant <= instantOfMs(untilMs)) : placed
    const last = safe.at(-1)
    const hasMoved = last !== undefined && (since === undefined || last.instant > canonicalInstant(since)!)
    if (!hasMoved && placed.length >= size && safe.length === placed.length) {
      throw invalid(`A full page of ${placed.length} records leads no further: they share one timestamp, and the source cannot be asked for what follows it. Raise the page size, or page by timestamp and id.`)
    }
    const cursor = hasMoved ? last.timestamp : (since ?? null)
    // Sorted, so nothing below the horizon can follow a record above it.
    const hasMore = hasMoved && safe.length === placed.length
    // A page begins with the record the last one ended with, so an empty one is unlikely; a sweep needs more than that.
    if (!bounded && placed.length === 0 && state?.isEmpty !== true) return { changes: [], hasMore: true, nextState: { cursor, isEmpty: true } }
    const changes = safe.map(({ record, timestamp }) => withCursor(options.toChange(record), timestamp))
    if (hasMore) return { changes, hasMore, tidemark: justBefore(last!.instant), nextState: { cursor, ...(bounded && { untilMs }) } }
    const horizonMs = bounded ? untilMs : lowerHorizon(pinHorizon('ladder', context.cycle, lagMs, undefined), lagMs, answer, tookMs)
    return { changes, hasMore, tidemark: isoOf(horizonMs), nextState: bounded && cursor !== null ? { cursor } : undefined }
  }
  return Object.assign(execute, {
    anchor: async (context: SyncContext) => {
      const untilMs = pinHorizon('ladder', context.cycle, lagMs, undefined)
      // One question, only to hear the source's time.
      const { answer, tookMs } = await timed(context, () => options.read({ since: isoOf(untilMs), until: isoOf(untilMs) }, context))
      return { cursor: isoOf(lowerHorizon(untilMs, lagMs, answer, tookMs)) }
    },
  })
}

interface Placed {
  readonly record: JsonValue
  readonly timestamp: string
  readonly instant: string
}

/** A position ahead of the horizon comes from a clock that was ahead; what it passed over then may come only now. */
function notAhead(cursor: string | undefined, untilMs: number): string | undefined {
  return cursor !== undefined && instantMs(canonicalInstant(cursor)!) > untilMs ? isoOf(untilMs) : cursor
}

/** Fails closed: a page out of order may hide records that no later page will show. */
function inOrder(records: readonly JsonValue[], { timestamp }: LadderOptions): Placed[] {
  let previous = ''
  return records.map((record, index) => {
    const text = timestamp(record)
    const instant = instantOf(text, `The timestamp of record ${index + 1} of the page`)
    if (instant < previous) throw invalid(`Record ${index + 1} of the page is older than the one before it.`)
    previous = instant
    return { record, timestamp: text!, instant }
  })
}

function withCursor(change: Change, cursor: string): Change {
  return change.type === 'upsert' ? { ...change, cursor } : change
}

function cursorIn(state: LadderState | undefined): string | undefined {
  if (state === undefined || state.cursor === null) return undefined
  if (typeof state.cursor !== 'string' || canonicalInstant(state.cursor) === null) throw unreadable('ladder', '`cursor` is not an instant')
  return state.cursor
}
