import { GraphqlSyntaxError, parseDocument } from '../kit/graphql/document.ts'
import { Execution } from '../kit/graphql/execute.ts'
import { paginateConnection, type Connection } from '../kit/graphql/relay.ts'
import { FieldError, parseTypeName, type Args, type Parent } from '../kit/graphql/schema.ts'
import { compareText, randomUuid } from '../kit/ids.ts'
import { jsonResponse } from '../kit/json-response.ts'
import type { Fields, SimulatorPorts } from '../kit/simulator.ts'
import type { RecordView } from '../kit/sorted-view.ts'
import type { RecordVersion } from '../kit/versioned-records.ts'
import { VendorSimulator, type ApiCall, type VendorOptions } from '../kit/vendor-simulator.ts'
import { LeakyBucket } from '../kit/leaky-bucket.ts'
import { ISSUE_DEFAULTS, LINEAR_ENTITIES } from './entities.ts'
import { LINEAR_SCHEMA, type LinearContext } from './schema.ts'

/** Options of `LinearSimulator`. */
export interface LinearOptions extends VendorOptions {
  readonly requestsPerHour?: number
  readonly complexityPerHour?: number
}

const HOUR_MS = 3_600_000
const PAGE_SIZE_DEFAULT = 50
const PAGE_SIZE_MAX = 250
const COMPLEXITY_MAX = 10_000

/** Newest first. */
const VIEWS = {
  createdAt: createViews(({ createdAtMs }) => createdAtMs),
  updatedAt: createViews(({ modifiedAtMs }) => modifiedAtMs),
}

/** The entities of a workspace with Relay cursors, newest first, under two budgets: requests, and the complexity of queries. */
export class LinearSimulator extends VendorSimulator {
  readonly #requestBudget: LeakyBucket
  readonly #complexityBudget: LeakyBucket
  readonly #numbers = new Map<string, number>()

  constructor(ports: SimulatorPorts, options: LinearOptions = {}) {
    super(ports, options)
    this.#requestBudget = new LeakyBucket(ports.clock, options.requestsPerHour ?? 5_000, HOUR_MS)
    this.#complexityBudget = new LeakyBucket(ports.clock, options.complexityPerHour ?? 250_000, HOUR_MS)
  }

