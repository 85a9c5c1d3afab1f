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
  keyset,
  type AnchoredExecute,
  type KeysetAnswer,
  type KeysetQuery,
  type KeysetState,
} from '../../strategies/index.ts'
import { canonicalizeInstant } from '../../values/instant.ts'
import { required } from '../../values/required.ts'
import { bearer, requireOneAuth, type Auth, type SecretSource } from '../kit/auth.ts'
import { createHttpClient, type HttpResponse, type HttpClient } from '../kit/http-client.ts'
import { isObject, type ResponseClassifier } from '../kit/classify-response.ts'
import { checkPageSize } from '../kit/page-size.ts'
import { PageColumnTypes } from '../kit/page-column-types.ts'
import { parseSafetyWindowMs } from '../kit/safety-window.ts'
import { readTableShape, SYSTEM_SHAPE } from './describe.ts'
import { discoverObjects, type DiscoveredObject } from './discover.ts'

/** Options of `salesforce`. */
export interface SalesforceOptions {
  /** The URL of the org: https://example.my.salesforce.com */
  readonly instanceUrl: string
  readonly accessToken?: SecretSource
  /** Replaces `accessToken`. Salesforce tokens expire, so this is usually an OAuth grant. */
  readonly auth?: Auth
  readonly apiVersion?: string
  readonly limit?: number
  /** The visibility delay of a change in queries. */
  readonly lagMs?: number
  /** Whether to read field types, with one request in each cycle that has records. The default is true. */
  readonly metadata?: boolean
}

/** One object of a Salesforce org. Pass it to `worker.track`. */
export interface SalesforceStream {
  readonly backfill: Execute<KeysetState>
  readonly delta: Execute<KeysetState>
  readonly anchor: (context: SyncContext) => Promise<KeysetState | undefined>
  readonly lookup: Lookup
  /** The visibility delay of a change in the backfill. */
  readonly lagMs: number
}

/** The objects of a Salesforce org. */
export interface SalesforceSource {
  /**
   * `fields` lists fields beyond the system fields. The default is all fields, which Salesforce allows for pages of up to 200.
   * `safetyWindow` is the time span that every delta cycle re-reads, as a duration such as PT5M.
   */
  object(
    name: string,
    options?: { readonly fields?: readonly string[]; readonly safetyWindow?: string },
  ): SalesforceStream
  /** Lists the objects, with the fields of the `described` ones. */
  discover(context: SyncContext, described?: readonly string[]): Promise<DiscoveredObject[]>
}

/**
 * The backfill reads by creation time. The delta reads by modification time and includes deleted rows while they are in the
 * recycle bin: `worker.track('accounts', { database, source: salesforce({ … }).object('Account') })`.
 */
export function salesforce({
  instanceUrl,
  accessToken,
  auth,
  apiVersion = '60.0',
  limit = 100,
  lagMs = 15_000,
  metadata = true,
}: SalesforceOptions): SalesforceSource {
  const bearerAuth = accessToken === undefined ? undefined : bearer(accessToken)
  const chosenAuth = requireOneAuth(auth, bearerAuth, 'Salesforce needs either `accessToken` or `auth`.')
  checkPageSize('Salesforce', limit, 2_000)
  const client = createHttpClient({
    baseUrl: `${instanceUrl.replace(/\/+$/, '')}/services/data/v${apiVersion}`,
    auth: chosenAuth,
    classifyResponse,
  })
  return {
    discover: (context, described = []) => discoverObjects(client, context, described),
    object(name, { fields, safetyWindow } = {}) {
      const overlapMs = parseSafetyWindowMs(safetyWindow)
      const columns = fields === undefined ? ['FIELDS(ALL)'] : [...new Set([...SYSTEM_FIELDS, ...fields])]
      const invalidName = [name, ...(fields ?? [])].find((text) => !/^[A-Za-z]\w*(?:\.[A-Za-z]\w*)*$/.test(text))
      if (invalidName !== undefined)
        throw new SyncError('SYNC_INVALID', `"${invalidName}" is not a valid Salesforce object or field name.`)
      const readBy = (
        stamp: 'CreatedDate' | 'SystemModstamp',
        resource: 'query' | 'queryAll',
      ): AnchoredExecute<KeysetState> =>
        keyset<JsonObject>({
          read: (query, context) => readPage(client, resource, buildSoql(query, columns, name, stamp), query, context),
          timestamp: (record) => requireString(record, stamp),
          id: (record) => requireString(record, 'Id'),
          toChange,
          // Timestamps are in whole seconds, which adds up to a second of delay.
          lagMs: lagMs + TIMESTAMP_RESOLUTION_MS,
          limit,
          confirms: true,
          ...(overlapMs !== undefined && { overlapMs }),
        })
      const types = new PageColumnTypes({
        name,
        knownShape: SYSTEM_SHAPE,
        requiredPermission: 'read access to the description of the object',
        readShape: metadata ? (context) => readTableShape(client, name, context) : undefined,
      })
      const delta = Object.assign(types.attachTo(readBy('SystemModstamp', 'queryAll')), {
        retentionMs: RECYCLE_BIN_MS - lagMs - TIMESTAMP_RESOLUTION_MS,
      })
      const lookup: Lookup = async (key, context) => {
        if (!ID_PATTERN.test(key)) return null
        const { body } = await client.get(
          '/query',
          { q: `SELECT ${columns.join(', ')} FROM ${name} WHERE Id = '${key}' LIMIT 1` },
          context,
        )
        const [record] = parseQueryResult(body).records
        if (record === undefined) return null
        // Ids have 15 characters, or 18 with a checksum.
        if (requireString(record, 'Id').slice(0, 15) !== key.slice(0, 15))
          throw new SyncError('SOURCE_INVALID', 'Salesforce returned another record than the requested one.')
        return toChange(record)
      }
      const backfill = Object.assign(types.attachTo(readBy('CreatedDate', 'query')), { lagMs, lookup })
      return { backfill, delta, anchor: delta.anchor, lookup, lagMs }
    },
  }
}

