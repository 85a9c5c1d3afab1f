import { SyncError, type Execute, type JsonObject, type SyncContext } from '../../contract/index.ts'
import { frontier, type FrontierPage, type FrontierState } from '../../strategies/index.ts'
import { bearer, type Auth, type SecretSource } from '../kit/auth.ts'
import { createHttpClient } from '../kit/http-client.ts'
import { isObject } from '../kit/classify-response.ts'
import { path } from '../kit/origin.ts'

export interface BookmarksOptions {
  /** Of the account whose bookmarks these are, which is the one that granted the token. */
  readonly userId: string
  /** A user's access token with the scopes `bookmark.read`, `tweet.read` and `users.read`, or the name of the secret that holds it. */
  readonly token?: SecretSource
  /** Instead of a token. */
  readonly auth?: Auth
  readonly baseUrl?: string
  /** Of each post. `public_metrics` is not among them: counts that never rest would make every look at the list a change. */
  readonly fields?: readonly string[]
}

export interface BookmarksSource {
  readonly delta: Execute<FrontierState>
  /** All of it, to find what is no longer bookmarked. */
  readonly backfill: Execute<FrontierState>
}

/** A hundred are allowed, but lists were seen to end early when asked for so many at once. */
const PAGE_SIZE = 90
/** X lists the newest so many and stops there as if that were all. */
const BOOKMARKS_LISTED_MAX = 800
const PAGES_LISTED_MAX = Math.ceil(BOOKMARKS_LISTED_MAX / PAGE_SIZE)
const DEFAULT_FIELDS = ['author_id', 'created_at', 'conversation_id', 'lang', 'entities', 'referenced_tweets']

/** The posts that a user of X has bookmarked: `worker.track('bookmarks', { database, source: bookmarks({ userId, token: 'X_TOKEN' }), schedule: '15m', backfillSchedule: '1d' })`. */
export function bookmarks({ userId, token, auth, baseUrl = 'https://api.x.com', fields = DEFAULT_FIELDS }: BookmarksOptions): BookmarksSource {
  if ((token === undefined) === (auth === undefined)) throw new SyncError('SYNC_INVALID', 'The bookmarks of X need either `token` or `auth`.')
  const client = createHttpClient({ baseUrl, auth: auth ?? bearer(token!) })
  const list = frontier<JsonObject>(async ({ cursor, ...context }) => {
    const place = parseCursor(cursor)
    const query = { max_results: PAGE_SIZE, 'tweet.fields': fields.join(','), pagination_token: place.token }
    const { body } = await client.get(path`/2/users/${userId}/bookmarks`, query, context, place.token === null ? {} : { cursorRefusals: [400] })
    if (!isObject(body) || !isObject(body.meta)) throw new SyncError('SOURCE_INVALID', 'X answered without `meta`.')
    const { data = [], errors = [], meta: { next_token: next, result_count: count } } = body
    // A post that may not be seen now is not one that is gone.
    if (context.cycle.mode === 'replace' && !(Array.isArray(errors) && errors.length === 0)) throw new SyncError('SOURCE_INVALID', 'X withholds some of the bookmarks, so that what is gone cannot be told: nothing was deleted.')
    if (!Array.isArray(data) || !data.every(isObject)) throw new SyncError('SOURCE_INVALID', 'X answered with bookmarks that are none.')
    if (typeof count === 'number' && data.length < count) throw new SyncError('SOURCE_INVALID', `X sent ${data.length} bookmarks and counts ${count}: the answer is not complete.`)
    return buildPage(data, typeof next === 'string' && next !== '' ? next : null, place.page, context)
  }, {
    id: requireId,
    toChange: (post) => ({ type: 'upsert', key: requireId(post), record: post }),
  })
  return { delta: list, backfill: list }
}

/** Posts that were deleted leave pages short, so it is pages that are counted. */
function buildPage(items: JsonObject[], token: string | null, page: number, { cycle }: SyncContext): FrontierPage<JsonObject> {
  if (token === null && page >= PAGES_LISTED_MAX && cycle.mode === 'replace') {
    throw new SyncError('SYNC_INVALID', `X lists the newest ${BOOKMARKS_LISTED_MAX} bookmarks only, and this account has about as many: what is older cannot be told from what is gone, so nothing was deleted.`)
  }
  return { items, nextCursor: token === null ? null : `${page + 1} ${token}` }
}

/** A cursor is the number of a page and its token. */
function parseCursor(cursor: string | null): { page: number; token: string | null } {
  if (cursor === null) return { page: 1, token: null }
  const [, page, token] = /^(\d+) (.+)$/.exec(cursor) ?? []
  if (token === undefined) throw new SyncError('CURSOR_REJECTED', 'The stored place is not one in a list of bookmarks.')
  return { page: Number(page), token }
}

function requireId({ id }: JsonObject): string {
  if (typeof id !== 'string' || id === '') throw new SyncError('SOURCE_INVALID', 'A post of X has no id.')
  return id
}
