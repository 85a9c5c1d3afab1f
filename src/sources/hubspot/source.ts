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
import {
  search,
  streams,
  token,
  type AnchoredExecute,
  type SearchAnswer,
  type SearchQuery,
  type SearchState,
  type StreamsState,
  type TokenState,
} from '../../strategies/index.ts'
import { withLaggedTidemark } from '../../strategies/kit/lagged-tidemark.ts'
import { bearer, requireOneAuth, type Auth, type SecretSource } from '../kit/auth.ts'
import { connectionAuth, connectionBaseUrl, withConnection, type ConnectionOption } from '../kit/connection-auth.ts'
import { createHttpClient, type HttpClient, type Query } from '../kit/http-client.ts'
import { isObject } from '../kit/classify-response.ts'
import { encodePathSegment } from '../kit/origin.ts'
import { checkPageSize } from '../kit/page-size.ts'
import { limitRange, parseSince, withoutRange, withSinceScope } from '../kit/since.ts'
import { instantToMs } from '../../values/instant.ts'
import { createArchiveListing, type ArchiveState } from './archive-listing.ts'
import { listAssociations, type AssociationsState } from './associations.ts'
import { getModifiedProperty, isCustomType, STANDARD_PROPERTIES } from './object-types.ts'

/** Options of `hubspot`. */
export interface HubspotOptions extends ConnectionOption {
  /** The token of a private app, or the name of the secret that holds it. */
  readonly accessToken?: SecretSource
  /** Replaces `accessToken`. */
  readonly auth?: Auth
  readonly baseUrl?: string
  /** Additional properties to read, by object type. Of a custom type, all its own properties are read by default. */
  readonly properties?: Readonly<Record<string, readonly string[]>>
  /** The visibility delay of a change in the search. */
  readonly lagMs?: number
  /** The page size of lists and searches, up to 100. */
  readonly limit?: number
  /**
   * The minimum interval between listings of archived objects. The default is 5 minutes; 0 lists them in every cycle. Each
   * listing reads the complete list, so the interval grows with the list: 6 seconds for every page. Deletions arrive with the
   * next listing, and the tidemark stays at the last one.
   */
  readonly archivedEveryMs?: number
  /** A start date, such as 2024-01-31. Objects that were last modified before it are not kept. */
  readonly since?: string
}

/** One object type of HubSpot. Pass it to `worker.track`. */
export interface HubspotStream {
  readonly backfill: Execute<TokenState>
  readonly delta: Execute<HubspotDeltaState>
  readonly anchor: (context: SyncContext) => Promise<HubspotDeltaState | undefined>
  readonly lookup: Lookup
  /** The visibility delay of a change in the backfill. */
  readonly lagMs: number
}

/** The state of a HubSpot delta: one search for changes and one listing of archived objects. */
export type HubspotDeltaState = StreamsState<{ changes: SearchState; deletes: ArchiveState }>

/** The associations between two object types. Pass it to `worker.sync`. */
export interface HubspotAssociations {
  readonly mode: 'replace'
  readonly execute: Execute<AssociationsState>
}

/** The object types of a HubSpot account. */
export interface HubspotSource {
  readonly contacts: HubspotStream
  readonly companies: HubspotStream
  readonly deals: HubspotStream
  readonly tickets: HubspotStream
  /** Any other object type, by name or id. */
  object(type: string): HubspotStream
  /** The associations from the objects of one type to those of another, with their labels. A listing: every cycle reads all. */
  associations(from: string, to: string): HubspotAssociations
  /** Lists the standard types and the custom types of the account. */
  discover(context: SyncContext): Promise<
    {
      readonly id: string
      readonly key: readonly string[]
      readonly cursor: string
      readonly candidates: readonly string[]
      readonly aliases: readonly string[]
    }[]
  >
}

/**
 * The backfill reads lists. The delta searches for modified objects and every few minutes lists the archived ones, which no
 * search returns: `worker.track('contacts', { database, source: hubspot({ accessToken: 'HUBSPOT_TOKEN' }).contacts })`.
 */
export function hubspot(options: HubspotOptions): HubspotSource {
  return withConnection(options.connection, createHubspot(options))
}

