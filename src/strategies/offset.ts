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

/** Describes how to read a list by offset and limit. */
export interface OffsetOptions<Extra = never> {
  read(
    query: { readonly offset: number; readonly limit: number } & ExtraState<Extra>,
    context: SyncContext,
  ): Promise<ListAnswer & ExtraAnswer<Extra>>
  limit: number
}

/** The next offset, and the progress of the listing. */
export interface OffsetState<Extra = never> extends ExtraState<Extra> {
  readonly offset: number
  readonly pass: ListPass
}

/**
 * For lists read by offset and limit, in replace mode only. The list is read until two consecutive passes agree, or
 * until as many rows were read as the source's total: then no row has shifted out of view.
 *
 * A total does not reveal a row that is deleted while another is added; omit it where that matters more than a second
 * pass.
 *
 * ```ts
 * import { offset } from 'tidemark'
 *
 * type Tickets = { rows: { id: string; subject: string }[]; total: number }
 *
 * export const tickets = offset({
 *   read: async ({ offset, limit }, { fetch }) => {
 *     const { rows, total } = (await (await fetch(`https://desk.example/tickets?offset=${offset}&limit=${limit}`)).json()) as Tickets
 *     return { changes: rows.map((row) => ({ type: 'upsert', key: row.id, record: row })), total }
 *   },
 *   limit: 100,
 * })
 * ```
 */
export function offset<Extra = never>({ read, limit }: OffsetOptions<Extra>): Execute<OffsetState<Extra>> {
  requireNumber('offset', 'limit', limit, 1)
  return carryExtra<OffsetState<Extra>, Extra>(async (state, context, extra) => {
    requireReplaceMode('offset', context)
    const { offset, pass } = state ?? { offset: 0, pass: FIRST_PASS }
    if (!Number.isSafeInteger(offset) || !Number.isSafeInteger(pass?.count))
      throw stateRejectedError('offset', '`offset` or `pass` is missing')
    const answer = await extra.read((carried) => read({ offset, limit, ...carried }, context))
    const after = addPageToPass(pass, answer)
    const changes = [...answer.changes]
    if (!isLastPage(answer, after.count))
      return { changes, hasMore: true, nextState: { offset: after.count, pass: after } }
    const again = decideNextPass(after, answer.total)
    return again === null
      ? { changes, hasMore: false }
      : { changes, hasMore: true, nextState: { offset: 0, pass: again } }
  })
}
