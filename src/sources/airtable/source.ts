import {
  SyncError,
  type Change,
  type Execute,
  type JsonValue,
  type Lookup,
  type SyncContext,
  type TableShape,
  type TimeRange,
} from '../../contract/index.ts'
import { token as byToken, type TokenState } from '../../strategies/index.ts'
import type { AnchoredExecute } from '../../strategies/kit/anchored-execute.ts'
import { formatIso } from '../../strategies/kit/instants.ts'
import { instantToMs } from '../../values/instant.ts'
import { bearer, requireOneAuth, type Auth, type SecretSource } from '../kit/auth.ts'
import { connectionAuth, connectionBaseUrl, withConnection, type ConnectionOption } from '../kit/connection-auth.ts'
import { createHttpClient } from '../kit/http-client.ts'
import { isObject } from '../kit/classify-response.ts'
import { path } from '../kit/origin.ts'
import { limitRange, parseSince, withSinceScope } from '../kit/since.ts'
import { followPayloads } from './payloads.ts'

/** Options of `airtable`. */
export interface AirtableOptions extends ConnectionOption {
  readonly baseId: string
  /** A personal access token, or the name of the secret that holds it. */
  readonly token?: SecretSource
  /** Replaces `token`. */
  readonly auth?: Auth
  readonly baseUrl?: string
  /** The start date: records that last changed before it are not read. Changes of computed fields do not count. */
  readonly since?: string
}

/** One table whose changes a webhook reports, deletions included. Pass it to `worker.track`. */
export interface AirtablePair {
  readonly backfill: Execute<TokenState>
  readonly delta: AnchoredExecute<TokenState>
  readonly anchor: (context: SyncContext) => Promise<TokenState | undefined>
  readonly lookup: Lookup
}

/** The tables of an Airtable base. */
export interface AirtableSource {
  /** Prefer the id, because the name may change. */
  table(idOrName: string): { readonly mode: 'replace'; readonly execute: Execute<TokenState>; readonly lookup: Lookup }
  /**
   * Follows the payloads of a webhook of the base. It must report `tableData` and `tableFields` of the table, and the
   * token needs their scopes and `webhook:manage`. Requires the id of the table.
   */
  tracked(tableId: string, webhookId: string): AirtablePair
  /** Lists the tables of the base by name. The token needs `schema.bases:read`. */
  discover(context: SyncContext): Promise<
    {
      readonly id: string
      readonly aliases: readonly string[]
      readonly key: readonly string[]
      readonly candidates: readonly string[]
    }[]
  >
}

/** After a rate limit, Airtable rejects all requests for this time, without a header that says so. */
const RATE_LIMIT_WAIT_MS = 30_000
const PAGE_SIZE = 100

/** Every cycle reads the complete list and sweeps deleted records: `worker.sync('tasks', { database, ...airtable({ baseId, token: 'AIRTABLE_TOKEN' }).table('tbl…') })`. */
export function airtable(options: AirtableOptions): AirtableSource {
  return withConnection(options.connection, createAirtable(options))
}

