import type { Change, Execute, SyncContext } from '../../contract/index.ts'
import { lowerHorizon, pinHorizon, measureRequest, type ServerClock } from '../../strategies/kit/horizon.ts'
import {
  INITIAL_TALLY,
  isListTally,
  fingerprintLastRow,
  decideListStep,
  type ListTally,
} from '../../strategies/kit/list-end.ts'
import { formatIso } from '../../strategies/kit/instants.ts'
import { requireMode, requireNumber, stateRejectedError } from '../../strategies/kit/strategy-errors.ts'

export interface ArchiveListingOptions {
  /** Reads one page of archived objects; without `after` the first page. */
  read(query: { readonly after: string | undefined }, context: SyncContext): Promise<ArchivePage>
  /** The visibility delay of an archived object in the list. */
  lagMs: number
  /** The list is read at most this often; a list of many pages less often. 0 reads it in every cycle. */
  intervalMs: number
  /** The number of objects in a full page. */
  limit: number
}

export interface ArchivePage extends ServerClock {
  readonly changes: readonly Change[]
  readonly next: string | null
}

export interface ArchiveState {
  /** Everything archived up to this time has been read: the horizon of the last complete listing. */
  readonly listedMs?: number
  /** The number of pages of that listing. */
  readonly pages?: number
  /** The horizon of an incomplete listing. Together with `cursor`, the cursor of its next page. */
  readonly untilMs?: number
  readonly cursor?: string | null
  readonly tally?: ListTally
  /** The requests of the incomplete listing so far. */
  readonly requests?: number
}

/**
 * The list of archived objects has no order by time, no filter by time and no change marker, and no search returns its objects. So
 * it is read completely, but not in every cycle: a listing that took many pages is repeated later, which bounds the share of
 * requests. The tidemark stays where the last complete listing began. The end of the list must be confirmed (`decideListStep`):
 * a cached last page of an earlier listing would move the tidemark past deletions that were never read.
 */
export function createArchiveListing({ read, lagMs, intervalMs, limit }: ArchiveListingOptions): Execute<ArchiveState> {
  requireNumber('hubspot', 'archivedEveryMs', intervalMs, 0)
  return async (state = {}, context) => {
    requireMode('hubspot', 'incremental', context, 'the list of archived objects does not contain the others')
    const isResumed = state.untilMs !== undefined
    const pinnedMs = pinHorizon('hubspot', context.cycle, lagMs, state.untilMs)
    if (!isResumed && isRecent(state.listedMs, pinnedMs, computeIntervalMs(intervalMs, state.pages)))
      return { changes: [], hasMore: false, nextState: state }

    if (state.tally !== undefined && !isListTally(state.tally))
      throw stateRejectedError('hubspot', '`tally` is not a count of rows')
    const after = isResumed ? (state.cursor ?? undefined) : undefined
    const { answer: response, tookMs } = await measureRequest(context, () => read({ after }, context))
    const untilMs = lowerHorizon(pinnedMs, lagMs, response, tookMs)
    const changes = [...response.changes]
    const page = {
      count: changes.length,
      mark: fingerprintLastRow(changes),
      isLast: response.next === null,
      limit,
      confirms: true,
    }
    const step = decideListStep(isResumed ? (state.tally ?? INITIAL_TALLY) : INITIAL_TALLY, page, context.clock.now())
    const requests = (isResumed ? (state.requests ?? 0) : 0) + 1
    if (step.kind === 'end')
      return {
        changes,
        hasMore: false,
        nextState: { listedMs: untilMs, pages: requests },
        tidemark: formatIso(untilMs),
      }
    const cursor = step.kind === 'again' ? (after ?? null) : response.next
    return { changes, hasMore: true, nextState: { ...state, untilMs, cursor, tally: step.tally, requests } }
  }
}

/** One request in six seconds on average: 14,400 of the 250,000 or more that HubSpot allows in a day. */
const MS_PER_REQUEST = 6_000

function computeIntervalMs(intervalMs: number, pages = 0): number {
  return intervalMs === 0 ? 0 : Math.max(intervalMs, pages * MS_PER_REQUEST)
}

/** A clock that was set back does not delay the next listing. */
function isRecent(listedMs: number | undefined, nowMs: number, intervalMs: number): boolean {
  return listedMs !== undefined && nowMs >= listedMs && nowMs - listedMs < intervalMs
}
