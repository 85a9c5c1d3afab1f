import type { Change, Execute, JsonValue, Page, SyncContext } from '../../contract/index.ts'
import type { AnchoredExecute } from './anchored-execute.ts'
import { confirmHorizon, hasAnswered, keepAnswered, type AnsweredState } from './answered-horizon.ts'
import { countEndClaim, isEndClaim, isEndConfirmed, type EndClaim } from './end-claim.ts'
import { lowerHorizon, pinHorizon, measureRequest, type ServerClock } from './horizon.ts'
import { requireInstant, msToInstant, formatIso, subtractMicrosecond } from './instants.ts'
import { fingerprintLastRow } from './list-end.ts'
import { addPageToPass, decideNextPass, FIRST_PASS, type ListPass } from './list-pass.ts'
import { sourceInvalidError, requireNumber, stateRejectedError } from './strategy-errors.ts'
import { canonicalizeInstant, instantToMs } from '../../values/instant.ts'
import { required } from '../../values/required.ts'

export interface TimestampPagingOptions {
  /** Reads the first page of records from `since`, inclusive, sorted by timestamp, oldest first. */
  read(
    query: { readonly since: string | undefined; readonly until: string | undefined },
    context: SyncContext,
  ): Promise<TimestampPage>
  /**
   * Reads a numbered page, from 1, of the same query: for more records of one timestamp than a page holds. Without it
   * they stop the sync with an error.
   */
  readNumbered?(query: { readonly since: string; readonly page: number }, context: SyncContext): Promise<TimestampPage>
  timestamp(record: JsonValue): string | undefined
  toChange(record: JsonValue): Change
  lagMs: number
  /** The number of records in a full page, as the source really returns it. */
  pageSize: number
}

export interface TimestampPage extends ServerClock {
  readonly records: readonly JsonValue[]
}

export interface TimestampPagingState extends AnsweredState {
  /** The timestamp in the format of the source; null before the first record. */
  readonly cursor: string | null
  /** The horizon of this cycle; see pinHorizon. */
  readonly untilMs?: number
  /** The page that follows the cursor, once: how it begins, or that the list ends with it. */
  readonly claimed?: EndClaim
  /** More records have the timestamp of the cursor than a page holds: the progress of their numbered pages. */
  readonly tie?: { readonly page: number; readonly pass: ListPass }
}

/**
 * For sources that filter and sort by a timestamp only. Each page starts at the last timestamp of the previous one, so records that
 * share it are read again and none is skipped. The end is a page that does not advance. A full page with a single timestamp
 * cannot advance: its records are then read by page number, until two passes agree. Without numbered pages it is an error, never
 * a gap.
 *
 * Two answers in a row must agree before the cursor moves to a page that does not begin at it, because the page may answer another
 * request, and before a complete list ends, because the page may lack its rows.
 */
export function timestampPaging(options: TimestampPagingOptions): AnchoredExecute<TimestampPagingState> {
  const { lagMs, pageSize } = options
  requireNumber('ladder', 'lagMs', lagMs, 0)
  requireNumber('ladder', 'size', pageSize, 2)

  const execute: Execute<TimestampPagingState> = async (state, context) => {
    const bounded = context.cycle.mode === 'incremental'
    const pinnedMs = bounded ? pinHorizon('ladder', context.cycle, lagMs, state?.untilMs) : Number.POSITIVE_INFINITY
    const since = clampCursor(readCursor(state), pinnedMs)
    if (state?.tie !== undefined && since !== undefined)
      return readTie({ since, tie: state.tie, bounded, pinnedMs }, options, context)
    const { answer, tookMs } = await measureRequest(context, () =>
      options.read({ since, until: bounded ? formatIso(pinnedMs) : undefined }, context),
    )
    const untilMs = bounded ? lowerHorizon(pinnedMs, lagMs, answer, tookMs) : pinnedMs

    const ordered = requireOrdered(answer.records, options)
    const safe = bounded ? ordered.filter(({ instant }) => instant <= msToInstant(untilMs)) : ordered
    const last = safe.at(-1)
    const hasMoved =
      last !== undefined &&
      (since === undefined || last.instant > required(canonicalizeInstant(since), 'The instant of the cursor'))
    if (!hasMoved && ordered.length >= pageSize && safe.length === ordered.length) {
      if (options.readNumbered !== undefined) {
        const tie = { page: 1, pass: FIRST_PASS }
        const nextState = { cursor: since ?? null, ...(bounded && { untilMs }), tie }
        return {
          changes: safe.map(({ record, timestamp }) => attachCursor(options.toChange(record), timestamp)),
          hasMore: true,
          nextState,
        }
      }
      throw sourceInvalidError(
        `All ${ordered.length} records of a full page share one timestamp, so the next page cannot be requested. Raise the page size, or page by timestamp and id.`,
      )
    }
    // Records are sorted, so none below the horizon can follow one above it.
    const hasMore = hasMoved && safe.length === ordered.length
    const changes = safe.map(({ record, timestamp }) => attachCursor(options.toChange(record), timestamp))
    // Without an earlier answer, an empty one is confirmed at once.
    const isEmptyAnswer = bounded && ordered.length === 0 && state?.claimed === undefined
    const isProven = hasMoved ? isAtCursor(ordered[0], since) : bounded && !(isEmptyAnswer && !hasAnswered(state))
    const mark = hasMoved ? fingerprintLastRow(changes.slice(0, 1)) : END_MARK
    if (!isProven && !isEndConfirmed(state?.claimed, mark)) {
      const claimed = { mark, ...countEndClaim(state?.claimed, context.clock.now()) }
      return {
        changes,
        hasMore: true,
        nextState: { cursor: since ?? null, ...(bounded && { untilMs, ...keepAnswered(state) }), claimed },
      }
    }
    const cursor = hasMoved ? last.timestamp : (since ?? null)
    if (hasMore && last !== undefined)
      return {
        changes,
        hasMore,
        tidemark: subtractMicrosecond(last.instant),
        nextState: { cursor, ...(bounded && { untilMs }) },
      }
    const horizonMs = bounded
      ? untilMs
      : lowerHorizon(pinHorizon('ladder', context.cycle, lagMs, undefined), lagMs, answer, tookMs)
    return {
      changes,
      hasMore,
      tidemark: isEmptyAnswer ? confirmHorizon(state, untilMs) : formatIso(horizonMs),
      // Without a state, that of the previous page would stay, with its horizon.
      nextState: bounded ? { cursor, answeredMs: untilMs } : undefined,
    }
  }
  return Object.assign(execute, {
    anchor: async (context: SyncContext) => {
      const untilMs = pinHorizon('ladder', context.cycle, lagMs, undefined)
      // One request, to learn the time of the source.
      const { answer, tookMs } = await measureRequest(context, () =>
        options.read({ since: formatIso(untilMs), until: formatIso(untilMs) }, context),
      )
      return { cursor: formatIso(lowerHorizon(untilMs, lagMs, answer, tookMs)) }
    },
  })
}