function createAirtable({
  baseId,
  token,
  auth,
  connection,
  baseUrl = 'https://api.airtable.com/v0',
  since: given,
}: AirtableOptions): AirtableSource {
  const bearerAuth = token === undefined ? undefined : bearer(token)
  const chosenAuth = requireOneAuth(
    auth,
    bearerAuth,
    'Airtable needs either `token`, `auth` or `connection`.',
    connection === undefined ? undefined : connectionAuth(),
  )
  const client = createHttpClient({
    baseUrl: connectionBaseUrl(connection, baseUrl),
    auth: chosenAuth,
    classifyResponse: ({ status }) =>
      status === 429 ? { code: 'RATE_LIMITED', reason: 'a request limit', retryAfterMs: RATE_LIMIT_WAIT_MS } : null,
  })
  const since = parseSince(given)
  const listTable = (idOrName: string, range: TimeRange): Execute<TokenState> =>
    attachTableShape(
      byToken({
        limit: PAGE_SIZE,
        confirms: true,
        read: async ({ token: offset }, context) => {
          // An offset expires after a while; the list then starts over.
          const { body } = await client.get(
            path`/${baseId}/${idOrName}`,
            { pageSize: PAGE_SIZE, filterByFormula: buildTimeFormula(range), offset },
            context,
            offset === undefined ? {} : { cursorRefusals: [422] },
          )
          if (!isObject(body) || !Array.isArray(body.records))
            throw new SyncError('SOURCE_INVALID', 'Airtable returned a response without records.')
          return { changes: body.records.map(toUpsert), next: typeof body.offset === 'string' ? body.offset : null }
        },
      }),
    )
  const table: AirtableSource['table'] = (idOrName) => ({
    mode: 'replace',
    lookup: async (key, context) => {
      // Airtable returns 403 for a record without access, and for a record of another table.
      const { status, body } = await client.get(path`/${baseId}/${idOrName}/${key}`, {}, context, {
        answers: [403, 404],
      })
      return status >= 400 ? null : toUpsert(body)
    },
    execute: Object.assign(withSinceScope(listTable(idOrName, since === undefined ? {} : { from: since }), since), {
      range: (range: TimeRange) => listTable(idOrName, limitRange(range, since)),
    }),
  })
  return {
    table,
    tracked(tableId, webhookId) {
      if (!/^tbl\w+$/.test(tableId))
        throw new SyncError(
          'SYNC_INVALID',
          `Airtable: a tracked table needs its id, tbl…, not ${JSON.stringify(tableId)}.`,
        )
      const { execute: backfill, lookup } = table(tableId)
      const payloads = followPayloads({ client, baseId, tableId, webhookId, toUpsert })
      const delta = attachTableShape(payloads)
      return {
        backfill: Object.assign(backfill, { lookup }),
        delta,
        anchor: (context) => payloads.anchor(context),
        lookup,
      }
    },
    async discover(context) {
      const { body } = await client.get(path`/meta/bases/${baseId}/tables`, {}, context)
      if (!isObject(body) || !Array.isArray(body.tables) || !body.tables.every(isObject))
        throw new SyncError('SOURCE_INVALID', 'Airtable returned a response without tables.')
      return body.tables.map(({ id, name }) => ({
        id: String(name),
        aliases: [String(id)],
        key: ['id'],
        candidates: [],
      }))
    },
  }
}

/** A record that never changed has no time of a change. */
const CHANGED_AT = 'IF(LAST_MODIFIED_TIME(), LAST_MODIFIED_TIME(), CREATED_TIME())'

function buildTimeFormula({ from, to }: TimeRange): string | undefined {
  const conditions = [
    ...(from === undefined ? [] : [`NOT(IS_BEFORE(${CHANGED_AT}, ${toFormulaTime(from)}))`]),
    ...(to === undefined ? [] : [`IS_BEFORE(${CHANGED_AT}, ${toFormulaTime(to)})`]),
  ]
  return conditions.length > 1 ? `AND(${conditions.join(', ')})` : conditions[0]
}

function toFormulaTime(instant: string): string {
  return `DATETIME_PARSE('${formatIso(instantToMs(instant))}')`
}

function toUpsert(record: JsonValue): Change {
  if (!isObject(record) || typeof record.id !== 'string')
    throw new SyncError('SOURCE_INVALID', 'An Airtable record has no id.')
  return { type: 'upsert', key: record.id, record }
}

/** All fields of a table are in one JSON column, so the types need no metadata. */
const TABLE_SHAPE: TableShape = {
  columns: [
    { name: 'id', type: 'text' },
    { name: 'createdTime', type: 'timestamp' },
    { name: 'fields', type: 'json' },
  ],
  key: ['id'],
}

function attachTableShape<Read extends Execute<TokenState>>(execute: Read): Read {
  const read: Execute<TokenState> = async (state, context) => ({
    ...(await execute(state, context)),
    tables: [TABLE_SHAPE],
  })
  return Object.assign(read, execute)
}
