import {
  SyncError,
  type Change,
  type Execute,
  type JsonObject,
  type Lookup,
  type SyncContext,
  type TimeRange,
} from '../../contract/index.ts'
import {
  keyset,
  streams,
  type AnchoredExecute,
  type KeysetAnswer,
  type KeysetQuery,
  type KeysetState,
  type StreamsState,
} from '../../strategies/index.ts'
import { mergeAnswers } from '../../strategies/kit/merge-answers.ts'
import { canonicalizeInstant, instantToMs, msToInstant } from '../../values/instant.ts'
import { required } from '../../values/required.ts'
import { basic, requireOneAuth, type Auth, type SecretSource } from '../kit/auth.ts'
import { connectionAuth, connectionInstanceUrl, withConnection, type ConnectionOption } from '../kit/connection-auth.ts'
import { createHttpClient, type HttpClient } from '../kit/http-client.ts'
import { isObject, type ResponseClassifier } from '../kit/classify-response.ts'
import { encodePathSegment } from '../kit/origin.ts'
import { checkPageSize } from '../kit/page-size.ts'
import { PageColumnTypes } from '../kit/page-column-types.ts'
import { parseSafetyWindowMs } from '../kit/safety-window.ts'
import { limitRange, parseSince, withSinceScope } from '../kit/since.ts'
import { createDictionaryReader, SYSTEM_SHAPE } from './dictionary.ts'
import { discoverTables, type DiscoveredTable } from './discover.ts'

/** Options of `servicenow`. */
export interface ServicenowOptions extends ConnectionOption {
  /** https://example.service-now.com. A connection has its own. */
  readonly instanceUrl?: string
  /** Requires `password`. Use `auth` for other authentication. */
  readonly user?: SecretSource
  readonly password?: SecretSource
  readonly auth?: Auth
  readonly limit?: number
  /** The visibility delay of a change. At least one second, because timestamps are in whole seconds. */
  readonly lagMs?: number
  /** The start date: only rows that changed at or after it are read. */
  readonly since?: string
  /** How long the instance keeps entries of `sys_audit`. It depends on the instance; the default is 30 days. */
  readonly auditRetentionMs?: number
  /** Whether to read column types, with one request in each cycle that has records. The default is true. */
  readonly metadata?: boolean
}

/** One table of a ServiceNow instance. Pass it to `worker.track`. */
export interface ServicenowStream {
  readonly backfill: Execute<ServicenowListState>
  readonly delta: Execute<ServicenowDeltaState>
  readonly anchor: (context: SyncContext) => Promise<ServicenowDeltaState | undefined>
  readonly lookup: Lookup
  /** The visibility delay of a change in the backfill. */
  readonly lagMs: number
}

/** Earlier releases listed by modification time. A state without `by` is from them, and its cursor has another order. */
export type ServicenowListState = KeysetState & { readonly by: 'creation' }

/** The state of a ServiceNow delta: one keyset over changes and one over deletions. */
export type ServicenowDeltaState = StreamsState<{ changes: KeysetState; deletes: KeysetState }>

/** The tables of a ServiceNow instance. */
export interface ServicenowSource {
  /**
   * `fields` defaults to all visible fields. `safetyWindow` is the time span that every delta cycle re-reads, as a duration such
   * as PT5M.
   */
  table(
    name: string,
    options?: { readonly fields?: readonly string[]; readonly safetyWindow?: string },
  ): ServicenowStream
  /** Lists the tables, with the columns of the `described` ones. */
  discover(context: SyncContext, described?: readonly string[]): Promise<DiscoveredTable[]>
}

/**
 * The backfill lists by creation time. The delta reads rows by modification time and deletions from the audit table, both in
 * every cycle: `worker.track('incidents', { database, source: servicenow({ … }).table('incident') })`.
 */
export function servicenow(options: ServicenowOptions): ServicenowSource {
  return withConnection(options.connection, createServicenow(options))
}

