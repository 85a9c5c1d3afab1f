import {
  SyncError,
  type Change,
  type Execute,
  type JsonObject,
  type JsonValue,
  type Lookup,
  type SyncContext,
  type TimeRange,
} from '../../contract/index.ts'
import { relay, type PageInfo, type RelayState } from '../../strategies/index.ts'
import type { AnchoredExecute } from '../../strategies/kit/anchored-execute.ts'
import { withLaggedTidemark } from '../../strategies/kit/lagged-tidemark.ts'
import { requireInstant } from '../../strategies/kit/instants.ts'
import { readNextCursor } from '../../strategies/kit/page-info.ts'
import { apiKey as inHeader, requireOneAuth, type Auth, type SecretSource } from '../kit/auth.ts'
import { connectionAuth, connectionBaseUrl, withConnection, type ConnectionOption } from '../kit/connection-auth.ts'
import { createHttpClient, type HttpClient } from '../kit/http-client.ts'
import { isObject, classifyGraphqlResponse, type ResponseClassifier } from '../kit/classify-response.ts'
import { parsePageInfo } from '../kit/parse-page-info.ts'
import { checkPageSize } from '../kit/page-size.ts'
import { limitRange, parseSince, withSinceScope } from '../kit/since.ts'
import { withoutTidemark } from '../../strategies/kit/without-tidemark.ts'
import { timeWindow, type TimeWindowState } from '../../strategies/kit/time-window.ts'
import { ENTITY_FIELDS, LIST_ARGUMENTS, type EntityName } from './entities.ts'
import { readServerTime } from '../../values/retry-after.ts'

/** Options of `linear`. */
export interface LinearOptions extends ConnectionOption {
  /** A personal API key, or the name of the secret that holds it. */
  readonly apiKey?: SecretSource
  /** Replaces `apiKey`. */
  readonly auth?: Auth
  readonly baseUrl?: string
  /** The page size, up to 250. */
  readonly limit?: number
  /** Keeps archived records as rows, with `archivedAt`. By default an archived record counts as deleted. */
  readonly includeArchived?: boolean
  /** A date or RFC 3339: only records that were changed at or after this time are copied. */
  readonly since?: string
}

/** One entity type of a Linear workspace, read completely in every cycle. Pass it to `worker.sync`. */
export interface LinearStream {
  readonly mode: 'replace'
  readonly execute: Execute<RelayState>
  readonly lookup: Lookup
}

/**
 * One entity type whose changes are followed by `updatedAt`. Pass it to `worker.track`: the backfill finds the records
 * that were deleted.
 */
export interface LinearPair {
  readonly backfill: Execute<RelayState>
  readonly delta: AnchoredExecute<TimeWindowState>
  readonly anchor: (context: SyncContext) => Promise<TimeWindowState | undefined>
  readonly lookup: Lookup
  readonly lagMs: number
}

/** The entity types of a Linear workspace. */
export type LinearSource = { readonly [Name in EntityName]: LinearStream } & {
  /** The same entity types as pairs. */
  readonly tracked: { readonly [Name in EntityName]: LinearPair }
}

/** The visibility delay of a change in a list. */
const LAG_MS = 15_000

/** Every cycle reads the complete list and sweeps archived and deleted records: `worker.sync('issues', { database, ...linear({ apiKey: 'LINEAR_KEY' }).issues })`. */
export function linear(options: LinearOptions): LinearSource {
  return withConnection(options.connection, createLinear(options))
}

function createLinear({
  apiKey,
  auth,
  connection,
  baseUrl = 'https://api.linear.app',
  limit = 100,
  includeArchived = false,
  since: given,
}: LinearOptions): LinearSource {
  const headerAuth = apiKey === undefined ? undefined : inHeader({ header: 'authorization', key: apiKey })
  const chosenAuth = requireOneAuth(
    auth,
    headerAuth,
    'Linear needs either `apiKey`, `auth` or `connection`.',
    connection === undefined ? undefined : connectionAuth({ header: 'authorization' }),
  )
  checkPageSize('Linear', limit, 250)
  const since = parseSince(given)
  const client = createHttpClient({
    baseUrl: connectionBaseUrl(connection, baseUrl),
    auth: chosenAuth,
    classifyResponse,
  })
  const settings = { client, limit, includeArchived, since }
  const names = Object.keys(ENTITY_FIELDS) as EntityName[]
  const lists = Object.fromEntries(names.map((name) => [name, createStream(name, settings)]))
  const pairs = Object.fromEntries(names.map((name) => [name, createPair(name, settings)]))
  return { ...(lists as Record<EntityName, LinearStream>), tracked: pairs as Record<EntityName, LinearPair> }
}

interface StreamSettings {
  readonly client: HttpClient
  readonly limit: number
  readonly includeArchived: boolean
  readonly since: string | undefined
}

