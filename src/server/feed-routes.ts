import { hash } from 'node:crypto'
import type { FastifyReply } from 'fastify'
import type { Store } from '../contract/index.ts'
import { FeedError } from '../feed/feed-error.ts'
import { serializeChanges, formatEventId, serializeRow } from '../feed/serialize-item.ts'
import type { FeedPageResult, FeedPageRequest } from '../feed/read-feed-page.ts'
import { resourceTypeOf, type ResourceTypes } from '../feed/resource-type.ts'
import { keyEndedError } from './authenticator.ts'
import { chooseEncoding } from './encoding.ts'
import { streamChanges, wantsStream } from './stream-changes.ts'
import { HttpError } from './http-error.ts'
import { readFeed } from './read-feed.ts'
import { sendJson, type RouteRequest, type Route } from './route.ts'
import {
  CHANGES_RESPONSE, CHANGES_QUERY, DATABASE_PARAMS, LIST_RESPONSE, LIST_QUERY, ROW_RESPONSE, ROW_PARAMS, ROW_QUERY,
} from './schemas.ts'

/** Lists and changes, as in document 003. */
export const feedRoutes: readonly Route[] = [
  {
    method: 'GET', path: '/agents/v1/changes', id: 'listChanges', access: { kind: 'scope', scope: 'changes:read' }, query: CHANGES_QUERY, response: CHANGES_RESPONSE,
    summary: 'What changed, in the order in which it was committed; deletions as tombstones. With `Accept: text/event-stream` a stream of the same.',
    handle: handleChanges,
  },
  {
    method: 'GET', path: '/agents/v1/:database', id: 'listRows', access: { kind: 'scope', scope: ':database:read' }, params: DATABASE_PARAMS, query: LIST_QUERY, response: LIST_RESPONSE,
    summary: 'The rows of a database, by the time of their last change and then by key: all of them, or those changed since a place or a time.',
    handle: handleList,
  },
  {
    method: 'GET', path: '/agents/v1/:database/:key', id: 'getRow', access: { kind: 'scope', scope: ':database:read' }, params: ROW_PARAMS, query: ROW_QUERY, response: ROW_RESPONSE,
    summary: 'One row.',
    handle: handleRow,
  },
]

async function handleList({ caller: { store }, params, query, reply, request, context: hall }: RouteRequest): Promise<unknown> {
  const database = params['database']!
  if (!(await store.databaseNames()).includes(database)) throw databaseNotFound(database)
  const page = await readFeed(hall, store, { endpoint: 'list', databases: [database], cursor: toText(query['cursor']), updatedSince: toText(query['updatedSince']), limit: Number(query['limit']) })
  const fields = parseNames(query['fields'])
  const items = page.entries.map((entry) => serializeRow(entry, { fields }))
  return sendFeedPage(reply, request.headers['if-none-match'], page, items, `"syncMode":"${page.syncMode}"`, Number(query['limit']))
}

async function handleRow({ caller: { store }, params, query, reply, request }: RouteRequest): Promise<unknown> {
  const { database, key } = params as { database: string; key: string }
  const found = await store.row(database, key)
  if (found === null) throw new HttpError('NOT_FOUND', 'There is no such row.')
  reply.header('etag', `"${formatEventId(found)}"`)
  if (matchesEtag(request.headers['if-none-match'], `"${formatEventId(found)}"`)) return reply.code(304).send()
  return sendJson(reply, `{"data":${serializeRow(found, { fields: parseNames(query['fields']) })}}`)
}

function handleChanges(ask: RouteRequest): unknown {
  const { caller: { store }, request, context: hall } = ask
  if (wantsStream(request)) return sendChanges(ask)
  const known = hall.pageCache.get(store.tenant, request.url, hall.ports.clock.now())
  return known === null ? sendChanges(ask) : sendPageBody(ask, known.body)
}

