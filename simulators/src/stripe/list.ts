import { countLeading } from '../kit/sorted-view.ts'
import { StripeError } from './stripe-error.ts'

export interface ListSortKey {
  readonly id: string
  readonly created: number
}

export interface ListRequest {
  readonly limit: number
  readonly startingAfter: string | undefined
  readonly endingBefore: string | undefined
}

/** The paging parameters every list shares. */
export function parseListRequest(query: URLSearchParams): ListRequest {
  const startingAfter = query.get('starting_after') ?? undefined
  const endingBefore = query.get('ending_before') ?? undefined
  if (startingAfter !== undefined && endingBefore !== undefined)
    throw new StripeError(400, 'Received both starting_after and ending_before parameters. Please pass in only one.')
  const asked = query.get('limit') ?? '10'
  if (!/^-?\d+$/.test(asked))
    throw new StripeError(400, `Invalid integer: ${asked}`, { code: 'parameter_invalid_integer', param: 'limit' })
  const limit = Number(asked)
  if (limit < 1)
    throw new StripeError(400, 'This value must be greater than or equal to 1.', {
      code: 'parameter_invalid_integer',
      param: 'limit',
    })
  if (limit > 100)
    throw new StripeError(400, 'This value must be less than or equal to 100.', {
      code: 'parameter_invalid_integer',
      param: 'limit',
    })
  return { limit, startingAfter, endingBefore }
}

/**
 * One page of a list that is sorted newest first. `starting_after` returns the records after the cursor, which are
 * older. `ending_before` returns the nearest newer ones, still newest first, and `has_more` then refers to even newer
 * ones. The cursor is located by its sort key, so it need not match the filters of the list.
 */
export function paginate<T>(
  sorted: readonly T[],
  request: ListRequest,
  cursor: ListSortKey | undefined,
  place: (item: T) => ListSortKey,
): { data: T[]; hasMore: boolean } {
  if (request.endingBefore !== undefined && cursor !== undefined) {
    const newer = countLeading(sorted, (item) => compareNewestFirst(place(item), cursor) < 0)
    return { data: sorted.slice(Math.max(0, newer - request.limit), newer), hasMore: newer > request.limit }
  }
  const from = cursor === undefined ? 0 : countLeading(sorted, (item) => compareNewestFirst(place(item), cursor) <= 0)
  return { data: sorted.slice(from, from + request.limit), hasMore: sorted.length > from + request.limit }
}

export function compareNewestFirst(a: ListSortKey, b: ListSortKey): number {
  return b.created - a.created || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0)
}
