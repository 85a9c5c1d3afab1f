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
  keyset,
  type AnchoredExecute,
  type KeysetAnswer,
  type KeysetQuery,
  type KeysetState,
} from '../../strategies/index.ts'
import { canonicalizeInstant, instantToMs } from '../../values/instant.ts'
import { required } from '../../values/required.ts'
import { bearer, requireOneAuth, type Auth, type SecretSource } from '../kit/auth.ts'
import { connectionAuth, connectionInstanceUrl, withConnection, type ConnectionOption } from '../kit/connection-auth.ts'
import { createHttpClient, type HttpResponse, type HttpClient } from '../kit/http-client.ts'
import { isObject, type ResponseClassifier } from '../kit/classify-response.ts'
import { checkPageSize } from '../kit/page-size.ts'
import { PageColumnTypes } from '../kit/page-column-types.ts'
import { parseSafetyWindowMs } from '../kit/safety-window.ts'
import { limitRange, parseSince, withSinceScope } from '../kit/since.ts'
import { bulkListing, type BulkPlan, type BulkState } from './bulk-listing.ts'
import { isReadableInBulk, ObjectDescription, SYSTEM_SHAPE, toTableShape } from './describe.ts'
import { discoverObjects, type DiscoveredObject } from './discover.ts'

/** Options of `salesforce`. */
export interface SalesforceOptions extends ConnectionOption {
  /** The URL of the org: https://example.my.salesforce.com. A connection has its own. */
  readonly instanceUrl?: string
  readonly accessToken?: SecretSource
  /** Replaces `accessToken`. Salesforce tokens expire, so this is usually an OAuth grant. */
  readonly auth?: Auth
  readonly apiVersion?: string
  /** The records of a page. The default is 2,000, or 200 when all fields are read, and 5,000 for results of a job. */
  readonly limit?: number
  /**
   * Whether the backfill reads by a query job of Bulk API 2.0. `auto`, the default, creates a job for more than
   * `bulkAbove` records of an object whose fields Bulk returns as the REST API does. `true` creates one for every object;
   * without `fields`, compound fields and blobs are then left out of all reads, because Bulk does not have them.
   */
  readonly bulk?: 'auto' | boolean
  /** The number of records above which `auto` creates a job. The default is 50,000. */
  readonly bulkAbove?: number
  /** A start date, such as 2024-01-31. Records that were last modified before it are not read. */
  readonly since?: string
  /** The visibility delay of a change in queries. */
  readonly lagMs?: number
  /** Whether to read field types, with one request in each cycle that has records. The default is true. */
  readonly metadata?: boolean
}

/** One object of a Salesforce org. Pass it to `worker.track`. */
export interface SalesforceStream {
  readonly backfill: Execute<SalesforceBackfillState>
  readonly delta: Execute<KeysetState>
  readonly anchor: (context: SyncContext) => Promise<KeysetState | undefined>
  readonly lookup: Lookup
  /** The visibility delay of a change in the backfill. */
  readonly lagMs: number
}

/** The state of a backfill: the cursor of a list, or the step of a query job. */
export type SalesforceBackfillState = KeysetState | BulkState

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
export function salesforce(options: SalesforceOptions): SalesforceSource {
  return withConnection(options.connection, createSalesforce(options))
}

