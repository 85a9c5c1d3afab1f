import { SyncError, type Change, type Execute, type JsonValue, type SyncContext } from '../../contract/index.ts'
import { eventFeed } from '../../strategies/event-feed.ts'
import { binaryIds, numericIds } from '../../strategies/kit/compare-ids.ts'
import type { Anchored } from '../../strategies/kit/anchored.ts'
import { keyset } from '../../strategies/keyset.ts'
import { offset } from '../../strategies/offset.ts'
import { pageNumber } from '../../strategies/page-number.ts'
import { token } from '../../strategies/token.ts'
import type { HttpAnswer, HttpClient, Query, RequestOptions } from '../kit/http-client.ts'
import { nextLinkOf } from '../kit/link-header.ts'
import { ladder } from './ladder.ts'
import { valueAt, type Pointer } from './pointer.ts'
import { instantAt, keyOf, momentFor, type RecordShape, type TimeForm } from './record.ts'
import type { EventPaging, Following, KeysetPaging, LinkPaging, ListPaging, PageSize, TimestampPaging, TokenPaging, WholePaging, WindowPaging } from './stream.ts'
import { window } from './window.ts'

/** A list of an API, and what its records become. */
export interface Listing {
  readonly client: HttpClient
  readonly name: string
  readonly path: string
  readonly query: Query
  readonly records: Pointer
  readonly shape: RecordShape
  readonly lagMs: number
  toChange(record: JsonValue): Change
}

/** The whole list, by the way its pages are asked for. */
export function readList(listing: Listing, page: ListPaging): Execute<any> {
  switch (page.kind) {
    case 'none':
    case 'token':
    case 'link':
      return token({
        confirms: page.kind !== 'none',
        read: async ({ token }, context) => {
          const { changes, next } = await readLinked(listing, page, token, {}, context)
          return { changes, next }
        },
      })
    case 'pageNumber':
      return pageNumber({
        firstPage: page.first ?? 1,
        read: async ({ page: number }, context) => {
          const { answer, records } = await readPage(listing, { [page.parameter]: number, ...sizeOf(page.size) }, context)
          const pages = countAt(answer, page.pages)
          const end = page.more === undefined ? (pages === undefined ? undefined : number - (page.first ?? 1) + 1 >= pages) : !moreAt(answer, page.more)
          return { changes: records.map((record) => listing.toChange(record)), total: countAt(answer, page.total) ?? null, ...(end !== undefined && { end }) }
        },
      })
    case 'offset':
      return offset({
        limit: page.size.value,
        read: async ({ offset, limit }, context) => {
          const { answer, records } = await readPage(listing, { [page.parameter]: offset, [page.size.parameter]: limit }, context)
          return { changes: records.map((record) => listing.toChange(record)), total: countAt(answer, page.total) ?? null, ...(page.more !== undefined && { end: !moreAt(answer, page.more) }) }
        },
      })
    case 'keyset':
      return readKeyset(listing, page)
    case 'timestamp':
      return readLadder(listing, page)
    default:
      page satisfies never
      throw new SyncError('SYNC_INVALID', `Stream "${listing.name}": \`page.kind\` is not one that there is.`)
  }
}

/** What changed, by the way the source tells it. */
export function readChanges(listing: Listing, follow: Following): Anchored<any> {
  switch (follow.kind) {
    case 'keyset':
      return readKeyset(listing, follow)
    case 'timestamp':
      return readLadder(listing, follow)
    case 'window':
      return readWindow(listing, follow)
    case 'events':
      return readEvents(listing, follow)
    default:
      follow satisfies never
      throw new SyncError('SYNC_INVALID', `Stream "${listing.name}": \`follow.kind\` is not one that there is.`)
  }
}

function readKeyset(listing: Listing, page: KeysetPaging): Anchored<any> {
  const updatedAt = requireUpdatedAt(listing)
  const { time } = listing.shape
  return keyset<JsonValue>({
    limit: page.size.value,
    lagMs: listing.lagMs,
    compareIds: page.ids === 'numeric' ? numericIds : binaryIds,
    timestamp: (record) => instantAt(record, updatedAt, time) ?? '',
    id: (record) => keyOf(record, page.id ?? listing.shape.key),
    toChange: (record) => listing.toChange(record),
    read: async ({ after, until, limit }, context) => {
      const { answer, records } = await readPage(listing, {
        ...(after !== undefined && { [page.after]: momentFor(after.timestamp, time), [page.afterId]: after.id }),
        ...untilOf(page.until, until, time),
        [page.size.parameter]: limit,
      }, context)
      return { items: records, end: page.more === undefined ? records.length === 0 : !moreAt(answer, page.more), serverTime: answer.serverTime }
    },
  })
}

