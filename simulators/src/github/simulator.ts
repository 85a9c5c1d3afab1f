import { GraphqlSyntaxError, parseDocument } from '../kit/graphql/document.ts'
import { Execution, type GraphqlError } from '../kit/graphql/execute.ts'
import { paginateConnection, type Connection } from '../kit/graphql/relay.ts'
import { FieldError, type Args, type Parent } from '../kit/graphql/schema.ts'
import { randomHex, randomText } from '../kit/ids.ts'
import { jsonResponse } from '../kit/json-response.ts'
import { RateWindow } from '../kit/rate-window.ts'
import type { Fields, SimulatorPorts } from '../kit/simulator.ts'
import type { RecordView } from '../kit/sorted-view.ts'
import type { RecordVersion } from '../kit/versioned-records.ts'
import { VendorSimulator, type ApiCall, type VendorOptions } from '../kit/vendor-simulator.ts'
import { computeQueryCost, type QueryCost } from './query-cost.ts'
import { answerRest, databaseIdOf, formatTimestamp, renderRest, REST_ID_PREFIXES } from './rest.ts'
import { GITHUB_SCHEMA, type GithubContext } from './schema.ts'
import { required } from '../kit/required.ts'

/** Options of `GithubSimulator`. */
export interface GithubOptions extends VendorOptions {
  /** The user who owns the token, and the default `owner` of new repositories. */
  readonly viewer?: string
  readonly organizations?: readonly string[]
  /** The budget of points per hour. */
  readonly pointsPerHour?: number
  /** The budget of REST requests per hour. */
  readonly requestsPerHour?: number
  /** The secondary limit of the REST API: points per minute. */
  readonly pointsPerMinute?: number
}

const HOUR_MS = 3_600_000
const DEFAULT_POINTS = 5_000
const CURSOR_PREFIX = 'cursor:v2:'

/** A sort key: the field sorted by, and the id. Cursors contain it, so they survive the record they were made from. */
type KeysetCursor = readonly [string, number]

const CURSOR_BY_ORDER: Readonly<Record<string, (version: RecordVersion) => KeysetCursor>> = {
  CREATED_AT: (version) => [formatTimestamp(version.createdAtMs), databaseIdOf(version)],
  UPDATED_AT: (version) => [formatTimestamp(version.modifiedAtMs), databaseIdOf(version)],
  NAME: (version) => [String(version.fields['name']), databaseIdOf(version)],
}
/** Repositories by owner, issues by repository. */
const VIEWS: Readonly<Record<string, RecordView>> = Object.fromEntries(
  Object.entries(CURSOR_BY_ORDER).map(([field, placeOf]) => [
    field,
    {
      reads: 'index',
      includes: ({ deleted }) => !deleted,
      group: ({ type, fields }) => String(fields[type === 'issue' ? 'repository' : 'owner']),
      order: (a, b) => compareCursors(placeOf(a), placeOf(b)),
    },
  ]),
)

/**
 * The GraphQL endpoint: repositories and their issues with opaque cursors, a budget of points, partial responses. The
 * REST API of a repository: numbered pages, `since` on some lists, and two rate limits.
 */
export class GithubSimulator extends VendorSimulator {
  readonly #viewer: string
  readonly #organizations: readonly string[]
  readonly #points: number
  readonly #budget: RateWindow
  readonly #requestLimit: number
  readonly #requestWindow: RateWindow
  readonly #burst: RateWindow
  readonly #numbers = new Map<string, number>()
  #isRestRequest = false
  #ids = 0

  constructor(ports: SimulatorPorts, options: GithubOptions = {}) {
    super(ports, options)
    this.#viewer = options.viewer ?? 'octocat'
    this.#organizations = options.organizations ?? ['acme']
    this.#points = options.pointsPerHour ?? DEFAULT_POINTS
    this.#budget = new RateWindow(ports.clock, { requests: this.#points, perMs: HOUR_MS })
    this.#requestLimit = options.requestsPerHour ?? DEFAULT_POINTS
    this.#requestWindow = new RateWindow(ports.clock, { requests: this.#requestLimit, perMs: HOUR_MS })
    this.#burst = new RateWindow(ports.clock, { requests: options.pointsPerMinute ?? 900, perMs: 60_000 })
  }

