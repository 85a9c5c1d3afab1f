import { SyncError, type Change, type Execute, type SyncContext } from '../contract/index.ts'
import { carryExtra, type ExtraAnswer, type ExtraState } from './kit/extra.ts'
import { waitForPace, computePace, type RateBudget, type RequestPace } from './kit/request-pace.ts'
import { INITIAL_TALLY, decideListStep, type ListTally } from './kit/list-end.ts'
import { readNextCursor, type PageInfo } from './kit/page-info.ts'
import { sourceInvalidError, requireNumber, stateRejectedError } from './kit/strategy-errors.ts'

/** Describes how to read a GraphQL connection whose nodes have a connection each. */
export interface RelayNestedOptions<Extra = never> {
  /** Reads one page of parents, each with the first page of its children. */
  readOuter(
    query: { readonly after: string | null } & ExtraState<Extra>,
    context: SyncContext,
  ): Promise<OuterAnswer<Extra>>
  /** Reads the next page of exactly these parents. */
  readInner(
    query: { readonly parents: readonly { readonly id: string; readonly after: string }[] } & ExtraState<Extra>,
    context: SyncContext,
  ): Promise<InnerAnswer<Extra>>
  /** Parents per request. */
  parentsPerRequest?: number
  /** Maximum number of unfinished parents, which is at most one page of parents. */
  parentsMax?: number
}

/** A page of children of several parents. */
export interface InnerAnswer<Extra = never> extends ExtraAnswer<Extra> {
  readonly changes: readonly Change[]
  /** One entry per requested parent; `pageInfo` is null for a parent that no longer exists. */
  readonly parents: readonly NestedPage[]
  /** Kept in the state to pace later pages. */
  readonly budget?: RateBudget | null
}

export interface NestedPage {
  readonly id: string
  readonly pageInfo: PageInfo | null
  /**
   * Nodes of the parent on this page, and its `totalCount`: with both, a replace cycle that read fewer nodes does not
   * end.
   */
  readonly count?: number
  readonly total?: number | null
}

/** A page of parents, with the first page of their children. */
export interface OuterAnswer<Extra = never> extends InnerAnswer<Extra> {
  readonly pageInfo: PageInfo
  /** Parents on this page and in total, with the same effect. */
  readonly count?: number
  readonly total?: number | null
}

/** The cursors of the parents and of every unfinished parent. */
export interface RelayNestedState<Extra = never> extends ExtraState<Extra> {
  /** Cursor of the next page of parents. */
  readonly cursor: string | null
  /** There are no more pages of parents. */
  readonly outerDone?: boolean
  /** Next cursor of every unfinished parent, by parent id. */
  readonly nestedCursors?: Readonly<Record<string, string>>
  /** Nodes read of each unfinished parent, if the source counts them. */
  readonly nestedTallies?: Readonly<Record<string, ListTally>>
  /** Progress over the parents. */
  readonly tally?: ListTally
  readonly pace?: RequestPace
}

