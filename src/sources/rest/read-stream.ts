import { SyncError, type Change, type Execute, type JsonValue, type SyncContext } from '../../contract/index.ts'
import { eventFeed } from '../../strategies/event-feed.ts'
import { binaryIds, numericIds } from '../../strategies/kit/compare-ids.ts'
import type { AnchoredExecute } from '../../strategies/kit/anchored-execute.ts'
import { keyset } from '../../strategies/keyset.ts'
import { offset } from '../../strategies/offset.ts'
import { pageNumber } from '../../strategies/page-number.ts'
import { token } from '../../strategies/token.ts'
import type { HttpResponse, HttpClient, Query, RequestOptions } from '../kit/http-client.ts'
import { parseNextLink } from '../kit/link-header.ts'
import { timeWindow } from '../../strategies/kit/time-window.ts'
import { timestampPaging } from '../../strategies/kit/timestamp-paging.ts'
import { getAtPath, type FieldPath } from './field-path.ts'
import { readInstant, buildKey, formatTime, type RecordMapping, type TimeFormat } from './record-mapping.ts'
import type {
  EventPaging,
  ChangesPaging,
  KeysetPaging,
  LinkPaging,
  ListPaging,
  PageSizeParameter,
  TimestampPaging,
  TokenPaging,
  NoPaging,
  WindowPaging,
} from './stream.ts'

/** A list endpoint and the mapping of its records. */
export interface ListEndpoint {
  readonly client: HttpClient
  readonly name: string
  readonly path: string
  readonly query: Query
  readonly recordsPath: FieldPath
  readonly mapping: RecordMapping
  readonly lagMs: number
  toChange(record: JsonValue): Change
}

/** Creates a reader of the complete list. */
export function createListReader(listing: ListEndpoint, page: ListPaging): Execute<any> {
  switch (page.kind) {
    case 'none':
    case 'token':
    case 'link':
      return token({
        confirms: page.kind !== 'none',
        read: async ({ token }, context) => {
          const { changes, next } = await readLinkedPage(listing, page, token, {}, context)
          return { changes, next }
        },
      })
    case 'pageNumber':
      return pageNumber({
        firstPage: page.first ?? 1,
        read: async ({ page: number }, context) => {
          const { response, records } = await readPage(
            listing,
            { [page.parameter]: number, ...buildSizeQuery(page.size) },
            context,
          )
          const pages = readCount(response, page.pages)
          const end =
            page.more === undefined
              ? pages === undefined
                ? undefined
                : number - (page.first ?? 1) + 1 >= pages
              : !readHasMore(response, page.more)
          return {
            changes: records.map((record) => listing.toChange(record)),
            total: readCount(response, page.total) ?? null,
            ...(end !== undefined && { end }),
          }
        },
      })
    case 'offset':
      return offset({
        limit: page.size.value,
        read: async ({ offset, limit }, context) => {
          const { response, records } = await readPage(
            listing,
            { [page.parameter]: offset, [page.size.parameter]: limit },
            context,
          )
          return {
            changes: records.map((record) => listing.toChange(record)),
            total: readCount(response, page.total) ?? null,
            ...(page.more !== undefined && { end: !readHasMore(response, page.more) }),
          }
        },
      })
    case 'keyset':
      return createKeysetReader(listing, page)
    case 'timestamp':
      return createTimestampReader(listing, page)
    default:
      page satisfies never
      throw new SyncError('SYNC_INVALID', `Stream "${listing.name}": \`page.kind\` is unknown.`)
  }
}

/** Creates a reader of changes. */
export function createChangesReader(listing: ListEndpoint, follow: ChangesPaging): AnchoredExecute<any> {
  switch (follow.kind) {
    case 'keyset':
      return createKeysetReader(listing, follow)
    case 'timestamp':
      return createTimestampReader(listing, follow)
    case 'window':
      return createWindowReader(listing, follow)
    case 'events':
      return createEventReader(listing, follow)
    default:
      follow satisfies never
      throw new SyncError('SYNC_INVALID', `Stream "${listing.name}": \`follow.kind\` is unknown.`)
  }
}

function createKeysetReader(listing: ListEndpoint, page: KeysetPaging): AnchoredExecute<any> {
  const updatedAt = requireUpdatedAt(listing)
  const { time } = listing.mapping
  return keyset<JsonValue>({
    limit: page.size.value,
    lagMs: listing.lagMs,
    compareIds: page.ids === 'numeric' ? numericIds : binaryIds,
    timestamp: (record) => readInstant(record, updatedAt, time) ?? '',
    id: (record) => buildKey(record, page.id ?? listing.mapping.key),
    toChange: (record) => listing.toChange(record),
    read: async ({ after, until, limit }, context) => {
      const { response, records } = await readPage(
        listing,
        {
          ...(after !== undefined && { [page.after]: formatTime(after.timestamp, time), [page.afterId]: after.id }),
          ...buildUntilQuery(page.until, until, time),
          [page.size.parameter]: limit,
        },
        context,
      )
      return {
        items: records,
        end: page.more === undefined ? records.length === 0 : !readHasMore(response, page.more),
        serverTime: response.serverTime,
      }
    },
  })
}