  /**
   * `repository` with `name` and `owner`; `issue` with `repository` (its id) and `title`; the types of
   * `REST_ID_PREFIXES` with `repository`.
   */
  override create(type: string, fields: Fields = {}): string {
    if (type === 'repository')
      return super.create(type, { owner: this.#viewer, name: `repository-${this.#ids + 1}`, ...fields })
    const repository = String(fields['repository'])
    if (this.records.find('repository', repository) === undefined)
      throw new Error(`Records of type ${type} need the id of their repository; ${repository} does not exist.`)
    if (type !== 'issue' && type !== 'pull_request') return super.create(type, fields)
    const number = (this.#numbers.get(repository) ?? 0) + 1
    this.#numbers.set(repository, number)
    return super.create(type, { number, ...fields })
  }

  /** The two APIs refuse differently. */
  override handle(request: Request): Promise<Response> {
    this.#isRestRequest = new URL(request.url).pathname.includes('/repos/')
    return super.handle(request)
  }

  /** Deleting a repository deletes its issues. */
  override remove(type: string, id: string): void {
    super.remove(type, id)
    if (type !== 'repository') return
    for (const issue of this.records.current('issue'))
      if (issue.fields['repository'] === id) super.remove('issue', issue.id)
  }

  protected newId(type: string): string {
    this.#ids++
    return `${type === 'issue' ? 'I_kwDO' : (REST_ID_PREFIXES[type] ?? 'R_kgDO')}${randomText(this.random, 8)}${this.#ids.toString(36).padStart(4, '0')}`
  }

  /** The current records of a type as the REST API shows them. */
  restTruth(type: string): Fields[] {
    return this.records.current(type).map((version) => renderRest(version, this.#repositoryOf(version)))
  }

  #repositoryOf({ fields }: RecordVersion): RecordVersion {
    return required(this.records.find('repository', String(fields['repository'])), 'the repository of a record')
  }

  protected render(version: RecordVersion): Fields {
    if (Object.hasOwn(REST_ID_PREFIXES, version.type)) return renderRest(version, this.#repositoryOf(version))
    const common = {
      id: version.id,
      databaseId: databaseIdOf(version),
      createdAt: formatTimestamp(version.createdAtMs),
      updatedAt: formatTimestamp(version.modifiedAtMs),
    }
    const { fields } = version
    if (version.type === 'repository') {
      const name = String(fields['name'])
      const owner = String(fields['owner'])
      return {
        __typename: 'Repository',
        ...common,
        name,
        ownerLogin: owner,
        nameWithOwner: `${owner}/${name}`,
        description: fields['description'] ?? null,
        url: `https://github.com/${owner}/${name}`,
        isArchived: fields['isArchived'] === true,
      }
    }
    const repository = this.records.find('repository', String(fields['repository']))
    const home = repository === undefined ? '' : String(this.render(repository)['url'])
    return {
      __typename: 'Issue',
      ...common,
      number: fields['number'],
      title: fields['title'] ?? '',
      body: fields['body'] ?? '',
      state: fields['state'] ?? 'OPEN',
      closedAt: fields['closedAt'] ?? null,
      url: `${home}/issues/${String(fields['number'])}`,
      repositoryId: fields['repository'],
    }
  }

  protected respond(call: ApiCall): Response {
    const rest = /^(?:\/api\/v3)?\/repos\/([^/]+)\/([^/]+)\/(.+)$/.exec(call.url.pathname)
    if (rest !== null) return this.#respondRest(call, rest[1] ?? '', rest[2] ?? '', rest[3] ?? '')
    if (!/^\/(?:api\/)?graphql\/?$/.test(call.url.pathname))
      return jsonResponse(
        { message: 'Not Found', documentation_url: 'https://docs.github.com/rest', status: '404' },
        404,
      )
    if (!this.isAuthorized(call.request)) return this.unauthorized()
    if (call.request.method !== 'POST') return jsonResponse({ message: 'Not Found', status: '404' }, 404)
    const { query, variables, operationName } = JSON.parse(call.body) as {
      query?: string
      variables?: Record<string, unknown> | null
      operationName?: string
    }
    let document
    try {
      document = parseDocument(query ?? '')
    } catch (error) {
      if (error instanceof GraphqlSyntaxError)
        return this.#answer({ errors: [{ message: error.message, locations: [error.location] }] })
      throw error
    }
    const operation = document.operations.find(
      (candidate) => operationName === undefined || candidate.name === operationName,
    )
    if (operation === undefined) return this.#answer({ errors: [{ message: 'No operation was provided.' }] })
    const execution = new Execution(GITHUB_SCHEMA, document, operation, variables ?? {})
    const invalid = execution.validate()
    if (invalid.length > 0) return this.#answer({ errors: invalid })
    const cost = computeQueryCost(execution)
    if (cost.errors.length > 0) return this.#answer({ data: null, errors: cost.errors })
    if (!this.#budget.take(cost.cost)) return this.rateLimited(undefined, false)
    const { data, errors } = execution.run(this.#context(call, cost))
    return this.#answer(errors.length === 0 ? { data } : { data, errors })
  }

  #respondRest(call: ApiCall, owner: string, name: string, rest: string): Response {
    if (!this.isAuthorized(call.request)) return this.unauthorized()
    const refuse = (status: number, message: string, headers: Readonly<Record<string, string>> = {}): Response =>
      jsonResponse({ message, documentation_url: 'https://docs.github.com/rest', status: String(status) }, status, {
        ...this.#restHeaders(),
        ...headers,
      })
    if (!this.#requestWindow.take())
      return refuse(403, 'API rate limit exceeded for user ID 1.', { 'x-ratelimit-remaining': '0' })
    if (!this.#burst.take())
      return refuse(403, 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.', {
        'retry-after': String(Math.max(1, Math.ceil((this.#burst.resetAtMs - this.clock.now()) / 1_000))),
      })
    const repository = this.records
      .current('repository')
      .find(({ fields }) => fields['owner'] === owner && fields['name'] === name)
    if (repository === undefined || call.request.method !== 'GET') return refuse(404, 'Not Found')
    const lies = { endFlag: call.endFlagOverride, isShort: call.shortPage }
    const { status, body, headers } = answerRest(this.records, repository, rest, call.url, lies)
    return jsonResponse(body, status, { ...this.#restHeaders(), ...headers })
  }

  #restHeaders(): Record<string, string> {
    return {
      'x-ratelimit-limit': String(this.#requestLimit),
      'x-ratelimit-remaining': String(this.#requestWindow.remaining),
      'x-ratelimit-used': String(this.#requestWindow.used),
      'x-ratelimit-reset': String(Math.ceil(this.#requestWindow.resetAtMs / 1_000)),
      'x-ratelimit-resource': 'core',
    }
  }

  /** The primary limit returns 200 with an error in the body; the secondary one is a refusal with Retry-After. */
  protected rateLimited(retryAfter: string | undefined, secondary: boolean): Response {
    if (secondary) {
      const body = {
        documentation_url:
          'https://docs.github.com/graphql/overview/rate-limits-and-node-limits-for-the-graphql-api#secondary-rate-limits',
        message: 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.',
      }
      return jsonResponse(body, 403, { ...this.#headers(), 'retry-after': retryAfter ?? '60' })
    }
    if (this.#isRestRequest)
      return jsonResponse({ message: 'API rate limit exceeded for user ID 1.', status: '403' }, 403, {
        ...this.#restHeaders(),
        'x-ratelimit-remaining': '0',
        ...(retryAfter === undefined ? {} : { 'retry-after': retryAfter }),
      })
    return jsonResponse(
      { errors: [{ type: 'RATE_LIMITED', message: 'API rate limit exceeded for user ID 1.' }] },
      200,
      {
        ...this.#headers(),
        'x-ratelimit-remaining': '0',
        ...(retryAfter === undefined ? {} : { 'retry-after': retryAfter }),
      },
    )
  }

  protected unauthorized(): Response {
    return jsonResponse(
      { message: 'Bad credentials', documentation_url: 'https://docs.github.com/graphql', status: '401' },
      401,
      this.#headers(),
    )
  }

  protected serverError(status: number): Response {
    return jsonResponse(
      {
        message:
          'Something went wrong while executing your query. This may be the result of a timeout, or it could be a GitHub bug.',
      },
      status,
      this.#headers(),
    )
  }

  #context(call: ApiCall, cost: QueryCost): GithubContext {
    const owner = (login: string, typename?: 'User' | 'Organization'): Parent | undefined => {
      const actual = login === this.#viewer ? 'User' : this.#organizations.includes(login) ? 'Organization' : undefined
      if (actual === undefined || (typename !== undefined && typename !== actual)) return undefined
      return { __typename: actual, id: `${actual === 'User' ? 'U_kgDO' : 'O_kgDO'}${login}`, login, name: null }
    }
    // A partial response fails for the first parent whose issues are requested.
    let failing = call.partial
    return {
      viewer: () => required(owner(this.#viewer), 'the result of owner'),
      owner,
      repository: (login, name) => {
        const version = this.records
          .sorted('repository', required(VIEWS['NAME'], 'VIEWS[NAME]'), login)
          .find(({ fields }) => fields['name'] === name)
        return version === undefined ? undefined : this.render(version)
      },
      node: (id) => {
        const version = this.records.find(id.startsWith('I_') ? 'issue' : 'repository', id)
        return version === undefined || version.deleted ? undefined : this.render(version)
      },
      repositories: (login, args) => {
        const isArchived = args['isArchived']
        return this.#connection(
          'repository',
          login,
          args,
          call,
          isArchived === undefined ? undefined : ({ fields }) => (fields['isArchived'] === true) === isArchived,
        )
      },
      issues: (repositoryId, args) => {
        if (failing) {
          failing = false
          throw new FieldError(
            `Something went wrong while executing your query. Please include \`${randomHex(this.random, 16).toUpperCase()}\` when reporting this issue.`,
          )
        }
        const states = args['states'] as readonly string[] | undefined
        const since = (args['filterBy'] as { since?: string } | undefined)?.since
        const accepts = ({ fields, modifiedAtMs }: RecordVersion): boolean =>
          (states === undefined || states.includes(String(fields['state'] ?? 'OPEN'))) &&
          (since === undefined || Date.parse(formatTimestamp(modifiedAtMs)) >= Date.parse(since))
        return this.#connection(
          'issue',
          repositoryId,
          args,
          call,
          states === undefined && since === undefined ? undefined : accepts,
        )
      },
      rateLimit: () => ({
        limit: this.#points,
        cost: cost.cost,
        remaining: this.#budget.remaining,
        used: this.#budget.used,
        nodeCount: cost.nodeCount,
        resetAt: formatTimestamp(this.#budget.resetAtMs),
      }),
    }
  }

  #connection(
    type: string,
    group: string,
    args: Args,
    call: ApiCall,
    accepts: ((version: RecordVersion) => boolean) | undefined,
  ): Connection<Parent> {
    const { field = 'CREATED_AT', direction = 'ASC' } = (args['orderBy'] ?? {}) as {
      field?: string
      direction?: string
    }
    const placeOf = CURSOR_BY_ORDER[field]
    if (placeOf === undefined) throw new FieldError(`Ordering by ${field} is not simulated.`)
    const sign = direction === 'DESC' ? -1 : 1
    const all = this.records.sorted(type, required(VIEWS[field], 'VIEWS[field]'), group)
    const accepted = accepts === undefined ? all : all.filter(accepts)
    const first = typeof args['first'] === 'number' ? Math.min(args['first'], this.pageSizeMax) : undefined
    const asked =
      first === undefined ? args : { ...args, first: call.shortPage ? Math.max(1, Math.floor(first / 2)) : first }
    for (const cursor of [args['after'], args['before']]) {
      if (typeof cursor === 'string' && (call.expiredToken || decodeCursor(cursor) === undefined))
        throw new FieldError(`\`${cursor}\` does not appear to be a valid cursor.`, 'INVALID_CURSOR_ARGUMENTS')
    }
    const connection = paginateConnection(sign === 1 ? accepted : accepted.toReversed(), asked, {
      cursorOf: (version) => Buffer.from(CURSOR_PREFIX + JSON.stringify(placeOf(version))).toString('base64'),
      compare: (version, cursor) =>
        sign * compareCursors(placeOf(version), required(decodeCursor(cursor), 'the result of decodeCursor')),
      render: (version): Parent => this.render(version),
    })
    return call.endFlagOverride === undefined
      ? connection
      : { ...connection, pageInfo: { ...connection.pageInfo, hasNextPage: call.endFlagOverride === 'more' } }
  }

  #answer(body: { data?: unknown; errors?: readonly GraphqlError[] }): Response {
    return jsonResponse(body, 200, this.#headers())
  }

  #headers(): Record<string, string> {
    return {
      'x-github-request-id': randomHex(this.random, 16).toUpperCase(),
      'x-ratelimit-limit': String(this.#points),
      'x-ratelimit-remaining': String(this.#budget.remaining),
      'x-ratelimit-used': String(this.#budget.used),
      'x-ratelimit-reset': String(Math.ceil(this.#budget.resetAtMs / 1_000)),
      'x-ratelimit-resource': 'graphql',
    }
  }
}

function compareCursors(a: KeysetCursor, b: KeysetCursor): number {
  return a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] - b[1]
}

function decodeCursor(cursor: string): KeysetCursor | undefined {
  const text = Buffer.from(cursor, 'base64').toString()
  if (!text.startsWith(CURSOR_PREFIX)) return undefined
  try {
    return JSON.parse(text.slice(CURSOR_PREFIX.length)) as KeysetCursor
  } catch {
    return undefined
  }
}
