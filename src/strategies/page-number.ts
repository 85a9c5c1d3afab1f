import type { Execute, SyncContext } from '../contract/index.ts'
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
export interface PageNumberOptions {
  read(query: { readonly page: number }, context: SyncContext): Promise<ListAnswer>
  /** The number of the first page; 1 by default. */
  firstPage?: number
}

/** The next page number, and the progress of the listing. */
export interface PageNumberState {
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
export function pageNumber({ read, firstPage = 1 }: PageNumberOptions): Execute<PageNumberState> {
  requireNumber('pageNumber', 'firstPage', firstPage, 0)
  return async (state, context) => {
    requireReplaceMode('pageNumber', context)
    const { page, pass } = state ?? { page: firstPage, pass: FIRST_PASS }
    if (!Number.isSafeInteger(page) || !Number.isSafeInteger(pass?.count))
      throw stateRejectedError('pageNumber', '`page` or `pass` is missing')
    const answer = await read({ page }, context)
    const after = addPageToPass(pass, answer)
    const changes = [...answer.changes]
    if (!isLastPage(answer, after.count)) return { changes, hasMore: true, nextState: { page: page + 1, pass: after } }
    const again = decideNextPass(after, answer.total)
    return again === null
      ? { changes, hasMore: false }
      : { changes, hasMore: true, nextState: { page: firstPage, pass: again } }
  }
}