function createHubspot(options: HubspotOptions): HubspotSource {
  const portal = new HubspotPortal(options)
  return {
    contacts: portal.createStream('contacts'),
    companies: portal.createStream('companies'),
    deals: portal.createStream('deals'),
    tickets: portal.createStream('tickets'),
    object: (type) => portal.createStream(type),
    associations: (from, to) => portal.createAssociations(from, to),
    discover: async (context) =>
      [
        ...Object.keys(STANDARD_PROPERTIES).map((id) => ({ id, aliases: [] })),
        ...(await portal.listCustomTypes(context)),
      ].map(({ id, aliases }) => ({
        id,
        aliases,
        key: ['id'],
        cursor: getModifiedProperty(id),
        candidates: ['createdate', getModifiedProperty(id)],
      })),
  }
}

/** The recycling bin keeps archived objects for 90 days. */
const ARCHIVE_RETENTION_MS = 90 * 86_400_000
const LOOK_BACK_MS = 5 * 60_000
const ARCHIVE_INTERVAL_MS = 5 * 60_000

class HubspotPortal {
  readonly #client: HttpClient
  readonly #options: HubspotOptions
  /** The properties of custom types by cycle, because syncs of several tenants may alternate. */
  readonly #propertiesByCycle = new Map<string, readonly string[]>()

  constructor(options: HubspotOptions) {
    const { accessToken, connection, baseUrl = 'https://api.hubapi.com' } = options
    const bearerAuth = accessToken === undefined ? undefined : bearer(accessToken)
    const auth = requireOneAuth(
      options.auth,
      bearerAuth,
      'HubSpot needs either `accessToken`, `auth` or `connection`.',
      connection === undefined ? undefined : connectionAuth(),
    )
    this.#client = createHttpClient({ baseUrl: connectionBaseUrl(connection, baseUrl), auth })
    checkPageSize('HubSpot', options.limit ?? 100, 100)
    this.#options = options
  }

  /** Lists custom types by their fully qualified names. A token without access to schemas still reads the standard types. */
  async listCustomTypes(context: SyncContext): Promise<{ id: string; aliases: string[] }[]> {
    const { status, body } = await this.#client.get('/crm/v3/schemas', {}, context, { answers: [403] })
    if (status === 403) return []
    if (!isObject(body) || !Array.isArray(body.results) || !body.results.every(isObject))
      throw new SyncError('SOURCE_INVALID', 'HubSpot returned a response without schemas.')
    return body.results.map(({ fullyQualifiedName, objectTypeId }) => ({
      id: String(fullyQualifiedName),
      aliases: [String(objectTypeId)],
    }))
  }

