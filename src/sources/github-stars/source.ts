import { SyncError, type Execute, type JsonObject, type JsonValue, type TimeRange } from '../../contract/index.ts'
import { frontier, type FrontierState } from '../../strategies/index.ts'
import { bearer, requireOneAuth, type Auth, type SecretSource } from '../kit/auth.ts'
import { classifyGithubRateLimit } from '../kit/github-rate-limit.ts'
import { connectionAuth, connectionBaseUrl, withConnection, type ConnectionOption } from '../kit/connection-auth.ts'
import { createHttpClient } from '../kit/http-client.ts'
import { isObject } from '../kit/classify-response.ts'
import { parseNextLink } from '../kit/link-header.ts'
import { path } from '../kit/origin.ts'
import { limitRange, parseSince, withSinceScope } from '../kit/since.ts'
import { requireInstant } from '../../strategies/kit/instants.ts'
import { advanceCursor, overlapsCursor, moveCursorBack, chooseWindow, type StarCursor } from './overlapping-pages.ts'

/** Options of `githubStars`. */
export interface GithubStarsOptions extends ConnectionOption {
  readonly token?: SecretSource
  /** Replaces `token`. */
  readonly auth?: Auth
  /** For an Enterprise server: https://github.example.com/api/v3 */
  readonly baseUrl?: string
  /** The user whose stars are read. The default is the owner of the token. */
  readonly user?: string
  /** The start date: older stars are not read. */
  readonly since?: string
}

/** The stars of one GitHub user. Pass it to `worker.track`. */
export interface GithubStarsSource {
  readonly delta: Execute<FrontierState>
  /** Reads the complete list, to find removed stars. */
  readonly backfill: Execute<FrontierState>
}

/** The repositories that a user has starred: `worker.track('stars', { database, source: githubStars({ token: 'GITHUB_TOKEN' }), schedule: '15m', backfillSchedule: '1d' })`. */
export function githubStars(options: GithubStarsOptions): GithubStarsSource {
  return withConnection(options.connection, createGithubStars(options))
}

function createGithubStars({
  token,
  auth,
  connection,
  baseUrl = 'https://api.github.com',
  user,
  since: given,
}: GithubStarsOptions): GithubStarsSource {
  const bearerAuth = token === undefined ? undefined : bearer(token)
  const chosenAuth = requireOneAuth(
    auth,
    bearerAuth,
    'GitHub stars need either `token`, `auth` or `connection`.',
    connection === undefined ? undefined : connectionAuth(),
  )
  const client = createHttpClient({
    baseUrl: connectionBaseUrl(connection, baseUrl),
    auth: chosenAuth,
    classifyResponse: classifyGithubRateLimit,
    headers: {
      'user-agent': 'tidemark',
      accept: 'application/vnd.github.star+json',
      'x-github-api-version': '2022-11-28',
    },
  })
  const target = user === undefined ? '/user/starred' : path`/users/${user}/starred`
  const since = parseSince(given)
  const readStars = (range: TimeRange): Execute<FrontierState> => {
    const select = (stars: readonly Star[]): Star[] =>
      stars.filter(({ starredAt }) => !isBefore(starredAt, range.from) && isBefore(starredAt, range.to, true))
    return frontier<Star>(
      async ({ cursor, ...context }) => {
        const starCursor = parseCursor(cursor)
        const window = chooseWindow(starCursor?.position ?? 0)
        const { body, headers } = await client.get(
          target,
          { sort: 'created', direction: 'desc', per_page: window.perPage, page: window.page },
          context,
        )
        if (!Array.isArray(body))
          throw new SyncError('SOURCE_INVALID', 'GitHub returned a response without a list of stars.')
        const items = body.map(parseStar)
        if (starCursor !== null && !overlapsCursor(items, window, starCursor))
          return { items: select(items), nextCursor: JSON.stringify(moveCursorBack(window, starCursor)) }
        const next = advanceCursor(items, window)
        // A page without a next link may be truncated. The list ends only if nothing follows the last known star.
        const isEnd =
          isBefore(next?.starredAt, range.from) ||
          (parseNextLink(headers) === null && (next === null || next.id === starCursor?.id))
        return { items: select(items), nextCursor: isEnd ? null : JSON.stringify(next) }
      },
      {
        id: ({ id }) => id,
        order: ({ starredAt }) => starredAt,
        toChange: ({ id, starredAt, record }) => ({ type: 'upsert', key: id, record, upstreamUpdatedAt: starredAt }),
      },
    )
  }
  const list = readStars(since === undefined ? {} : { from: since })
  return {
    delta: list,
    backfill: Object.assign(withSinceScope(list, since), {
      range: (range: TimeRange) => readStars(limitRange(range, since)),
    }),
  }
}

/** `open` is the result without a bound. */
function isBefore(starredAt: string | undefined, bound: string | undefined, open = false): boolean {
  if (starredAt === undefined || bound === undefined) return open
  return requireInstant(starredAt, '`starred_at`') < requireInstant(bound, 'The bound')
}

interface Star {
  readonly id: string
  readonly starredAt: string
  readonly record: JsonObject
}

function parseStar(value: JsonValue): Star {
  if (!isObject(value) || typeof value.starred_at !== 'string' || !isObject(value.repo))
    throw new SyncError('SOURCE_INVALID', 'GitHub returned a star without `starred_at` or `repo`.')
  const { id } = value.repo
  if (typeof id !== 'number' && typeof id !== 'bigint')
    throw new SyncError('SOURCE_INVALID', 'A starred GitHub repository has no id.')
  return { id: String(id), starredAt: value.starred_at, record: { ...value.repo, starred_at: value.starred_at } }
}

function parseCursor(cursor: string | null): StarCursor | null {
  if (cursor === null) return null
  try {
    const { position, id, starredAt } = JSON.parse(cursor) as Partial<StarCursor>
    const isValid =
      typeof position === 'number' &&
      Number.isSafeInteger(position) &&
      typeof id === 'string' &&
      typeof starredAt === 'string'
    if (isValid) return { position, id, starredAt }
  } catch {
    // Rejected below.
  }
  throw new SyncError('CURSOR_REJECTED', 'The stored cursor is not a valid cursor of a list of stars.')
}
