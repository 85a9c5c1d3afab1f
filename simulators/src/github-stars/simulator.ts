import { createHash } from 'node:crypto'
import { compareText, randomHex } from '../kit/ids.ts'
import { jsonResponse } from '../kit/json-response.ts'
import { RateWindow, type RateLimit } from '../kit/rate-window.ts'
import type { Fields, SimulatorPorts } from '../kit/simulator.ts'
import type { RecordVersion } from '../kit/versioned-records.ts'
import { VendorSimulator, type ApiCall, type VendorOptions } from '../kit/vendor-simulator.ts'
import { formatPageLinks } from '../kit/page-links.ts'
import { buildAccount, buildRepository } from './repository.ts'
import { required } from '../kit/required.ts'

/** Options of `GithubStarsSimulator`. */
export interface GithubStarsOptions extends VendorOptions {
  /** The user whose stars are listed, and who owns the token. */
  readonly user?: { readonly login: string; readonly id: number }
  /** 5,000 requests an hour with a token. */
  readonly requestsPerHour?: number
  /** The secondary limit: points per minute for one endpoint. */
  readonly pointsPerMinute?: number
  /** The token lacks the permission to read stars. */
  readonly forbidden?: boolean
}

const STAR = 'star'
const PER_PAGE = 30
const PER_PAGE_MAX = 100
const HOUR_MS = 3_600_000
const ANONYMOUS_PER_HOUR = 60
const DOCS = 'https://docs.github.com/rest'

/**
 * The starred repositories of one user, by numbered pages: a star or unstar during a listing moves the page boundary,
 * so that one repository is seen twice and another not at all.
 */
export class GithubStarsSimulator extends VendorSimulator {
  readonly user: { readonly login: string; readonly id: number }
  readonly #forbidden: boolean
  readonly #limits: Readonly<Record<'user' | 'anonymous', RateLimit>>
  readonly #windows: Readonly<Record<'user' | 'anonymous', RateWindow>>
  readonly #burst: RateWindow
  #ids = 1_000
  #starOrder = 0

  constructor(ports: SimulatorPorts, options: GithubStarsOptions = {}) {
    super(ports, options)
    this.user = options.user ?? { login: 'octocat', id: 583_231 }
    this.#forbidden = options.forbidden === true
    this.#limits = {
      user: { requests: options.requestsPerHour ?? 5_000, perMs: HOUR_MS },
      anonymous: { requests: ANONYMOUS_PER_HOUR, perMs: HOUR_MS },
    }
    this.#windows = {
      user: new RateWindow(ports.clock, this.#limits.user),
      anonymous: new RateWindow(ports.clock, this.#limits.anonymous),
    }
    this.#burst = new RateWindow(ports.clock, { requests: options.pointsPerMinute ?? 900, perMs: 60_000 })
  }

  /**
   * `star`: a repository (`owner`, `name`, `description`, …) that the user stars now. An update changes the repository,
   * not the star.
   */
  override create(type: string, fields: Fields = {}): string {
    if (type !== STAR) throw new Error(`Only ${STAR} is simulated, not ${type}.`)
    return super.create(type, {
      owner: 'acme',
      name: `repository-${this.#starOrder + 1}`,
      ...fields,
      place: ++this.#starOrder,
    })
  }

  /** Stars an unstarred repository again: it returns with a new `starred_at`. */
  starAgain(id: string): void {
    this.records.insert(STAR, id, {
      ...required(this.records.find(STAR, id), 'the match in records').fields,
      place: ++this.#starOrder,
    })
  }