/**
 * For a connection inside a connection: the issues of all repositories. The children of one page of parents are read to
 * the end before the next page of parents, so the state never holds more than one page of parents.
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
export function relayNested<Extra = never>({
  readOuter,
  readInner,
  parentsPerRequest = 20,
  parentsMax = 500,
}: RelayNestedOptions<Extra>): Execute<RelayNestedState<Extra>> {
  requireNumber('relayNested', 'parentsPerRequest', parentsPerRequest, 1)
  requireNumber('relayNested', 'parentsMax', parentsMax, 1)

  return carryExtra<RelayNestedState<Extra>, Extra>(async (state, context, extra) => {
    const nested = readUnfinishedParents(state)
    const isListing = context.cycle.mode === 'replace'
    await waitForPace(state?.pace, context)
    const askedAt = context.clock.now()
    let { cursor, outerDone = false, tally } = state ?? { cursor: null }
    let answer: InnerAnswer<Extra>
    if (nested.size > 0) {
      const parents = [...nested].slice(0, parentsPerRequest).map(([id, { after }]) => ({ id, after }))
      answer = await extra.read((carried) => readInner({ parents, ...carried }, context))
      updateParents(nested, answer, new Set(parents.map(({ id }) => id)), isListing, askedAt)
    } else {
      const after = cursor
      const outer = await extra.read((carried) => readOuter({ after, ...carried }, context))
      const next = readNextCursor(outer.pageInfo, 'The outer connection')
      updateParents(nested, outer, null, isListing, askedAt)
      const count = outer.count ?? outer.parents.length
      const listed = { count, mark: outer.parents.at(-1)?.id ?? '', isLast: next === null, total: outer.total }
      const step = isListing
        ? decideListStep(tally ?? INITIAL_TALLY, listed, context.clock.now())
        : ({ kind: next === null ? 'end' : 'next' } as const)
      outerDone = step.kind === 'end'
      if (step.kind === 'next') cursor = next
      if ('tally' in step) ({ tally } = step)
      answer = outer
    }
    if (nested.size > parentsMax)
      throw new SyncError(
        'STATE_TOO_LARGE',
        `${nested.size} parents are unfinished at once, and the limit is ${parentsMax}. Request fewer parents per page.`,
      )

    const hasMore = !outerDone || nested.size > 0
    const pace = computePace(answer.budget, state?.pace, askedAt)
    const start: RelayNestedState = { cursor: null }
    const next: RelayNestedState = {
      cursor,
      ...(outerDone && { outerDone }),
      ...toNestedState(nested),
      ...(tally !== undefined && { tally }),
    }
    const nextState = hasMore ? next : isListing ? undefined : start
    return {
      changes: [...answer.changes],
      hasMore,
      nextState: nextState && { ...nextState, ...(pace !== undefined && { pace }) },
    }
  })
}

interface UnfinishedParent {
  readonly after: string
  readonly tally?: ListTally | undefined
}

/** Removes parents that are finished or gone. */
function updateParents(
  nested: Map<string, UnfinishedParent>,
  { parents }: Pick<InnerAnswer, 'parents'>,
  requested: Set<string> | null,
  isListing: boolean,
  now: number,
): void {
  const missing = new Set(requested)
  for (const { id, pageInfo, count, total } of parents) {
    if (typeof id !== 'string' || id === '') throw sourceInvalidError('A parent in the response has no id.')
    if (requested !== null && !missing.delete(id))
      throw sourceInvalidError('The response contains a parent that was not requested, or the same parent twice.')
    const cursor = pageInfo === null ? null : readNextCursor(pageInfo, 'A nested connection')
    const previous = nested.get(id)
    const isCounted = isListing && pageInfo !== null && count !== undefined && typeof total === 'number'
    // The first page of a parent comes with the page of parents, so there is no cursor to request it again.
    if (isCounted && previous === undefined && cursor === null && count < total)
      throw sourceInvalidError(`A nested connection ended after ${count} nodes, but the source counts ${total}.`)
    // The response does not say which changes belong to the parent, so their count identifies the page.
    const step =
      isCounted && previous !== undefined
        ? decideListStep(
            previous.tally ?? INITIAL_TALLY,
            { count, mark: String(count), isLast: cursor === null, total },
            now,
          )
        : null
    if (previous !== undefined && step?.kind === 'again') nested.set(id, { after: previous.after, tally: step.tally })
    else if (cursor === null) nested.delete(id)
    else
      nested.set(id, {
        after: cursor,
        ...(isCounted && { tally: step?.kind === 'next' ? step.tally : { size: count, seen: count } }),
      })
  }
  // A missing parent is not null: a partial response must not count as the end.
  if (missing.size > 0) throw sourceInvalidError(`The response omits ${missing.size} of the requested parents.`)
}

function toNestedState(
  nested: ReadonlyMap<string, UnfinishedParent>,
): Pick<RelayNestedState, 'nestedCursors' | 'nestedTallies'> {
  if (nested.size === 0) return {}
  const tallies = [...nested].flatMap(([id, { tally }]) => (tally === undefined ? [] : [[id, tally] as const]))
  return {
    nestedCursors: Object.fromEntries([...nested].map(([id, { after }]) => [id, after])),
    ...(tallies.length > 0 && { nestedTallies: Object.fromEntries(tallies) }),
  }
}

function readUnfinishedParents(state: Omit<RelayNestedState, 'extra'> | undefined): Map<string, UnfinishedParent> {
  if (state === undefined) return new Map()
  if (state.cursor !== null && typeof state.cursor !== 'string')
    throw stateRejectedError('relayNested', '`cursor` is not a string')
  const entries = Object.entries(state.nestedCursors ?? {})
  if (entries.some(([, after]) => typeof after !== 'string'))
    throw stateRejectedError('relayNested', '`nestedCursors` is not a map of strings')
  return new Map(entries.map(([id, after]) => [id, { after, tally: state.nestedTallies?.[id] }]))
}