interface TieRequest {
  readonly since: string
  readonly tie: NonNullable<TimestampPagingState['tie']>
  readonly bounded: boolean
  readonly pinnedMs: number
}

/**
 * One numbered page of the records that share the timestamp of the cursor. A record that changes meanwhile leaves them and
 * shifts the pages, so the cursor moves on only after two passes with the same keys.
 */
async function readTie(
  { since, tie: { page, pass }, bounded, pinnedMs }: TieRequest,
  options: TimestampPagingOptions,
  context: SyncContext,
): Promise<Page<TimestampPagingState>> {
  const { answer, tookMs } = await measureRequest(context, () =>
    required(options.readNumbered, 'numbered pages')({ since, page }, context),
  )
  const untilMs = bounded ? lowerHorizon(pinnedMs, options.lagMs, answer, tookMs) : pinnedMs
  const instant = required(canonicalizeInstant(since), 'The instant of the cursor')
  const ordered = requireOrdered(answer.records, options)
  const next = ordered.find((record) => record.instant > instant)
  const changes = ordered
    .filter((record) => record.instant === instant)
    .map(({ record, timestamp }) => attachCursor(options.toChange(record), timestamp))
  const read = addPageToPass(pass, { changes })
  const continueFrom = (state: Omit<TimestampPagingState, 'untilMs'>): Page<TimestampPagingState> => ({
    changes,
    hasMore: true,
    nextState: { ...state, ...(bounded && { untilMs }) },
  })
  if (next === undefined && ordered.length > 0)
    return continueFrom({ cursor: since, tie: { page: page + 1, pass: read } })
  const again = decideNextPass(read, null)
  if (again !== null) return continueFrom({ cursor: since, tie: { page: 1, pass: again } })
  if (next !== undefined && (!bounded || next.instant <= msToInstant(untilMs)))
    return continueFrom({ cursor: next.timestamp })
  const horizonMs = bounded
    ? untilMs
    : lowerHorizon(pinHorizon('ladder', context.cycle, options.lagMs, undefined), options.lagMs, answer, tookMs)
  // Every record up to the horizon has been read. From the timestamp itself, the next cycle would read all of them again.
  return {
    changes,
    hasMore: false,
    tidemark: formatIso(horizonMs),
    nextState: bounded ? { cursor: formatIso(horizonMs) } : undefined,
  }
}

interface TimedRecord {
  readonly record: JsonValue
  readonly timestamp: string
  readonly instant: string
}

const END_MARK = ''

/** Whether a page begins with the records of the cursor, or before them. */
function isAtCursor(first: TimedRecord | undefined, since: string | undefined): boolean {
  return (
    first !== undefined &&
    since !== undefined &&
    first.instant <= required(canonicalizeInstant(since), 'The instant of the cursor')
  )
}

/** A cursor after the horizon comes from a clock that was ahead. Records that it skipped may become visible only now. */
function clampCursor(cursor: string | undefined, untilMs: number): string | undefined {
  return cursor !== undefined &&
    instantToMs(required(canonicalizeInstant(cursor), 'The instant of the cursor')) > untilMs
    ? formatIso(untilMs)
    : cursor
}

/** Fails closed: a page out of order may hide records that no later page returns. */
function requireOrdered(records: readonly JsonValue[], { timestamp }: TimestampPagingOptions): TimedRecord[] {
  let previous = ''
  return records.map((record, index) => {
    const text = timestamp(record)
    const instant = requireInstant(text, `The timestamp of record ${index + 1} of the page`)
    if (instant < previous) throw sourceInvalidError(`Record ${index + 1} of the page is older than the one before it.`)
    previous = instant
    return { record, timestamp: required(text, 'The timestamp'), instant }
  })
}

function attachCursor(change: Change, cursor: string): Change {
  return change.type === 'upsert' ? { ...change, cursor } : change
}

function readCursor(state: TimestampPagingState | undefined): string | undefined {
  if (state === undefined) return undefined
  if (state.claimed !== undefined && !isEndClaim(state.claimed))
    throw stateRejectedError('ladder', '`claimed` is not the claim of a page')
  if (state.tie !== undefined && !(Number.isSafeInteger(state.tie.page) && Number.isSafeInteger(state.tie.pass?.count)))
    throw stateRejectedError('ladder', '`tie` is not the progress of a list')
  if (state.cursor === null) return undefined
  if (typeof state.cursor !== 'string' || canonicalizeInstant(state.cursor) === null)
    throw stateRejectedError('ladder', '`cursor` is not an instant')
  return state.cursor
}
