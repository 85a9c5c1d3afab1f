import {
  SyncError,
  type Change,
  type Execute,
  type JsonObject,
  type JsonValue,
  type Lookup,
  type SyncContext,
} from '../../contract/index.ts'
import {
  relay,
  relayNested,
  type RateBudget,
  type NestedPage,
  type PageInfo,
  type RelayNestedState,
  type RelayState,
} from '../../strategies/index.ts'
import { withLaggedTidemark } from '../../strategies/kit/lagged-tidemark.ts'
import { bearer, requireOneAuth, type Auth, type SecretSource } from '../kit/auth.ts'
import { classifyGithubRateLimit } from '../kit/github-rate-limit.ts'
import { connectionAuth, connectionBaseUrl, withConnection, type ConnectionOption } from '../kit/connection-auth.ts'
import { createHttpClient, type HttpClient } from '../kit/http-client.ts'
import { isObject, classifyGraphqlResponse, type ResponseClassifier } from '../kit/classify-response.ts'
import { path } from '../kit/origin.ts'
import { parseSince, withoutRange } from '../kit/since.ts'
import { createRepository, type GithubRepository } from './repository.ts'
import { parsePageInfo } from '../kit/parse-page-info.ts'
import { checkPageSize } from '../kit/page-size.ts'

/** Options of `github`. */
export interface GithubOptions extends ConnectionOption {
  readonly token?: SecretSource
  /** Replaces `token`. */
  readonly auth?: Auth
  /** For an Enterprise server: https://github.example.com/api */
  readonly baseUrl?: string
  /** A user or an organization. The default is the owner of the token. */
  readonly owner?: string
  /** The number of repositories per request when issues are read. */
  readonly repositoriesPerPage?: number
  /** Records per request of the streams of one repository; at most 100, the default. */
  readonly recordsPerPage?: number
  /** A date or RFC 3339: of a repository, only records changed at or after this time are copied. */
  readonly since?: string
}

/** The streams of one GitHub user or organization. */
export interface GithubSource {
  readonly repositories: { readonly mode: 'replace'; readonly execute: Execute<RelayState>; readonly lookup: Lookup }
  /** The issues of all repositories. */
  readonly issues: { readonly mode: 'replace'; readonly execute: Execute<RelayNestedState>; readonly lookup: Lookup }
  /** The streams of one repository, `owner/name`, which the REST API lists. */
  repository(fullName: string): GithubRepository
}

/** The visibility delay of a change in a list. */
const LAG_MS = 15_000

const REPOSITORY_FIELDS = 'id databaseId name nameWithOwner description url isArchived createdAt updatedAt'
const ISSUE_FIELDS = 'id databaseId number title body state url createdAt updatedAt closedAt'
const PAGE_INFO_FIELDS = 'pageInfo { hasNextPage endCursor }'
const RATE_LIMIT_FIELDS = 'rateLimit { limit cost remaining resetAt }'

/** GitHub has no change feed for these, so every cycle reads the complete list: `worker.sync('issues', { database, schedule: '1h', ...github({ token: 'GITHUB_TOKEN' }).issues })`. */
export function github(options: GithubOptions): GithubSource {
  return withConnection(options.connection, createGithub(options))
}

