import type { Change, Execute, SyncContext } from '../../contract/index.ts'
import { lowerHorizon, pinHorizon, measureRequest, type ServerClock } from '../../strategies/kit/horizon.ts'
import { INITIAL_TALLY, isListTally, fingerprintLastRow, decideListStep, type ListTally } from '../../strategies/kit/list-end.ts'
import { formatIso } from '../../strategies/kit/instants.ts'
import { requireMode, requireNumber, stateRejectedError } from '../../strategies/kit/strategy-errors.ts'

export interface ArchiveListingOptions {
  /** One page of the objects that are archived; without `after` the first. */
  read(query: { readonly after: string | undefined }, context: SyncContext): Promise<ArchivePage>
  /** How long an object may take to appear in the list. */
  lagMs: number
  /** The list is read at most this often. */
  intervalMs: number
  /** How many objects make a full page. */
  limit: number
}

export interface ArchivePage extends ServerClock {
  readonly changes: readonly Change[]
  readonly next: string | null
}

export interface ArchiveState {
  /** Everything archived up to this time has been read: the horizon of the last complete listing. */
  readonly listedMs?: number
  /** Of a listing that is not complete: its horizon, and the position of the next page. */
  readonly untilMs?: number
  readonly cursor?: string | null
  readonly tally?: ListTally
}

/**
 * The list of archived objects has no order and no filter by time, and nothing in HubSpot's API says whether it has
 * changed. So it is read whole, but not in every cycle; the tidemark stays where the last complete listing began. Its end
 * needs the evidence that the end of any list needs (see `decideListStep`): the answer to the last request of the listing before,
 * given again, would end this one and move the tidemark past deletions that were never read.
 */
export function createArchiveListing({ read, lagMs, intervalMs: everyMs, limit }: ArchiveListingOptions): Execute<ArchiveState> {
  requireNumber('hubspot', 'archivedEveryMs', everyMs, 0)
  return async (state = {}, context) => {
    requireMode('hubspot', 'incremental', context, 'the list of archived objects is not a list of the others')
    const isUnderWay = state.untilMs !== undefined
    const pinnedMs = pinHorizon('hubspot', context.cycle, lagMs, state.untilMs)
    if (!isUnderWay && isRecent(state.listedMs, pinnedMs, everyMs)) return { changes: [], hasMore: false, nextState: state }

    if (state.tally !== undefined && !isListTally(state.tally)) throw stateRejectedError('hubspot', '`tally` is not a count of rows')
    const after = isUnderWay ? (state.cursor ?? undefined) : undefined
    const { answer, tookMs } = await measureRequest(context, () => read({ after }, context))
    const untilMs = lowerHorizon(pinnedMs, lagMs, answer, tookMs)
    const changes = [...answer.changes]
    const page = { count: changes.length, mark: fingerprintLastRow(changes), isLast: answer.next === null, limit, confirms: true }
    const step = decideListStep(isUnderWay ? (state.tally ?? INITIAL_TALLY) : INITIAL_TALLY, page, context.clock.now())
    if (step.kind === 'end') return { changes, hasMore: false, nextState: { listedMs: untilMs }, tidemark: formatIso(untilMs) }
    const cursor = step.kind === 'again' ? (after ?? null) : answer.next
    return { changes, hasMore: true, nextState: { ...state, untilMs, cursor, tally: step.tally } }
  }
}

/** A clock that was set back does not put the next listing off. */
function isRecent(listedMs: number | undefined, nowMs: number, everyMs: number): boolean {
  return listedMs !== undefined && nowMs >= listedMs && nowMs - listedMs < everyMs
}
