import type { JsonObject } from '../contract/index.ts'
import type { Change } from './change.ts'
import { ClientError } from './client-error.ts'

/** What came in one go. */
export interface ChangeBatch {
  readonly changes: readonly Change[]
  /** The place after them; null when the server tells none. */
  readonly cursor: string | null
  /** There was nothing more when it was read. */
  readonly upToDate: boolean
}

/** A page of `/changes`. Members that are not known here do no harm (A29). */
export function parseBatch(body: JsonObject): ChangeBatch {
  const { data, page } = body as { data?: unknown; page?: { nextCursor?: unknown; hasMore?: unknown } | null }
  if (!Array.isArray(data) || typeof page !== 'object' || page === null || typeof page.hasMore !== 'boolean') {
    throw new ClientError('ANSWER_INVALID', 'The answer is not a page of changes.')
  }
  if (page.hasMore && typeof page.nextCursor !== 'string') throw new ClientError('ANSWER_INVALID', 'The answer says that there is more, and not where.')
  return { changes: data.map(parseChange), cursor: typeof page.nextCursor === 'string' ? page.nextCursor : null, upToDate: !page.hasMore }
}

export function parseChange(item: unknown): Change {
  const { resourceType, resourceId, action, updatedAt } = Object(item) as Partial<Change>
  if (typeof resourceType !== 'string' || typeof resourceId !== 'string' || typeof updatedAt !== 'string' || !ACTIONS.has(action)) {
    throw new ClientError('CHANGE_UNKNOWN', `The feed tells of something that this client does not know: ${JSON.stringify([resourceType, resourceId, action])}.`)
  }
  return item as Change
}

const ACTIONS: ReadonlySet<unknown> = new Set(['created', 'updated', 'deleted'])
