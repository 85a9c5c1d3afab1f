import type { JsonValue, Store } from '../../contract/index.ts'
import { EXPORT_FORMATS, type ExportFormat } from '../../export/formats.ts'
import { PAGE_BYTES_MAX } from '../../feed/read-feed-page.ts'
import { stringifyJson } from '../../values/json.ts'
import { required } from '../../values/required.ts'
import { allowsScope, databaseReadScope } from '../api-key.ts'
import { HttpError } from '../http-error.ts'
import { pathParam, sendData, sendJson, type Route, type RouteRequest } from '../route.ts'
import { DATABASE_PARAMS, objectSchema } from '../schemas.ts'
import { exportView } from './export-view.ts'
import { formatPosition, parseAsOf, parsePosition, parseView, toViewError, VIEW_QUERY } from './explorer-requests.ts'
import { readRowsJson, serializeRow } from './serialize-records.ts'

const access = { kind: 'control', scope: ':database:read' } as const
const TEXT = { type: 'string' }
const TEXT_OR_NULL = { type: ['string', 'null'] }
const NUMBER = { type: 'integer' }
const FLAG = { type: 'boolean' }
const LIST = { type: 'array', items: { type: 'object', additionalProperties: true } }

/** Time limit of a page, of statistics, and of a query. */
const VIEW_DEADLINE_MS = 5_000
const QUERY_DEADLINE_MS = 10_000
/** Rows that one response searches; the client continues with `next`. */
export const SEARCH_ROWS_MAX = 50_000
const STATISTICS_ROWS_MAX = 100_000
const QUERY_ROWS_MAX = 1_000

/** Views of a database: sorted, filtered, searched, summarised, queried and exported. */
export const explorerRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/console/api/databases/:database/columns',
    id: 'consoleColumns',
    access,
    params: DATABASE_PARAMS,
    response: objectSchema({ data: objectSchema({ canSearch: FLAG, canQuery: FLAG, columns: LIST }) }),
    summary: 'The fields of a database with their types, and what this store can do with them.',
    handle: async (routeRequest) => sendData(routeRequest.reply, await readColumns(routeRequest)),
  },
  {
    method: 'GET',
    path: '/console/api/databases/:database/rows',
    id: 'consoleRows',
    access,
    params: DATABASE_PARAMS,
    query: objectSchema(
      {
        ...VIEW_QUERY,
        after: { type: 'string', minLength: 1, maxLength: 8_192, description: 'The value of `next`.' },
        limit: { type: 'integer', minimum: 1, maximum: 200, default: 50, description: 'Maximum number of items.' },
      },
      [],
    ),
    response: objectSchema({
      data: LIST,
      next: TEXT_OR_NULL,
      scanned: NUMBER,
      scan: { type: ['object', 'null'], additionalProperties: true },
    }),
    summary:
      'A page of rows. With `search`, one response looks at up to 50,000 rows; every row has been looked at once `next` is null.',
    handle: async (routeRequest) => sendJson(routeRequest.reply, await readRows(routeRequest)),
  },
  {
    method: 'GET',
    path: '/console/api/databases/:database/statistics',
    id: 'consoleStatistics',
    access,
    params: DATABASE_PARAMS,
    query: objectSchema(
      {
        field: { type: 'string', minLength: 1, maxLength: 1_024, description: 'Name of a field.' },
        ...VIEW_QUERY,
      },
      ['field'],
    ),
    response: objectSchema({
      data: objectSchema({
        scanned: NUMBER,
        hasMore: FLAG,
        empty: NUMBER,
        distinct: NUMBER,
        min: TEXT_OR_NULL,
        max: TEXT_OR_NULL,
        top: LIST,
      }),
    }),
    summary: 'Statistics of a field in up to 100,000 of the newest rows of a view.',
    handle: async (routeRequest) => sendData(routeRequest.reply, await readStatistics(routeRequest)),
  },
  {
    method: 'GET',
    path: '/console/api/databases/:database/export',
    id: 'consoleExport',
    access,
    params: DATABASE_PARAMS,
    query: objectSchema(
      { format: { enum: [...EXPORT_FORMATS], default: 'csv', description: 'Format of the file.' }, ...VIEW_QUERY },
      [],
    ),
    response: { type: 'string' },
    mediaType: 'application/octet-stream',
    summary: 'All rows of a view as a file, streamed.',
    handle: sendExport,
  },
  {
    method: 'POST',
    path: '/console/api/databases/:database/query',
    id: 'consoleQuery',
    access,
    params: DATABASE_PARAMS,
    body: objectSchema(
      {
        sql: { type: 'string', minLength: 1, maxLength: 20_000, description: 'One SELECT statement.' },
        asOf: { type: 'string', maxLength: 64, description: 'RFC 3339 timestamp: the tables as of this time.' },
        plan: { type: 'boolean', default: false, description: 'Return the plan of the statement, without running it.' },
      },
      ['sql'],
    ),
    response: objectSchema({
      data: objectSchema({
        columns: { type: 'array', items: TEXT },
        rows: { type: 'array', items: { type: 'array', items: {} } },
        truncated: FLAG,
      }),
    }),
    summary:
      'Runs one SELECT on a read-only connection, for at most 10 s and 1,000 rows. It can read the tables of the databases that the caller may read, and their histories.',
    handle: runQuery,
  },
]

