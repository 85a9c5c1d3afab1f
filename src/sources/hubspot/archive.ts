import type { Change, Execute, SyncContext } from '../../contract/index.ts'
import { lowerHorizon, pinHorizon, timed, type ServerClock } from '../../strategies/kit/horizon.ts'
import { isoOf } from '../../strategies/kit/instants.ts'
import { requireMode, requireNumber } from '../../strategies/kit/refusals.ts'

export interface ArchiveOptions {
  /** One page of the objects that are archived; without `after` the first. */
  read(query: { readonly after: string | undefined }, context: SyncContext): Promise<ArchiveAnswer>
  /** How long an object may take to appear in the list. */
  lagMs: number
  /** The list is read at most this often. */
  everyMs: number
}

export interface ArchiveAnswer extends ServerClock {
  readonly changes: readonly Change[]
  readonly next: string | null
}

export interface ArchiveState {
  /** Everything archived up to this time has been read: the horizon of the last complete listing. */
  readonly listedMs?: number
  /** Of a listing that is not complete: its horizon, and the position of the next page. */
  readonly untilMs?: number
  readonly cursor?: string | null
}

/**
 * The list of archived objects has no order and no filter by time, and nothing in HubSpot's API says whether it has
 * changed. So it is read whole, but not in every cycle; the tidemark stays where the last complete listing began.
 */
export function archive({ read, lagMs, everyMs }: ArchiveOptions): Execute<ArchiveState> {
  requireNumber('hubspot', 'archivedEveryMs', everyMs, 0)
  return async (state = {}, context) => {
    requireMode('hubspot', 'incremental', context, 'the list of archived objects is not a list of the others')
    const isUnderWay = state.untilMs !== undefined
    const pinnedMs = pinHorizon('hubspot', context.cycle, lagMs, state.untilMs)
    if (!isUnderWay && isRecent(state.listedMs, pinnedMs, everyMs)) return { changes: [], hasMore: false, nextState: state }

    const after = isUnderWay ? (state.cursor ?? undefined) : undefined
    const { answer, tookMs } = await timed(context, () => read({ after }, context))
    const untilMs = lowerHorizon(pinnedMs, lagMs, answer, tookMs)
    const changes = [...answer.changes]
    if (answer.next !== null) return { changes, hasMore: true, nextState: { ...state, untilMs, cursor: answer.next } }
    return { changes, hasMore: false, nextState: { listedMs: untilMs }, tidemark: isoOf(untilMs) }
  }
}

/** A clock that was set back does not put the next listing off. */
function isRecent(listedMs: number | undefined, nowMs: number, everyMs: number): boolean {
  return listedMs !== undefined && nowMs >= listedMs && nowMs - listedMs < everyMs
}