function createServicenow({
  instanceUrl,
  user,
  password,
  auth,
  connection,
  limit = 100,
  lagMs = 15_000,
  since: sinceDate,
  auditRetentionMs = 30 * 86_400_000,
  metadata = true,
}: ServicenowOptions): ServicenowSource {
  const basicAuth = user !== undefined && password !== undefined ? basic({ user, password }) : undefined
  const chosenAuth = requireOneAuth(
    auth,
    basicAuth,
    'ServiceNow needs either `user` and `password`, `auth`, or `connection`.',
    connection === undefined ? undefined : connectionAuth(),
  )
  checkPageSize('ServiceNow', limit, 10_000)
  const since = parseSince(sinceDate)
  const client = createHttpClient({
    baseUrl: connectionInstanceUrl('ServiceNow', connection, instanceUrl, '/api/now/table'),
    auth: chosenAuth,
    classifyResponse,
  })
  return {
    discover: (context, described = []) => discoverTables(client, context, described),
    table(name, { fields, safetyWindow } = {}) {
      const overlapMs = parseSafetyWindowMs(safetyWindow)
      if (!/^\w{1,80}$/.test(name))
        throw new SyncError('SYNC_INVALID', `"${name}" is not a valid ServiceNow table name.`)
      const columns = fields === undefined ? undefined : [...new Set(['sys_id', 'sys_updated_on', ...fields])]
      const listed = columns === undefined ? undefined : [...new Set([...columns, 'sys_created_on'])]
      const readBy = (stream: TableStream): AnchoredExecute<KeysetState> =>
        keyset<JsonObject>({
          read: (query, context) => readKeysetPage(client, stream, query, context),
          timestamp: (row) => toInstant(requireString(row, stream.timestampColumn)),
          id: (row) => requireString(row, 'sys_id'),
          toChange: stream.toChange,
          lagMs,
          limit,
          confirms: true,
          ...(since !== undefined && { since }),
          ...(overlapMs !== undefined && { overlapMs }),
        })
      const rows = { table: name, condition: '' } as const
      const changes = readBy({
        ...rows,
        timestampColumn: 'sys_updated_on',
        columns,
        toChange: toUpsert,
        isEnd: ({ length }) => length < limit,
      })
      const deletes = readBy({
        table: 'sys_audit',
        timestampColumn: 'sys_created_on',
        condition: `tablename=${name}^fieldname=DELETED`,
        columns: ['sys_id', 'documentkey', 'sys_created_on'],
        toChange: toDelete,
        isEnd: ({ length }) => length < limit,
      })
      const types = new PageColumnTypes({
        name,
        knownShape: SYSTEM_SHAPE,
        requiredPermission: 'read access to sys_db_object and sys_dictionary',
        readShape: metadata ? createDictionaryReader(client, name) : undefined,
      })
      const lookup: Lookup = async (key, context) => {
        if (!ID_PATTERN.test(key)) return null
        const { status, body } = await client.get(
          `/${encodePathSegment(name)}/${encodePathSegment(key)}`,
          { sysparm_fields: columns?.join(','), sysparm_exclude_reference_link: true },
          context,
          { answers: [404] },
        )
        if (status === 404) return null
        if (!isObject(body) || !isObject(body.result))
          throw new SyncError('SOURCE_INVALID', 'ServiceNow returned a response without `result`.')
        const found = toUpsert(body.result)
        // The backfill does not list rows from before the start date.
        return since !== undefined && toInstant(requireString(body.result, 'sys_updated_on')) < since ? null : found
      }
      const list = (range: TimeRange): Execute<ServicenowListState> =>
        listByCreation(
          readBy({
            ...rows,
            condition: buildTimeCondition(range),
            timestampColumn: 'sys_created_on',
            columns: listed,
            toChange: (row) => toUpsert(selectColumns(row, columns)),
            // Access rules may omit rows, so only an empty page ends the list. If rows are created faster than pages are read,
            // no page is ever empty: the list also ends when all rows were created since the cycle began, which the delta reads.
            isEnd: (items, { cycle }, isCounted) =>
              items.length === 0 ||
              (isCounted &&
                items.length < limit &&
                items.every((row) => Date.parse(toInstant(requireString(row, 'sys_created_on'))) >= cycle.startedAt)),
          }),
        )
      const backfill = types.attachTo(withSinceScope(list(limitRange({}, since)), since))
      const range = (times: TimeRange): Execute<ServicenowListState> => types.attachTo(list(limitRange(times, since)))
      return {
        lagMs,
        lookup,
        backfill: Object.assign(backfill, { lagMs, lookup, range }),
        delta: Object.assign(types.attachTo(streams({ changes, deletes })), { retentionMs: auditRetentionMs - lagMs }),
        anchor: async (context) => {
          const state = await changes.anchor(context)
          return state === undefined ? undefined : { states: { changes: state, deletes: state } }
        },
      }
    },
  }
}

