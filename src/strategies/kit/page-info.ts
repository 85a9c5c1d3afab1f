import { sourceInvalidError } from './strategy-errors.ts'

/** A Relay connection's own words. */
export interface PageInfo {
  readonly hasNextPage: boolean
  readonly endCursor?: string | null | undefined
}

/** Where the next page begins, or null when there is none. The empty string is a cursor like any other. */
export function readNextCursor(info: PageInfo, whose: string): string | null {
  if (typeof info?.hasNextPage !== 'boolean') throw sourceInvalidError(`${whose} has no \`pageInfo.hasNextPage\`: the answer is not complete.`)
  if (!info.hasNextPage) return null
  if (typeof info.endCursor !== 'string') throw sourceInvalidError(`${whose} has a next page but no \`endCursor\` to ask for it with.`)
  return info.endCursor
}
