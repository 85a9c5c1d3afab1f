import { hash } from 'node:crypto'
import type { FastifyReply } from 'fastify'
import type { Store } from '../contract/index.ts'
import { FeedError } from '../feed/feed-error.ts'
import { serializeChanges, formatEventId, serializeRow } from '../feed/serialize-item.ts'
import type { FeedPageResult, FeedPageRequest } from '../feed/read-feed-page.ts'
import { resourceTypeOf, type ResourceTypes } from '../feed/resource-type.ts'
import { keyEndedError } from './authenticator.ts'
import { readCertificate } from './certificates.ts'
import { chooseEncoding } from './encoding.ts'
import { streamChanges, wantsStream } from './stream-changes.ts'
import { HttpError } from './http-error.ts'
import { readFeed } from './read-feed.ts'
import { pathParam, sendJson, type RouteRequest, type Route } from './route.ts'
import {
  CHANGES_RESPONSE,
  CHANGES_QUERY,
  DATABASE_PARAMS,
  LIST_RESPONSE,
  LIST_QUERY,
  ROW_RESPONSE,
  ROW_PARAMS,
  ROW_QUERY,
} from './schemas.ts'

/** Lists and changes, as in document 003. */
export const feedRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/agents/v1/changes',
    id: 'listChanges',
    access: { kind: 'scope', scope: 'changes:read' },
    query: CHANGES_QUERY,
    response: CHANGES_RESPONSE,
    summary:
      'Changes in commit order; deletions as tombstones. With `Accept: text/event-stream`, a stream of the same.',
    handle: handleChanges,
  },
  {
    method: 'GET',
    path: '/agents/v1/:database',
    id: 'listRows',
    access: { kind: 'scope', scope: ':database:read' },
    params: DATABASE_PARAMS,
    query: LIST_QUERY,
    response: LIST_RESPONSE,
    summary:
      'The rows of a database, ordered by the time of their last change and then by key: all rows, or those changed since a cursor or a time.',
    handle: handleList,
  },
  {
    method: 'GET',
    path: '/agents/v1/:database/:key',
    id: 'getRow',
    access: { kind: 'scope', scope: ':database:read' },
    params: ROW_PARAMS,
    query: ROW_QUERY,
    response: ROW_RESPONSE,
    summary: 'One row.',
    handle: handleRow,
  },
]

async function handleList(routeRequest: RouteRequest): Promise<unknown> {
  const {
    caller: { store },
    query,
    reply,
    request,
    context,
  } = routeRequest
  const database = pathParam(routeRequest, 'database')
  if (!(await store.databaseNames()).includes(database)) throw databaseNotFound(database)
  const page = await readFeed(context, store, {
    endpoint: 'list',
    databases: [database],
    cursor: toText(query['cursor']),
    updatedSince: toText(query['updatedSince']),
    limit: Number(query['limit']),
  })
  const fields = parseNames(query['fields'])
  const items = page.entries.map((entry) => serializeRow(entry, { fields }))
  const certificate = await readCertificate(context, store, database)
  return sendFeedPage(
    reply,
    request.headers['if-none-match'],
    page,
    items,
    `"syncMode":"${page.syncMode}"${certificate === null ? '' : `,"certificate":${JSON.stringify(certificate)}`}`,
    Number(query['limit']),
  )
}

async function handleRow({ caller: { store }, params, query, reply, request }: RouteRequest): Promise<unknown> {
  const { database, key } = params as { database: string; key: string }
  const found = await store.row(database, key)
  if (found === null) throw new HttpError('NOT_FOUND', 'Row not found.')
  reply.header('etag', `"${formatEventId(found)}"`)
  if (matchesEtag(request.headers['if-none-match'], `"${formatEventId(found)}"`)) return reply.code(304).send()
  return sendJson(reply, `{"data":${serializeRow(found, { fields: parseNames(query['fields']) })}}`)
}

function handleChanges(routeRequest: RouteRequest): unknown {
  const {
    caller: { store },
    request,
    context,
  } = routeRequest
  if (wantsStream(request)) return sendChanges(routeRequest)
  const cached = context.pageCache.get(store.tenant, request.url, context.ports.clock.now())
  return cached === null ? sendChanges(routeRequest) : sendPageBody(routeRequest, cached.body)
}

/** Sends a cached page, compressed if accepted. */
async function sendPageBody(
  { caller: { store }, request, reply, context }: RouteRequest,
  body: Buffer,
): Promise<unknown> {
  const encoding = chooseEncoding(request.headers['accept-encoding'], body.length)
  const vary = reply.getHeader('vary')
  void reply
    .type('application/json; charset=utf-8')
    .header('vary', vary === undefined ? 'accept-encoding' : `${String(vary)}, accept-encoding`)
  return encoding === null
    ? reply.send(body)
    : reply
        .header('content-encoding', encoding)
        .send(await context.pageCache.compressed(store.tenant, request.url, body, encoding))
}

