import { SyncError, type Change, type Execute, type JsonObject, type Lookup, type SyncContext } from '../../contract/index.ts'
import { keyset, streams, type AnchoredExecute, type KeysetAnswer, type KeysetQuery, type KeysetState, type StreamsState } from '../../strategies/index.ts'
import { mergeAnswers } from '../../strategies/kit/merge-answers.ts'
import { canonicalizeInstant } from '../../values/instant.ts'
import { basic, type Auth, type SecretSource } from '../kit/auth.ts'
import { createHttpClient, type HttpClient } from '../kit/http-client.ts'
import { isObject, type ResponseClassifier } from '../kit/classify-response.ts'
import { encodePathSegment } from '../kit/origin.ts'
import { checkPageSize } from '../kit/page-size.ts'
import { PageColumnTypes } from '../kit/page-column-types.ts'
import { parseSafetyWindowMs } from '../kit/safety-window.ts'
import { createDictionaryReader, SYSTEM_SHAPE } from './dictionary.ts'
import { discoverTables, type DiscoveredTable } from './discover.ts'

export interface ServicenowOptions {
  /** https://example.service-now.com */
  readonly instanceUrl: string
  /** Both, or `auth`. */
  readonly user?: SecretSource
  readonly password?: SecretSource
  readonly auth?: Auth
  readonly limit?: number
  /** How long a change may take until it can be read. Stamps are whole seconds, so no less than one. */
  readonly lagMs?: number
  /** How long the instance keeps entries of `sys_audit`. It is up to the instance, so 30 days unless given. */
  readonly auditRetentionMs?: number
  /** Whether the types of columns are asked for, with one request in each cycle that has records. True unless given. */
  readonly metadata?: boolean
}

export interface ServicenowStream {
  readonly backfill: Execute<ServicenowListState>
  readonly delta: Execute<ServicenowDeltaState>
  readonly anchor: (context: SyncContext) => Promise<ServicenowDeltaState | undefined>
  readonly lookup: Lookup
  /** How long a change may take to show in the backfill. */
  readonly lagMs: number
}

/** `by`: earlier releases listed by the last change. Their positions mean nothing in this order. */
export type ServicenowListState = KeysetState & { readonly by: 'creation' }

export type ServicenowDeltaState = StreamsState<{ changes: KeysetState; deletes: KeysetState }>

export interface ServicenowSource {
  /** `fields`: all that the reader may see, unless given. `safetyWindow`: how much every cycle of the delta reads again, as a duration such as PT5M. */
  table(name: string, options?: { readonly fields?: readonly string[]; readonly safetyWindow?: string }): ServicenowStream
  /** What tables there are, and of the `described` ones the columns. */
  discover(context: SyncContext, described?: readonly string[]): Promise<DiscoveredTable[]>
}

/**
 * The backfill lists by creation. The delta reads the rows by their last change, and the deletions in the audit, both in every
 * cycle: `worker.track('incidents', { database, source: servicenow({ … }).table('incident') })`.
 */
