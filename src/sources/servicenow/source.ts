import { SyncError, type Change, type Execute, type JsonObject, type Lookup, type SyncContext } from '../../contract/index.ts'
import { flipFlop, keyset, type Anchored, type FlipFlopState, type KeysetAnswer, type KeysetQuery, type KeysetState } from '../../strategies/index.ts'
import { canonicalInstant } from '../../values/instant.ts'
import { basic, type Auth, type SecretSource } from '../kit/auth.ts'
import { createHttpClient, type HttpClient } from '../kit/http-client.ts'
import { isObject, type Judge } from '../kit/judge.ts'
import { segment } from '../kit/origin.ts'
import { windowMs } from '../kit/safety-window.ts'
import { discover, type DiscoveredTable } from './discover.ts'

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
}

export interface ServicenowStream {
  readonly backfill: Execute<KeysetState>
  readonly delta: Execute<ServicenowDeltaState>
  readonly anchor: (context: SyncContext) => Promise<ServicenowDeltaState>
  readonly lookup: Lookup
}

export type ServicenowDeltaState = FlipFlopState<KeysetState, KeysetState>

export interface ServicenowSource {
  /** `fields`: all that the reader may see, unless given. `safetyWindow`: how much every cycle of the delta reads again, as a duration such as PT5M. */
  table(name: string, options?: { readonly fields?: readonly string[]; readonly safetyWindow?: string }): ServicenowStream
  /** What tables there are, and of the `described` ones the columns. */
  discover(context: SyncContext, described?: readonly string[]): Promise<DiscoveredTable[]>
}

/** The rows by their last change, and what the audit says was deleted, by turns: `worker.track('incidents', { database, source: servicenow({ … }).table('incident') })`. */
export function servicenow({ instanceUrl, user, password, auth, limit = 100, lagMs = 15_000 }: ServicenowOptions): ServicenowSource {
  const isBasic = user !== undefined && password !== undefined
  if (isBasic === (auth !== undefined)) throw new SyncError('SYNC_INVALID', 'ServiceNow needs either `user` and `password`, or `auth`.')
  const client = createHttpClient({ baseUrl: `${instanceUrl.replace(/\/+$/, '')}/api/now/table`, auth: isBasic ? basic({ user, password }) : auth!, judge })
  return {
    discover: (context, described = []) => discover(client, context, described),
    table(name, { fields, safetyWindow } = {}) {
      const overlapMs = windowMs(safetyWindow)
      if (!/^\w{1,80}$/.test(name)) throw new SyncError('SYNC_INVALID', `"${name}" is not a table of ServiceNow.`)
      const columns = fields === undefined ? undefined : [...new Set(['sys_id', 'sys_updated_on', ...fields])]
      const by = (stream: Stream): Anchored<KeysetState> => keyset<JsonObject>({
        read: (query, context) => read(client, stream, query, context),
        timestamp: (row) => instantOf(textOf(row, stream.stamp)),
        id: (row) => textOf(row, 'sys_id'),
        toChange: stream.toChange,
        lagMs,
        limit,
        ...(overlapMs !== undefined && { overlapMs }),
      })
      const rows = { table: name, stamp: 'sys_updated_on', condition: '', columns, toChange: upsert } as const
      const changes = by({ ...rows, isEnd: ({ length }) => length < limit })
      const deletes = by({
        table: 'sys_audit', stamp: 'sys_created_on', condition: `tablename=${name}^fieldname=DELETED`,
        columns: ['sys_id', 'documentkey', 'sys_created_on'], toChange: deletion, isEnd: ({ length }) => length < limit,
      })
      return {
        lookup: async (key, context) => {
          if (!ID.test(key)) return null
          const { status, body } = await client.get(`/${segment(name)}/${segment(key)}`, { sysparm_fields: columns?.join(','), sysparm_exclude_reference_link: true }, context, { answers: [404] })
          if (status === 404) return null
          if (!isObject(body) || !isObject(body.result)) throw new SyncError('SOURCE_INVALID', 'ServiceNow answered without a result.')
          return upsert(body.result)
        },
        // A page may come short of rows that the reader may not see. But where rows change faster than pages are read no page
        // is ever empty; so it also ends where all there is has changed since the cycle began, which is the delta's.
        backfill: by({ ...rows, isEnd: (items, { cycle }, isCounted) => items.length === 0 || (isCounted && items.length < limit && items.every((row) => Date.parse(instantOf(textOf(row, 'sys_updated_on'))) >= cycle.startedAt)) }),
        delta: flipFlop({ delta: changes, deletes }),
        anchor: async (context) => {
          const place = wholeSecond(await changes.anchor(context))
          return { phase: 'delta', ...(place !== undefined && { deltaCursor: place, deletesCursor: place }) }
        },
      }
    },
  }
}

