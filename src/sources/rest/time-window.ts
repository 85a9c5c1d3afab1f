import type { Change, Execute, SyncContext } from '../../contract/index.ts'
import type { AnchoredExecute } from '../../strategies/kit/anchored-execute.ts'
import { lowerHorizon, pinHorizon, measureRequest, type ServerClock } from '../../strategies/kit/horizon.ts'
import { formatIso } from '../../strategies/kit/instants.ts'
import { requireMode, requireNumber, stateRejectedError } from '../../strategies/kit/strategy-errors.ts'
import { canonicalizeInstant } from '../../values/instant.ts'

export interface TimeWindowOptions {
  /** All that changed from `since` on, and no later than `until` where the source can be asked so, page by page. */
  read(query: { readonly since: string | undefined; readonly until: string; readonly token: string | undefined }, context: SyncContext): Promise<TimeWindowPage>
  lagMs: number
  /** How far each window begins before the end of the one before it. */
  overlapMs?: number
}

export interface TimeWindowPage extends ServerClock {
  readonly changes: readonly Change[]
  readonly next: string | null
}

export interface TimeWindowState {
  /** Null before the first window is complete. */
  readonly since: string | null
  /** The horizon of this cycle; see pinHorizon. */
  readonly untilMs?: number
  readonly token?: string
  /** Whether a page of this window had changes. */
  readonly isFound?: true
  /** The page at `token` came back empty, without a next one, once. */
  readonly isEmpty?: true
}

const OVERLAP_MS = 1_000

/**
 * For sources that tell what changed since a moment, in pages linked by tokens: one window per cycle, its end fixed
 * before the first page, the next one beginning where it ended. A row above the end that comes all the same is landed,
 * and read again.
 *
 * A window without changes is not left: an empty answer that is wrong would skip what it left out. The next cycle asks from
 * the same moment, which is one request as long as nothing changed. An empty page that ends a window is asked for twice.
 */
export function timeWindow({ read, lagMs, overlapMs = OVERLAP_MS }: TimeWindowOptions): AnchoredExecute<TimeWindowState> {
  requireNumber('window', 'lagMs', lagMs, 0)
  requireNumber('window', 'overlapMs', overlapMs, 0)

  const execute: Execute<TimeWindowState> = async (state, context) => {
    requireMode('window', 'incremental', context, 'what changed since a moment is not everything there is')
    const pinnedMs = pinHorizon('window', context.cycle, lagMs, state?.untilMs)
    const since = readSince(state)
    const { answer, tookMs } = await measureRequest(context, () => read({ since, until: formatIso(pinnedMs), token: state?.token }, context))
    const untilMs = lowerHorizon(pinnedMs, lagMs, answer, tookMs)
    const changes = [...answer.changes]
    const isFound = state?.isFound === true || changes.length > 0
    const here = { since: since ?? null, untilMs, ...(isFound && { isFound: true as const }) }
    if (answer.next !== null) return { changes, hasMore: true, nextState: { ...here, token: answer.next } }
    if (isFound && changes.length === 0 && state?.isEmpty !== true) return { changes, hasMore: true, nextState: { ...here, ...(state?.token !== undefined && { token: state.token }), isEmpty: true } }
    // Also back, when the position came from a clock that was ahead: no window is left out.
    const end = formatIso(untilMs - overlapMs)
    return { changes, hasMore: false, tidemark: formatIso(untilMs), nextState: { since: isFound || (since !== undefined && canonicalizeInstant(since)! > canonicalizeInstant(end)!) ? end : (since ?? null) } }
  }
  return Object.assign(execute, {
    anchor: async (context: SyncContext) => {
      const untilMs = pinHorizon('window', context.cycle, lagMs, undefined)
      // One question, only to hear the source's time.
      const { answer, tookMs } = await measureRequest(context, () => read({ since: formatIso(untilMs), until: formatIso(untilMs), token: undefined }, context))
      return { since: formatIso(lowerHorizon(untilMs, lagMs, answer, tookMs) - overlapMs) }
    },
  })
}

function readSince(state: TimeWindowState | undefined): string | undefined {
  if (state === undefined || state.since === null) return undefined
  if (typeof state.since !== 'string' || canonicalizeInstant(state.since) === null) throw stateRejectedError('window', '`since` is not an instant')
  if (state.token !== undefined && typeof state.token !== 'string') throw stateRejectedError('window', '`token` is not a text')
  return state.since
}