async function readColumns(routeRequest: RouteRequest) {
  const { store } = routeRequest.caller
  const database = await findDatabase(routeRequest)
  const { columns = [], table = database } = (await store.schema(database)) ?? {}
  return {
    table,
    canSearch: store.searchRows !== undefined,
    canQuery: routeRequest.context.select !== null,
    columns: columns.map(({ member, column, type }) => ({ field: member, column, type })),
  }
}

async function readRows(routeRequest: RouteRequest): Promise<string> {
  const { store } = routeRequest.caller
  const { query } = routeRequest
  const database = await findDatabase(routeRequest)
  const view = parseView(routeRequest)
  const limit = Number(query['limit'])
  const after = query['after'] === undefined ? undefined : String(query['after'])
  if (store.searchRows === undefined) {
    checkPlainView(view)
    return readRowsJson(store, database, { after: parsePosition(after)?.key, search: view.search, limit })
  }
  const page = await store
    .searchRows({
      ...view,
      database,
      after: parsePosition(after),
      limit,
      bytesMax: PAGE_BYTES_MAX,
      scanMax: SEARCH_ROWS_MAX,
      deadlineMs: VIEW_DEADLINE_MS,
    })
    .catch((error: unknown) => {
      throw toViewError(error)
    })
  const next = page.next === null ? null : formatPosition(page.next)
  return `{"data":[${page.rows.map(serializeRow).join(',')}],${JSON.stringify({ next, scanned: page.scanned, scan: page.scan }).slice(1)}`
}

/** A store without searches reads rows by key. */
function checkPlainView({ order, filters, asOf }: ReturnType<typeof parseView>): void {
  if (order.by !== 'key' || order.descending || filters.length > 0 || asOf !== undefined) throw unsupported()
}

function unsupported(): HttpError {
  return new HttpError('INVALID_REQUEST', 'This store cannot sort, filter or export rows.', {
    details: { reason: 'unsupported' },
  })
}

async function readStatistics(routeRequest: RouteRequest) {
  const { store } = routeRequest.caller
  const database = await findDatabase(routeRequest)
  const { order: _, ...selection } = parseView(routeRequest)
  if (store.columnStatistics === undefined) throw unsupported()
  return store
    .columnStatistics({
      ...selection,
      database,
      field: String(routeRequest.query['field']),
      scanMax: STATISTICS_ROWS_MAX,
      deadlineMs: VIEW_DEADLINE_MS,
    })
    .catch((error: unknown) => {
      throw toViewError(error)
    })
}

const MEDIA_TYPES: Record<ExportFormat, string> = {
  csv: 'text/csv; charset=utf-8',
  ndjson: 'application/x-ndjson; charset=utf-8',
  parquet: 'application/vnd.apache.parquet',
}

async function sendExport(routeRequest: RouteRequest): Promise<unknown> {
  const { caller, context, query, reply } = routeRequest
  const database = await findDatabase(routeRequest)
  const format = query['format'] as ExportFormat
  if (caller.store.searchRows === undefined) throw unsupported()
  const view = parseView(routeRequest)
  const end = context.running.begin()
  try {
    const columns = await readFields(caller.store, database)
    const stream = await exportView(caller.store, database, columns, view, format)
    stream.once('close', end)
    return await reply
      .type(MEDIA_TYPES[format])
      .header('content-disposition', `attachment; filename="${database.replace(/[^\w.-]/g, '_')}.${format}"`)
      .send(stream)
  } catch (error) {
    end()
    throw toViewError(error)
  }
}

async function readFields(store: Store, database: string) {
  return required(
    (await store.databases()).find(({ name }) => name === database),
    `The database ${database}`,
  ).columns
}

async function runQuery(routeRequest: RouteRequest): Promise<unknown> {
  const { caller, context, request, reply } = routeRequest
  const { sql, asOf, plan } = request.body as { sql: string; asOf?: string; plan: boolean }
  await findDatabase(routeRequest)
  if (context.select === null)
    throw new HttpError('INVALID_REQUEST', 'This store cannot run SQL here. Use `tidemark query`.', {
      details: { reason: 'unsupported' },
    })
  const end = context.running.begin()
  try {
    const { columns, rows, truncated } = await context.select(sql, {
      tenant: caller.store.tenant,
      limit: QUERY_ROWS_MAX,
      deadlineMs: QUERY_DEADLINE_MS,
      only: await listReadable(routeRequest),
      plan,
      asOf: parseAsOf(asOf, context.ports.clock.now()),
    })
    return await sendJson(reply, stringifyJson({ data: { columns, rows, truncated } } as unknown as JsonValue))
  } catch (error) {
    throw toViewError(error)
  } finally {
    end()
  }
}

/** The database of the path, and the others that the caller may read. */
async function listReadable({ caller, params }: RouteRequest): Promise<string[]> {
  const names = await caller.store.databaseNames()
  // A local caller without a key may read everything.
  if (caller.id === null) return names
  return names.filter((name) => name === params['database'] || allowsScope(caller.scopes, databaseReadScope(name)))
}

async function findDatabase(routeRequest: RouteRequest): Promise<string> {
  const database = pathParam(routeRequest, 'database')
  if (!(await routeRequest.caller.store.databaseNames()).includes(database))
    throw new HttpError('NOT_FOUND', 'Database not found.')
  return database
}