  /**
   * `team` with `name` and `key`; `issue` with `team` (its id) and `title`; the types of `LINEAR_ENTITIES`. An `archived`
   * record is hidden from lists, like a user that is not `active`.
   */
  override create(type: string, fields: Fields = {}): string {
    if (type !== 'issue') return super.create(type, fields)
    const team = String(fields['team'])
    if (this.records.find('team', team) === undefined)
      throw new Error(`An issue needs the id of its team; ${team} does not exist.`)
    const number = (this.#numbers.get(team) ?? 0) + 1
    this.#numbers.set(team, number)
    return super.create(type, { number, ...fields })
  }

  protected newId(): string {
    return randomUuid(this.random)
  }

  protected render(version: RecordVersion): Fields {
    const { fields } = version
    const updatedAt = new Date(version.modifiedAtMs).toISOString()
    const common = {
      id: version.id,
      createdAt: new Date(version.createdAtMs).toISOString(),
      updatedAt,
      archivedAt: fields['archived'] === true ? updatedAt : null,
    }
    if (version.type === 'team') return { ...common, name: fields['name'] ?? '', key: fields['key'] ?? 'TEAM' }
    const entity = LINEAR_ENTITIES[version.type]
    if (entity !== undefined) {
      const values = Object.entries(entity.fields).map(([name, [, value]]) => [name, fields[name] ?? value])
      return { ...common, ...Object.fromEntries(values) }
    }
    const given = Object.keys(ISSUE_DEFAULTS).filter((name) => fields[name] !== undefined)
    const team = this.records.find('team', String(fields['team']))
    const identifier = `${team === undefined ? 'TEAM' : String(this.render(team)['key'])}-${String(fields['number'])}`
    return {
      ...common,
      identifier,
      number: fields['number'],
      title: fields['title'] ?? '',
      description: fields['description'] ?? null,
      priority: fields['priority'] ?? 0,
      url: `https://linear.app/simulated/issue/${identifier}`,
      teamId: fields['team'],
      ...ISSUE_DEFAULTS,
      ...Object.fromEntries(given.map((name) => [name, fields[name]])),
    }
  }

  protected respond(call: ApiCall): Response {
    if (call.url.pathname !== '/graphql' || call.request.method !== 'POST')
      return jsonResponse({ error: 'Not found' }, 404)
    if (!this.isAuthorized(call.request)) return this.unauthorized()
    const { query, variables, operationName } = JSON.parse(call.body) as {
      query?: string
      variables?: Record<string, unknown> | null
      operationName?: string
    }
    let document
    try {
      document = parseDocument(query ?? '')
    } catch (problem) {
      if (problem instanceof GraphqlSyntaxError)
        return this.#refusal(400, `Syntax Error: ${problem.message}`, 'GRAPHQL_PARSE_FAILED')
      throw problem
    }
    const operation = document.operations.find(
      (candidate) => operationName === undefined || candidate.name === operationName,
    )
    if (operation === undefined) return this.#refusal(400, 'Must provide an operation.', 'BAD_REQUEST')
    const execution = new Execution(LINEAR_SCHEMA, document, operation, variables ?? {})
    const [invalid] = execution.validate()
    if (invalid !== undefined) return this.#refusal(400, invalid.message, 'GRAPHQL_VALIDATION_FAILED')
    const complexity = complexityOf(execution)
    if (complexity > COMPLEXITY_MAX) return this.#refusal(400, 'Query too complex', 'INPUT_ERROR', complexity)
    if (!this.#requestBudget.take(1) || !this.#complexityBudget.take(complexity)) return this.rateLimited(undefined)
    const { data, errors } = execution.run(this.#context(call))
    return jsonResponse(
      errors.length === 0
        ? { data }
        : {
            data,
            errors: errors.map((error) => ({
              ...error,
              extensions: { type: 'invalid input', code: error.type ?? 'INTERNAL_SERVER_ERROR' },
            })),
          },
      200,
      this.#headers(complexity),
    )
  }

  /** Status 400; only the body identifies it as a rate limit. */
  protected rateLimited(retryAfter: string | undefined): Response {
    const body = {
      errors: [
        {
          message: 'Rate limit exceeded',
          extensions: {
            type: 'ratelimited',
            code: 'RATELIMITED',
            statusCode: 429,
            userError: true,
            userPresentableMessage: 'Rate limit exceeded. Only a limited number of requests are allowed per hour.',
          },
        },
      ],
    }
    return jsonResponse(body, 400, {
      ...this.#headers(0),
      ...(retryAfter === undefined ? {} : { 'retry-after': retryAfter }),
    })
  }

  protected unauthorized(): Response {
    return this.#refusal(401, 'Authentication required, not authenticated', 'AUTHENTICATION_ERROR')
  }

  protected serverError(status: number): Response {
    return this.#refusal(status, 'Internal server error', 'INTERNAL_SERVER_ERROR')
  }

  /** A personal key is sent bare, a token as a bearer. */
  protected override isAuthorized(request: Request): boolean {
    const header = request.headers.get('authorization')?.trim() ?? ''
    return header !== '' && !header.includes(' ')
      ? this.token === undefined || header === this.token
      : super.isAuthorized(request)
  }

  #context(call: ApiCall): LinearContext {
    let failing = call.partial
    return {
      viewer: () => ({
        id: '00000000-0000-0000-0000-000000000001',
        name: 'Simulated',
        email: 'user@example.com',
        createdAt: new Date(0).toISOString(),
        updatedAt: new Date(0).toISOString(),
        archivedAt: null,
      }),
      one: (type, id) => {
        if (failing) {
          failing = false
          throw new FieldError('Internal server error')
        }
        const version = this.records.find(type, id)
        if (version === undefined || version.deleted) throw new FieldError('Entity not found', 'INPUT_ERROR')
        return this.render(version)
      },
      issues: (args, teamId) => this.#connection('issue', args, call, teamId),
      teams: (args) => this.#connection('team', args, call, undefined),
      entities: (type, args) => this.#connection(type, args, call, undefined),
    }
  }

  #connection(type: string, args: Args, call: ApiCall, teamId: string | undefined): Connection<Parent> {
    const asked = typeof args['last'] === 'number' ? args : { ...args, first: args['first'] ?? PAGE_SIZE_DEFAULT }
    const size = Number(asked['first'] ?? asked['last'])
    if (!Number.isInteger(size) || size < 1 || size > PAGE_SIZE_MAX)
      throw new FieldError(
        `Argument Validation Error: first must not be greater than ${PAGE_SIZE_MAX}`,
        'INVALID_INPUT',
      )
    const view =
      VIEWS[args['orderBy'] === 'updatedAt' ? 'updatedAt' : 'createdAt'][
        args['includeArchived'] === true ? 'all' : 'unarchived'
      ]
    const all = this.records.sorted(type, view)
    const filter = args['filter'] ?? undefined
    const isWithoutDisabled = type === 'user' && args['includeDisabled'] !== true
    const accepted =
      teamId === undefined && filter === undefined && !isWithoutDisabled
        ? all
        : all.filter(
            (version) =>
              (teamId === undefined || version.fields['team'] === teamId) &&
              !(isWithoutDisabled && version.fields['active'] === false) &&
              matches(this.render(version), filter),
          )
    // A cursor is the id of a record, and follows the record when it moves.
    const placeOf = (cursor: string): RecordVersion => {
      const version = this.records.find(type, cursor)
      if (version === undefined || call.expiredToken) throw new FieldError(`Invalid cursor: ${cursor}`, 'INVALID_INPUT')
      return version
    }
    for (const cursor of [args['after'], args['before']]) if (typeof cursor === 'string') placeOf(cursor)
    const served = Math.min(size, this.pageSizeMax)
    const shortened =
      call.shortPage || served < size
        ? { ...asked, first: call.shortPage ? Math.max(1, Math.floor(served / 2)) : served }
        : asked
    const connection = paginateConnection(accepted, shortened, {
      cursorOf: ({ id }) => id,
      compare: (version, cursor) => view.order(version, placeOf(cursor)),
      render: (version): Parent => this.render(version),
    })
    return call.endFlagOverride === undefined
      ? connection
      : { ...connection, pageInfo: { ...connection.pageInfo, hasNextPage: call.endFlagOverride === 'more' } }
  }

  #refusal(status: number, message: string, code: string, complexity = 0): Response {
    return jsonResponse(
      {
        errors: [
          { message, extensions: { code, type: code.toLowerCase().replaceAll('_', ' '), userError: status < 500 } },
        ],
      },
      status,
      this.#headers(complexity),
    )
  }