/** Sends a cached page, compressed if accepted. */
async function sendPageBody({ caller: { store }, request, reply, context: hall }: RouteRequest, body: Buffer): Promise<unknown> {
  const encoding = chooseEncoding(request.headers['accept-encoding'], body.length)
  const vary = reply.getHeader('vary')
  void reply.type('application/json; charset=utf-8').header('vary', vary === undefined ? 'accept-encoding' : `${String(vary)}, accept-encoding`)
  return encoding === null ? reply.send(body) : reply.header('content-encoding', encoding).send(await hall.pageCache.packed(store.tenant, request.url, body, encoding))
}

/** Without a cursor and a time, starts after `after`. */
export async function sendChanges(ask: RouteRequest, after = 0): Promise<unknown> {
  const { caller, query, reply, request, context: hall } = ask
  const { store } = caller
  const given = parseNames(query['types'])
  const types = given === undefined ? undefined : await resolveTypes(store, given, hall.resourceTypes)
  const asked: FeedPageRequest = {
    endpoint: 'changes', databases: types?.toSorted(), cursor: toText(query['cursor']), updatedSince: toText(query['updatedSince']), limit: Number(query['limit']), after,
  }
  const fields = parseNames(query['fields'])
  if (wantsStream(request)) return await streamChanges(ask, asked, fields)
  let page = await readFeed(hall, store, asked)
  const waitMs = Number(query['wait']) * 1_000
  if (waitMs > 0 && page.entries.length === 0 && !page.hasMore) {
    const left = new AbortController()
    reply.raw.once('close', () => left.abort())
    const followed = hall.authenticator.watchAccess(caller, 'changes:read')
    const over = AbortSignal.any([left.signal, followed.signal])
    const until = hall.ports.clock.now() + waitMs
    try {
      // The new entries may belong to other types; continue from the end of the last scan.
      for (let now = hall.ports.clock.now(); now < until && page.entries.length === 0 && !over.aborted && !hall.stopping.aborted; now = hall.ports.clock.now()) {
        await hall.feedHead.waitBeyond(store, page.headSequence, until - now, over)
        page = await readFeed(hall, store, { ...asked, cursor: page.nextCursor, updatedSince: undefined })
      }
    } finally {
      followed.close()
    }
    if (!(await hall.authenticator.isStillValid(caller, 'changes:read'))) throw keyEndedError()
  }
  const items = serializeChanges(page.entries, { fields, resourceTypes: hall.resourceTypes })
  const more = `"types":${JSON.stringify(page.databases)}`
  if (!page.isImmutable) return sendFeedPage(reply, request.headers['if-none-match'], page, items, more, asked.limit)
  const body = Buffer.from(buildPageBody(page, items, more, asked.limit))
  hall.pageCache.set(store.tenant, request.url, body, hall.ports.clock.now())
  return await sendPageBody(ask, body)
}

function buildPageBody({ nextCursor, hasMore }: FeedPageResult, items: readonly string[], more: string, limit: number): string {
  return `{"data":[${items.join(',')}],"page":{"nextCursor":"${nextCursor}","hasMore":${hasMore},${more},"count":${items.length},"limit":${limit}}}`
}

function sendFeedPage(reply: FastifyReply, known: string | undefined, page: FeedPageResult, items: readonly string[], more: string, limit: number): FastifyReply {
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
  const meant = types.map((type) => (known.includes(type) ? type : (known.find((name) => resourceTypeOf(name, declared) === type) ?? type)))
  const unknown = meant.find((type) => !known.includes(type))
  if (unknown !== undefined) throw new FeedError('type_unknown', `There is no type ${JSON.stringify(unknown.slice(0, 63))}; there are: ${known.join(', ') || 'none yet'}.`)
  return [...new Set(meant)]
}

function databaseNotFound(name: string): HttpError {
  return new HttpError('NOT_FOUND', `There is no database ${JSON.stringify(name)}. /agents/v1/capabilities lists those there are.`)
}

function parseNames(value: string | number | undefined): string[] | undefined {
  return value === undefined ? undefined : [...new Set(String(value).split(',').map((name) => name.trim()))]
}

function toText(value: string | number | undefined): string | undefined {
  return value === undefined ? undefined : String(value)
}