  protected newId(): string {
    this.#ids += 1 + Math.floor(this.random.next() * 1_000)
    return String(this.#ids)
  }

  protected render(version: RecordVersion): Fields {
    const { place: _place, ...fields } = version.fields
    const stamps = {
      createdAt: formatTimestamp(
        required(this.records.history(STAR, version.id)[0], 'the result of history[0]').createdAtMs,
      ),
      updatedAt: formatTimestamp(version.modifiedAtMs),
    }
    return {
      starred_at: formatTimestamp(version.createdAtMs),
      repo: buildRepository(Number(version.id), stamps, fields),
    }
  }

  protected respond(call: ApiCall): Response {
    const { request, url } = call
    const match = /^\/(?:user|users\/(?<login>[^/]+)|user\/(?<id>\d+))(?<starred>\/starred)?$/.exec(url.pathname)
    const { login, id, starred } = match?.groups ?? {}
    const own = login === undefined && id === undefined
    if (match === null || request.method !== 'GET' || (starred === undefined && !own))
      return this.#refuse(404, 'Not Found', 'anonymous')
    const anonymous = !request.headers.has('authorization')
    if (!anonymous && !this.isAuthorized(request)) return this.unauthorized()
    if (anonymous && own) return this.#refuse(401, 'Requires authentication', 'anonymous')
    const caller = anonymous ? 'anonymous' : 'user'
    if (this.#windows[caller].remaining < 1) return this.#exceeded(caller)
    if (!this.#burst.take()) return this.#secondary(undefined)
    if (this.#forbidden && starred !== undefined)
      return this.#refuse(403, 'Resource not accessible by personal access token', caller, {
        'x-accepted-github-permissions': 'starring=read',
      })
    if (
      (login !== undefined && login.toLowerCase() !== this.user.login.toLowerCase()) ||
      (id !== undefined && Number(id) !== this.user.id)
    ) {
      this.#windows[caller].take()
      return this.#refuse(404, 'Not Found', caller)
    }
    if (starred === undefined) return this.#answer(call, caller, buildAccount(this.user.login, this.user.id), {})
    return this.#list(call, caller, own)
  }

  protected rateLimited(retryAfter: string | undefined, secondary: boolean): Response {
    return secondary ? this.#secondary(retryAfter) : this.#exceeded('user', retryAfter)
  }

  protected unauthorized(): Response {
    return this.#refuse(401, 'Bad credentials', 'anonymous')
  }

  protected serverError(status: number): Response {
    return this.#refuse(status, 'Server Error', 'user')
  }

  /** A size above the maximum is clamped, and a non-numeric one means the default: nothing is refused. */
  #list(call: ApiCall, caller: 'user' | 'anonymous', own: boolean): Response {
    const { url, request } = call
    const query = url.searchParams
    const perPage = Math.min(parseNatural(query, 'per_page') ?? PER_PAGE, PER_PAGE_MAX)
    const page = parseNatural(query, 'page') ?? 1
    const sign = query.get('direction') === 'asc' ? 1 : -1
    const timed = /application\/vnd\.github\.(?:v3\.)?star\+json/.test(request.headers.get('accept') ?? '')

    const rows = this.records
      .indexed(STAR)
      .filter((version) => !version.deleted && (own || version.fields['private'] !== true))
      .map((version) => ({
        place: version.fields['place'] as number,
        shown: this.render(version) as { starred_at: string; repo: Fields },
      }))
    const keyOf = ({ shown }: (typeof rows)[number]) =>
      query.get('sort') === 'updated' ? String(shown.repo['pushed_at']) : shown.starred_at
    rows.sort((a, b) => sign * (compareText(keyOf(a), keyOf(b)) || a.place - b.place))

    // Numbered pages cannot defer records to the next page: records omitted by a short page are missing from this
    // listing.
    const slice = rows.slice(
      (page - 1) * perPage,
      (page - 1) * perPage + (call.shortPage ? Math.ceil(perPage / 2) : perPage),
    )
    // Links to pages of a named user contain the user's number.
    const target = own ? url : new URL(`/user/${this.user.id}/starred${url.search}`, url)
    const link = formatPageLinks(target, page, Math.ceil(rows.length / perPage), call.endFlagOverride)
    return this.#answer(
      call,
      caller,
      slice.map(({ shown }) => (timed ? shown : shown.repo)),
      {
        ...(link !== undefined && { link }),
        'x-github-media-type': timed ? 'github.v3; param=star; format=json' : 'github.v3; format=json',
      },
    )
  }

  /** An unchanged page is answered with 304, which does not count towards the hourly budget of a token. */
  #answer(
    { request }: ApiCall,
    caller: 'user' | 'anonymous',
    body: unknown,
    headers: Readonly<Record<string, string>>,
  ): Response {
    const etag = `W/"${createHash('sha256')
      .update(JSON.stringify([body, headers]))
      .digest('hex')}"`
    const known = (request.headers.get('if-none-match') ?? '')
      .split(',')
      .some((candidate) => candidate.trim().replace(/^W\//, '') === etag.slice(2))
    if (!known || caller === 'anonymous') this.#windows[caller].take()
    const all = {
      etag,
      vary: 'Accept, Authorization, Cookie',
      'cache-control': 'private, max-age=60, s-maxage=60',
      ...headers,
      ...this.#headers(caller),
    }
    return known ? new Response(null, { status: 304, headers: all }) : jsonResponse(body, 200, all)
  }

  #exceeded(caller: 'user' | 'anonymous', retryAfter?: string): Response {
    const message =
      caller === 'user'
        ? `API rate limit exceeded for user ID ${this.user.id}.`
        : "API rate limit exceeded for 127.0.0.1. (But here's the good news: Authenticated requests get a higher rate limit. Check out the documentation for more details.)"
    return this.#refuse(
      403,
      message,
      caller,
      { 'x-ratelimit-remaining': '0', ...(retryAfter !== undefined && { 'retry-after': retryAfter }) },
      `${DOCS}/overview/rate-limits-for-the-rest-api`,
    )
  }

  #secondary(retryAfter: string | undefined): Response {
    const wait = retryAfter ?? String(Math.max(1, Math.ceil((this.#burst.resetAtMs - this.clock.now()) / 1_000)))
    return this.#refuse(
      403,
      'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.',
      'user',
      { 'retry-after': wait },
      `${DOCS}/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits`,
    )
  }

  #refuse(
    status: number,
    message: string,
    caller: 'user' | 'anonymous',
    headers: Readonly<Record<string, string>> = {},
    documentation = DOCS,
  ): Response {
    return jsonResponse({ message, documentation_url: documentation, status: String(status) }, status, {
      ...this.#headers(caller),
      ...headers,
    })
  }

  #headers(caller: 'user' | 'anonymous'): Record<string, string> {
    const window = this.#windows[caller]
    return {
      'x-github-request-id': randomHex(this.random, 16).toUpperCase(),
      'x-ratelimit-limit': String(this.#limits[caller].requests),
      'x-ratelimit-remaining': String(window.remaining),
      'x-ratelimit-used': String(window.used),
      'x-ratelimit-reset': String(Math.ceil(window.resetAtMs / 1_000)),
      'x-ratelimit-resource': 'core',
    }
  }
}

function parseNatural(query: URLSearchParams, name: string): number | undefined {
  const asked = query.get(name) ?? ''
  return /^[1-9]\d*$/.test(asked) ? Number(asked) : undefined
}

/** Whole seconds, as GitHub writes them. */
function formatTimestamp(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}
