import type { Execute, Page } from '../contract/index.ts'
import { captureAnchor, type AnchoredExecute } from './kit/anchored-execute.ts'
import { earliestTidemark } from './kit/earliest-tidemark.ts'
import { combineRetention } from './kit/combine-retention.ts'
import { requireMode, stateRejectedError } from './kit/strategy-errors.ts'

/** The two halves of `flipFlop`. */
export interface FlipFlopOptions<Delta, Deletes> {
  delta: Execute<Delta>
  /** Give its changes an `upstreamUpdatedAt`: a delete found late then does not remove a recreated row. */
  deletes: Execute<Deletes>
}

/** Each cursor is moved only by its own stream, and is absent before the stream's first cycle. */
export interface FlipFlopState<Delta, Deletes> {
  readonly phase: 'delta' | 'deletes'
  readonly deltaCursor?: Delta
  readonly deletesCursor?: Deletes
  /** The last tidemark of each stream: a cycle of one stream proves nothing about the other. */
  readonly deltaTidemark?: string
  readonly deletesTidemark?: string
}

/**
 * Reads changes and deletions alternately, one stream per cycle. Prefer `streams`, which reads both in every cycle: a
 * flipFlop lags by two cycles, and its tidemark reflects that.
 *
 *   delta ──caught up, end of cycle──▶ deletes
 *     ▲                                   │
 *     └──────caught up, end of cycle──────┘
 *
 * ```ts
 * import { flipFlop, keyset, type KeysetQuery, type SyncContext } from 'tidemark'
 *
 * type Incident = { id: string; updatedAt: string; title: string }
 * type Deletion = { id: string; deletedAt: string; incident: string }
 *
 * const read = (table: string) => async <Item>({ after, until, limit }: KeysetQuery, { fetch }: SyncContext) => {
 *   const response = await fetch(`https://desk.example/${table}?limit=${limit}&until=${until ?? ''}&after=${after?.timestamp ?? ''},${after?.id ?? ''}`)
 *   const items = (await response.json()) as Item[]
 *   return { items, end: items.length < limit }
 * }
 *
 * export const incidents = flipFlop({
 *   delta: keyset<Incident>({
 *     read: read('incidents'), timestamp: ({ updatedAt }) => updatedAt, id: ({ id }) => id, lagMs: 15_000, limit: 100,
 *     toChange: (incident) => ({ type: 'upsert', key: incident.id, record: incident, upstreamUpdatedAt: incident.updatedAt }),
 *   }),
 *   deletes: keyset<Deletion>({
 *     read: read('audit'), timestamp: ({ deletedAt }) => deletedAt, id: ({ id }) => id, lagMs: 15_000, limit: 100,
 *     toChange: ({ incident, deletedAt }) => ({ type: 'delete', key: incident, upstreamUpdatedAt: deletedAt }),
 *   }),
 * })
 * ```
 */
export function flipFlop<Delta, Deletes>({
  delta,
  deletes,
}: FlipFlopOptions<Delta, Deletes>): AnchoredExecute<FlipFlopState<Delta, Deletes>> {
  const execute: AnchoredExecute<FlipFlopState<Delta, Deletes>> = async (stored, context) => {
    requireMode('flipFlop', 'incremental', context, 'a replace cycle finds deletions by itself')
    const state: FlipFlopState<Delta, Deletes> = stored ?? { phase: 'delta' }
    switch (state.phase) {
      case 'delta': {
        const page = await delta(state.deltaCursor, context)
        return buildPage(page, {
          ...state,
          phase: page.hasMore ? 'delta' : 'deletes',
          ...(page.nextState !== undefined && { deltaCursor: page.nextState }),
          ...(typeof page.tidemark === 'string' && { deltaTidemark: page.tidemark }),
        })
      }
      case 'deletes': {
        const page = await deletes(state.deletesCursor, context)
        return buildPage(page, {
          ...state,
          phase: page.hasMore ? 'deletes' : 'delta',
          ...(page.nextState !== undefined && { deletesCursor: page.nextState }),
          ...(typeof page.tidemark === 'string' && { deletesTidemark: page.tidemark }),
        })
      }
      default:
        state.phase satisfies never
        throw stateRejectedError('flipFlop', '`phase` is neither "delta" nor "deletes"')
    }
  }
  execute.anchor = async (context) => {
    const deltaCursor = await captureAnchor(delta, context)
    const deletesCursor = await captureAnchor(deletes, context)
    if (deltaCursor === undefined && deletesCursor === undefined) return undefined
    return {
      phase: 'delta',
      ...(deltaCursor !== undefined && { deltaCursor }),
      ...(deletesCursor !== undefined && { deletesCursor }),
    }
  }
  const { retentionMs, ...history } = combineRetention(delta, deletes)
  // Each stream runs in every second cycle, so the longest allowed gap between two cycles is halved.
  return Object.assign(execute, history, retentionMs !== undefined && { retentionMs: retentionMs / 2 })
}

/** The tidemark is the minimum of both streams, or null: the engine must not derive one from a single stream. */
function buildPage<Delta, Deletes>(
  page: Page,
  nextState: FlipFlopState<Delta, Deletes>,
): Page<FlipFlopState<Delta, Deletes>> {
  const tidemark = earliestTidemark([nextState.deltaTidemark, nextState.deletesTidemark]) ?? null
  // A stream with more pages but no state must fail in the engine; keeping its old state would hide that.
  return { ...page, tidemark, nextState: page.hasMore && page.nextState === undefined ? undefined : nextState }
}