const ID_PATTERN = /^\w{1,64}$/

/**
 * A swept list needs an order that no write changes. By modification time, a row whose timestamp goes back (a clock correction, an
 * import that sets timestamps) moves behind the cursor, is not seen, and is deleted.
 */
function listByCreation(list: Execute<KeysetState>): Execute<ServicenowListState> {
  return async (state, context) => {
    const page = await list(state?.by === 'creation' ? state : undefined, context)
    return { ...page, nextState: page.nextState === undefined ? undefined : { ...page.nextState, by: 'creation' } }
  }
}

/** Removes the column that is requested for the order only. */
function selectColumns(row: JsonObject, columns: readonly string[] | undefined): JsonObject {
  if (columns === undefined || columns.includes('sys_created_on')) return row
  const { sys_created_on: _, ...rest } = row
  return rest
}

interface TableStream {
  readonly table: string
  readonly timestampColumn: 'sys_updated_on' | 'sys_created_on'
  readonly condition: string
  readonly columns: readonly string[] | undefined
  readonly toChange: (row: JsonObject) => Change
  /** `isCounted` means that the instance reported a total, and no rows follow the page. */
  readonly isEnd: (items: readonly JsonObject[], context: SyncContext, isCounted: boolean) => boolean
}

async function readKeysetPage(
  client: HttpClient,
  stream: TableStream,
  query: KeysetQuery,
  context: SyncContext,
): Promise<KeysetAnswer<JsonObject>> {
  const offset = query.locator === undefined ? 0 : Number(query.locator)
  const request = (): Promise<TablePage> => requestPage(client, stream, query, offset, context)
  const page = await request()
  const isExpected = ({ total }: TablePage): boolean =>
    query.left === undefined || total === null || total - offset === query.left
  const toAnswer = ({ items, total, serverTime }: TablePage): KeysetAnswer<JsonObject> => {
    const hasFollowing = (total ?? 0) > offset + query.limit
    return {
      items,
      end: !hasFollowing && stream.isEnd(items, context, total !== null),
      serverTime,
      ...(hasFollowing && { locator: String(offset + query.limit) }),
      ...(total !== null && { left: Math.max(0, total - offset - query.limit) }),
    }
  }
  if (!page.isShort && isExpected(page)) return toAnswer(page)

  let again = await request()
  // All empty responses are equal, so an empty response that contradicts its own count is requested more often.
  for (
    let answers = 2;
    answers < EMPTY_RESPONSES_MAX && again.isShort && again.ids === '' && page.ids === '';
    answers++
  )
    again = await request()
  // Rows without access count towards a page but are omitted, consistently in each response. A response that lost rows in
  // transit differs from the next one.
  if (again.isShort && again.ids !== page.ids)
    throw new SyncError('SOURCE_INVALID', 'ServiceNow twice returned fewer rows than its count, and not the same rows.')
  if (page.isShort || isExpected(again)) return toAnswer(again)
  // The count differs from the previous page: rows were created or deleted, or the response belongs to another request.
  const getSortKey = (row: JsonObject): string =>
    `${requireString(row, stream.timestampColumn)} ${requireString(row, 'sys_id')}`
  return mergeAnswers([toAnswer(page), toAnswer(again)], (a, b) =>
    getSortKey(a) === getSortKey(b) ? 0 : getSortKey(a) < getSortKey(b) ? -1 : 1,
  )
}

/** An empty page is skipped after this many empty responses, although the instance counts rows on it. */
const EMPTY_RESPONSES_MAX = 3