const SYSTEM_FIELDS = ['Id', 'CreatedDate', 'SystemModstamp', 'IsDeleted']
const TIMESTAMP_RESOLUTION_MS = 1_000
/** Deleted rows stay in the recycle bin, and so in `queryAll`, for 15 days. */
const RECYCLE_BIN_MS = 15 * 86_400_000

function buildSoql(
  { after, until, limit }: KeysetQuery,
  columns: readonly string[],
  name: string,
  stamp: string,
): string {
  const conditions: string[] = []
  if (after !== undefined) {
    const time = formatSoqlTime(after.timestamp)
    conditions.push(
      after.id === ''
        ? `${stamp} >= ${time}`
        : `(${stamp} > ${time} OR (${stamp} = ${time} AND Id > '${requireValidId(after.id)}'))`,
    )
  }
  if (until !== undefined) conditions.push(`${stamp} <= ${formatSoqlTime(until)}`)
  const where = conditions.length === 0 ? '' : ` WHERE ${conditions.join(' AND ')}`
  return `SELECT ${columns.join(', ')} FROM ${name}${where} ORDER BY ${stamp} ASC, Id ASC LIMIT ${limit}`
}

/** Salesforce returns times with +0000 but accepts Z only. */
function formatSoqlTime(timestamp: string): string {
  return `${required(canonicalizeInstant(timestamp), 'The instant of the cursor').slice(0, 23)}Z`
}

const ID_PATTERN = /^[A-Za-z\d]{15,18}$/

/** The id comes from a state that may have been edited, and becomes part of a query. */
function requireValidId(id: string): string {
  if (!ID_PATTERN.test(id)) throw new SyncError('STATE_UNREADABLE', 'The stored cursor has an invalid Salesforce id.')
  return id
}

async function readPage(
  client: HttpClient,
  resource: string,
  soql: string,
  { limit, locator }: KeysetQuery,
  context: SyncContext,
): Promise<KeysetAnswer<JsonObject>> {
  const continued = locator === undefined ? null : await client.get(locator, {}, context, { answers: [400, 404] })
  // A locator expires after days, and an exhausted one proves nothing. In both cases the query continues from the cursor.
  const located =
    continued !== null && continued.status < 400 && !isExhausted(parseQueryResult(continued.body)) ? continued : null
  const response = located ?? (await client.get(`/${resource}`, { q: soql }, context))
  const { records, isDone, next, total } = parseQueryResult(response.body)
  const isLocated = located !== null
  // `totalSize` is the size of the whole result. Pages of a locator contain a part of it.
  if (isDone && !isLocated && records.length < total) {
    throw new SyncError(
      'SOURCE_INVALID',
      `Salesforce returned ${records.length} of ${total} records: the response is incomplete.`,
    )
  }
  return {
    items: records,
    // None of these signals is reliable alone.
    end: isDone && !isLocated && records.length < limit,
    serverTime: response.serverTime,
    locator: resolveLocator(next, response, client, context),
  }
}

function isExhausted({
  records,
  isDone,
}: {
  readonly records: readonly JsonObject[]
  readonly isDone: boolean
}): boolean {
  return isDone && records.length === 0
}

function resolveLocator(
  next: string | null,
  response: HttpResponse,
  client: HttpClient,
  context: SyncContext,
): string | null {
  return next === null ? null : client.resolveLink(next, response, context)
}

function parseQueryResult(body: JsonValue): {
  records: JsonObject[]
  isDone: boolean
  next: string | null
  total: number
} {
  if (
    !isObject(body) ||
    !Array.isArray(body.records) ||
    !body.records.every(isObject) ||
    typeof body.done !== 'boolean' ||
    typeof body.totalSize !== 'number'
  ) {
    throw new SyncError('SOURCE_INVALID', 'Salesforce returned a response that is not a query result.')
  }
  return {
    records: body.records,
    isDone: body.done,
    total: body.totalSize,
    next: typeof body.nextRecordsUrl === 'string' ? body.nextRecordsUrl : null,
  }
}

function toChange(item: JsonObject): Change {
  const record = { ...item }
  delete record.attributes
  const key = requireString(record, 'Id')
  const upstreamUpdatedAt = requireString(record, 'SystemModstamp')
  return record.IsDeleted === true
    ? { type: 'delete', key, upstreamUpdatedAt }
    : { type: 'upsert', key, record, upstreamUpdatedAt }
}

function requireString(record: JsonObject, field: string): string {
  const value = record[field]
  if (typeof value !== 'string' || value === '')
    throw new SyncError('SOURCE_INVALID', `A Salesforce record has no \`${field}\`.`)
  return value
}

/** Failures are lists of codes. By status alone, an exhausted budget looks like a rejected token. */
const classifyResponse: ResponseClassifier = ({ status, body }) => {
  if (status < 400 || !Array.isArray(body)) return null
  const codes = new Set(body.map((error) => (isObject(error) ? error.errorCode : undefined)))
  if (codes.has('REQUEST_LIMIT_EXCEEDED')) return { code: 'RATE_LIMITED', reason: 'a request limit' }
  return codes.has('QUERY_TIMEOUT') || codes.has('SERVER_UNAVAILABLE')
    ? { code: 'SOURCE_UNAVAILABLE', reason: 'an unfinished query' }
    : null
}