function createTimestampReader(listing: ListEndpoint, page: TimestampPaging): AnchoredExecute<any> {
  const updatedAt = requireUpdatedAt(listing)
  const { time } = listing.mapping
  return timestampPaging({
    pageSize: page.size.value,
    lagMs: listing.lagMs,
    timestamp: (record) => readInstant(record, updatedAt, time),
    toChange: (record) => listing.toChange(record),
    read: async ({ since, until }, context) => {
      const { response, records } = await readPage(
        listing,
        {
          ...(since !== undefined && {
            [page.since]: formatTime(page.bound === 'above' ? subtractOneUnit(since, time) : since, time),
          }),
          ...buildUntilQuery(page.until, until, time),
          [page.size.parameter]: page.size.value,
        },
        context,
      )
      return { records, serverTime: response.serverTime }
    },
  })
}

/** Turns an exclusive bound into an inclusive one, in the smallest unit of the source. */
function subtractOneUnit(instant: string, time: TimeFormat | undefined): string {
  return new Date(Date.parse(instant) - (time === 's' ? 1_000 : 1)).toISOString()
}

function createWindowReader(listing: ListEndpoint, follow: WindowPaging): AnchoredExecute<any> {
  const { since, until, page } = follow
  const { time } = listing.mapping
  if (!['none', 'token', 'link'].includes(page.kind)) {
    throw new SyncError(
      'SYNC_INVALID',
      `Stream "${listing.name}": changes cannot be paged by ${page.kind as string}, because a record that changes during the read shifts others out of view. Use token or link paging.`,
    )
  }
  return timeWindow({
    lagMs: listing.lagMs,
    ...(follow.overlapMs !== undefined && { overlapMs: follow.overlapMs }),
    read: async (query, context) => {
      const { changes, next, response } = await readLinkedPage(
        listing,
        page,
        query.token,
        {
          ...(query.since !== undefined && { [since]: formatTime(query.since, time) }),
          ...buildUntilQuery(until, query.until, time),
        },
        context,
      )
      return { changes, next: next ?? null, serverTime: response.serverTime }
    },
  })
}

function createEventReader(listing: ListEndpoint, follow: EventPaging): AnchoredExecute<any> {
  const feed: ListEndpoint = {
    ...listing,
    path: follow.path,
    query: follow.query ?? {},
    recordsPath: follow.records ?? '',
  }
  const { time = listing.mapping.time } = follow
  return eventFeed<JsonValue>({
    lagMs: listing.lagMs,
    order: follow.order,
    ...(follow.retentionMs !== undefined && { retentionMs: follow.retentionMs }),
    id: (event) => buildKey(event, follow.id),
    time: (event) => readInstant(event, follow.at, time) ?? '',
    anchor: async (context) => (await readPage(feed, follow.newest, context)).records[0],
    read: async ({ after }, context) => {
      const { response, records } = await readPage(
        feed,
        after === '' ? {} : { [follow.after]: after },
        context,
        after === '' ? {} : { cursorRefusals: CURSOR_REJECTED_STATUSES },
      )
      return { events: records, hasMore: readHasMore(response, follow.more), serverTime: response.serverTime }
    },
    toChanges: (event) => {
      if (follow.only !== undefined && !matchesAny(getAtPath(event, follow.only.at), follow.only.are)) return []
      const record = getAtPath(event, follow.record) ?? null
      const isDeletion =
        follow.deletions !== undefined && matchesAny(getAtPath(event, follow.deletions.at), follow.deletions.are)
      return [isDeletion ? { type: 'delete', key: buildKey(record, listing.mapping.key) } : listing.toChange(record)]
    },
  })
}

/** Statuses with which a source rejects an expired cursor. */
const CURSOR_REJECTED_STATUSES = [400, 404, 410, 422]

function matchesAny(value: JsonValue | undefined, names: readonly string[]): boolean {
  return (
    typeof value === 'string' &&
    names.some((name) => (name.startsWith('*') ? value.endsWith(name.slice(1)) : value === name))
  )
}

interface LinkedPage extends RecordsPage {
  readonly changes: readonly Change[]
  readonly next: string | undefined
}

