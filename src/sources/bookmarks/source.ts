import { SyncError, type Execute, type JsonObject, type TimeRange } from '../../contract/index.ts'
import { frontier, type FrontierPage, type FrontierState } from '../../strategies/index.ts'
import { bearer, requireOneAuth, type Auth, type SecretSource } from '../kit/auth.ts'
import { connectionAuth, connectionBaseUrl, withConnection, type ConnectionOption } from '../kit/connection-auth.ts'
import { createHttpClient } from '../kit/http-client.ts'
import { isObject } from '../kit/classify-response.ts'
import { path } from '../kit/origin.ts'
import { limitRange, parseSince, withSinceScope } from '../kit/since.ts'
import { requireInstant } from '../../strategies/kit/instants.ts'

/** Options of `bookmarks`. */
export interface BookmarksOptions extends ConnectionOption {
  /** The id of the account that granted the token. */
  readonly userId: string
  /** A user's access token with the scopes `bookmark.read`, `tweet.read` and `users.read`, or the name of the secret that holds it. */
  readonly token?: SecretSource
  /** Replaces `token`. */
  readonly auth?: Auth
  readonly baseUrl?: string
  /** The fields of each post. The default omits `public_metrics`, because its counts would make every read a change. */
  readonly fields?: readonly string[]
  /**
   * The start date: bookmarked posts that were written before it are not copied. X does not return when a post was
   * bookmarked.
   */
  readonly since?: string
}

/** The bookmarks of one X account. Pass it to `worker.track`. */
export interface BookmarksSource {
  readonly delta: Execute<FrontierState>
  /** Reads the complete list, to find removed bookmarks. */
  readonly backfill: Execute<FrontierState>
}

/** X allows 100, but lists were observed to end early with that page size. */
const PAGE_SIZE = 90
/** X lists only this many of the newest bookmarks, and does not say that the list is truncated. */
const BOOKMARKS_LISTED_MAX = 800
const PAGES_LISTED_MAX = Math.ceil(BOOKMARKS_LISTED_MAX / PAGE_SIZE)
const TIME_FIELD = 'created_at'
const DEFAULT_FIELDS = ['author_id', TIME_FIELD, 'conversation_id', 'lang', 'entities', 'referenced_tweets']

/** The posts that a user of X has bookmarked: `worker.track('bookmarks', { database, source: bookmarks({ userId, token: 'X_TOKEN' }), schedule: '15m', backfillSchedule: '1d' })`. */
export function bookmarks(options: BookmarksOptions): BookmarksSource {
  return withConnection(options.connection, createBookmarks(options))
}

function createBookmarks({
  userId,
  token,
  auth,
  connection,
  baseUrl = 'https://api.x.com',
  fields = DEFAULT_FIELDS,
  since: given,
}: BookmarksOptions): BookmarksSource {
  const since = parseSince(given)
  const hasTimes = fields.includes(TIME_FIELD)
  if (since !== undefined && !hasTimes)
    throw new SyncError('SYNC_INVALID', `bookmarks: \`since\` needs "${TIME_FIELD}" in \`fields\`.`)
  const bearerAuth = token === undefined ? undefined : bearer(token)
  const chosenAuth = requireOneAuth(
    auth,
    bearerAuth,
    'X bookmarks need either `token`, `auth` or `connection`.',
    connection === undefined ? undefined : connectionAuth(),
  )
  const client = createHttpClient({ baseUrl: connectionBaseUrl(connection, baseUrl), auth: chosenAuth })
  /** A range read deletes nothing, so the list may be incomplete. */
  const readPosts = (range: TimeRange, { sweeps }: { readonly sweeps: boolean }): Execute<FrontierState> =>
    frontier<JsonObject>(
      async ({ cursor, ...context }) => {
        const pageCursor = parseCursor(cursor)
        const query = { max_results: PAGE_SIZE, 'tweet.fields': fields.join(','), pagination_token: pageCursor.token }
        const { body } = await client.get(
          path`/2/users/${userId}/bookmarks`,
          query,
          context,
          pageCursor.token === null ? {} : { cursorRefusals: [400] },
        )
        if (!isObject(body) || !isObject(body.meta))
          throw new SyncError('SOURCE_INVALID', 'X returned a response without `meta`.')
        const {
          data = [],
          errors = [],
          meta: { next_token: next, result_count: count },
        } = body
        // A withheld post is not a removed bookmark.
        if (sweeps && context.cycle.mode === 'replace' && !(Array.isArray(errors) && errors.length === 0))
          throw new SyncError(
            'SOURCE_INVALID',
            'X withheld some bookmarks, so removed bookmarks cannot be determined. Nothing was deleted.',
          )
        if (!Array.isArray(data) || !data.every(isObject))
          throw new SyncError('SOURCE_INVALID', 'X returned a response without a list of bookmarks.')
        if (typeof count === 'number' && data.length < count)
          throw new SyncError(
            'SOURCE_INVALID',
            `X returned ${data.length} of ${count} bookmarks: the response is incomplete.`,
          )
        const nextToken = typeof next === 'string' && next !== '' ? next : null
        if (sweeps && context.cycle.mode === 'replace') checkReachable(nextToken, pageCursor.page)
        return buildPage(
          data.filter((post) => isWrittenIn(post, range)),
          nextToken,
          pageCursor.page,
        )
      },
      {
        id: requireId,
        toChange: (post) => ({ type: 'upsert', key: requireId(post), record: post }),
      },
    )
  const list = readPosts(since === undefined ? {} : { from: since }, { sweeps: true })
  return {
    delta: list,
    backfill: Object.assign(
      withSinceScope(list, since),
      hasTimes
        ? { range: (range: TimeRange) => readPosts(limitRange(range, since), { sweeps: false }) }
        : { rangeUnsupported: `\`fields\` has no "${TIME_FIELD}"` },
    ),
  }
}

function isWrittenIn(post: JsonObject, { from, to }: TimeRange): boolean {
  if (from === undefined && to === undefined) return true
  const instant = requireInstant(post[TIME_FIELD], `\`${TIME_FIELD}\` of a post`)
  return (
    (from === undefined || instant >= requireInstant(from, '`from`')) &&
    (to === undefined || instant < requireInstant(to, '`to`'))
  )
}

/** Counts pages instead of bookmarks, because deleted posts make pages short. */
function checkReachable(token: string | null, page: number): void {
  if (token === null && page >= PAGES_LISTED_MAX) {
    throw new SyncError(
      'SYNC_INVALID',
      `X lists only the newest ${BOOKMARKS_LISTED_MAX} bookmarks, and this account reaches that limit. Older bookmarks cannot be distinguished from removed ones, so nothing was deleted.`,
    )
  }
}

function buildPage(items: JsonObject[], token: string | null, page: number): FrontierPage<JsonObject> {
  return { items, nextCursor: token === null ? null : `${page + 1} ${token}` }
}

/** A cursor consists of a page number and its token. */
function parseCursor(cursor: string | null): { page: number; token: string | null } {
  if (cursor === null) return { page: 1, token: null }
  const [, page, token] = /^(\d+) (.+)$/.exec(cursor) ?? []
  if (token === undefined)
    throw new SyncError('CURSOR_REJECTED', 'The stored cursor is not a valid cursor of a list of bookmarks.')
  return { page: Number(page), token }
}

function requireId({ id }: JsonObject): string {
  if (typeof id !== 'string' || id === '') throw new SyncError('SOURCE_INVALID', 'An X post has no id.')
  return id
}
