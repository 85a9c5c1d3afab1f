import type { Execute, Page } from '../contract/index.ts'
import { requireMode, unreadable } from './kit/refusals.ts'

export interface FlipFlopOptions<Delta, Deletes> {
  delta: Execute<Delta>
  /** Give its changes an `upstreamUpdatedAt`: a delete that is found late then does not touch a row that was made anew. */
  deletes: Execute<Deletes>
}

/** Both cursors are always there, each moved only by its own stream; none before its stream has run. */
export type FlipFlopState<Delta, Deletes> =
  | { readonly phase: 'delta'; readonly deltaCursor?: Delta; readonly deletesCursor?: Deletes }
  | { readonly phase: 'deletes'; readonly deltaCursor?: Delta; readonly deletesCursor?: Deletes }

/**
 * For sources that tell deletions elsewhere than changes: an audit log, a trash, an archived filter.
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
export function flipFlop<Delta, Deletes>({ delta, deletes }: FlipFlopOptions<Delta, Deletes>): Execute<FlipFlopState<Delta, Deletes>> {
  return async (state, context) => {
    requireMode('flipFlop', 'incremental', context, 'a replace cycle finds deletions by itself')
    const { phase, deltaCursor, deletesCursor } = state ?? { phase: 'delta' }
    switch (phase) {
      case 'delta': {
        const page = await delta(deltaCursor, context)
        return flipped(page, stateOf(page.hasMore ? 'delta' : 'deletes', page.nextState ?? deltaCursor, deletesCursor))
      }
      case 'deletes': {
        const page = await deletes(deletesCursor, context)
        return flipped(page, stateOf(page.hasMore ? 'deletes' : 'delta', deltaCursor, page.nextState ?? deletesCursor))
      }
      default:
        phase satisfies never
        throw unreadable('flipFlop', '`phase` is neither "delta" nor "deletes"')
    }
  }
}

function flipped<State>(page: Page, nextState: State): Page<State> {
  // A stream that says there is more and forgets its state is told so by the engine; the old state would only hide it.
  return { ...page, nextState: page.hasMore && page.nextState === undefined ? undefined : nextState }
}

function stateOf<Delta, Deletes>(phase: 'delta' | 'deletes', deltaCursor: Delta | undefined, deletesCursor: Deletes | undefined): FlipFlopState<Delta, Deletes> {
  return { phase, ...(deltaCursor !== undefined && { deltaCursor }), ...(deletesCursor !== undefined && { deletesCursor }) }
}
