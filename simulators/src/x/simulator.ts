import { jsonResponse } from '../kit/json-response.ts'
import { RateWindow, type RateLimit } from '../kit/rate-window.ts'
import type { Fields, SimulatorPorts } from '../kit/simulator.ts'
import type { RecordVersion } from '../kit/versioned-records.ts'
import { VendorSimulator, type ApiCall, type VendorOptions } from '../kit/vendor-simulator.ts'
import { decodeToken, encodeToken, type PageToken } from './page-token.ts'
import { XError } from './x-error.ts'
import { required } from '../kit/required.ts'

/** Options of `XSimulator`. */
export interface XOptions extends VendorOptions {
  /** The user who owns the token, and whose bookmarks alone it may read. */
  readonly user?: { readonly id: string; readonly name: string; readonly username: string }
  /** An app-only token, which bookmarks refuse. */
  readonly appToken?: string
  /** How many of the most recent bookmarks are reachable at all. */
  readonly reachableMax?: number
  /** 180 requests in 15 minutes for bookmarks. */
  readonly rateLimit?: RateLimit
  /**
   * A page token older than this is refused. The vendor does not document that tokens expire; by default they do not.
   */
  readonly pageTokenTtlMs?: number
  /**
   * A page requested with more than this many results has no token, as if it were the last. Seen at 100 where 90
   * reaches the end: https://devcommunity.x.com/t/257339
   */
  readonly endsEarlyAbove?: number
}

interface PostsResponse {
  readonly data?: Fields[]
  readonly includes?: Fields
  readonly errors?: Fields[]
  readonly meta: Fields
}

const BOOKMARK = 'bookmark'
const MAX_RESULTS = 100
const REACHABLE_MAX = 800
const BOOKMARKS_LIMIT: RateLimit = { requests: 180, perMs: 15 * 60_000 }
const ME_LIMIT: RateLimit = { requests: 75, perMs: 15 * 60_000 }
const POST_FIELDS_ALWAYS = ['id', 'text', 'edit_history_tweet_ids']
const POST_FIELDS = [
  'article',
  'attachments',
  'author_id',
  'card_uri',
  'community_id',
  'context_annotations',
  'conversation_id',
  'created_at',
  'display_text_range',
  'edit_controls',
  'edit_history_tweet_ids',
  'entities',
  'geo',
  'id',
  'in_reply_to_user_id',
  'lang',
  'media_metadata',
  'note_post',
  'note_tweet',
  'possibly_sensitive',
  'public_metrics',
  'referenced_tweets',
  'reply_settings',
  'scopes',
  'source',
  'text',
  'withheld',
]
const USER_FIELDS_ALWAYS = ['id', 'name', 'username']
const USER_FIELDS = [
  'created_at',
  'description',
  'entities',
  'id',
  'location',
  'most_recent_tweet_id',
  'name',
  'pinned_tweet_id',
  'profile_image_url',
  'protected',
  'public_metrics',
  'url',
  'username',
  'verified',
  'verified_type',
  'withheld',
]
const EXPANSIONS = [
  'attachments.media_keys',
  'attachments.poll_ids',
  'author_id',
  'edit_history_tweet_ids',
  'entities.mentions.username',
  'geo.place_id',
  'in_reply_to_user_id',
  'referenced_tweets.id',
  'referenced_tweets.id.author_id',
]
/** Newer clients call a tweet a post. */
const PARAMETERS = [
  'expansions',
  'max_results',
  'media.fields',
  'pagination_token',
  'place.fields',
  'poll.fields',
  'post.fields',
  'tweet.fields',
  'user.fields',
]

/**
 * The bookmarks of one user, newest first by the time of bookmarking, which the API does not show: `created_at` is the
 * post's, and ids reveal the age of the post. A post that its author deletes or protects keeps its slot and is left
 * out.
 */