function createSalesforce({
  instanceUrl,
  accessToken,
  auth,
  connection,
  apiVersion = '60.0',
  limit,
  bulk = 'auto',
  bulkAbove = BULK_ABOVE,
  since: startDate,
  lagMs = 15_000,
  metadata = true,
}: SalesforceOptions): SalesforceSource {
  const bearerAuth = accessToken === undefined ? undefined : bearer(accessToken)
  const chosenAuth = requireOneAuth(
    auth,
    bearerAuth,
    'Salesforce needs either `accessToken`, `auth` or `connection`.',
    connection === undefined ? undefined : connectionAuth(),
  )
  checkPageSize('Salesforce', limit ?? REST_RECORDS_MAX, REST_RECORDS_MAX)
  const since = parseSince(startDate)
  const client = createHttpClient({
    baseUrl: connectionInstanceUrl('Salesforce', connection, instanceUrl, `/services/data/v${apiVersion}`),
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
      const description = new ObjectDescription(client, name)
      const omitsCompounds = bulk === true && metadata && fields === undefined
      const pageLimit = Math.min(limit ?? REST_RECORDS_MAX, fields === undefined ? ALL_FIELDS_RECORDS_MAX : Infinity)
      // Timestamps are in whole seconds, which adds up to a second of delay.
      const readLagMs = lagMs + TIMESTAMP_RESOLUTION_MS

      /** The record without the fields that Bulk does not have, so that every read returns the same columns. */
      const omitCompounds = async (records: readonly JsonObject[], context: SyncContext): Promise<JsonObject[]> => {
        if (!omitsCompounds || records.length === 0) return [...records]
        const described = await description.readFields(context)
        const omitted = new Set(described?.filter((field) => !isReadableInBulk(field)).map((field) => field.name))
        return records.map((record) =>
          Object.fromEntries(Object.entries(record).filter(([member]) => !omitted.has(member))),
        )
      }
      const readBy = (
        stamp: 'CreatedDate' | 'SystemModstamp',
        resource: 'query' | 'queryAll',
        conditions: readonly string[],
      ): AnchoredExecute<KeysetState> =>
        keyset<JsonObject>({
          read: async (query, context) => {
            const soql = buildSoql(query, columns, name, stamp, conditions)
            const answer = await readPage(client, resource, soql, query, context)
            return { ...answer, items: await omitCompounds(answer.items, context) }
          },
          timestamp: (record) => requireString(record, stamp),
          id: (record) => requireString(record, 'Id'),
          toChange,
          lagMs: readLagMs,
          limit: pageLimit,
          confirms: true,
          ...(overlapMs !== undefined && { overlapMs }),
          ...(since !== undefined && { since }),
        })
      const types = new PageColumnTypes({
        name,
        knownShape: SYSTEM_SHAPE,
        requiredPermission: 'read access to the description of the object',
        readShape: metadata
          ? async (context) => {
              const described = await description.readFields(context)
              if (described === null) return null
              return toTableShape(omitsCompounds ? described.filter(isReadableInBulk) : described)
            }
          : undefined,
      })
      const planBulk = async (context: SyncContext): Promise<BulkPlan> => {
        const described = metadata ? await description.readFields(context) : null
        if (described === null) return { obstacle: 'the description of the object is not readable' }
        if (omitsCompounds) return { fields: described.filter(isReadableInBulk) }
        const wanted = fields === undefined ? null : new Set(columns.map((column) => column.toLowerCase()))
        const found = described.filter((field) => wanted === null || wanted.has(field.name.toLowerCase()))
        const isExact = found.length === (wanted?.size ?? described.length) && found.every(isReadableInBulk)
        return isExact ? { fields: found } : { obstacle: 'it has no compound fields, blobs or fields of parents' }
      }
      /** All records that meet the conditions. */
      const list = (
        stamp: 'CreatedDate' | 'SystemModstamp',
        conditions: readonly string[],
      ): Execute<SalesforceBackfillState> => {
        const rest = readBy(stamp, 'query', conditions)
        if (bulk === false) return types.attachTo<Execute<any>>(rest)
        const where = joinConditions(conditions)
        const listing = bulkListing({
          client,
          mode: bulk,
          above: bulkAbove,
          limit: limit ?? RESULT_RECORDS,
          lagMs: readLagMs,
          plan: planBulk,
          buildSoql: (names) => `SELECT ${names.join(', ')} FROM ${name}${where}`,
          toChange,
          count: async (context) => {
            const { body } = await client.get('/query', { q: `SELECT COUNT() FROM ${name}${where}` }, context)
            return parseQueryResult(body).total
          },
          rest,
        })
        return types.attachTo<Execute<any>>(listing)
      }
      const changedSince = since === undefined ? [] : [`SystemModstamp >= ${formatSoqlTime(since)}`]
      const delta = Object.assign(types.attachTo(readBy('SystemModstamp', 'queryAll', [])), {
        retentionMs: RECYCLE_BIN_MS - readLagMs,
      })
      const lookup: Lookup = async (key, context) => {
        if (!ID_PATTERN.test(key)) return null
        const where = joinConditions([`Id = '${key}'`, ...changedSince])
        const { body } = await client.get(
          '/query',
          { q: `SELECT ${columns.join(', ')} FROM ${name}${where} LIMIT 1` },
          context,
        )
        const [record] = await omitCompounds(parseQueryResult(body).records, context)
        if (record === undefined) return null
        // Ids have 15 characters, or 18 with a checksum.
        if (requireString(record, 'Id').slice(0, 15) !== key.slice(0, 15))
          throw new SyncError('SOURCE_INVALID', 'Salesforce returned another record than the requested one.')
        return toChange(record)
      }
      const backfill = Object.assign(withSinceScope(list('CreatedDate', changedSince), since), {
        lagMs,
        lookup,
        range: (range: TimeRange) => list('SystemModstamp', buildRangeConditions(limitRange(range, since))),
      })
      return { backfill, delta, anchor: delta.anchor, lookup, lagMs }
    },
  }
}

