import { SyncError, type JsonObject } from '../../contract/index.ts'

/** The `pageInfo` of a Relay connection. */
export function parsePageInfo({ hasNextPage, endCursor = null }: JsonObject): {
  hasNextPage: boolean
  endCursor: string | null
} {
  if (typeof hasNextPage !== 'boolean' || (endCursor !== null && typeof endCursor !== 'string'))
    throw new SyncError('SOURCE_INVALID', 'The response has an incomplete `pageInfo`.')
  return { hasNextPage, endCursor }
}
