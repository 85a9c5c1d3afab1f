import type { Execute, SyncContext } from '../contract/index.ts'
import { carryExtra, type ExtraAnswer, type ExtraState } from './kit/extra.ts'
import {
  addPageToPass,
  FIRST_PASS,
  isLastPage,
  decideNextPass,
  requireReplaceMode,
  type ListAnswer,
  type ListPass,
} from './kit/list-pass.ts'
import { requireNumber, stateRejectedError } from './kit/strategy-errors.ts'

/** Describes how to read a list by page number. */
export interface PageNumberOptions<Extra = never> {
  read(
    query: { readonly page: number } & ExtraState<Extra>,
    context: SyncContext,
  ): Promise<ListAnswer & ExtraAnswer<Extra>>
  /** The number of the first page; 1 by default. */
  firstPage?: number
}

/** The next page number, and the progress of the listing. */
export interface PageNumberState<Extra = never> extends ExtraState<Extra> {
  readonly page: number
  readonly pass: ListPass
}

/**
 * For lists read by page number, in replace mode only. As with `offset`, the list is read until two passes agree or a
 * total matches.
 *
 * ```ts
 * import { pageNumber } from 'tidemark'
 *
 * type Projects = { items: { id: string; name: string }[]; pages: number }
 *
 * export const projects = pageNumber({
 *   read: async ({ page }, { fetch }) => {
 *     const { items, pages } = (await (await fetch(`https://work.example/projects?page=${page}`)).json()) as Projects
 *     return { changes: items.map((item) => ({ type: 'upsert', key: item.id, record: item })), end: page >= pages }
 *   },
 * })
 * ```
 */
export function pageNumber<Extra = never>({
  read,
  firstPage = 1,
}: PageNumberOptions<Extra>): Execute<PageNumberState<Extra>> {
  requireNumber('pageNumber', 'firstPage', firstPage, 0)
  return carryExtra<PageNumberState<Extra>, Extra>(async (state, context, extra) => {
    requireReplaceMode('pageNumber', context)
    const { page, pass } = state ?? { page: firstPage, pass: FIRST_PASS }
    if (!Number.isSafeInteger(page) || !Number.isSafeInteger(pass?.count))
      throw stateRejectedError('pageNumber', '`page` or `pass` is missing')
    const answer = await extra.read((carried) => read({ page, ...carried }, context))
    const after = addPageToPass(pass, answer)
    const changes = [...answer.changes]
    if (!isLastPage(answer, after.count)) return { changes, hasMore: true, nextState: { page: page + 1, pass: after } }
    const again = decideNextPass(after, answer.total)
    return again === null
      ? { changes, hasMore: false }
      : { changes, hasMore: true, nextState: { page: firstPage, pass: again } }
  })
}
