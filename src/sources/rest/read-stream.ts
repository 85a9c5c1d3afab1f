import { SyncError, type Change, type Execute, type JsonValue, type SyncContext } from '../../contract/index.ts'
import { eventFeed } from '../../strategies/event-feed.ts'
import { binaryIds, numericIds } from '../../strategies/kit/compare-ids.ts'
import type { AnchoredExecute } from '../../strategies/kit/anchored-execute.ts'
import { keyset } from '../../strategies/keyset.ts'
import { offset } from '../../strategies/offset.ts'
import { pageNumber } from '../../strategies/page-number.ts'
import { token } from '../../strategies/token.ts'
import { isObject } from '../kit/classify-response.ts'
import type { HttpResponse, RequestOptions } from '../kit/http-client.ts'
import { parseNextLink } from '../kit/link-header.ts'
import { timeWindow } from '../../strategies/kit/time-window.ts'
import { timestampPaging } from '../../strategies/kit/timestamp-paging.ts'
import { parsePageInfo } from '../kit/parse-page-info.ts'
import { createExportReader } from './export-job.ts'
import { getAtPath, type FieldPath } from './field-path.ts'
import { RELAY_PARAMETER, requestRecords, type ListEndpoint, type RecordsPage } from './list-endpoint.ts'
import {
  buildKey,
  formatTime,
  formatTimeAfter,
  readInstant,
  requireStep,
  TIME_UNITS_MS,
  type TimeFormat,
} from './record-mapping.ts'
import type { Parameters } from './request-template.ts'
import type {
  ChangesPaging,
  EventPaging,
  KeysetPaging,
  LinkPaging,
  ListPaging,
  NoPaging,
  PageSizeParameter,
  RelayPaging,
  TimestampPaging,
  TokenPaging,
  WindowPaging,
} from './stream.ts'

/** Creates a reader of the complete list. */
export function createListReader(listing: ListEndpoint, page: ListPaging): Execute<any> {
  switch (page.kind) {
    case 'none':
    case 'token':
    case 'link':
    case 'relay':
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
          const read = await readPage(listing, { [page.parameter]: number, ...buildSizeQuery(page.size) }, context)
          const pages = readCount(read, page.pages)
          const end =
            page.more === undefined
              ? pages === undefined
                ? undefined
                : number - (page.first ?? 1) + 1 >= pages
              : !readHasMore(read, page.more)
          return {
            changes: read.records.map((record) => listing.toChange(record)),
            total: readCount(read, page.total) ?? null,
            ...(end !== undefined && { end }),
          }
        },
      })
    case 'offset':
      return offset({
        limit: page.size.value,
        read: async ({ offset, limit }, context) => {
          const read = await readPage(listing, { [page.parameter]: offset, [page.size.parameter]: limit }, context)
          return {
            changes: read.records.map((record) => listing.toChange(record)),
            total: readCount(read, page.total) ?? null,
            ...(page.more !== undefined && { end: !readHasMore(read, page.more) }),
          }
        },
      })
    case 'keyset':
      return createKeysetReader(listing, page)
    case 'timestamp':
      return createTimestampReader(listing, page)
    case 'export':
      return createExportReader(listing, page)
    default:
      page satisfies never
      throw new SyncError('SYNC_INVALID', `Stream "${listing.name}": \`page.kind\` is unknown.`)
  }
}