const ID = /^\w{1,64}$/

interface Stream {
  readonly table: string
  readonly stamp: 'sys_updated_on' | 'sys_created_on'
  readonly condition: string
  readonly columns: readonly string[] | undefined
  readonly toChange: (row: JsonObject) => Change
  /** `isCounted`: the instance says how many rows there are, and none lies behind these. */
  readonly isEnd: (items: readonly JsonObject[], context: SyncContext, isCounted: boolean) => boolean
}

async function read(client: HttpClient, { table, stamp, condition, columns, isEnd }: Stream, query: KeysetQuery, context: SyncContext): Promise<KeysetAnswer<JsonObject>> {
  const offset = query.locator === undefined ? 0 : Number(query.locator)
  const answer = await client.get(`/${segment(table)}`, {
    sysparm_query: encodedQuery(query, stamp, condition),
    sysparm_limit: query.limit,
    sysparm_offset: offset === 0 ? undefined : offset,
    sysparm_fields: columns?.join(','),
    sysparm_exclude_reference_link: true,
  }, context)
  if (!isObject(answer.body) || !Array.isArray(answer.body.result) || !answer.body.result.every(isObject)) throw new SyncError('SOURCE_INVALID', 'ServiceNow answered without a result.')
  const items = answer.body.result
  // Rows that the reader may not see count towards a page and are left out of it, so the count of all has a say.
  const total = answer.headers.get('x-total-count')
  const isBehind = Number(total ?? 0) > offset + query.limit
  return { items, end: !isBehind && isEnd(items, context, total !== null), serverTime: answer.serverTime, ...(isBehind && { locator: String(offset + query.limit) }), ...(total !== null && { left: Math.max(0, Number(total) - offset - query.limit) }) }
}

/** A query that ran out of time answers with the rows it had so far, and says so beside them. */
const judge: Judge = ({ status, body }) => (status < 300 && isObject(body) && isObject(body.error) ? { code: 'SOURCE_INVALID', reason: 'only part of its rows' } : null)

/** ^NQ begins another query, whose rows are added; so what holds for all is said in both. */
function encodedQuery({ after, until }: KeysetQuery, stamp: string, condition: string): string {
  const common = [condition, until === undefined ? '' : `${stamp}<=${literalOf(until)}`]
  const order = `ORDERBY${stamp}^ORDERBYsys_id`
  const joined = (...parts: string[]): string => parts.filter((part) => part !== '').join('^')
  if (after === undefined) return joined(...common, order)
  const time = literalOf(after.timestamp)
  if (after.id === '') return joined(`${stamp}>=${time}`, ...common, order)
  if (!ID.test(after.id)) throw new SyncError('STATE_UNREADABLE', 'The stored position has an id that is none of ServiceNow.')
  return `${joined(`${stamp}>${time}`, ...common)}^NQ${joined(`${stamp}=${time}`, `sys_id>${after.id}`, ...common, order)}`
}

/** In UTC, as the API writes and reads them whatever the zone of the reader. */
function instantOf(text: string): string {
  return `${text.replace(' ', 'T')}Z`
}

function literalOf(timestamp: string): string {
  return canonicalInstant(timestamp)!.slice(0, 19).replace('T', ' ')
}

/** Rows are stamped with whole seconds. A place within one would stand behind rows of its own second, which are asked for with it. */
function wholeSecond(place: KeysetState | undefined): KeysetState | undefined {
  return place?.cursorTimestamp == null ? place : { ...place, cursorTimestamp: instantOf(literalOf(place.cursorTimestamp)) }
}

function upsert(row: JsonObject): Change {
  return { type: 'upsert', key: textOf(row, 'sys_id'), record: row, upstreamUpdatedAt: instantOf(textOf(row, 'sys_updated_on')) }
}

function deletion(row: JsonObject): Change {
  return { type: 'delete', key: textOf(row, 'documentkey'), upstreamUpdatedAt: instantOf(textOf(row, 'sys_created_on')) }
}

function textOf(row: JsonObject, column: string): string {
  const value = row[column]
  if (typeof value !== 'string' || value === '') throw new SyncError('SOURCE_INVALID', `A row of ServiceNow has no \`${column}\`.`)
  return value
}