interface TablePage {
  readonly items: readonly JsonObject[]
  /** The ids of the rows, in order. */
  readonly ids: string
  /** Null if the instance does not report a count. */
  readonly total: number | null
  /** Whether the page has fewer rows than the count implies. */
  readonly isShort: boolean
  readonly serverTime: number | null
}

async function requestPage(
  client: HttpClient,
  { table, timestampColumn: stamp, condition, columns }: TableStream,
  query: KeysetQuery,
  offset: number,
  context: SyncContext,
): Promise<TablePage> {
  const response = await client.get(
    `/${encodePathSegment(table)}`,
    {
      sysparm_query: buildEncodedQuery(query, stamp, condition),
      sysparm_limit: query.limit,
      sysparm_offset: offset === 0 ? undefined : offset,
      sysparm_fields: columns?.join(','),
      sysparm_exclude_reference_link: true,
    },
    context,
  )
  if (!isObject(response.body) || !Array.isArray(response.body.result) || !response.body.result.every(isObject))
    throw new SyncError('SOURCE_INVALID', 'ServiceNow returned a response without `result`.')
  const items = response.body.result
  const counted = response.headers.get('x-total-count')
  const total = counted === null ? null : Number(counted)
  return {
    items,
    ids: items.map((row) => requireString(row, 'sys_id')).join(),
    total,
    isShort: total !== null && items.length < Math.min(query.limit, total - offset),
    serverTime: response.serverTime,
  }
}

/** A query that timed out returns the rows found so far, with an error beside them. */
const classifyResponse: ResponseClassifier = ({ status, body }) =>
  status < 300 && isObject(body) && isObject(body.error) ? { code: 'SOURCE_INVALID', reason: 'a partial result' } : null

/** Rows that last changed in the range. Times of the API are whole seconds. */
function buildTimeCondition({ from, to }: TimeRange): string {
  return [
    ...(from === undefined ? [] : [`sys_updated_on>=${formatTime(from)}`]),
    ...(to === undefined
      ? []
      : [`sys_updated_on<${formatTime(msToInstant(Math.ceil(instantToMs(to) / 1_000) * 1_000))}`]),
  ].join('^')
}

/** ^NQ starts a second query whose rows are added, so both queries repeat the common conditions. */
function buildEncodedQuery({ after, until }: KeysetQuery, stamp: string, condition: string): string {
  const common = [condition, until === undefined ? '' : `${stamp}<=${formatTime(until)}`]
  const order = `ORDERBY${stamp}^ORDERBYsys_id`
  const joined = (...parts: string[]): string => parts.filter((part) => part !== '').join('^')
  if (after === undefined) return joined(...common, order)
  const time = formatTime(after.timestamp)
  if (after.id === '') return joined(`${stamp}>=${time}`, ...common, order)
  if (!ID_PATTERN.test(after.id))
    throw new SyncError('STATE_UNREADABLE', 'The stored cursor has an invalid ServiceNow id.')
  return `${joined(`${stamp}>${time}`, ...common)}^NQ${joined(`${stamp}=${time}`, `sys_id>${after.id}`, ...common, order)}`
}

/** The API reads and writes times in UTC, independent of the user's time zone. */
function toInstant(text: string): string {
  return `${text.replace(' ', 'T')}Z`
}

function formatTime(timestamp: string): string {
  return required(canonicalizeInstant(timestamp), 'The instant of the cursor').slice(0, 19).replace('T', ' ')
}

function toUpsert(row: JsonObject): Change {
  return {
    type: 'upsert',
    key: requireString(row, 'sys_id'),
    record: row,
    upstreamUpdatedAt: toInstant(requireString(row, 'sys_updated_on')),
  }
}

function toDelete(row: JsonObject): Change {
  return {
    type: 'delete',
    key: requireString(row, 'documentkey'),
    upstreamUpdatedAt: toInstant(requireString(row, 'sys_created_on')),
  }
}

function requireString(row: JsonObject, column: string): string {
  const value = row[column]
  if (typeof value !== 'string' || value === '')
    throw new SyncError('SOURCE_INVALID', `A ServiceNow row has no \`${column}\`.`)
  return value
}