export class XSimulator extends VendorSimulator {
  readonly user: { readonly id: string; readonly name: string; readonly username: string }
  readonly #appToken: string | undefined
  readonly #reachableMax: number
  readonly #pageTokenTtlMs: number
  readonly #endsEarlyAbove: number
  readonly #limits: Readonly<Record<'bookmarks' | 'me', RateLimit>>
  readonly #windows: Readonly<Record<'bookmarks' | 'me', RateWindow>>
  #bookmarkCount = 0
  #ids = 0

  constructor(ports: SimulatorPorts, options: XOptions = {}) {
    super(ports, options)
    this.user = options.user ?? { id: '2244994945', name: 'Reader', username: 'reader' }
    this.#appToken = options.appToken
    this.#reachableMax = options.reachableMax ?? REACHABLE_MAX
    this.#pageTokenTtlMs = options.pageTokenTtlMs ?? Infinity
    this.#endsEarlyAbove = options.endsEarlyAbove ?? Infinity
    this.#limits = { bookmarks: options.rateLimit ?? BOOKMARKS_LIMIT, me: ME_LIMIT }
    this.#windows = {
      bookmarks: new RateWindow(ports.clock, this.#limits.bookmarks),
      me: new RateWindow(ports.clock, this.#limits.me),
    }
  }

  /** `bookmark`: a post (`text`, `author_id`, `created_at`, …) that the user bookmarks now. */
  override create(type: string, fields: Fields = {}): string {
    if (type !== BOOKMARK) throw new Error(`Only ${BOOKMARK} is simulated, not ${type}.`)
    return super.create(type, { ...fields, place: ++this.#bookmarkCount })
  }

  /** Bookmarks a removed post again, at the top of the list. */
  bookmarkAgain(id: string): void {
    const { fields } = required(this.records.find(BOOKMARK, id), 'the match in records')
    this.records.insert(BOOKMARK, id, { ...fields, place: ++this.#bookmarkCount })
  }

  /** The author deletes or protects the post: the list leaves it out, but its slot still counts. */
  hidePost(id: string): void {
    this.update(BOOKMARK, id, { hidden: true })
  }

  showPost(id: string): void {
    this.update(BOOKMARK, id, { hidden: false })
  }

  override truth(type: string): Fields[] {
    return this.records
      .current(type)
      .filter((version) => !isHidden(version))
      .map((version) => this.render(version))
  }

  /** As in the real API, ids derive from the time of the post and randomness, not from the order of bookmarking. */
  protected newId(): string {
    const ageMs = Math.floor(this.random.next() * 365 * 86_400_000)
    const snowflake = (BigInt(this.clock.now() - ageMs - 1_288_834_974_657) << 22n) | BigInt(this.#ids++ % 4_096)
    return snowflake.toString()
  }

  protected render(version: RecordVersion): Fields {
    const { place: _place, hidden: _hidden, ...fields } = version.fields
    const postedAtMs = Number(BigInt(version.id) >> 22n) + 1_288_834_974_657
    return {
      id: version.id,
      text: '',
      edit_history_tweet_ids: [version.id],
      author_id: '783214',
      created_at: new Date(postedAtMs).toISOString(),
      ...fields,
    }
  }

  protected respond(call: ApiCall): Response {
    const match = /^\/2\/users\/([^/]+)(\/bookmarks)?$/.exec(call.url.pathname)
    if (match === null || call.request.method !== 'GET' || (match[1] !== 'me' && match[2] === undefined))
      return problemResponse(404, 'Not Found')
    const endpoint = match[2] === undefined ? 'me' : 'bookmarks'
    if (this.#appToken !== undefined && call.request.headers.get('authorization') === `Bearer ${this.#appToken}`)
      return unsupportedAuthenticationResponse()
    if (!this.isAuthorized(call.request)) return this.unauthorized()
    if (!this.#windows[endpoint].take()) return this.#tooMany(endpoint)
    const headers = this.#headers(endpoint)
    try {
      if (endpoint === 'me')
        return jsonResponse(
          {
            data: pickFields(this.user, [
              ...USER_FIELDS_ALWAYS,
              ...parseList(call.url.searchParams, 'user.fields', USER_FIELDS),
            ]),
          },
          200,
          headers,
        )
      if (match[1] !== this.user.id)
        throw new XError(
          'id',
          required(match[1], 'match[1]'),
          `The \`id\` query parameter value [${match[1]}] must be the same as the authenticating user [${this.user.id}]`,
        )
      return jsonResponse(this.#bookmarks(call), 200, headers)
    } catch (error) {
      if (error instanceof XError) return invalidParameterResponse(error, headers)
      throw error
    }
  }

  protected rateLimited(retryAfter: string | undefined): Response {
    return this.#tooMany('bookmarks', retryAfter)
  }

  protected unauthorized(): Response {
    return problemResponse(401, 'Unauthorized')
  }

  protected serverError(status: number): Response {
    return problemResponse(status, status === 500 ? 'Internal Server Error' : 'Service Unavailable')
  }

  #bookmarks({
    url: { searchParams: query },
    endFlagOverride: lie,
    shortPage,
    expiredToken,
    partial,
  }: ApiCall): PostsResponse {
    for (const name of query.keys())
      if (!PARAMETERS.includes(name))
        throw new XError(
          name,
          required(query.get(name), 'an entry of query'),
          `The query parameter [${name}] is not one of [id,${PARAMETERS.join(',')}]`,
        )
    const asked = query.get('max_results') ?? String(MAX_RESULTS)
    const maxResults = /^-?\d+$/.test(asked) ? Number(asked) : NaN
    if (!(maxResults >= 1 && maxResults <= MAX_RESULTS))
      throw new XError(
        'max_results',
        asked,
        `The \`max_results\` query parameter value [${asked}] is not between 1 and ${MAX_RESULTS}`,
      )
    const fields = [
      ...POST_FIELDS_ALWAYS,
      ...parseList(query, 'tweet.fields', POST_FIELDS),
      ...parseList(query, 'post.fields', POST_FIELDS),
    ]
    const expansions = parseList(query, 'expansions', EXPANSIONS)
    const token = this.#token(query.get('pagination_token'), expiredToken)
    const size = shortPage ? Math.ceil(maxResults / 2) : maxResults

    const reachable = this.records
      .indexed(BOOKMARK)
      .filter((version) => !version.deleted)
      .toSorted((a, b) => listIndexOf(b) - listIndexOf(a))
      .slice(0, this.#reachableMax)
    const newer =
      token === undefined
        ? []
        : reachable.filter((version) =>
            token.direction === 'older'
              ? listIndexOf(version) >= token.listIndex
              : listIndexOf(version) > token.listIndex,
          )
    const page = token?.direction === 'newer' ? newer.slice(-size) : reachable.slice(newer.length, newer.length + size)
    const last = page.at(-1)
    const more =
      lie === undefined
        ? last !== undefined && last !== reachable.at(-1) && maxResults <= this.#endsEarlyAbove
        : lie === 'more'
    // An empty page follows the oldest: nothing is older than boundary 0, and everything is newer.
    const tokenAt = (direction: PageToken['direction'], version: RecordVersion | undefined) =>
      encodeToken({
        direction,
        listIndex: version === undefined ? 0 : listIndexOf(version),
        issuedAtMs: this.clock.now(),
      })

    const shown = page.filter((version) => !isHidden(version))
    const withheld = partial ? shown.splice(0, 1) : []
    const posts = shown.map((version) => this.render(version))
    const authors = [...new Set(posts.map((post) => String(post['author_id'])))]
    return {
      ...(posts.length > 0 && {
        data: posts.map((post) =>
          pickFields(post, expansions.includes('author_id') ? [...fields, 'author_id'] : fields),
        ),
      }),
      ...(posts.length > 0 &&
        expansions.includes('author_id') && {
          includes: { users: authors.map((id) => ({ id, name: `User ${id}`, username: `user${id}` })) },
        }),
      ...(withheld.length > 0 && { errors: withheld.map(({ id }) => notAuthorizedError(id)) }),
      meta: {
        result_count: posts.length,
        ...(more && { next_token: tokenAt('older', last) }),
        ...(token !== undefined && page[0] !== reachable[0] && { previous_token: tokenAt('newer', page[0]) }),
      },
    }
  }

  #token(text: string | null, expired: boolean): PageToken | undefined {
    if (text === null) return undefined
    const token = decodeToken(text)
    if (token === undefined || expired || this.clock.now() - token.issuedAtMs > this.#pageTokenTtlMs)
      throw new XError(
        'pagination_token',
        text,
        `The \`pagination_token\` query parameter value [${text}] is not valid`,
      )
    return token
  }

  /** The documented retry time is the reset header; only a planned fault sends a Retry-After. */
  #tooMany(endpoint: 'bookmarks' | 'me', retryAfter?: string): Response {
    return problemResponse(429, 'Too Many Requests', {
      ...this.#headers(endpoint),
      'x-rate-limit-remaining': '0',
      ...(retryAfter !== undefined && { 'retry-after': retryAfter }),
    })
  }

  #headers(endpoint: 'bookmarks' | 'me'): Record<string, string> {
    const window = this.#windows[endpoint]
    return {
      'x-rate-limit-limit': String(this.#limits[endpoint].requests),
      'x-rate-limit-remaining': String(window.remaining),
      'x-rate-limit-reset': String(Math.ceil(window.resetAtMs / 1_000)),
    }
  }
}

function listIndexOf(version: RecordVersion): number {
  return version.fields['place'] as number
}

function isHidden(version: RecordVersion): boolean {
  return version.fields['hidden'] === true
}

function parseList(query: URLSearchParams, name: string, known: readonly string[]): string[] {
  const asked = query.get(name)?.split(',') ?? []
  const unknown = asked.find((value) => !known.includes(value))
  if (unknown !== undefined)
    throw new XError(
      name,
      asked.join(','),
      `The \`${name}\` query parameter value [${unknown}] is not one of [${known.join(',')}]`,
    )
  return asked
}

function pickFields(from: Fields, names: readonly string[]): Fields {
  return Object.fromEntries(Object.entries(from).filter(([name]) => names.includes(name)))
}

function problemResponse(status: number, title: string, headers: Readonly<Record<string, string>> = {}): Response {
  return jsonResponse({ title, detail: title, type: 'about:blank', status }, status, {
    'content-type': 'application/problem+json',
    ...headers,
  })
}

function unsupportedAuthenticationResponse(): Response {
  return jsonResponse(
    {
      title: 'Unsupported Authentication',
      detail:
        'Authenticating with OAuth 2.0 Application-Only is forbidden for this endpoint.  Supported authentication types are [OAuth 2.0 User Context].',
      type: 'https://api.twitter.com/2/problems/unsupported-authentication',
      status: 403,
    },
    403,
    { 'content-type': 'application/problem+json' },
  )
}

function invalidParameterResponse(
  { parameter, value, message }: XError,
  headers: Readonly<Record<string, string>>,
): Response {
  const errors = [{ parameters: { [parameter]: [value] }, message }]
  return jsonResponse(
    {
      errors,
      title: 'Invalid Request',
      detail: 'One or more parameters to your request was invalid.',
      type: 'https://api.twitter.com/2/problems/invalid-request',
    },
    400,
    { ...headers, 'content-type': 'application/problem+json' },
  )
}

function notAuthorizedError(id: string): Fields {
  return {
    resource_id: id,
    parameter: 'id',
    resource_type: 'tweet',
    section: 'data',
    title: 'Authorization Error',
    value: id,
    detail: `Sorry, you are not authorized to see the Tweet with id: [${id}].`,
    type: 'https://api.twitter.com/2/problems/not-authorized-for-resource',
  }
}
