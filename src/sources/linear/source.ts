import {
  SyncError,
  type Change,
  type Execute,
  type JsonObject,
  type JsonValue,
  type Lookup,
} from '../../contract/index.ts'
import { relay, type PageInfo, type RelayState } from '../../strategies/index.ts'
import { withLaggedTidemark } from '../../strategies/kit/lagged-tidemark.ts'
import { apiKey as inHeader, requireOneAuth, type Auth, type SecretSource } from '../kit/auth.ts'
import { createHttpClient } from '../kit/http-client.ts'
import { isObject, classifyGraphqlResponse, type ResponseClassifier } from '../kit/classify-response.ts'
import { parsePageInfo } from '../kit/parse-page-info.ts'
import { checkPageSize } from '../kit/page-size.ts'
import { readServerTime } from '../../values/retry-after.ts'

/** Options of `linear`. */
export interface LinearOptions {
  /** A personal API key, or the name of the secret that holds it. */
  readonly apiKey?: SecretSource
  /** Replaces `apiKey`. */
  readonly auth?: Auth
  readonly baseUrl?: string
  /** The page size, up to 250. */
  readonly limit?: number
}

/** One entity type of a Linear workspace. Pass it to `worker.sync`. */
export interface LinearStream {
  readonly mode: 'replace'
  readonly execute: Execute<RelayState>
  readonly lookup: Lookup
}

/** The visibility delay of a change in a list. */
const LAG_MS = 15_000

const STREAM_FIELDS = {
  issues: 'id identifier number title description priority url createdAt updatedAt archivedAt team { id }',
  teams: 'id key name createdAt updatedAt archivedAt',
} as const

/** Every cycle reads the complete list and sweeps archived and deleted records: `worker.sync('issues', { database, ...linear({ apiKey: 'LINEAR_KEY' }).issues })`. */
export function linear({ apiKey, auth, baseUrl = 'https://api.linear.app', limit = 100 }: LinearOptions): {
  readonly [Name in keyof typeof STREAM_FIELDS]: LinearStream
} {
  const headerAuth = apiKey === undefined ? undefined : inHeader({ header: 'authorization', key: apiKey })
  const chosenAuth = requireOneAuth(auth, headerAuth, 'Linear needs either `apiKey` or `auth`.')
  checkPageSize('Linear', limit, 250)
  const client = createHttpClient({ baseUrl, auth: chosenAuth, classifyResponse })
  const stream = (name: keyof typeof STREAM_FIELDS): LinearStream => ({
    mode: 'replace',
    execute: withLaggedTidemark(
      relay({
        limit,
        read: async ({ after }, context) => {
          const query = `query ($after: String) { ${name}(first: ${limit}, after: $after, orderBy: createdAt) { pageInfo { hasNextPage endCursor } nodes { ${STREAM_FIELDS[name]} } } }`
          const { nodes, pageInfo } = parseConnection(
            (await client.post('/graphql', { query, variables: { after } }, context)).body,
            name,
          )
          return { changes: nodes.map(toUpsert), pageInfo }
        },
      }),
      LAG_MS,
    ),
    // Uses the list, because `issue(id:)` also returns archived issues and accepts identifiers as ids.
    lookup: async (key, context) => {
      if (!UUID_PATTERN.test(key)) return null
      const query = `query ($id: ID!) { ${name}(first: 1, filter: { id: { eq: $id } }) { pageInfo { hasNextPage endCursor } nodes { ${STREAM_FIELDS[name]} } } }`
      const {
        nodes: [record],
      } = parseConnection((await client.post('/graphql', { query, variables: { id: key } }, context)).body, name)
      return record === undefined ? null : toUpsert(record)
    },
  })
  return { issues: stream('issues'), teams: stream('teams') }
}

const UUID_PATTERN = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

function toUpsert(record: JsonObject): Change {
  return {
    type: 'upsert',
    key: requireString(record, 'id'),
    record,
    upstreamUpdatedAt: requireString(record, 'updatedAt'),
  }
}

function parseConnection(body: JsonValue, name: string): { nodes: JsonObject[]; pageInfo: PageInfo } {
  const connection = isObject(body) && isObject(body.data) ? body.data[name] : undefined
  if (
    !isObject(connection) ||
    !Array.isArray(connection.nodes) ||
    !connection.nodes.every(isObject) ||
    !isObject(connection.pageInfo)
  ) {
    throw new SyncError('SOURCE_INVALID', 'Linear returned an incomplete response.')
  }
  return { nodes: connection.nodes, pageInfo: parsePageInfo(connection.pageInfo) }
}

function requireString(node: JsonObject, field: string): string {
  const value = node[field]
  if (typeof value !== 'string' || value === '')
    throw new SyncError('SOURCE_INVALID', `A Linear node has no \`${field}\`.`)
  return value
}

/** Linear has two budgets with separate reset times, in headers that only Linear uses. */
const classifyResponse: ResponseClassifier = (response) => {
  const failure = classifyGraphqlResponse(response)
  if (failure?.code !== 'RATE_LIMITED') return failure
  const nowMs = readServerTime(response.headers)
  const waits = ['requests', 'complexity'].flatMap((budget) => {
    const resetMs = Number(response.headers.get(`x-ratelimit-${budget}-reset`))
    return nowMs !== null && response.headers.get(`x-ratelimit-${budget}-remaining`) === '0' && resetMs > nowMs
      ? [resetMs - nowMs]
      : []
  })
  return waits.length === 0 ? failure : { ...failure, retryAfterMs: Math.max(...waits) }
}
