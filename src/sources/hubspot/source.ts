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
  search,
  streams,
  token,
  type SearchQuery,
  type SearchState,
  type StreamsState,
  type TokenState,
} from '../../strategies/index.ts'
import { withLaggedTidemark } from '../../strategies/kit/lagged-tidemark.ts'
import { bearer, requireOneAuth, type Auth, type SecretSource } from '../kit/auth.ts'
import { createHttpClient, type HttpClient, type Query } from '../kit/http-client.ts'
import { isObject } from '../kit/classify-response.ts'
import { encodePathSegment } from '../kit/origin.ts'
import { checkPageSize } from '../kit/page-size.ts'
import { createArchiveListing, type ArchiveState } from './archive-listing.ts'

/** Options of `hubspot`. */
export interface HubspotOptions {
  /** The token of a private app, or the name of the secret that holds it. */
  readonly accessToken?: SecretSource
  /** Replaces `accessToken`. */
  readonly auth?: Auth
  readonly baseUrl?: string
  /** Additional properties to read, by object type. */
  readonly properties?: Readonly<Record<string, readonly string[]>>
  /** The visibility delay of a change in the search. */
  readonly lagMs?: number
  /** The page size of lists and searches, up to 100. */
  readonly limit?: number
  /**
   * The minimum interval between listings of archived objects. The default is 5 minutes; 0 lists them in every cycle. Each
   * listing reads the complete list. Deletions arrive with the next listing, and the tidemark stays at the last one.
   */
  readonly archivedEveryMs?: number
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

/** The object types of a HubSpot account. */
export interface HubspotSource {
  readonly contacts: HubspotStream
  readonly companies: HubspotStream
  readonly deals: HubspotStream
  readonly tickets: HubspotStream
  /** Any other object type, by name or id. */
  object(type: string): HubspotStream
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
  const portal = new HubspotPortal(options)
  return {
    contacts: portal.createStream('contacts'),
    companies: portal.createStream('companies'),
    deals: portal.createStream('deals'),
    tickets: portal.createStream('tickets'),
    object: (type) => portal.createStream(type),
    discover: async (context) =>
      [
        ...Object.keys(DEFAULT_PROPERTIES).map((id) => ({ id, aliases: [] })),
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

/** Lists and searches return other default properties, so all properties are requested by name. */
const DEFAULT_PROPERTIES: Readonly<Record<string, readonly string[]>> = {
  contacts: ['email', 'firstname', 'lastname'],
  companies: ['name', 'domain'],
  deals: ['dealname', 'amount', 'closedate', 'dealstage', 'pipeline'],
  tickets: ['subject', 'content', 'hs_pipeline', 'hs_pipeline_stage', 'hs_ticket_priority'],
}
/** Contacts predate the `hs_` prefix. */
function getModifiedProperty(type: string): string {
  return type === 'contacts' || type === '0-1' ? 'lastmodifieddate' : 'hs_lastmodifieddate'
}

/** The recycling bin keeps archived objects for 90 days. */
const ARCHIVE_RETENTION_MS = 90 * 86_400_000
const LOOK_BACK_MS = 5 * 60_000
const ARCHIVE_INTERVAL_MS = 5 * 60_000

class HubspotPortal {
  readonly #client: HttpClient
  readonly #options: HubspotOptions

  constructor(options: HubspotOptions) {
    const { accessToken, baseUrl = 'https://api.hubapi.com' } = options
    const bearerAuth = accessToken === undefined ? undefined : bearer(accessToken)
    const auth = requireOneAuth(options.auth, bearerAuth, 'HubSpot needs either `accessToken` or `auth`.')
    this.#client = createHttpClient({ baseUrl, auth })
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
    const path = `/crm/v3/objects/${encodePathSegment(type)}`
    const modified = getModifiedProperty(type)
    const given = [...(DEFAULT_PROPERTIES[type] ?? []), ...(this.#options.properties?.[type] ?? [])]
    const properties = [...new Set([...given, 'createdate', modified, 'hs_object_id'])]
    const upsert = (item: JsonObject): Change => ({
      type: 'upsert',
      key: requireId(item),
      record: item,
      upstreamUpdatedAt: requireModifiedTime(item, modified),
    })

    const list = async (after: string | undefined, query: Query, context: SyncContext) => {
      const { body, serverTime } = await this.#client.get(
        path,
        { limit, after, ...query },
        context,
        after === undefined ? {} : { cursorRefusals: [400] },
      )
      return { results: parseResults(body), next: parseNextCursor(body), serverTime }
    }
    const backfill = token({
      limit,
      confirms: true,
      read: async ({ token: after }, context) => {
        const { results, next } = await list(after, { properties: properties.join(',') }, context)
        if (results.some(({ archived }) => archived === true))
          throw new SyncError('SOURCE_INVALID', 'The HubSpot list of active objects contains an archived object.')
        return { changes: results.map(upsert), next }
      },
    })
    const deletes = createArchiveListing({
      read: async ({ after }, context) => {
        const { results, ...rest } = await list(after, { archived: true, properties: 'hs_object_id' }, context)
        return { changes: results.map(toDelete), ...rest }
      },
      lagMs,
      intervalMs: archivedEveryMs,
      limit,
    })
    const changes = search<JsonObject>({
      read: async (query, context) => {
        const { body, serverTime } = await this.#client.post(
          `${path}/search`,
          buildSearchRequest(query, modified, properties),
          context,
        )
        return { items: parseResults(body), serverTime, total: parseTotal(body) }
      },
      modifiedMs: (item) => Date.parse(requireModifiedTime(item, modified)),
      id: requireId,
      toChange: upsert,
      lagMs,
      limit,
      lookBackMs: LOOK_BACK_MS,
    })
    const delta = streams({ changes, deletes })
    const lookup: Lookup = async (key, context) => {
      const { status, body } = await this.#client.get(
        `${path}/${encodePathSegment(key)}`,
        { properties: properties.join(',') },
        context,
        { answers: [404] },
      )
      if (status === 404) return null
      if (!isObject(body)) throw new SyncError('SOURCE_INVALID', 'HubSpot returned a response without an object.')
      return upsert(body)
    }
    return {
      lookup,
      lagMs,
      backfill: Object.assign(withLaggedTidemark(backfill, lagMs), { lagMs, lookup }),
      delta: Object.assign(delta, { retentionMs: ARCHIVE_RETENTION_MS - lagMs }),
      anchor: delta.anchor,
    }
  }
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
