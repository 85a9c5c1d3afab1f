import { StripeError } from './stripe-error.ts'

export interface Listed {
  readonly id: string
  readonly created: number
}

export interface ListRequest {
  readonly limit: number
  readonly startingAfter: string | undefined
  readonly endingBefore: string | undefined
}

/** The paging parameters every list shares. */
export function listRequest(query: URLSearchParams): ListRequest {
  const startingAfter = query.get('starting_after') ?? undefined
  const endingBefore = query.get('ending_before') ?? undefined
  if (startingAfter !== undefined && endingBefore !== undefined) throw new StripeError(400, 'Received both starting_after and ending_before parameters. Please pass in only one.')
  const asked = query.get('limit') ?? '10'
  if (!/^-?\d+$/.test(asked)) throw new StripeError(400, `Invalid integer: ${asked}`, { code: 'parameter_invalid_integer', param: 'limit' })
  const limit = Number(asked)
  if (limit < 1) throw new StripeError(400, 'This value must be greater than or equal to 1.', { code: 'parameter_invalid_integer', param: 'limit' })
  if (limit > 100) throw new StripeError(400, 'This value must be less than or equal to 100.', { code: 'parameter_invalid_integer', param: 'limit' })
  return { limit, startingAfter, endingBefore }
}

/**
 * One page of a list that is sorted newest first. `starting_after` gives what follows the cursor, which is older.
 * `ending_before` gives the nearest newer ones, still shown newest first, and `has_more` then speaks of the even newer.
 * The cursor itself is placed by its sort key, so it need not match the filters of the list.
 */
export function pageOf<T extends Listed>(sorted: readonly T[], request: ListRequest, cursor: Listed | undefined): { data: T[]; hasMore: boolean } {
  if (request.endingBefore !== undefined && cursor !== undefined) {
    const newer = sorted.filter((item) => newestFirst(item, cursor) < 0)
    const data = newer.slice(-request.limit)
    return { data, hasMore: newer.length > data.length }
  }
  const older = cursor === undefined ? sorted : sorted.filter((item) => newestFirst(item, cursor) > 0)
  const data = older.slice(0, request.limit)
  return { data, hasMore: older.length > data.length }
}

export function newestFirst(a: Listed, b: Listed): number {
  return b.created - a.created || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0)
}
