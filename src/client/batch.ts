import type { JsonObject } from '../contract/index.ts'
import type { Change } from './change.ts'
import { ClientError } from './client-error.ts'

export interface ChangeBatch {
  readonly changes: readonly Change[]
  /** The cursor after the changes; null if the server sent none. */
  readonly cursor: string | null
  /** Nothing was left to read. */
  readonly upToDate: boolean
}

/** Parses a page of `/changes`. Unknown fields are ignored (A29). */
export function parseBatch(body: JsonObject): ChangeBatch {
  const { data, page } = body as { data?: unknown; page?: { nextCursor?: unknown; hasMore?: unknown } | null }
  if (!Array.isArray(data) || typeof page !== 'object' || page === null || typeof page.hasMore !== 'boolean') {
    throw new ClientError('ANSWER_INVALID', 'The response is not a page of changes.')
  }
  if (page.hasMore && typeof page.nextCursor !== 'string')
    throw new ClientError('ANSWER_INVALID', 'The response has `hasMore` but no `nextCursor`.')
  return {
    changes: data.map(parseChange),
    cursor: typeof page.nextCursor === 'string' ? page.nextCursor : null,
    upToDate: !page.hasMore,
  }
}

export function parseChange(item: unknown): Change {
  const { resourceType, resourceId, action, updatedAt } = Object(item) as Partial<Change>
  if (
    typeof resourceType !== 'string' ||
    typeof resourceId !== 'string' ||
    typeof updatedAt !== 'string' ||
    !ACTIONS.has(action)
  ) {
    throw new ClientError(
      'CHANGE_UNKNOWN',
      `The feed returned a change that this client does not support: ${JSON.stringify([resourceType, resourceId, action])}.`,
    )
  }
  return item as Change
}

const ACTIONS: ReadonlySet<unknown> = new Set(['created', 'updated', 'deleted'])
