import { SyncError, type Change, type Execute, type JsonObject, type JsonValue, type Lookup, type SyncContext } from '../../contract/index.ts'
import { keyset, type AnchoredExecute, type KeysetAnswer, type KeysetQuery, type KeysetState } from '../../strategies/index.ts'
import { canonicalizeInstant } from '../../values/instant.ts'
import { bearer, type Auth, type SecretSource } from '../kit/auth.ts'
import { createHttpClient, type HttpResponse, type HttpClient } from '../kit/http-client.ts'
import { isObject, type ResponseClassifier } from '../kit/classify-response.ts'
import { checkPageSize } from '../kit/page-size.ts'
import { PageColumnTypes } from '../kit/page-column-types.ts'
import { parseSafetyWindowMs } from '../kit/safety-window.ts'
import { readTableShape, SYSTEM_SHAPE } from './describe.ts'
import { discoverObjects, type DiscoveredObject } from './discover.ts'

export interface SalesforceOptions {
  /** Of the org: https://example.my.salesforce.com */
  readonly instanceUrl: string
  readonly accessToken?: SecretSource
  /** Instead of a token; tokens of Salesforce expire, so usually one of the OAuth grants. */
  readonly auth?: Auth
  readonly apiVersion?: string
  readonly limit?: number
  /** How long a change may take until a query finds it. */
  readonly lagMs?: number
  /** Whether the types of fields are asked for, with one request in each cycle that has records. True unless given. */
  readonly metadata?: boolean
}

export interface SalesforceStream {
  readonly backfill: Execute<KeysetState>
  readonly delta: Execute<KeysetState>
  readonly anchor: (context: SyncContext) => Promise<KeysetState | undefined>
  readonly lookup: Lookup
  /** How long a change may take to show in the backfill. */
  readonly lagMs: number
}

export interface SalesforceSource {
  /** `safetyWindow`: how much every cycle of the delta reads again, as a duration such as PT5M. `fields` beyond the ones every object has; all there are unless given, which Salesforce allows for pages of up to 200. */
  object(name: string, options?: { readonly fields?: readonly string[]; readonly safetyWindow?: string }): SalesforceStream
  /** What objects there are, and of the `described` ones the fields. */
  discover(context: SyncContext, described?: readonly string[]): Promise<DiscoveredObject[]>
}

/**
 * By creation for the backfill; by the last change for the delta, which sees deleted rows too while they are in the recycle
 * bin: `worker.track('accounts', { database, source: salesforce({ … }).object('Account') })`.
 */
export function salesforce({ instanceUrl, accessToken, auth, apiVersion = '60.0', limit = 100, lagMs = 15_000, metadata = true }: SalesforceOptions): SalesforceSource {
  if ((accessToken === undefined) === (auth === undefined)) throw new SyncError('SYNC_INVALID', 'Salesforce needs either `accessToken` or `auth`.')
  checkPageSize('Salesforce', limit, 2_000)
  const client = createHttpClient({ baseUrl: `${instanceUrl.replace(/\/+$/, '')}/services/data/v${apiVersion}`, auth: auth ?? bearer(accessToken!), classifyResponse })
  return {
    discover: (context, described = []) => discoverObjects(client, context, described),
    object(name, { fields, safetyWindow } = {}) {
      const overlapMs = parseSafetyWindowMs(safetyWindow)
      const columns = fields === undefined ? ['FIELDS(ALL)'] : [...new Set([...SYSTEM_FIELDS, ...fields])]
      const wrong = [name, ...(fields ?? [])].find((word) => !/^[A-Za-z]\w*(?:\.[A-Za-z]\w*)*$/.test(word))
      if (wrong !== undefined) throw new SyncError('SYNC_INVALID', `"${wrong}" is not a name of Salesforce.`)
      const by = (stamp: 'CreatedDate' | 'SystemModstamp', resource: 'query' | 'queryAll'): AnchoredExecute<KeysetState> => keyset<JsonObject>({
        read: (query, context) => readPage(client, resource, buildSoql(query, columns, name, stamp), query, context),
        timestamp: (record) => requireString(record, stamp),
        id: (record) => requireString(record, 'Id'),
        toChange: toChange,
        // Stamps are whole seconds: a row may show that much later than it says.
        lagMs: lagMs + TIMESTAMP_RESOLUTION_MS,
        limit,
        confirms: true,
        ...(overlapMs !== undefined && { overlapMs }),
      })
      const types = new PageColumnTypes({
        name, knownShape: SYSTEM_SHAPE, requiredPermission: 'read access to the description of the object',
        readShape: metadata ? (context) => readTableShape(client, name, context) : undefined,
      })
      const delta = Object.assign(types.attachTo(by('SystemModstamp', 'queryAll')), { retentionMs: RECYCLE_BIN_MS - lagMs - TIMESTAMP_RESOLUTION_MS })
      const lookup: Lookup = async (key, context) => {
        if (!ID_PATTERN.test(key)) return null
        const { body } = await client.get('/query', { q: `SELECT ${columns.join(', ')} FROM ${name} WHERE Id = '${key}' LIMIT 1` }, context)
        const [record] = parseQueryResult(body).records
        if (record === undefined) return null
        // Ids come with 15 characters or, with a checksum, with 18.
        if (requireString(record, 'Id').slice(0, 15) !== key.slice(0, 15)) throw new SyncError('SOURCE_INVALID', 'Salesforce answered with another record than the one it was asked for.')
        return toChange(record)
      }
      return { backfill: types.attachTo(by('CreatedDate', 'query')), delta, anchor: delta.anchor, lookup, lagMs }
    },
  }
}

