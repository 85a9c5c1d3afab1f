import type { Change, Execute, JsonValue, SyncContext } from '../../contract/index.ts'
import type { AnchoredExecute } from '../../strategies/kit/anchored-execute.ts'
import { lowerHorizon, pinHorizon, measureRequest, type ServerClock } from '../../strategies/kit/horizon.ts'
import { requireInstant, msToInstant, formatIso, subtractMicrosecond } from '../../strategies/kit/instants.ts'
import { sourceInvalidError, requireNumber, stateRejectedError } from '../../strategies/kit/strategy-errors.ts'
import { canonicalizeInstant, instantToMs } from '../../values/instant.ts'

export interface TimestampPagingOptions {
  /** Records from `since` on, that moment included, sorted by it, oldest first; only the first page of them. */
  read(query: { readonly since: string | undefined; readonly until: string | undefined }, context: SyncContext): Promise<TimestampPage>
  timestamp(record: JsonValue): string | undefined
  toChange(record: JsonValue): Change
  lagMs: number
  /** How many records make a full page, as the source really gives them. */
  pageSize: number
}

export interface TimestampPage extends ServerClock {
  readonly records: readonly JsonValue[]
}

export interface TimestampPagingState {
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
export function timestampPaging(options: TimestampPagingOptions): AnchoredExecute<TimestampPagingState> {
  const { lagMs, pageSize: size } = options
  requireNumber('ladder', 'lagMs', lagMs, 0)
  requireNumber('ladder', 'size', size, 2)

  const execute: Execute<TimestampPagingState> = async (state, context) => {
    const bounded = context.cycle.mode === 'incremental'
    const pinnedMs = bounded ? pinHorizon('ladder', context.cycle, lagMs, state?.untilMs) : Number.POSITIVE_INFINITY
    const since = clampCursor(readCursor(state), pinnedMs)
    const { answer, tookMs } = await measureRequest(context, () => options.read({ since, until: bounded ? formatIso(pinnedMs) : undefined }, context))
    const untilMs = bounded ? lowerHorizon(pinnedMs, lagMs, answer, tookMs) : pinnedMs

    const placed = requireOrdered(answer.records, options)
    const safe = bounded ? placed.filter(({ instant }) => instant <= msToInstant(untilMs)) : placed
    const last = safe.at(-1)
    const hasMoved = last !== undefined && (since === undefined || last.instant > canonicalizeInstant(since)!)
    if (!hasMoved && placed.length >= size && safe.length === placed.length) {
      throw sourceInvalidError(`A full page of ${placed.length} records leads no further: they share one timestamp, and the source cannot be asked for what follows it. Raise the page size, or page by timestamp and id.`)
    }
    const cursor = hasMoved ? last.timestamp : (since ?? null)
    // Sorted, so nothing below the horizon can follow a record above it.
    const hasMore = hasMoved && safe.length === placed.length
    // A page begins with the record the last one ended with, so an empty one is unlikely; a sweep needs more than that.
    if (!bounded && placed.length === 0 && state?.isEmpty !== true) return { changes: [], hasMore: true, nextState: { cursor, isEmpty: true } }
    const changes = safe.map(({ record, timestamp }) => attachCursor(options.toChange(record), timestamp))
    if (hasMore) return { changes, hasMore, tidemark: subtractMicrosecond(last!.instant), nextState: { cursor, ...(bounded && { untilMs }) } }
    const horizonMs = bounded ? untilMs : lowerHorizon(pinHorizon('ladder', context.cycle, lagMs, undefined), lagMs, answer, tookMs)
    return { changes, hasMore, tidemark: formatIso(horizonMs), nextState: bounded && cursor !== null ? { cursor } : undefined }
  }
  return Object.assign(execute, {
    anchor: async (context: SyncContext) => {
      const untilMs = pinHorizon('ladder', context.cycle, lagMs, undefined)
      // One question, only to hear the source's time.
      const { answer, tookMs } = await measureRequest(context, () => options.read({ since: formatIso(untilMs), until: formatIso(untilMs) }, context))
      return { cursor: formatIso(lowerHorizon(untilMs, lagMs, answer, tookMs)) }
    },
  })
}

interface TimedRecord {
  readonly record: JsonValue
  readonly timestamp: string
  readonly instant: string
}

/** A position ahead of the horizon comes from a clock that was ahead; what it passed over then may come only now. */
function clampCursor(cursor: string | undefined, untilMs: number): string | undefined {
  return cursor !== undefined && instantToMs(canonicalizeInstant(cursor)!) > untilMs ? formatIso(untilMs) : cursor
}

/** Fails closed: a page out of order may hide records that no later page will show. */
function requireOrdered(records: readonly JsonValue[], { timestamp }: TimestampPagingOptions): TimedRecord[] {
  let previous = ''
  return records.map((record, index) => {
    const text = timestamp(record)
    const instant = requireInstant(text, `The timestamp of record ${index + 1} of the page`)
    if (instant < previous) throw sourceInvalidError(`Record ${index + 1} of the page is older than the one before it.`)
    previous = instant
    return { record, timestamp: text!, instant }
  })
}

function attachCursor(change: Change, cursor: string): Change {
  return change.type === 'upsert' ? { ...change, cursor } : change
}

function readCursor(state: TimestampPagingState | undefined): string | undefined {
  if (state === undefined || state.cursor === null) return undefined
  if (typeof state.cursor !== 'string' || canonicalizeInstant(state.cursor) === null) throw stateRejectedError('ladder', '`cursor` is not an instant')
  return state.cursor
}