function createGithub({
  token,
  auth,
  connection,
  baseUrl = 'https://api.github.com',
  owner,
  repositoriesPerPage = 20,
  recordsPerPage = 100,
  since: given,
}: GithubOptions): GithubSource {
  checkPageSize('GitHub', repositoriesPerPage, 100, 'repositoriesPerPage')
  checkPageSize('GitHub', recordsPerPage, 100, 'recordsPerPage')
  const bearerAuth = token === undefined ? undefined : bearer(token)
  const chosenAuth = requireOneAuth(
    auth,
    bearerAuth,
    'GitHub needs either `token`, `auth` or `connection`.',
    connection === undefined ? undefined : connectionAuth(),
  )
  const client = createHttpClient({
    baseUrl: connectionBaseUrl(connection, baseUrl),
    auth: chosenAuth,
    headers: { 'user-agent': 'tidemark' },
    classifyResponse,
  })
  const since = parseSince(given)
  const repositories = async (
    fields: string,
    first: number,
    after: string | null,
    context: SyncContext,
  ): Promise<GraphqlConnection & { budget: RateBudget | null }> => {
    const [variables, root] =
      owner === undefined ? ['', 'viewer'] : ['$owner: String!, ', 'repositoryOwner(login: $owner)']
    // Sorted by creation: a repository created during the read comes last and shifts no page.
    const query = `query (${variables}$after: String) { ${RATE_LIMIT_FIELDS} owner: ${root} { repositories(first: ${first}, after: $after, ownerAffiliations: [OWNER], orderBy: { field: CREATED_AT, direction: ASC }) { totalCount ${PAGE_INFO_FIELDS} nodes { ${fields} } } } }`
    const { data } = await runQuery(client, query, { after, ...(owner !== undefined && { owner }) }, context)
    if (!isObject(data.owner))
      throw new SyncError(
        'CONNECTOR_FAILED',
        'The GitHub owner does not exist, or the token has no access to it. Check `owner` and the scopes of the token.',
      )
    return { ...parseConnection(data.owner.repositories), budget: parseBudget(data) }
  }
  const readNode = async (key: string, fragment: string, context: SyncContext): Promise<JsonObject | null> => {
    const { data } = await runQuery(
      client,
      `query ($id: ID!) { viewer { login } p0: node(id: $id) { ${fragment} } }`,
      { id: key },
      context,
    )
    if (!isObject(data.p0) || data.p0.id !== key) return null
    // A node query finds nodes of every owner; the list contains only those of this owner.
    const { repository, owner: nodeOwner, ...node } = data.p0
    const listedOwner = owner ?? getLogin(data.viewer)
    const foundOwner = getLogin(isObject(repository) ? repository.owner : nodeOwner)
    if (listedOwner !== null && foundOwner !== null && listedOwner.toLowerCase() !== foundOwner.toLowerCase())
      return null
    return isObject(repository) ? { ...node, repository } : node
  }

  return {
    repository(fullName) {
      const [repositoryOwner = '', name = '', ...rest] = fullName.split('/')
      if (repositoryOwner === '' || name === '' || rest.length > 0)
        throw new SyncError('SYNC_INVALID', `GitHub: the repository is ${JSON.stringify(fullName)}. Write owner/name.`)
      // The REST API of an Enterprise server is below /api/v3, GraphQL below /api.
      const prefix = new URL(baseUrl).pathname.replace(/\/$/, '') === '/api' ? '/v3' : ''
      return createRepository({
        client,
        path: prefix + path`/repos/${repositoryOwner}/${name}`,
        since,
        pageSize: recordsPerPage,
      })
    },
    repositories: {
      mode: 'replace',
      lookup: async (key, context) => {
        const node = await readNode(key, `... on Repository { ${REPOSITORY_FIELDS} owner { login } }`, context)
        return node === null ? null : toUpsert(node)
      },
      execute: listAll(
        relay({
          limit: 100,
          read: async ({ after }, context) => {
            const { nodes, pageInfo, total, budget } = await repositories(REPOSITORY_FIELDS, 100, after, context)
            return { changes: nodes.map((node) => toUpsert(node)), pageInfo, total, budget }
          },
        }),
      ),
    },
    issues: {
      mode: 'replace',
      lookup: async (key, context) => {
        const { repository, ...node } =
          (await readNode(key, `... on Issue { ${ISSUE_FIELDS} repository { id owner { login } } }`, context)) ?? {}
        return isObject(repository) ? toUpsert({ ...node, repositoryId: requireString(repository, 'id') }) : null
      },
      execute: listAll(
        relayNested({
          readOuter: async ({ after }, context) => {
            const { nodes, pageInfo, total, budget } = await repositories(
              `id issues(first: 100) { totalCount ${PAGE_INFO_FIELDS} nodes { ${ISSUE_FIELDS} } }`,
              repositoriesPerPage,
              after,
              context,
            )
            const parents = nodes.map((node) => ({
              id: requireString(node, 'id'),
              issues: parseConnection(node.issues),
            }))
            return {
              changes: parents.flatMap(toIssueChanges),
              parents: parents.map(toNestedPage),
              pageInfo,
              total,
              budget,
            }
          },
          readInner: async ({ parents }, context) => {
            const variables = parents.map((_, n) => `$id${n}: ID!, $after${n}: String`).join(', ')
            const fields = parents
              .map(
                (_, n) =>
                  `p${n}: node(id: $id${n}) { ... on Repository { id issues(first: 100, after: $after${n}) { totalCount ${PAGE_INFO_FIELDS} nodes { ${ISSUE_FIELDS} } } } }`,
              )
              .join(' ')
            const values = Object.fromEntries(
              parents.flatMap(({ id, after }, n) => [
                [`id${n}`, id],
                [`after${n}`, after],
              ]),
            )
            const { data, gone } = await runQuery(
              client,
              `query (${variables}) { ${RATE_LIMIT_FIELDS} ${fields} }`,
              values,
              context,
            )
            const read = parents.map(({ id }, n) => {
              const node = data[`p${n}`]
              if (isObject(node)) return { id, issues: parseConnection(node.issues) }
              if (!gone.has(`p${n}`))
                throw new SyncError('SOURCE_INVALID', 'GitHub omitted a repository from its response without an error.')
              return { id, issues: null }
            })
            return { changes: read.flatMap(toIssueChanges), parents: read.map(toNestedPage), budget: parseBudget(data) }
          },
          parentsPerRequest: repositoriesPerPage,
        }),
      ),
    },
  }
}