  createStream(type: string): HubspotStream {
    const { lagMs = 10_000, limit = 100, archivedEveryMs = ARCHIVE_INTERVAL_MS } = this.#options
    const since = parseSince(this.#options.since)
    const path = `/crm/v3/objects/${encodePathSegment(type)}`
    const modified = getModifiedProperty(type)
    const upsert = (item: JsonObject): Change => ({
      type: 'upsert',
      key: requireId(item),
      record: item,
      upstreamUpdatedAt: requireModifiedTime(item, modified),
    })

    const backfill = token({
      limit,
      confirms: true,
      read: async ({ token: after }, context) => {
        const properties = (await this.#listProperties(type, context)).join(',')
        const { results, next } = await this.#list(path, after, { properties }, context)
        if (results.some(({ archived }) => archived === true))
          throw new SyncError('SOURCE_INVALID', 'The HubSpot list of active objects contains an archived object.')
        return { changes: results.map(upsert), next }
      },
    })
    const deletes = createArchiveListing({
      read: async ({ after }, context) => {
        const query = { archived: true, properties: 'hs_object_id' }
        const { results, ...rest } = await this.#list(path, after, query, context)
        return { changes: results.map(toDelete), ...rest }
      },
      lagMs,
      intervalMs: archivedEveryMs,
      limit,
    })
    const readSearch = async (query: SearchQuery, context: SyncContext): Promise<SearchAnswer<JsonObject>> => {
      const properties = await this.#listProperties(type, context)
      const request = buildSearchRequest(query, modified, properties)
      const { body, serverTime } = await this.#client.post(`${path}/search`, request, context)
      return { items: parseResults(body), serverTime, total: parseTotal(body) }
    }
    const searchBy = (read: typeof readSearch): AnchoredExecute<SearchState> =>
      search<JsonObject>({
        read,
        modifiedMs: (item) => Date.parse(requireModifiedTime(item, modified)),
        id: requireId,
        toChange: upsert,
        lagMs,
        limit,
        lookBackMs: LOOK_BACK_MS,
      })
    const delta = streams({ changes: searchBy(readSearch), deletes })
    const lookup: Lookup = async (key, context) => {
      const properties = (await this.#listProperties(type, context)).join(',')
      const { status, body } = await this.#client.get(`${path}/${encodePathSegment(key)}`, { properties }, context, {
        answers: [404],
      })
      if (status === 404) return null
      if (!isObject(body)) throw new SyncError('SOURCE_INVALID', 'HubSpot returned a response without an object.')
      const found = upsert(body)
      return isModifiedSince(found, since) ? found : null
    }
    const range = (asked: TimeRange): Execute<SearchState> => readRange(limitRange(asked, since), readSearch, searchBy)
    const listing = keepModifiedSince(withLaggedTidemark(backfill, lagMs), since)
    return {
      lookup,
      lagMs,
      backfill: Object.assign(withSinceScope(listing, since), { lagMs, lookup, range }),
      delta: Object.assign(delta, { retentionMs: ARCHIVE_RETENTION_MS - lagMs }),
      anchor: delta.anchor,
    }
  }

  createAssociations(from: string, to: string): HubspotAssociations {
    const { lagMs = 10_000, limit = 100 } = this.#options
    const objects = token({
      limit,
      confirms: true,
      read: async ({ token: after }, context) => {
        const path = `/crm/v3/objects/${encodePathSegment(from)}`
        const { results, next } = await this.#list(path, after, { properties: 'hs_object_id' }, context)
        return { changes: results.map((item) => ({ type: 'upsert', key: requireId(item), record: {} })), next }
      },
    })
    const path = `/crm/v4/associations/${encodePathSegment(from)}/${encodePathSegment(to)}/batch/read`
    const listing = listAssociations({
      objects,
      readBatch: async (inputs, context) => {
        const { body } = await this.#client.post(path, { inputs: inputs.map((input) => ({ ...input })) }, context)
        return body
      },
    })
    return {
      mode: 'replace',
      execute: withoutRange(Object.assign(withLaggedTidemark(listing, lagMs), { lagMs }), 'associations have no times'),
    }
  }

  async #list(
    path: string,
    after: string | undefined,
    query: Query,
    context: SyncContext,
  ): Promise<{ results: JsonObject[]; next: string | null; serverTime: number | null }> {
    const { body, serverTime } = await this.#client.get(
      path,
      { limit: this.#options.limit ?? 100, after, ...query },
      context,
      after === undefined ? {} : { cursorRefusals: [400] },
    )
    return { results: parseResults(body), next: parseNextCursor(body), serverTime }
  }

  /** The properties to request. Those of a custom type are read from its schema, once in each cycle. */
  async #listProperties(type: string, context: SyncContext): Promise<string[]> {
    const given = this.#options.properties?.[type]
    const own =
      given === undefined && isCustomType(type)
        ? await this.#readSchemaProperties(type, context)
        : [...(STANDARD_PROPERTIES[type] ?? []), ...(given ?? [])]
    return [...new Set([...own, 'createdate', getModifiedProperty(type), 'hs_object_id'])]
  }

  async #readSchemaProperties(type: string, context: SyncContext): Promise<readonly string[]> {
    const cycle = `${context.cycle.id} ${context.cycle.startedAt} ${type}`
    const cached = this.#propertiesByCycle.get(cycle)
    if (cached !== undefined) return cached
    const { status, body } = await this.#client.get(`/crm/v3/schemas/${encodePathSegment(type)}`, {}, context, {
      answers: [403, 404],
    })
    const names = status === 200 ? parsePropertyNames(body) : []
    if (status !== 200)
      context.log.warn('the schema of the custom object is not readable; only its system properties are read', { type })
    if (this.#propertiesByCycle.size === CYCLES_MAX) this.#propertiesByCycle.clear()
    this.#propertiesByCycle.set(cycle, names)
    return names
  }
}

const CYCLES_MAX = 64

/** The properties that the account has defined. */
function parsePropertyNames(body: JsonValue): string[] {
  const properties = isObject(body) ? body.properties : undefined
  if (!Array.isArray(properties) || !properties.every(isObject))
    throw new SyncError('SOURCE_INVALID', 'HubSpot returned a schema without properties.')
  return properties
    .filter(({ archived, hubspotDefined }) => archived !== true && hubspotDefined !== true)
    .map(({ name }) => String(name))
}