/** Reads a page that contains the next token, or a link within the origin of the source. */
async function readLinkedPage(
  listing: ListEndpoint,
  page: NoPaging | TokenPaging | LinkPaging,
  token: string | undefined,
  query: Query,
  context: SyncContext,
): Promise<LinkedPage> {
  const options = token === undefined ? {} : { cursorRefusals: CURSOR_REJECTED_STATUSES }
  if (page.kind === 'link' && token !== undefined) {
    // The link holds the whole question.
    const response = await listing.client.get(token, {}, context, options)
    return toLinkedPage(listing, page, { response, records: extractRecords(response, listing) }, context)
  }
  const size = page.kind === 'none' ? undefined : page.size
  const read = await readPage(
    listing,
    { ...query, ...buildSizeQuery(size), ...(page.kind === 'token' && { [page.parameter]: token }) },
    context,
    options,
  )
  return toLinkedPage(listing, page, read, context)
}

function toLinkedPage(
  listing: ListEndpoint,
  page: NoPaging | TokenPaging | LinkPaging,
  read: RecordsPage,
  context: SyncContext,
): LinkedPage {
  const { response, records } = read
  return {
    ...read,
    changes: records.map((record) => listing.toChange(record)),
    next: findNextToken(listing, page, read, response, context),
  }
}

function findNextToken(
  listing: ListEndpoint,
  page: NoPaging | TokenPaging | LinkPaging,
  { records }: RecordsPage,
  response: HttpResponse,
  context: SyncContext,
): string | undefined {
  if (page.kind === 'none') return undefined
  if (page.kind === 'link') {
    const link =
      page.next === undefined ? parseNextLink(response.headers) : (getAtPath(response.body, page.next) ?? null)
    if (link === null || link === '') return undefined
    if (typeof link !== 'string')
      throw new SyncError('SOURCE_INVALID', `Stream "${listing.name}": the link to the next page is not a string.`)
    return listing.client.resolveLink(link, response, context)
  }
  if (page.more !== undefined && !readHasMore(response, page.more)) return undefined
  const isLast = typeof page.next === 'object' && 'last' in page.next
  const value = isLast
    ? getAtPath(records.at(-1), (page.next as { last: FieldPath }).last)
    : getAtPath(response.body, page.next as FieldPath)
  if (value === undefined || value === null || value === '') {
    // If the source reports more pages, a missing token is not the end.
    if (page.more !== undefined)
      throw new SyncError(
        'SOURCE_INVALID',
        `Stream "${listing.name}": the response reports more pages but has no token for the next one.`,
      )
    return undefined
  }
  if (typeof value === 'object' || typeof value === 'boolean')
    throw new SyncError('SOURCE_INVALID', `Stream "${listing.name}": the token of the next page is not a string.`)
  return String(value)
}

interface RecordsPage {
  readonly response: HttpResponse
  readonly records: readonly JsonValue[]
}

async function readPage(
  listing: ListEndpoint,
  query: Query,
  context: SyncContext,
  options: RequestOptions = {},
): Promise<RecordsPage> {
  const response = await listing.client.get(listing.path, { ...listing.query, ...query }, context, options)
  return { response, records: extractRecords(response, listing) }
}

/** A response without the list is an error, not an empty list: a sweep would delete every row. */
function extractRecords({ body }: HttpResponse, { recordsPath: records, name }: ListEndpoint): readonly JsonValue[] {
  const list = getAtPath(body, records)
  if (!Array.isArray(list))
    throw new SyncError(
      'SOURCE_INVALID',
      `Stream "${name}": the response has no list ${records.length === 0 ? 'of records' : `at \`${String(records)}\``}.`,
    )
  return list
}

function readHasMore({ body }: HttpResponse, path: FieldPath): boolean {
  const more = getAtPath(body, path)
  if (typeof more !== 'boolean')
    throw new SyncError(
      'SOURCE_INVALID',
      `The response has no boolean at \`${String(path)}\`, which says whether more pages follow.`,
    )
  return more
}

function readCount({ body }: HttpResponse, path: FieldPath | undefined): number | undefined {
  if (path === undefined) return undefined
  const count = Number(getAtPath(body, path) ?? Number.NaN)
  if (!Number.isSafeInteger(count) || count < 0)
    throw new SyncError('SOURCE_INVALID', `The response has no count at \`${String(path)}\`.`)
  return count
}

function buildSizeQuery(size: PageSizeParameter | undefined): Query {
  return size === undefined ? {} : { [size.parameter]: size.value }
}

function buildUntilQuery(
  parameter: string | undefined,
  until: string | undefined,
  time: TimeFormat | undefined,
): Query {
  return parameter === undefined || until === undefined ? {} : { [parameter]: formatTime(until, time) }
}

function requireUpdatedAt({ name, mapping }: ListEndpoint): FieldPath {
  if (mapping.updatedAt === undefined)
    throw new SyncError('SYNC_INVALID', `Stream "${name}": reading by timestamp needs \`updatedAt\`.`)
  return mapping.updatedAt
}
