import { SyncError, type Execute, type JsonObject, type JsonValue } from '../../contract/index.ts'
import { frontier, type FrontierState } from '../../strategies/index.ts'
import { bearer, type Auth, type SecretSource } from '../kit/auth.ts'
import { classifyGithubRateLimit } from '../kit/github-rate-limit.ts'
import { createHttpClient } from '../kit/http-client.ts'
import { isObject } from '../kit/classify-response.ts'
import { parseNextLink } from '../kit/link-header.ts'
import { path } from '../kit/origin.ts'
import { advanceCursor, overlapsCursor, moveCursorBack, chooseWindow, type StarCursor } from './overlapping-pages.ts'

export interface GithubStarsOptions {
  readonly token?: SecretSource
  /** Instead of a token. */
  readonly auth?: Auth
  /** Of an Enterprise server: https://github.example.com/api/v3 */
  readonly baseUrl?: string
  /** Whose stars; of whoever the token belongs to, unless given. */
  readonly user?: string
}

export interface GithubStarsSource {
  readonly delta: Execute<FrontierState>
  /** All of it, to find what is no longer starred. */
  readonly backfill: Execute<FrontierState>
}

/** The repositories that a user has starred: `worker.track('stars', { database, source: githubStars({ token: 'GITHUB_TOKEN' }), schedule: '15m', backfillSchedule: '1d' })`. */
export function githubStars({ token, auth, baseUrl = 'https://api.github.com', user }: GithubStarsOptions): GithubStarsSource {
  if ((token === undefined) === (auth === undefined)) throw new SyncError('SYNC_INVALID', 'The stars of GitHub need either `token` or `auth`.')
  const client = createHttpClient({
    baseUrl, auth: auth ?? bearer(token!), classifyResponse: classifyGithubRateLimit,
    headers: { 'user-agent': 'tidemark', accept: 'application/vnd.github.star+json', 'x-github-api-version': '2022-11-28' },
  })
  const target = user === undefined ? '/user/starred' : path`/users/${user}/starred`
  const list = frontier<Star>(async ({ cursor, ...context }) => {
    const place = parseCursor(cursor)
    const window = chooseWindow(place?.position ?? 0)
    const { body, headers } = await client.get(target, { sort: 'created', direction: 'desc', per_page: window.perPage, page: window.page }, context)
    if (!Array.isArray(body)) throw new SyncError('SOURCE_INVALID', 'GitHub answered without a list of stars.')
    const items = body.map(parseStar)
    if (!overlapsCursor(items, window, place)) return { items, nextCursor: JSON.stringify(moveCursorBack(window, place!)) }
    const next = advanceCursor(items, window)
    // A page without a link to another may be short by mistake: the end is where nothing follows the last star known.
    const isEnd = parseNextLink(headers) === null && (next === null || next.id === place?.id)
    return { items, nextCursor: isEnd ? null : JSON.stringify(next) }
  }, {
    id: ({ id }) => id,
    order: ({ starredAt }) => starredAt,
    toChange: ({ id, starredAt, record }) => ({ type: 'upsert', key: id, record, upstreamUpdatedAt: starredAt }),
  })
  return { delta: list, backfill: list }
}

interface Star {
  readonly id: string
  readonly starredAt: string
  readonly record: JsonObject
}

function parseStar(value: JsonValue): Star {
  if (!isObject(value) || typeof value.starred_at !== 'string' || !isObject(value.repo)) throw new SyncError('SOURCE_INVALID', 'GitHub answered with stars that do not tell when they were given.')
  const { id } = value.repo
  if (typeof id !== 'number' && typeof id !== 'bigint') throw new SyncError('SOURCE_INVALID', 'A starred repository of GitHub has no id.')
  return { id: String(id), starredAt: value.starred_at, record: { ...value.repo, starred_at: value.starred_at } }
}

function parseCursor(cursor: string | null): StarCursor | null {
  if (cursor === null) return null
  try {
    const { position, id, starredAt } = JSON.parse(cursor) as Partial<StarCursor>
    if (Number.isSafeInteger(position) && typeof id === 'string' && typeof starredAt === 'string') return { position: position!, id, starredAt }
  } catch {
    // Said below.
  }
  throw new SyncError('CURSOR_REJECTED', 'The stored place is not one in a list of stars.')
}
