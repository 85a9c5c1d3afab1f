import type { Change, Execute, SyncContext } from '../contract/index.ts'
import { keepPace, paceOf, type Budget, type Pace } from './kit/budget.ts'
import { nextCursor, type PageInfo } from './kit/page-info.ts'
import { unreadable } from './kit/refusals.ts'

export interface RelayOptions {
  read(query: { readonly after: string | null }, context: SyncContext): Promise<RelayAnswer>
}

export interface RelayAnswer {
  readonly changes: readonly Change[]
  readonly pageInfo: PageInfo
  /** Kept in the state; later pages are paced by it. */
  readonly budget?: Budget | null
}

export interface RelayState {
  readonly cursor: string | null
  readonly pace?: Pace
}

/**
 * For GraphQL connections: `first`, `after`, `pageInfo`. Every cycle begins at the first page.
 *
 * ```ts
 * import { relay, type Budget, type PageInfo } from 'tidemark'
 *
 * type Answer = { repositories: { nodes: { id: string; name: string }[]; pageInfo: PageInfo }; rateLimit: Budget }
 *
 * export const repositories = relay({
 *   read: async ({ after }, { fetch }) => {
 *     const response = await fetch('https://forge.example/graphql', { method: 'POST', body: JSON.stringify({ query: '…', variables: { after } }) })
 *     const { repositories, rateLimit } = (await response.json()) as Answer
 *     const { nodes, pageInfo } = repositories
 *     return { changes: nodes.map((node) => ({ type: 'upsert', key: node.id, record: node })), pageInfo, budget: rateLimit }
 *   },
 * })
 * ```
 */
export function relay({ read }: RelayOptions): Execute<RelayState> {
  return async (state, context) => {
    if (state !== undefined && state.cursor !== null && typeof state.cursor !== 'string') throw unreadable('relay', '`cursor` is not a string')
    await keepPace(state?.pace, context)
    const askedAt = context.clock.now()
    const { changes, pageInfo, budget } = await read({ after: state?.cursor ?? null }, context)
    const cursor = nextCursor(pageInfo, 'The connection')
    const pace = paceOf(budget, state?.pace, askedAt)
    const hasMore = cursor !== null
    // Incremental: a state that says "from the start", or the cursor of the last page would stay.
    const nextState = hasMore || context.cycle.mode === 'incremental' ? { cursor, ...(pace !== undefined && { pace }) } : undefined
    return { changes: [...changes], hasMore, nextState }
  }
}