function readLadder(listing: Listing, page: TimestampPaging): Anchored<any> {
  const updatedAt = requireUpdatedAt(listing)
  const { time } = listing.shape
  return ladder({
    size: page.size.value,
    lagMs: listing.lagMs,
    timestamp: (record) => instantAt(record, updatedAt, time),
    toChange: (record) => listing.toChange(record),
    read: async ({ since, until }, context) => {
      const { answer, records } = await readPage(listing, {
        ...(since !== undefined && { [page.since]: momentFor(page.bound === 'above' ? justBefore(since, time) : since, time) }),
        ...untilOf(page.until, until, time),
        [page.size.parameter]: page.size.value,
      }, context)
      return { records, serverTime: answer.serverTime }
    },
  })
}

/** Above this is from the moment itself on, in the smallest step the source can be asked in. */
function justBefore(instant: string, time: TimeForm | undefined): string {
  return new Date(Date.parse(instant) - (time === 's' ? 1_000 : 1)).toISOString()
}

function readWindow(listing: Listing, follow: WindowPaging): Anchored<any> {
  const { since, until, page } = follow
  const { time } = listing.shape
  if (!['none', 'token', 'link'].includes(page.kind)) {
    throw new SyncError('SYNC_INVALID', `Stream "${listing.name}": what changed cannot be read by ${page.kind as string}. A record that changes again while it is read moves another out of sight.`)
  }
  return window({
    lagMs: listing.lagMs,
    ...(follow.overlapMs !== undefined && { overlapMs: follow.overlapMs }),
    read: async (query, context) => {
      const { changes, next, answer } = await readLinked(listing, page, query.token, {
        ...(query.since !== undefined && { [since]: momentFor(query.since, time) }),
        ...untilOf(until, query.until, time),
      }, context)
      return { changes, next: next ?? null, serverTime: answer.serverTime }
    },
  })
}

function readEvents(listing: Listing, follow: EventPaging): Anchored<any> {
  const feed: Listing = { ...listing, path: follow.path, query: follow.query ?? {}, records: follow.records ?? '' }
  const { time = listing.shape.time } = follow
  return eventFeed<JsonValue>({
    lagMs: listing.lagMs,
    order: follow.order,
    ...(follow.retentionMs !== undefined && { retentionMs: follow.retentionMs }),
    id: (event) => keyOf(event, follow.id),
    time: (event) => instantAt(event, follow.at, time) ?? '',
    anchor: async (context) => (await readPage(feed, follow.newest, context)).records[0],
    read: async ({ after }, context) => {
      const { answer, records } = await readPage(feed, after === '' ? {} : { [follow.after]: after }, context, after === '' ? {} : { cursorRefusals: POSITION_REFUSALS })
      return { events: records, hasMore: moreAt(answer, follow.more), serverTime: answer.serverTime }
    },
    toChanges: (event) => {
      if (follow.only !== undefined && !isOneOf(valueAt(event, follow.only.at), follow.only.are)) return []
      const record = valueAt(event, follow.record) ?? null
      const isDeletion = follow.deletions !== undefined && isOneOf(valueAt(event, follow.deletions.at), follow.deletions.are)
      return [isDeletion ? { type: 'delete', key: keyOf(record, listing.shape.key) } : listing.toChange(record)]
    },
  })
}

/** By which a source says that it does not know the position any more. */
const POSITION_REFUSALS = [400, 404, 410, 422]

function isOneOf(value: JsonValue | undefined, names: readonly string[]): boolean {
  return typeof value === 'string' && names.some((name) => (name.startsWith('*') ? value.endsWith(name.slice(1)) : value === name))
}

interface LinkedPage extends ReadPage {
  readonly changes: readonly Change[]
  readonly next: string | undefined
}

