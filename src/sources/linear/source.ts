import { SyncError, type Change, type Execute, type JsonObject, type JsonValue, type Lookup } from '../../contract/index.ts'
import { relay, type PageInfo, type RelayState } from '../../strategies/index.ts'
import { withLaggedTidemark } from '../../strategies/kit/lagged-tidemark.ts'
import { apiKey as inHeader, type Auth, type SecretSource } from '../kit/auth.ts'
import { createHttpClient } from '../kit/http-client.ts'
import { isObject, classifyGraphqlResponse, type ResponseClassifier } from '../kit/classify-response.ts'
import { checkPageSize } from '../kit/page-size.ts'
import { readServerTime } from '../../values/retry-after.ts'

export interface LinearOptions {
  /** A personal key, or the name of the secret that holds it. */
  readonly apiKey?: SecretSource
  /** Instead of a key. */
  readonly auth?: Auth
  readonly baseUrl?: string
  /** Linear allows up to 250. */
  readonly limit?: number
}

export interface LinearStream {
  readonly mode: 'replace'
  readonly execute: Execute<RelayState>
  readonly lookup: Lookup
}

/** How long a change may take until a list shows it. */
const LAG_MS = 15_000

const STREAM_FIELDS = {
  issues: 'id identifier number title description priority url createdAt updatedAt archivedAt team { id }',
  teams: 'id key name createdAt updatedAt archivedAt',
} as const

/** All of it each time; what is archived or deleted is swept: `worker.sync('issues', { database, ...linear({ apiKey: 'LINEAR_KEY' }).issues })`. */
export function linear({ apiKey, auth, baseUrl = 'https://api.linear.app', limit = 100 }: LinearOptions): { readonly [Name in keyof typeof STREAM_FIELDS]: LinearStream } {
  if ((apiKey === undefined) === (auth === undefined)) throw new SyncError('SYNC_INVALID', 'Linear needs either `apiKey` or `auth`.')
  checkPageSize('Linear', limit, 250)
  const client = createHttpClient({ baseUrl, auth: auth ?? inHeader({ header: 'authorization', key: apiKey! }), classifyResponse })
  const stream = (name: keyof typeof STREAM_FIELDS): LinearStream => ({
    mode: 'replace',
    execute: withLaggedTidemark(relay({
      limit,
      read: async ({ after }, context) => {
        const query = `query ($after: String) { ${name}(first: ${limit}, after: $after, orderBy: createdAt) { pageInfo { hasNextPage endCursor } nodes { ${STREAM_FIELDS[name]} } } }`
        const { nodes, pageInfo } = parseConnection((await client.post('/graphql', { query, variables: { after } }, context)).body, name)
        return { changes: nodes.map(toUpsert), pageInfo }
      },
    }), LAG_MS),
    // By the list and not by `issue(id:)`, which also finds what is archived and takes an identifier for an id.
    lookup: async (key, context) => {
      if (!UUID_PATTERN.test(key)) return null
      const query = `query ($id: ID!) { ${name}(first: 1, filter: { id: { eq: $id } }) { pageInfo { hasNextPage endCursor } nodes { ${STREAM_FIELDS[name]} } } }`
      const { nodes: [record] } = parseConnection((await client.post('/graphql', { query, variables: { id: key } }, context)).body, name)
      return record === undefined ? null : toUpsert(record)
    },
  })
  return { issues: stream('issues'), teams: stream('teams') }
}

const UUID_PATTERN = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

function toUpsert(record: JsonObject): Change {
  return { type: 'upsert', key: requireString(record, 'id'), record, upstreamUpdatedAt: requireString(record, 'updatedAt') }
}

function parseConnection(body: JsonValue, name: string): { nodes: JsonObject[]; pageInfo: PageInfo } {
  const connection = isObject(body) && isObject(body.data) ? body.data[name] : undefined
  if (!isObject(connection) || !Array.isArray(connection.nodes) || !connection.nodes.every(isObject) || !isObject(connection.pageInfo)) {
    throw new SyncError('SOURCE_INVALID', 'Linear answered with a part missing.')
  }
  return { nodes: connection.nodes, pageInfo: connection.pageInfo as unknown as PageInfo }
}

function requireString(node: JsonObject, field: string): string {
  const value = node[field]
  if (typeof value !== 'string' || value === '') throw new SyncError('SOURCE_INVALID', `A node of Linear has no \`${field}\`.`)
  return value
}

/** Two budgets, each with its own moment of renewal, and neither in a header that others use. */
const classifyResponse: ResponseClassifier = (answer) => {
  const verdict = classifyGraphqlResponse(answer)
  if (verdict?.code !== 'RATE_LIMITED') return verdict
  const nowMs = readServerTime(answer.headers)
  const waits = ['requests', 'complexity'].flatMap((budget) => {
    const resetMs = Number(answer.headers.get(`x-ratelimit-${budget}-reset`))
    return nowMs !== null && answer.headers.get(`x-ratelimit-${budget}-remaining`) === '0' && resetMs > nowMs ? [resetMs - nowMs] : []
  })
  return waits.length === 0 ? verdict : { ...verdict, retryAfterMs: Math.max(...waits) }
}
