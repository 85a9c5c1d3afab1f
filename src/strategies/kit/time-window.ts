import type { Change, Execute, SyncContext } from '../../contract/index.ts'
import type { AnchoredExecute } from './anchored-execute.ts'
import { confirmHorizon, hasAnswered, keepAnswered, type AnsweredState } from './answered-horizon.ts'
import { lowerHorizon, pinHorizon, measureRequest, type ServerClock } from './horizon.ts'
import { formatIso } from './instants.ts'
import { countEndClaim, isEndClaim, isEndConfirmed, type EndClaim } from './end-claim.ts'
import { fingerprintLastRow } from './list-end.ts'
import { requireMode, requireNumber, stateRejectedError } from './strategy-errors.ts'
import { canonicalizeInstant, instantToMs } from '../../values/instant.ts'
import { required } from '../../values/required.ts'

export interface TimeWindowOptions {
  /** Reads one page of the changes from `since`, up to `until` if the source supports an upper bound. */
  read(
    query: { readonly since: string | undefined; readonly until: string; readonly token: string | undefined },
    context: SyncContext,
  ): Promise<TimeWindowPage>
  lagMs: number
  /** The overlap between a window and the previous one. */
  overlapMs?: number
  /** The longest window that the source accepts; needs an upper bound. */
  stepMs?: number
  /** The start of the first window. The default is the beginning of the data. */
  start?: string
}

export interface TimeWindowPage extends ServerClock {
  readonly changes: readonly Change[]
  readonly next: string | null
}

export interface TimeWindowState extends AnsweredState {
  /** Null before the first window is complete. */
  readonly since: string | null
  /** The horizon of this cycle; see pinHorizon. */
  readonly untilMs?: number
  readonly token?: string
  /** Whether a page of this window had changes. */
  readonly isFound?: true
  /** The page at `token` was the last one, once. */
  readonly claimed?: EndClaim
}

const OVERLAP_MS = 1_000

/**
 * For sources that list changes since a time, in pages linked by tokens. Each cycle reads one window; its end is fixed before the
 * first page, and the next window starts there. A row after the end is landed and read again.
 *
 * A window without changes does not advance: a wrong empty response would skip changes. The next cycle reads from the same time,
 * which is one request while nothing changes, and confirms the window up to the previous end. The last page of any other window is requested again until two answers in a row end
 * after the same row: an answer may lack its rows or the reference to the next page, or be an earlier one. With `stepMs` a cycle
 * reads several windows; one that is empty in both answers is passed.
 */
export function timeWindow({
  read,
  lagMs,
  overlapMs = OVERLAP_MS,
  stepMs = Number.POSITIVE_INFINITY,
  start,
}: TimeWindowOptions): AnchoredExecute<TimeWindowState> {
  requireNumber('window', 'lagMs', lagMs, 0)
  requireNumber('window', 'overlapMs', overlapMs, 0)
  // A step that is not longer than the overlap would never end.
  requireNumber('window', 'step', stepMs, overlapMs + 1)

  const execute: Execute<TimeWindowState> = async (state, context) => {
    requireMode('window', 'incremental', context, 'the changes since a time are not the complete list')
    const pinnedMs = pinHorizon('window', context.cycle, lagMs, state?.untilMs)
    const since = readSince(state) ?? start
    const stepEndMs = since === undefined ? pinnedMs : Math.min(pinnedMs, toMs(since) + stepMs)
    const { answer, tookMs } = await measureRequest(context, () =>
      read({ since, until: formatIso(stepEndMs), token: state?.token }, context),
    )
    const untilMs = lowerHorizon(pinnedMs, lagMs, answer, tookMs)
    const changes = [...answer.changes]
    const isStep = stepEndMs < untilMs
    const isFound = state?.isFound === true || changes.length > 0
    const current = {
      since: since ?? null,
      untilMs,
      ...keepAnswered(state),
      ...(isFound && { isFound: true as const }),
    }
    if (answer.next !== null) return { changes, hasMore: true, nextState: { ...current, token: answer.next } }
    const mark = fingerprintLastRow(changes)
    // Without an earlier answer, an empty one is confirmed at once.
    const isUnproven = isFound || isStep || !hasAnswered(state)
    const isConfirmed = isEndConfirmed(state?.claimed, mark)
    if (isUnproven && !isConfirmed) {
      const claimed = { mark, ...countEndClaim(state?.claimed, context.clock.now()) }
      const token = state?.token
      return { changes, hasMore: true, nextState: { ...current, ...(token !== undefined && { token }), claimed } }
    }
    if (isStep)
      return {
        changes,
        hasMore: true,
        tidemark: formatIso(stepEndMs),
        nextState: { since: formatIso(stepEndMs - overlapMs), untilMs },
      }
    // A cursor from a clock that was ahead moves back, so that no window is skipped.
    const end = formatIso(untilMs - overlapMs)
    const isNext = isFound || (since !== undefined && isLater(since, end))
    return {
      changes,
      hasMore: false,
      tidemark: isConfirmed ? formatIso(untilMs) : confirmHorizon(state, untilMs),
      nextState: { since: isNext ? end : (since ?? null), answeredMs: untilMs },
    }
  }
  return Object.assign(execute, {
    anchor: async (context: SyncContext) => {
      const untilMs = pinHorizon('window', context.cycle, lagMs, undefined)
      // One request, to learn the time of the source.
      const { answer, tookMs } = await measureRequest(context, () =>
        read({ since: formatIso(untilMs), until: formatIso(untilMs), token: undefined }, context),
      )
      return { since: formatIso(lowerHorizon(untilMs, lagMs, answer, tookMs) - overlapMs) }
    },
  })
}

function toMs(instant: string): number {
  return instantToMs(required(canonicalizeInstant(instant), 'The instant'))
}

function isLater(instant: string, other: string): boolean {
  return required(canonicalizeInstant(instant), 'The instant') > required(canonicalizeInstant(other), 'The instant')
}

function readSince(state: TimeWindowState | undefined): string | undefined {
  if (state === undefined) return undefined
  if (state.token !== undefined && typeof state.token !== 'string')
    throw stateRejectedError('window', '`token` is not a string')
  if (state.claimed !== undefined && !isEndClaim(state.claimed))
    throw stateRejectedError('window', '`claimed` is not the end of a window')
  if (state.since === null) return undefined
  if (typeof state.since !== 'string' || canonicalizeInstant(state.since) === null)
    throw stateRejectedError('window', '`since` is not an instant')
  return state.since
}