/** Without a cursor and a time, starts after `after`. */
export async function sendChanges(routeRequest: RouteRequest, after = 0): Promise<unknown> {
  const { caller, query, reply, request, context } = routeRequest
  const { store } = caller
  const requestedTypes = parseNames(query['types'])
  const types =
    requestedTypes === undefined ? undefined : await resolveTypes(store, requestedTypes, context.resourceTypes)
  const pageRequest: FeedPageRequest = {
    endpoint: 'changes',
    databases: types?.toSorted(),
    cursor: toText(query['cursor']),
    updatedSince: toText(query['updatedSince']),
    limit: Number(query['limit']),
    after,
  }
  const fields = parseNames(query['fields'])
  if (wantsStream(request)) return await streamChanges(routeRequest, pageRequest, fields)
  let page = await readFeed(context, store, pageRequest)
  const waitMs = Number(query['wait']) * 1_000
  if (waitMs > 0 && page.entries.length === 0 && !page.hasMore) {
    const disconnected = new AbortController()
    reply.raw.once('close', () => disconnected.abort())
    const access = context.authenticator.watchAccess(caller, 'changes:read')
    const ended = AbortSignal.any([disconnected.signal, access.signal])
    const until = context.ports.clock.now() + waitMs
    try {
      // The new entries may belong to other types; continue from the end of the last scan.
      for (
        let now = context.ports.clock.now();
        now < until && page.entries.length === 0 && !ended.aborted && !context.stopping.aborted;
        now = context.ports.clock.now()
      ) {
        await context.feedHead.waitBeyond(store, page.headSequence, until - now, ended)
        page = await readFeed(context, store, { ...pageRequest, cursor: page.nextCursor, updatedSince: undefined })
      }
    } finally {
      access.close()
    }
    if (!(await context.authenticator.isStillValid(caller, 'changes:read'))) throw keyEndedError()
  }
  const items = serializeChanges(page.entries, { fields, resourceTypes: context.resourceTypes })
  const more = `"types":${JSON.stringify(page.databases)}`
  if (!page.isImmutable)
    return sendFeedPage(reply, request.headers['if-none-match'], page, items, more, pageRequest.limit)
  const body = Buffer.from(buildPageBody(page, items, more, pageRequest.limit))
  context.pageCache.set(store.tenant, request.url, body, context.ports.clock.now())
  return await sendPageBody(routeRequest, body)
}

function buildPageBody(
  { nextCursor, hasMore }: FeedPageResult,
  items: readonly string[],
  more: string,
  limit: number,
): string {
  return `{"data":[${items.join(',')}],"page":{"nextCursor":"${nextCursor}","hasMore":${hasMore},${more},"count":${items.length},"limit":${limit}}}`
}

function sendFeedPage(
  reply: FastifyReply,
  known: string | undefined,
  page: FeedPageResult,
  items: readonly string[],
  more: string,
  limit: number,
): FastifyReply {
  const body = buildPageBody(page, items, more, limit)
  if (items.length === 0) {
    // An idle poller keeps its cursor and so its ETag, and gets 304.
    const tag = `"${hash('sha1', body, 'base64url')}"`
    reply.header('etag', tag)
    if (matchesEtag(known, tag)) return reply.code(304).send()
  }
  return sendJson(reply, body)
}

function matchesEtag(header: string | undefined, tag: string): boolean {
  return header !== undefined && header.split(',').some((one) => one.trim().replace(/^W\//, '') === tag)
}

/** Resolves names of databases or resource types, without duplicates. */
async function resolveTypes(store: Store, types: readonly string[], declared: ResourceTypes): Promise<string[]> {
  const known = await store.databaseNames()
  const resolved = types.map((type) =>
    known.includes(type) ? type : (known.find((name) => resourceTypeOf(name, declared) === type) ?? type),
  )
  const unknown = resolved.find((type) => !known.includes(type))
  if (unknown !== undefined)
    throw new FeedError(
      'type_unknown',
      `Unknown type ${JSON.stringify(unknown.slice(0, 63))}. Available types: ${known.join(', ') || 'none yet'}.`,
    )
  return [...new Set(resolved)]
}

function databaseNotFound(name: string): HttpError {
  return new HttpError(
    'NOT_FOUND',
    `Database ${JSON.stringify(name)} not found. /agents/v1/capabilities lists the available ones.`,
  )
}

function parseNames(value: string | number | undefined): string[] | undefined {
  return value === undefined
    ? undefined
    : [
        ...new Set(
          String(value)
            .split(',')
            .map((name) => name.trim()),
        ),
      ]
}

function toText(value: string | number | undefined): string | undefined {
  return value === undefined ? undefined : String(value)
}