  /** Resets are in milliseconds. */
  #headers(complexity: number): Record<string, string> {
    return {
      'x-complexity': String(complexity),
      'x-ratelimit-requests-limit': String(this.#requestBudget.limit),
      'x-ratelimit-requests-remaining': String(this.#requestBudget.remaining),
      'x-ratelimit-requests-reset': String(this.#requestBudget.resetAtMs),
      'x-ratelimit-complexity-limit': String(this.#complexityBudget.limit),
      'x-ratelimit-complexity-remaining': String(this.#complexityBudget.remaining),
      'x-ratelimit-complexity-reset': String(this.#complexityBudget.resetAtMs),
    }
  }
}

function createViews(timeOf: (version: RecordVersion) => number): {
  readonly all: RecordView
  readonly unarchived: RecordView
} {
  const all: RecordView = {
    reads: 'index',
    includes: ({ deleted }) => !deleted,
    order: (a, b) => timeOf(b) - timeOf(a) || compareText(b.id, a.id),
  }
  return { all, unarchived: { ...all, includes: ({ deleted, fields }) => !deleted && fields['archived'] !== true } }
}

/** A tenth of a point per property and one per object, times the page size of every enclosing connection. */
function complexityOf(execution: Execution<LinearContext>): number {
  let points = 0
  execution.walk((parentType, node, _path, parents) => {
    const type = LINEAR_SCHEMA[parentType]?.fields[node.name]?.type ?? ''
    let times = 1
    let around = 'Query'
    for (const parent of parents) {
      const parentField = LINEAR_SCHEMA[around]?.fields[parent.name]
      around = parseTypeName(parentField?.type ?? '')
      if (!around.endsWith('Connection')) continue
      const args = execution.argumentsOf(parent)
      times *= Number(args['first'] ?? args['last'] ?? PAGE_SIZE_DEFAULT)
    }
    points += times * (LINEAR_SCHEMA[parseTypeName(type)] === undefined ? 0.1 : 1)
  })
  return Math.ceil(Number(points.toFixed(6)))
}

/** Comparators on timestamps: { updatedAt: { gte: "…" } }. */
function matches(row: Parent, filter: unknown): boolean {
  for (const [field, comparators] of Object.entries((filter ?? {}) as Record<string, Record<string, string>>)) {
    for (const [comparator, value] of Object.entries(comparators)) {
      const own = row[field]
      const stamped = field.endsWith('At')
      const compared = stamped ? Date.parse(String(own)) - Date.parse(value) : compareText(String(own), value)
      const holds = {
        eq: compared === 0,
        neq: compared !== 0,
        gt: compared > 0,
        gte: compared >= 0,
        lt: compared < 0,
        lte: compared <= 0,
      }[comparator]
      if (holds === undefined)
        throw new FieldError(`Field "${comparator}" is not defined by type "IssueFilter".`, 'INVALID_INPUT')
      if (!holds) return false
    }
  }
  return true
}