function createStream(name: EntityName, settings: StreamSettings): LinearStream {
  const { limit, since, includeArchived } = settings
  const read = (range: TimeRange): Execute<RelayState> =>
    withLaggedTidemark(
      relay({
        limit,
        read: async ({ after }, context) => {
          const { nodes, pageInfo } = await readList(name, settings, { range, includeArchived, after }, context)
          return { changes: nodes.map(toUpsert), pageInfo }
        },
      }),
      LAG_MS,
    )
  const listing = withSinceScope(read({ ...(since !== undefined && { from: since }) }), since)
  return {
    mode: 'replace',
    execute: Object.assign(listing, { range: (range: TimeRange) => read(limitRange(range, since)) }),
    // Uses the list, because `issue(id:)` also returns archived issues and accepts identifiers as ids.
    lookup: async (key, context) => {
      if (!UUID_PATTERN.test(key)) return null
      const list = { range: since === undefined ? {} : { from: since }, includeArchived, after: null, id: key }
      const [record] = (await readList(name, settings, list, context)).nodes
      return record === undefined ? null : toUpsert(record)
    },
  }
}

/**
 * A window of changes is listed by creation, which no write changes: a record that is updated meanwhile does not shift
 * the pages, and the next window has it again.
 */
function createPair(name: EntityName, settings: StreamSettings): LinearPair {
  const { execute: backfill, lookup } = createStream(name, settings)
  const { since, includeArchived } = settings
  const delta = withoutTidemark(
    timeWindow({
      lagMs: LAG_MS,
      read: async ({ since: from = since, token }, context) => {
        const range = { ...(from !== undefined && { from }) }
        const list = { range, includeArchived: true, after: token ?? null }
        const { nodes, pageInfo, serverTime } = await readList(name, settings, list, context)
        const toChange = includeArchived ? toUpsert : toChangeOrDelete
        return { changes: nodes.map(toChange), next: readNextCursor(pageInfo, 'The connection'), serverTime }
      },
    }),
  )
  return {
    backfill: Object.assign(backfill, { lookup }),
    delta,
    anchor: (context) => delta.anchor(context),
    lookup,
    lagMs: LAG_MS,
  }
}

interface ListRequest {
  /** A range of `updatedAt`. */
  readonly range: TimeRange
  readonly includeArchived: boolean
  readonly after: string | null
  readonly id?: string
}

async function readList(
  name: EntityName,
  { client, limit }: StreamSettings,
  { range: { from, to }, includeArchived, after, id }: ListRequest,
  context: SyncContext,
): Promise<{ nodes: JsonObject[]; pageInfo: PageInfo; serverTime: number | null }> {
  const given: [name: string, type: string, value: JsonValue][] =
    id === undefined ? [['after', 'String', after]] : [['id', 'ID!', id]]
  if (from !== undefined) given.push(['from', 'DateTimeOrDuration!', from])
  if (to !== undefined) given.push(['to', 'DateTimeOrDuration!', to])
  const times = `${from === undefined ? '' : 'gte: $from '}${to === undefined ? '' : 'lt: $to '}`
  const filter = `${id === undefined ? '' : 'id: { eq: $id } '}${times === '' ? '' : `updatedAt: { ${times}} `}`
  const listArguments = [
    id === undefined ? `first: ${limit}, after: $after, orderBy: createdAt` : 'first: 1',
    includeArchived ? 'includeArchived: true' : '',
    LIST_ARGUMENTS[name] ?? '',
    filter === '' ? '' : `filter: { ${filter}}`,
  ].filter((text) => text !== '')
  const declared = given.map(([variable, type]) => `$${variable}: ${type}`).join(', ')
  const fields = `id createdAt updatedAt archivedAt ${ENTITY_FIELDS[name]}`
  const query = `query (${declared}) { ${name}(${listArguments.join(', ')}) { pageInfo { hasNextPage endCursor } nodes { ${fields} } } }`
  const variables = Object.fromEntries(given.map(([variable, , value]) => [variable, value]))
  const { body, serverTime } = await client.post('/graphql', { query, variables }, context)
  const connection = parseConnection(body, name)
  if (from !== undefined) rejectOtherAnswer(connection.nodes, from)
  return { ...connection, serverTime }
}

/** A page with a record from before the requested time answers another request. */
function rejectOtherAnswer(nodes: readonly JsonObject[], from: string): void {
  const isEarlier = (node: JsonObject): boolean =>
    requireInstant(node['updatedAt'], '`updatedAt`') < requireInstant(from, 'The start')
  if (nodes.some(isEarlier))
    throw new SyncError('SOURCE_INVALID', 'Linear returned a page of another request instead of the requested one.')
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

/** An archived record is not in the list, so it is deleted from the copy. */
function toChangeOrDelete(record: JsonObject): Change {
  return typeof record.archivedAt === 'string'
    ? { type: 'delete', key: requireString(record, 'id'), upstreamUpdatedAt: requireString(record, 'updatedAt') }
    : toUpsert(record)
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