const SYSTEM_FIELDS = ['Id', 'CreatedDate', 'SystemModstamp', 'IsDeleted']
const TIMESTAMP_RESOLUTION_MS = 1_000
/** Deleted rows stay in the recycle bin, and so in `queryAll`, for 15 days. */
const RECYCLE_BIN_MS = 15 * 86_400_000

function buildSoql({ after, until, limit }: KeysetQuery, columns: readonly string[], name: string, stamp: string): string {
  const conditions: string[] = []
  if (after !== undefined) {
    const time = formatSoqlTime(after.timestamp)
    conditions.push(after.id === '' ? `${stamp} >= ${time}` : `(${stamp} > ${time} OR (${stamp} = ${time} AND Id > '${requireValidId(after.id)}'))`)
  }
  if (until !== undefined) conditions.push(`${stamp} <= ${formatSoqlTime(until)}`)
  const where = conditions.length === 0 ? '' : ` WHERE ${conditions.join(' AND ')}`
  return `SELECT ${columns.join(', ')} FROM ${name}${where} ORDER BY ${stamp} ASC, Id ASC LIMIT ${limit}`
}

/** Salesforce writes +0000, and reads Z. */
function formatSoqlTime(timestamp: string): string {
  return `${canonicalizeInstant(timestamp)!.slice(0, 23)}Z`
}

const ID_PATTERN = /^[A-Za-z\d]{15,18}$/

/** From a state that may have been set by hand, and goes into a query. */
function requireValidId(id: string): string {
  if (!ID_PATTERN.test(id)) throw new SyncError('STATE_UNREADABLE', 'The stored position has an id that is none of Salesforce.')
  return id
}

async function readPage(client: HttpClient, resource: string, soql: string, { limit, locator }: KeysetQuery, context: SyncContext): Promise<KeysetAnswer<JsonObject>> {
  const continued = locator === undefined ? null : await client.get(locator, {}, context, { answers: [400, 404] })
  // A locator lives for days only, and one that holds nothing more proves nothing; the query finds the place again.
  const located = continued !== null && continued.status < 400 && !isExhausted(parseQueryResult(continued.body)) ? continued : null
  const answer = located ?? await client.get(`/${resource}`, { q: soql }, context)
  const { records, isDone, next, total } = parseQueryResult(answer.body)
  const isLocated = located !== null
  // `totalSize` counts what the query found. A locator continues a query, so that its pages hold a part of that.
  if (isDone && !isLocated && records.length < total) {
    throw new SyncError('SOURCE_INVALID', `Salesforce sent ${records.length} records and says that ${total} were found: the answer is not complete.`)
  }
  return {
    items: records,
    // None of them is trusted alone.
    end: isDone && !isLocated && records.length < limit,
    serverTime: answer.serverTime,
    locator: resolveLocator(next, answer, client, context),
  }
}

function isExhausted({ records, isDone }: { readonly records: readonly JsonObject[]; readonly isDone: boolean }): boolean {
  return isDone && records.length === 0
}

function resolveLocator(next: string | null, answer: HttpResponse, client: HttpClient, context: SyncContext): string | null {
  return next === null ? null : client.resolveLink(next, answer, context)
}

function parseQueryResult(body: JsonValue): { records: JsonObject[]; isDone: boolean; next: string | null; total: number } {
  if (!isObject(body) || !Array.isArray(body.records) || !body.records.every(isObject) || typeof body.done !== 'boolean' || typeof body.totalSize !== 'number') {
    throw new SyncError('SOURCE_INVALID', 'Salesforce answered with something that is not the result of a query.')
  }
  return { records: body.records, isDone: body.done, total: body.totalSize, next: typeof body.nextRecordsUrl === 'string' ? body.nextRecordsUrl : null }
}

function toChange(item: JsonObject): Change {
  const record = { ...item }
  delete record.attributes
  const key = requireString(record, 'Id')
  const upstreamUpdatedAt = requireString(record, 'SystemModstamp')
  return record.IsDeleted === true ? { type: 'delete', key, upstreamUpdatedAt } : { type: 'upsert', key, record, upstreamUpdatedAt }
}

function requireString(record: JsonObject, field: string): string {
  const value = record[field]
  if (typeof value !== 'string' || value === '') throw new SyncError('SOURCE_INVALID', `A record of Salesforce has no \`${field}\`.`)
  return value
}

/** Failures are lists of codes; the status alone takes a spent budget for a refusal. */
const classifyResponse: ResponseClassifier = ({ status, body }) => {
  if (status < 400 || !Array.isArray(body)) return null
  const codes = new Set(body.map((error) => (isObject(error) ? error.errorCode : undefined)))
  if (codes.has('REQUEST_LIMIT_EXCEEDED')) return { code: 'RATE_LIMITED', reason: 'its limit of requests' }
  return codes.has('QUERY_TIMEOUT') || codes.has('SERVER_UNAVAILABLE') ? { code: 'SOURCE_UNAVAILABLE', reason: 'a query it could not finish' } : null
}