function listAll<State>(read: Execute<State>): Execute<State> {
  return withoutRange(
    withLaggedTidemark(read, LAG_MS),
    'the list has no filter by time; `repository(name)` follows changes by time',
  )
}

interface GraphqlConnection {
  readonly nodes: JsonObject[]
  readonly pageInfo: PageInfo
  readonly total: number
}

function toNestedPage({ id, issues }: { id: string; issues: GraphqlConnection | null }): NestedPage {
  return issues === null
    ? { id, pageInfo: null }
    : { id, pageInfo: issues.pageInfo, count: issues.nodes.length, total: issues.total }
}

async function runQuery(
  client: HttpClient,
  query: string,
  variables: JsonObject,
  context: SyncContext,
): Promise<{ data: JsonObject; gone: Set<string> }> {
  const { body } = await client.post('/graphql', { query, variables }, context)
  if (!isObject(body) || !isObject(body.data))
    throw new SyncError('SOURCE_INVALID', 'GitHub returned a response without data.')
  return {
    data: body.data,
    gone: new Set(
      Array.isArray(body.errors) ? body.errors.map(parseMissingAlias).filter((alias) => alias !== null) : [],
    ),
  }
}

/** A repository deleted since its first page causes NOT_FOUND. It is the only error that leaves the other data complete. */
const classifyResponse: ResponseClassifier = (response) => {
  const { body } = response
  if (
    isObject(body) &&
    isObject(body.data) &&
    Array.isArray(body.errors) &&
    body.errors.every((error) => parseMissingAlias(error) !== null)
  )
    return null
  return classifyGithubRateLimit(response) ?? classifyGraphqlResponse(response)
}

function parseMissingAlias(error: JsonValue): string | null {
  if (!isObject(error) || error.type !== 'NOT_FOUND' || !Array.isArray(error.path) || error.path.length !== 1)
    return null
  const [alias] = error.path
  return typeof alias === 'string' && /^p\d+$/.test(alias) ? alias : null
}

/** A null node is missing data, which a replace cycle would sweep as deleted. */
function parseConnection(value: JsonValue | undefined): GraphqlConnection {
  if (
    !isObject(value) ||
    !Array.isArray(value.nodes) ||
    !value.nodes.every(isObject) ||
    !isObject(value.pageInfo) ||
    typeof value.totalCount !== 'number'
  )
    throw new SyncError('SOURCE_INVALID', 'GitHub returned an incomplete response.')
  return { nodes: value.nodes, pageInfo: parsePageInfo(value.pageInfo), total: value.totalCount }
}

function parseBudget({ rateLimit }: JsonObject): RateBudget | null {
  if (!isObject(rateLimit) || typeof rateLimit.limit !== 'number') return null
  const { limit, cost, remaining, resetAt } = rateLimit
  return {
    limit,
    ...(typeof cost === 'number' && { cost }),
    ...(typeof remaining === 'number' && { remaining }),
    ...(typeof resetAt === 'string' && { resetAt }),
  }
}

function toIssueChanges({ id, issues }: { id: string; issues: GraphqlConnection | null }): Change[] {
  return (issues?.nodes ?? []).map((node) => toUpsert({ ...node, repositoryId: id }))
}

function toUpsert(record: JsonObject): Change {
  return {
    type: 'upsert',
    key: requireString(record, 'id'),
    record,
    upstreamUpdatedAt: requireString(record, 'updatedAt'),
  }
}

function getLogin(owner: JsonValue | undefined): string | null {
  return isObject(owner) && typeof owner.login === 'string' ? owner.login : null
}

function requireString(node: JsonObject, field: string): string {
  const value = node[field]
  if (typeof value !== 'string' || value === '')
    throw new SyncError('SOURCE_INVALID', `A GitHub node has no \`${field}\`.`)
  return value
}