export function servicenow({ instanceUrl, user, password, auth, limit = 100, lagMs = 15_000, auditRetentionMs = 30 * 86_400_000, metadata = true }: ServicenowOptions): ServicenowSource {
  const isBasic = user !== undefined && password !== undefined
  if (isBasic === (auth !== undefined)) throw new SyncError('SYNC_INVALID', 'ServiceNow needs either `user` and `password`, or `auth`.')
  checkPageSize('ServiceNow', limit, 10_000)
  const client = createHttpClient({ baseUrl: `${instanceUrl.replace(/\/+$/, '')}/api/now/table`, auth: isBasic ? basic({ user, password }) : auth!, classifyResponse })
  return {
    discover: (context, described = []) => discoverTables(client, context, described),
    table(name, { fields, safetyWindow } = {}) {
      const overlapMs = parseSafetyWindowMs(safetyWindow)
      if (!/^\w{1,80}$/.test(name)) throw new SyncError('SYNC_INVALID', `"${name}" is not a table of ServiceNow.`)
      const columns = fields === undefined ? undefined : [...new Set(['sys_id', 'sys_updated_on', ...fields])]
      const listed = columns === undefined ? undefined : [...new Set([...columns, 'sys_created_on'])]
      const by = (stream: TableStream): AnchoredExecute<KeysetState> => keyset<JsonObject>({
        read: (query, context) => readKeysetPage(client, stream, query, context),
        timestamp: (row) => toInstant(requireString(row, stream.timestampColumn)),
        id: (row) => requireString(row, 'sys_id'),
        toChange: stream.toChange,
        lagMs,
        limit,
        confirms: true,
        ...(overlapMs !== undefined && { overlapMs }),
      })
      const rows = { table: name, condition: '' } as const
      const changes = by({ ...rows, timestampColumn: 'sys_updated_on', columns, toChange: toUpsert, isEnd: ({ length }) => length < limit })
      const deletes = by({
        table: 'sys_audit', timestampColumn: 'sys_created_on', condition: `tablename=${name}^fieldname=DELETED`,
        columns: ['sys_id', 'documentkey', 'sys_created_on'], toChange: toDelete, isEnd: ({ length }) => length < limit,
      })
      const types = new PageColumnTypes({
        name, knownShape: SYSTEM_SHAPE, requiredPermission: 'read access to sys_db_object and sys_dictionary',
        readShape: metadata ? createDictionaryReader(client, name) : undefined,
      })
      return {
        lagMs,
        lookup: async (key, context) => {
          if (!ID_PATTERN.test(key)) return null
          const { status, body } = await client.get(`/${encodePathSegment(name)}/${encodePathSegment(key)}`, { sysparm_fields: columns?.join(','), sysparm_exclude_reference_link: true }, context, { answers: [404] })
          if (status === 404) return null
          if (!isObject(body) || !isObject(body.result)) throw new SyncError('SOURCE_INVALID', 'ServiceNow answered without a result.')
          return toUpsert(body.result)
        },
        backfill: types.attachTo(listByCreation(by({
          ...rows, timestampColumn: 'sys_created_on', columns: listed, toChange: (row) => toUpsert(selectColumns(row, columns)),
          // A page may come short of rows that the reader may not see. But where rows are created faster than pages are read
          // no page is ever empty; so it also ends where all there is was created since the cycle began, which is the delta's.
          isEnd: (items, { cycle }, isCounted) => items.length === 0
            || (isCounted && items.length < limit && items.every((row) => Date.parse(toInstant(requireString(row, 'sys_created_on'))) >= cycle.startedAt)),
        }))),
        delta: Object.assign(types.attachTo(streams({ changes, deletes })), { retentionMs: auditRetentionMs - lagMs }),
        anchor: async (context) => {
          const place = await changes.anchor(context)
          return place === undefined ? undefined : { states: { changes: place, deletes: place } }
        },
      }
    },
  }
}

const ID_PATTERN = /^\w{1,64}$/

/**
 * A list that is swept needs an order that no write changes. By the last change, a row moves in front of the position as soon as
 * its stamp goes back (the instance's clock is corrected, an import sets stamps), is not seen, and is deleted.
 */
function listByCreation(list: Execute<KeysetState>): Execute<ServicenowListState> {
  return async (state, context) => {
    const page = await list(state?.by === 'creation' ? state : undefined, context)
    return { ...page, nextState: page.nextState === undefined ? undefined : { ...page.nextState, by: 'creation' } }
  }
}

/** Without the column that only the order needs. */
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
  /** `isCounted`: the instance says how many rows there are, and none lies behind these. */
  readonly isEnd: (items: readonly JsonObject[], context: SyncContext, isCounted: boolean) => boolean
}

async function readKeysetPage(client: HttpClient, stream: TableStream, query: KeysetQuery, context: SyncContext): Promise<KeysetAnswer<JsonObject>> {
  const offset = query.locator === undefined ? 0 : Number(query.locator)
  const ask = (): Promise<TablePage> => requestPage(client, stream, query, offset, context)
  const page = await ask()
  const isExpected = ({ total }: TablePage): boolean => query.left === undefined || total === null || total - offset === query.left
  const answerOf = ({ items, total, serverTime }: TablePage): KeysetAnswer<JsonObject> => {
    const isBehind = (total ?? 0) > offset + query.limit
    return {
      items, end: !isBehind && stream.isEnd(items, context, total !== null), serverTime,
      ...(isBehind && { locator: String(offset + query.limit) }), ...(total !== null && { left: Math.max(0, total - offset - query.limit) }),
    }
  }
  if (!page.isShort && isExpected(page)) return answerOf(page)

  let again = await ask()
  // Any two empty answers are the same. One whose own count contradicts it takes more of them to be believed.
  for (let answers = 2; answers < EMPTY_RESPONSES_MAX && again.isShort && again.ids === '' && page.ids === ''; answers++) again = await ask()
  // Rows that the reader may not see count towards a page and are left out of it, by the same rule each time. An answer
  // that lost rows on its way is not the same twice.
  if (again.isShort && again.ids !== page.ids) throw new SyncError('SOURCE_INVALID', 'ServiceNow twice sent fewer rows than it counts, and not the same ones.')
  if (page.isShort || isExpected(again)) return answerOf(again)
  // Another count than the page before left: rows have come and gone, or it is the answer to another question.
  const placeOf = (row: JsonObject): string => `${requireString(row, stream.timestampColumn)} ${requireString(row, 'sys_id')}`
  return mergeAnswers([answerOf(page), answerOf(again)], (a, b) => (placeOf(a) === placeOf(b) ? 0 : placeOf(a) < placeOf(b) ? -1 : 1))
}