/** Reads the objects that were last modified in a range, with the search of the delta. */
function readRange(
  { from, to }: TimeRange,
  read: (query: SearchQuery, context: SyncContext) => Promise<SearchAnswer<JsonObject>>,
  searchBy: (limited: typeof read) => AnchoredExecute<SearchState>,
): Execute<SearchState> {
  const fromMs = from === undefined ? 0 : roundUpToMs(from)
  const throughMs = to === undefined ? Number.POSITIVE_INFINITY : roundUpToMs(to) - 1
  const limited = searchBy(async (query, context) =>
    query.fromMs > throughMs
      ? { items: [], total: 0 }
      : read({ ...query, untilMs: Math.min(query.untilMs, throughMs) }, context),
  )
  return async (state = { phase: 'delta', cursorMs: fromMs }, context) => {
    const cycle = { ...context.cycle, mode: 'incremental' } as const
    return { ...(await limited(state, { ...context, cycle })), tidemark: null }
  }
}

/** Times of HubSpot have milliseconds. */
function roundUpToMs(time: string): number {
  return instantToMs(time) + (time.slice(23, 26) === '000' ? 0 : 1)
}

/** The list cannot be filtered, so older objects are dropped from its pages. */
function keepModifiedSince<State>(execute: Execute<State>, since: string | undefined): Execute<State> {
  if (since === undefined) return execute
  return async (state, context) => {
    const page = await execute(state, context)
    return { ...page, changes: page.changes.filter((change) => isModifiedSince(change, since)) }
  }
}

function isModifiedSince(change: Change, since: string | undefined): boolean {
  if (since === undefined || change.type !== 'upsert') return true
  return Date.parse(change.upstreamUpdatedAt ?? '') >= roundUpToMs(since)
}

function buildSearchRequest(
  { fromMs, untilMs, sortBy, afterId, throughId, limit }: SearchQuery,
  modified: string,
  properties: readonly string[],
): JsonObject {
  const filter = (propertyName: string, operator: string, value: string): JsonObject => ({
    propertyName,
    operator,
    value,
  })
  const times =
    sortBy === 'id'
      ? [filter(modified, 'EQ', String(fromMs))]
      : [filter(modified, 'GTE', String(fromMs)), filter(modified, 'LTE', String(untilMs))]
  const ids = [
    ...(afterId === undefined ? [] : [filter('hs_object_id', 'GT', afterId)]),
    ...(throughId === undefined ? [] : [filter('hs_object_id', 'LTE', throughId)]),
  ]
  return {
    filterGroups: [{ filters: [...times, ...ids] }],
    sorts: [{ propertyName: sortBy === 'id' ? 'hs_object_id' : modified, direction: 'ASCENDING' }],
    properties: [...properties],
    limit,
  }
}

/** A restored object is modified after `archivedAt`, so it is upserted again. */
function toDelete(item: JsonObject): Change {
  if (item.archived !== true || typeof item.archivedAt !== 'string')
    throw new SyncError('SOURCE_INVALID', 'The HubSpot list of archived objects contains an active object.')
  return { type: 'delete', key: requireId(item), upstreamUpdatedAt: item.archivedAt }
}

function parseResults(body: JsonValue): JsonObject[] {
  if (!isObject(body) || !Array.isArray(body.results) || !body.results.every(isObject))
    throw new SyncError('SOURCE_INVALID', 'HubSpot returned a response without results.')
  return body.results
}

/** Every complete search response has `total`. */
function parseTotal(body: JsonValue): number {
  const total = isObject(body) ? body.total : undefined
  if (typeof total !== 'number' || !Number.isSafeInteger(total) || total < 0)
    throw new SyncError('SOURCE_INVALID', 'HubSpot returned a search response without `total`.')
  return total
}

/** The last page has no `paging`. */
function parseNextCursor(body: JsonValue): string | null {
  const paging = isObject(body) ? body.paging : undefined
  if (paging === undefined || paging === null) return null
  const next = isObject(paging) ? paging.next : undefined
  if (!isObject(next) || typeof next.after !== 'string')
    throw new SyncError('SOURCE_INVALID', 'HubSpot returned `paging` without a next cursor.')
  return next.after
}

function requireId({ id }: JsonObject): string {
  if (typeof id !== 'string') throw new SyncError('SOURCE_INVALID', 'A HubSpot object has no id.')
  return id
}

function requireModifiedTime({ properties }: JsonObject, modified: string): string {
  const time = isObject(properties) ? properties[modified] : undefined
  if (typeof time !== 'string') throw new SyncError('SOURCE_INVALID', `A HubSpot object has no \`${modified}\`.`)
  return time
}
