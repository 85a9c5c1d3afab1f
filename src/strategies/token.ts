import type { Change, Execute, SyncContext } from '../contract/index.ts'
import { invalid, unreadable } from './kit/refusals.ts'

export interface TokenOptions {
  /** Without a token on the first page. */
  read(query: { readonly token: string | undefined }, context: SyncContext): Promise<TokenAnswer>
}

export interface TokenAnswer {
  readonly changes: readonly Change[]
  /** Opaque; null or absent on the last page. The empty string is a token like any other. */
  readonly next?: string | null | undefined
  /** On the last page: what the next incremental cycle begins with, where the source gives such a thing. Without it, every cycle begins at the first page. */
  readonly resume?: string | null | undefined
}

export interface TokenState {
  readonly cursor: string | null
}

/**
 * For sources that hand out a token for the next page.
 *
 * ```ts
 * import { token } from 'tidemark'
 *
 * type Contacts = { results: { id: string; email: string }[]; paging?: { next: { after: string } } }
 *
 * export const contacts = token({
 *   read: async ({ token }, { fetch }) => {
 *     const response = await fetch(`https://crm.example/contacts?limit=100${token === undefined ? '' : `&after=${token}`}`)
 *     const { results, paging } = (await response.json()) as Contacts
 *     return { changes: results.map((contact) => ({ type: 'upsert', key: contact.id, record: contact })), next: paging?.next.after }
 *   },
 * })
 * ```
 */
export function token({ read }: TokenOptions): Execute<TokenState> {
  return async (state, context) => {
    if (state !== undefined && state.cursor !== null && typeof state.cursor !== 'string') throw unreadable('token', '`cursor` is not a string')
    const { changes, next, resume } = await read({ token: state?.cursor ?? undefined }, context)
    const hasMore = next !== undefined && next !== null
    const cursor = hasMore ? next : (resume ?? null)
    if (cursor !== null && typeof cursor !== 'string') throw invalid('The token of the next page is not a text.')
    return { changes: [...changes], hasMore, nextState: hasMore || context.cycle.mode === 'incremental' ? { cursor } : undefined }
  }
}
