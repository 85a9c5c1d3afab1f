import type { Change, Execute, SyncContext } from '../contract/index.ts'
import { carryExtra, type ExtraAnswer, type ExtraState } from './kit/extra.ts'
import { waitForPace, computePace, type RateBudget, type RequestPace } from './kit/request-pace.ts'
import { INITIAL_TALLY, isListTally, fingerprintLastRow, decideListStep, type ListTally } from './kit/list-end.ts'
import { readNextCursor, type PageInfo } from './kit/page-info.ts'
import { stateRejectedError } from './kit/strategy-errors.ts'

/** Describes how to read a GraphQL connection. */
export interface RelayOptions<Extra = never> {
  read(query: { readonly after: string | null } & ExtraState<Extra>, context: SyncContext): Promise<RelayAnswer<Extra>>
  /** The value of `first`. A full page that claims to be the last is requested again before it is accepted. */
  limit?: number
}

/** A page of a GraphQL connection. */
export interface RelayAnswer<Extra = never> extends ExtraAnswer<Extra> {
  readonly changes: readonly Change[]
  readonly pageInfo: PageInfo
  /** The connection's `totalCount`, if it has one. A replace cycle that read fewer nodes does not end. */
  readonly total?: number | null | undefined
  /** Kept in the state to pace later pages. */
  readonly budget?: RateBudget | null
}

/** The cursor of the next page, and the progress of the listing. */
export interface RelayState<Extra = never> extends ExtraState<Extra> {
  readonly cursor: string | null
  readonly pace?: RequestPace
  /** Progress of a listing in replace mode. */
  readonly tally?: ListTally
}

/**
 * For GraphQL connections: `first`, `after`, `pageInfo`. Every cycle begins at the first page.
 *
 * ```ts
 * import { relay, type RateBudget, type PageInfo } from 'tidemark'
 *
 * type Answer = { repositories: { nodes: { id: string; name: string }[]; pageInfo: PageInfo }; rateLimit: RateBudget }
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
export function relay<Extra = never>({ read, limit }: RelayOptions<Extra>): Execute<RelayState<Extra>> {
  return carryExtra<RelayState<Extra>, Extra>(async (state, context, extra) => {
    if (state !== undefined && state.cursor !== null && typeof state.cursor !== 'string')
      throw stateRejectedError('relay', '`cursor` is not a string')
    if (state?.tally !== undefined && !isListTally(state.tally))
      throw stateRejectedError('relay', '`tally` is not a count of nodes')
    await waitForPace(state?.pace, context)
    const askedAt = context.clock.now()
    const requested = state?.cursor ?? null
    const { changes, pageInfo, total, budget } = await extra.read((carried) =>
      read({ after: requested, ...carried }, context),
    )
    const cursor = readNextCursor(pageInfo, 'The connection')
    const pace = computePace(budget, state?.pace, askedAt)
    const paced = pace !== undefined && { pace }
    const page = { changes: [...changes], hasMore: cursor !== null }
    // At the end the stored cursor is null, or the next cycle would continue at the last page.
    if (context.cycle.mode === 'incremental') return { ...page, nextState: { cursor, ...paced } }
    const listed = { count: changes.length, mark: fingerprintLastRow(changes), isLast: cursor === null, total, limit }
    const step = decideListStep(state?.tally ?? INITIAL_TALLY, listed, context.clock.now())
    if (step.kind === 'end') return { ...page, nextState: undefined }
    return {
      ...page,
      hasMore: true,
      nextState: { cursor: step.kind === 'again' ? requested : cursor, ...paced, tally: step.tally },
    }
  })
}
