import { SyncError, type Change, type Execute, type SyncContext } from '../contract/index.ts'
import { keepPace, paceOf, type Budget, type Pace } from './kit/budget.ts'
import { nextCursor, type PageInfo } from './kit/page-info.ts'
import { invalid, requireNumber, unreadable } from './kit/refusals.ts'

export interface RelayNestedOptions {
  /** One page of parents, each with the first page of what it holds. */
  readOuter(query: { readonly after: string | null }, context: SyncContext): Promise<OuterAnswer>
  /** The next page of each of these parents, and of no other. */
  readInner(query: { readonly parents: readonly { readonly id: string; readonly after: string }[] }, context: SyncContext): Promise<InnerAnswer>
  /** How many parents are asked for at once. */
  parentsPerRequest?: number
  /** How many may be unfinished at a time, which is at most a page of parents. */
  parentsMax?: number
}

export interface InnerAnswer {
  readonly changes: readonly Change[]
  /** Of every parent asked for; null for one that no longer exists. */
  readonly parents: readonly { readonly id: string; readonly pageInfo: PageInfo | null }[]
  /** Kept in the state; later pages are paced by it. */
  readonly budget?: Budget | null
}

export interface OuterAnswer extends InnerAnswer {
  readonly pageInfo: PageInfo
}

export interface RelayNestedState {
  /** Where the next page of parents begins. */
  readonly cursor: string | null
  /** There is no further page of parents. */
  readonly outerDone?: boolean
  /** Of every parent that still has more: its id, and where its next page begins. */
  readonly nestedCursors?: Readonly<Record<string, string>>
  readonly pace?: Pace
}

/**
 * For a connection inside a connection: the issues of all repositories. What the parents of one page hold is read to its end
 * before the next page of parents, so the state never holds more than one page of them.
 *
 * ```ts
 * import { relayNested, type Change, type PageInfo } from 'tidemark'
 *
 * type Repository = { id: string; issues: { nodes: { id: string; title: string }[]; pageInfo: PageInfo } }
 * type Fetch = (url: string, init: { method: string; body: string }) => Promise<{ json(): Promise<unknown> }>
 *
 * const ask = async <Answer>(fetch: Fetch, query: string, variables: object): Promise<Answer> =>
 *   (await (await fetch('https://forge.example/graphql', { method: 'POST', body: JSON.stringify({ query, variables }) })).json()) as Answer
 * const issuesOf = (repository: Repository | null): Change[] => (repository?.issues.nodes ?? []).map((issue) => ({ type: 'upsert', key: issue.id, record: issue }))
 *
 * export const issues = relayNested({
 *   readOuter: async ({ after }, { fetch }) => {
 *     const { nodes, pageInfo } = await ask<{ nodes: Repository[]; pageInfo: PageInfo }>(fetch, '…', { after })
 *     return { changes: nodes.flatMap(issuesOf), pageInfo, parents: nodes.map(({ id, issues }) => ({ id, pageInfo: issues.pageInfo })) }
 *   },
 *   readInner: async ({ parents }, { fetch }) => {
 *     const nodes = await ask<Array<Repository | null>>(fetch, '…', { parents })
 *     return { changes: nodes.flatMap(issuesOf), parents: parents.map(({ id }, index) => ({ id, pageInfo: nodes[index]?.issues.pageInfo ?? null })) }
 *   },
 * })
 * ```
 */
export function relayNested({ readOuter, readInner, parentsPerRequest = 20, parentsMax = 500 }: RelayNestedOptions): Execute<RelayNestedState> {
  requireNumber('relayNested', 'parentsPerRequest', parentsPerRequest, 1)
  requireNumber('relayNested', 'parentsMax', parentsMax, 1)

  return async (state, context) => {
    const nested = cursorsIn(state)
    await keepPace(state?.pace, context)
    const askedAt = context.clock.now()
    let { cursor, outerDone = false } = state ?? { cursor: null }
    let answer: InnerAnswer
    if (nested.size > 0) {
      const parents = [...nested].slice(0, parentsPerRequest).map(([id, after]) => ({ id, after }))
      answer = await readInner({ parents }, context)
      take(nested, answer, new Set(parents.map(({ id }) => id)))
    } else {
      const outer = await readOuter({ after: cursor }, context)
      const next = nextCursor(outer.pageInfo, 'The outer connection')
      outerDone = next === null
      cursor = next ?? cursor
      take(nested, outer, null)
      answer = outer
    }
    if (nested.size > parentsMax) throw new SyncError('STATE_TOO_LARGE', `${nested.size} parents are unfinished at once; at most ${parentsMax} are kept. Ask for fewer parents in a page.`)

    const hasMore = !outerDone || nested.size > 0
    const pace = paceOf(answer.budget, state?.pace, askedAt)
    const start: RelayNestedState = { cursor: null }
    const next: RelayNestedState = { cursor, ...(outerDone && { outerDone }), ...(nested.size > 0 && { nestedCursors: Object.fromEntries(nested) }) }
    const nextState = hasMore ? next : context.cycle.mode === 'incremental' ? start : undefined
    return { changes: [...answer.changes], hasMore, nextState: nextState && { ...nextState, ...(pace !== undefined && { pace }) } }
  }
}

/** Parents that are at their end, or gone, are asked no more. */
function take(nested: Map<string, string>, { parents }: InnerAnswer, asked: Set<string> | null): void {
  const missing = new Set(asked)
  for (const { id, pageInfo } of parents) {
    if (typeof id !== 'string' || id === '') throw invalid('A parent has no id.')
    if (asked !== null && !missing.delete(id)) throw invalid('The answer has a parent that was not asked for, or one of them twice.')
    const cursor = pageInfo === null ? null : nextCursor(pageInfo, 'A nested connection')
    if (cursor === null) nested.delete(id)
    else nested.set(id, cursor)
  }
  // Not the same as null: half an answer must not pass for the end.
  if (missing.size > 0) throw invalid(`The answer leaves out ${missing.size} of the parents it was asked for.`)
}

function cursorsIn(state: RelayNestedState | undefined): Map<string, string> {
  if (state === undefined) return new Map()
  if (state.cursor !== null && typeof state.cursor !== 'string') throw unreadable('relayNested', '`cursor` is not a string')
  const entries = Object.entries(state.nestedCursors ?? {})
  if (entries.some(([, after]) => typeof after !== 'string')) throw unreadable('relayNested', '`nestedCursors` is not a map of strings')
  return new Map(entries)
}