/** Creates a reader of changes. */
export function createChangesReader(
  listing: ListEndpoint,
  follow: ChangesPaging,
  start?: string,
): AnchoredExecute<any> {
  switch (follow.kind) {
    case 'keyset':
      return createKeysetReader(listing, follow)
    case 'timestamp':
      return createTimestampReader(listing, follow)
    case 'window':
      return createWindowReader(listing, follow, start)
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
      const answer = await readPage(
        listing,
        {
          ...(after !== undefined && { [page.after]: formatTime(after.timestamp, time), [page.afterId]: after.id }),
          ...buildUntilQuery(page.until, until, time),
          [page.size.parameter]: limit,
        },
        context,
      )
      return {
        items: answer.records,
        end: page.more === undefined ? answer.records.length === 0 : !readHasMore(answer, page.more),
        serverTime: answer.response.serverTime,
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
  return new Date(Date.parse(instant) - TIME_UNITS_MS[time ?? 'iso']).toISOString()
}

function createWindowReader(listing: ListEndpoint, follow: WindowPaging, start?: string): AnchoredExecute<any> {
  const { since, until, page } = follow
  const { time } = listing.mapping
  if (!['none', 'token', 'link', 'relay'].includes(page.kind)) {
    throw new SyncError(
      'SYNC_INVALID',
      `Stream "${listing.name}": changes cannot be paged by ${page.kind as string}, because a record that changes during the read shifts others out of view. Use token, link or relay paging.`,
    )
  }
  return timeWindow({
    lagMs: listing.lagMs,
    ...(follow.overlapMs !== undefined && { overlapMs: follow.overlapMs }),
    ...(start !== undefined && { start }),
    ...(follow.step !== undefined && { stepMs: requireStep(listing.name, follow.step) }),
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

function createEventReader(feed: ListEndpoint, follow: EventPaging): AnchoredExecute<any> {
  const { time = feed.mapping.time } = follow
  return eventFeed<JsonValue>({
    lagMs: feed.lagMs,
    order: follow.order,
    ...(follow.retentionMs !== undefined && { retentionMs: follow.retentionMs }),
    id: (event) => buildKey(event, follow.id),
    time: (event) => readInstant(event, follow.at, time) ?? '',
    anchor: async (context) => (await readPage(feed, follow.newest, context)).records[0],
    read: async ({ after }, context) => {
      const read = await readPage(
        feed,
        after === '' ? {} : { [follow.after]: after },
        context,
        after === '' ? {} : { cursorRefusals: CURSOR_REJECTED_STATUSES },
      )
      return {
        events: read.records,
        hasMore: readHasMore(read, follow.more),
        serverTime: read.response.serverTime,
      }
    },
    toChanges: (event) => {
      if (follow.only !== undefined && !matchesAny(getAtPath(event, follow.only.at), follow.only.are)) return []
      const record = getAtPath(event, follow.record) ?? null
      const isDeletion =
        follow.deletions !== undefined && matchesAny(getAtPath(event, follow.deletions.at), follow.deletions.are)
      return [isDeletion ? { type: 'delete', key: buildKey(record, feed.mapping.key) } : feed.toChange(record)]
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

/** A page with the token or link of the next one. */
export interface LinkedPage extends RecordsPage {
  readonly changes: readonly Change[]
  readonly next: string | undefined
}

/** The pagings in which a page leads to the next one. */
export type LinkedPaging = NoPaging | TokenPaging | LinkPaging | RelayPaging

/** Reads a page that contains the next token, or a link within the origin of the source. */
export async function readLinkedPage(
  listing: ListEndpoint,
  page: LinkedPaging,
  token: string | undefined,
  query: Parameters,
  context: SyncContext,
): Promise<LinkedPage> {
  const options = token === undefined ? {} : { cursorRefusals: CURSOR_REJECTED_STATUSES }
  // A link holds the whole question.
  const read =
    page.kind === 'link' && token !== undefined
      ? await requestRecords(listing, context, options, (all) => listing.client.get(token, {}, context, all))
      : await readPage(listing, { ...query, ...buildTokenQuery(page, token) }, context, options, page.kind === 'relay')
  return {
    ...read,
    changes: read.records.map((record) => listing.toChange(record)),
    next: read.isIgnored ? undefined : findNextToken(listing, page, read, context),
  }
}

function buildTokenQuery(page: LinkedPaging, token: string | undefined): Parameters {
  switch (page.kind) {
    case 'none':
      return {}
    case 'link':
      return buildSizeQuery(page.size)
    case 'token':
      return { ...buildSizeQuery(page.size), [page.parameter]: token }
    case 'relay':
      return { ...buildSizeQuery(page.size), [page.parameter ?? RELAY_PARAMETER]: token }
    default:
      throw page satisfies never
  }
}

function findNextToken(
  listing: ListEndpoint,
  page: LinkedPaging,
  { records, response }: RecordsPage,
  context: SyncContext,
): string | undefined {
  if (page.kind === 'none') return undefined
  if (page.kind === 'relay') return findEndCursor(listing, response)
  if (page.kind === 'link') {
    const link =
      page.next === undefined ? parseNextLink(response.headers) : (getAtPath(response.body, page.next) ?? null)
    if (link === null || link === '') return undefined
    if (typeof link !== 'string')
      throw new SyncError('SOURCE_INVALID', `Stream "${listing.name}": the link to the next page is not a string.`)
    return listing.client.resolveLink(link, response, context)
  }
  if (page.more !== undefined && !readBoolean(response, page.more)) return undefined
  const value =
    typeof page.next === 'object' && 'last' in page.next
      ? getAtPath(records.at(-1), page.next.last)
      : getAtPath(response.body, page.next)
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

function findEndCursor({ name, recordsPath }: ListEndpoint, { body }: HttpResponse): string | undefined {
  const connection = getAtPath(body, recordsPath)
  const pageInfo = isObject(connection) ? connection['pageInfo'] : undefined
  if (!isObject(pageInfo))
    throw new SyncError(
      'SOURCE_INVALID',
      `Stream "${name}": the connection at \`${String(recordsPath)}\` has no \`pageInfo\`.`,
    )
  const { hasNextPage, endCursor } = parsePageInfo(pageInfo)
  if (!hasNextPage) return undefined
  if (endCursor === null || endCursor === '')
    throw new SyncError('SOURCE_INVALID', `Stream "${name}": the response reports more pages but has no \`endCursor\`.`)
  return endCursor
}

/** Sends a request with these parameters, and those of every request. */
export async function readPage(
  listing: ListEndpoint,
  parameters: Parameters,
  context: SyncContext,
  options: RequestOptions = {},
  isConnection = false,
): Promise<RecordsPage> {
  const sent = { ...listing.fixed, ...parameters }
  return requestRecords(listing, context, options, (all) => listing.send(sent, context, all), isConnection)
}

/** The flag for more pages. */
export function readHasMore({ response, isIgnored }: RecordsPage, path: FieldPath): boolean {
  return !isIgnored && readBoolean(response, path)
}

function readBoolean({ body }: HttpResponse, path: FieldPath): boolean {
  const more = getAtPath(body, path)
  if (typeof more !== 'boolean')
    throw new SyncError(
      'SOURCE_INVALID',
      `The response has no boolean at \`${String(path)}\`, which says whether more pages follow.`,
    )
  return more
}

/** A count in a response; undefined without a path. */
export function readCount({ response, isIgnored }: RecordsPage, path: FieldPath | undefined): number | undefined {
  if (path === undefined || isIgnored) return undefined
  const count = Number(getAtPath(response.body, path) ?? Number.NaN)
  if (!Number.isSafeInteger(count) || count < 0)
    throw new SyncError('SOURCE_INVALID', `The response has no count at \`${String(path)}\`.`)
  return count
}

/** The parameter of the page size. */
export function buildSizeQuery(size: PageSizeParameter | undefined): Parameters {
  return size === undefined ? {} : { [size.parameter]: size.value }
}

/** The bound is rounded up: the rows after it are read again, and none before it is missed. */
function buildUntilQuery(
  parameter: string | undefined,
  until: string | undefined,
  time: TimeFormat | undefined,
): Parameters {
  return parameter === undefined || until === undefined ? {} : { [parameter]: formatTimeAfter(until, time) }
}

function requireUpdatedAt({ name, mapping }: ListEndpoint): FieldPath {
  if (mapping.updatedAt === undefined)
    throw new SyncError('SYNC_INVALID', `Stream "${name}": reading by timestamp needs \`updatedAt\`.`)
  return mapping.updatedAt
}