const SYSTEM_FIELDS = ['Id', 'CreatedDate', 'SystemModstamp', 'IsDeleted']
const TIMESTAMP_RESOLUTION_MS = 1_000
/** The largest page of a query, and its largest page with `FIELDS(ALL)`. */
const REST_RECORDS_MAX = 2_000
const ALL_FIELDS_RECORDS_MAX = 200
/** Some megabytes of CSV. */
const RESULT_RECORDS = 5_000
/** A job takes about a minute and five requests, which also read this many records by REST. */
const BULK_ABOVE = 50_000
/** Deleted rows stay in the recycle bin, and so in `queryAll`, for 15 days. */
const RECYCLE_BIN_MS = 15 * 86_400_000

function buildSoql(
  { after, until, limit }: KeysetQuery,
  columns: readonly string[],
  name: string,
  stamp: string,
  filters: readonly string[],
): string {
  const conditions = [...filters]
  if (after !== undefined) {
    const time = formatSoqlTime(after.timestamp)
    conditions.push(
      after.id === ''
        ? `${stamp} >= ${time}`
        : `(${stamp} > ${time} OR (${stamp} = ${time} AND Id > '${requireValidId(after.id)}'))`,
    )
  }
  if (until !== undefined) conditions.push(`${stamp} <= ${formatSoqlTime(until)}`)
  return `SELECT ${columns.join(', ')} FROM ${name}${joinConditions(conditions)} ORDER BY ${stamp} ASC, Id ASC LIMIT ${limit}`
}

function joinConditions(conditions: readonly string[]): string {
  return conditions.length === 0 ? '' : ` WHERE ${conditions.join(' AND ')}`
}

/** Times of Salesforce have milliseconds, so a finer end of a range is rounded up. */
function buildRangeConditions({ from, to }: TimeRange): string[] {
  return [
    ...(from === undefined ? [] : [`SystemModstamp >= ${formatSoqlTime(roundUpToMs(from))}`]),
    ...(to === undefined ? [] : [`SystemModstamp < ${formatSoqlTime(roundUpToMs(to))}`]),
  ]
}

function roundUpToMs(time: string): string {
  const canonical = required(canonicalizeInstant(time), 'The instant of a range')
  const ms = instantToMs(canonical)
  return canonical.slice(23, 26) === '000' ? canonical : new Date(ms + 1).toISOString()
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

/** The server may return less: it limits the size of a batch too. */
const LARGEST_BATCHES = { 'sforce-query-options': `batchSize=${REST_RECORDS_MAX}` }

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
  const response = located ?? (await client.get(`/${resource}`, { q: soql }, context, { headers: LARGEST_BATCHES }))
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