/** So many times a page has no row the reader may see before it is passed over, although the instance counts rows on it. */
const EMPTY_RESPONSES_MAX = 3

interface TablePage {
  readonly items: readonly JsonObject[]
  /** Of the rows, in their order. */
  readonly ids: string
  /** Null when the instance does not count. */
  readonly total: number | null
  /** Fewer rows than the count allows. */
  readonly isShort: boolean
  readonly serverTime: number | null
}

async function requestPage(client: HttpClient, { table, timestampColumn: stamp, condition, columns }: TableStream, query: KeysetQuery, offset: number, context: SyncContext): Promise<TablePage> {
  const answer = await client.get(`/${encodePathSegment(table)}`, {
    sysparm_query: buildEncodedQuery(query, stamp, condition),
    sysparm_limit: query.limit,
    sysparm_offset: offset === 0 ? undefined : offset,
    sysparm_fields: columns?.join(','),
    sysparm_exclude_reference_link: true,
  }, context)
  if (!isObject(answer.body) || !Array.isArray(answer.body.result) || !answer.body.result.every(isObject)) throw new SyncError('SOURCE_INVALID', 'ServiceNow answered without a result.')
  const items = answer.body.result
  const counted = answer.headers.get('x-total-count')
  const total = counted === null ? null : Number(counted)
  return { items, ids: items.map((row) => requireString(row, 'sys_id')).join(), total, isShort: total !== null && items.length < Math.min(query.limit, total - offset), serverTime: answer.serverTime }
}

/** A query that ran out of time answers with the rows it had so far, and says so beside them. */
const classifyResponse: ResponseClassifier = ({ status, body }) => (status < 300 && isObject(body) && isObject(body.error) ? { code: 'SOURCE_INVALID', reason: 'only part of its rows' } : null)

/** ^NQ begins another query, whose rows are added; so what holds for all is said in both. */
function buildEncodedQuery({ after, until }: KeysetQuery, stamp: string, condition: string): string {
  const common = [condition, until === undefined ? '' : `${stamp}<=${formatTime(until)}`]
  const order = `ORDERBY${stamp}^ORDERBYsys_id`
  const joined = (...parts: string[]): string => parts.filter((part) => part !== '').join('^')
  if (after === undefined) return joined(...common, order)
  const time = formatTime(after.timestamp)
  if (after.id === '') return joined(`${stamp}>=${time}`, ...common, order)
  if (!ID_PATTERN.test(after.id)) throw new SyncError('STATE_UNREADABLE', 'The stored position has an id that is none of ServiceNow.')
  return `${joined(`${stamp}>${time}`, ...common)}^NQ${joined(`${stamp}=${time}`, `sys_id>${after.id}`, ...common, order)}`
}

/** In UTC, as the API writes and reads them whatever the zone of the reader. */
function toInstant(text: string): string {
  return `${text.replace(' ', 'T')}Z`
}

function formatTime(timestamp: string): string {
  return canonicalizeInstant(timestamp)!.slice(0, 19).replace('T', ' ')
}

function toUpsert(row: JsonObject): Change {
  return { type: 'upsert', key: requireString(row, 'sys_id'), record: row, upstreamUpdatedAt: toInstant(requireString(row, 'sys_updated_on')) }
}

function toDelete(row: JsonObject): Change {
  return { type: 'delete', key: requireString(row, 'documentkey'), upstreamUpdatedAt: toInstant(requireString(row, 'sys_created_on')) }
}

function requireString(row: JsonObject, column: string): string {
  const value = row[column]
  if (typeof value !== 'string' || value === '') throw new SyncError('SOURCE_INVALID', `A row of ServiceNow has no \`${column}\`.`)
  return value
}
