import { sourceInvalidError } from './strategy-errors.ts'

/** The `pageInfo` of a Relay connection. */
export interface PageInfo {
  readonly hasNextPage: boolean
  readonly endCursor?: string | null | undefined
}

/** Returns the cursor of the next page, or null when there is none. The empty string is a valid cursor. */
export function readNextCursor(info: PageInfo, connection: string): string | null {
  if (typeof info?.hasNextPage !== 'boolean')
    throw sourceInvalidError(`${connection} has no \`pageInfo.hasNextPage\`: the response is incomplete.`)
  if (!info.hasNextPage) return null
  if (typeof info.endCursor !== 'string')
    throw sourceInvalidError(`${connection} has a next page but no \`endCursor\` to request it.`)
  return info.endCursor
}