/** A page that says itself which one is next: a token, or a link that stays where the source lives. */
async function readLinked(listing: Listing, page: WholePaging | TokenPaging | LinkPaging, token: string | undefined, query: Query, context: SyncContext): Promise<LinkedPage> {
  const options = token === undefined ? {} : { cursorRefusals: POSITION_REFUSALS }
  if (page.kind === 'link' && token !== undefined) {
    // The link holds the whole question.
    const answer = await listing.client.get(token, {}, context, options)
    return linked(listing, page, { answer, records: recordsOf(answer, listing) }, context)
  }
  const size = page.kind === 'none' ? undefined : page.size
  const read = await readPage(listing, { ...query, ...sizeOf(size), ...(page.kind === 'token' && { [page.parameter]: token }) }, context, options)
  return linked(listing, page, read, context)
}

function linked(listing: Listing, page: WholePaging | TokenPaging | LinkPaging, read: ReadPage, context: SyncContext): LinkedPage {
  const { answer, records } = read
  return { ...read, changes: records.map((record) => listing.toChange(record)), next: nextOf(listing, page, read, answer, context) }
}

function nextOf(listing: Listing, page: WholePaging | TokenPaging | LinkPaging, { records }: ReadPage, answer: HttpAnswer, context: SyncContext): string | undefined {
  if (page.kind === 'none') return undefined
  if (page.kind === 'link') {
    const link = page.next === undefined ? nextLinkOf(answer.headers) : (valueAt(answer.body, page.next) ?? null)
    if (link === null || link === '') return undefined
    if (typeof link !== 'string') throw new SyncError('SOURCE_INVALID', `Stream "${listing.name}": the link to the next page is not a text.`)
    return listing.client.link(link, answer, context)
  }
  if (page.more !== undefined && !moreAt(answer, page.more)) return undefined
  const isLast = typeof page.next === 'object' && 'last' in page.next
  const value = isLast ? valueAt(records.at(-1), (page.next as { last: Pointer }).last) : valueAt(answer.body, page.next as Pointer)
  if (value === undefined || value === null || value === '') {
    // With a word that more follows, a missing position is not an end.
    if (page.more !== undefined) throw new SyncError('SOURCE_INVALID', `Stream "${listing.name}": the source says that more follows, and not where.`)
    return undefined
  }
  if (typeof value === 'object' || typeof value === 'boolean') throw new SyncError('SOURCE_INVALID', `Stream "${listing.name}": the token of the next page is not a text.`)
  return String(value)
}

interface ReadPage {
  readonly answer: HttpAnswer
  readonly records: readonly JsonValue[]
}

async function readPage(listing: Listing, query: Query, context: SyncContext, options: RequestOptions = {}): Promise<ReadPage> {
  const answer = await listing.client.get(listing.path, { ...listing.query, ...query }, context, options)
  return { answer, records: recordsOf(answer, listing) }
}

/** An answer without its list is an error in disguise, never an empty list: a sweep would take it at its word. */
function recordsOf({ body }: HttpAnswer, { records, name }: Listing): readonly JsonValue[] {
  const list = valueAt(body, records)
  if (!Array.isArray(list)) throw new SyncError('SOURCE_INVALID', `Stream "${name}": the answer holds no list ${records.length === 0 ? 'of records' : `at \`${String(records)}\``}.`)
  return list
}

function moreAt({ body }: HttpAnswer, pointer: Pointer): boolean {
  const more = valueAt(body, pointer)
  if (typeof more !== 'boolean') throw new SyncError('SOURCE_INVALID', `The answer does not say at \`${String(pointer)}\` whether more follows.`)
  return more
}

function countAt({ body }: HttpAnswer, pointer: Pointer | undefined): number | undefined {
  if (pointer === undefined) return undefined
  const count = Number(valueAt(body, pointer) ?? Number.NaN)
  if (!Number.isSafeInteger(count) || count < 0) throw new SyncError('SOURCE_INVALID', `The answer holds no count at \`${String(pointer)}\`.`)
  return count
}

function sizeOf(size: PageSize | undefined): Query {
  return size === undefined ? {} : { [size.parameter]: size.value }
}

function untilOf(parameter: string | undefined, until: string | undefined, time: TimeForm | undefined): Query {
  return parameter === undefined || until === undefined ? {} : { [parameter]: momentFor(until, time) }
}

function requireUpdatedAt({ name, shape }: Listing): Pointer {
  if (shape.updatedAt === undefined) throw new SyncError('SYNC_INVALID', `Stream "${name}": reading by timestamp needs \`updatedAt\`.`)
  return shape.updatedAt
}
