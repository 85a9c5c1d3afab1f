import { SyncError, type JsonObject, type JsonValue, type SyncContext } from '../../contract/index.ts'
import { equalsJson, stringifyJson } from '../../values/json.ts'
import type { HttpClient, Query } from '../kit/http-client.ts'
import { isObject } from '../kit/classify-response.ts'
import { encodePathSegment } from '../kit/origin.ts'
import { parseEvent, type StripeEvent } from './events.ts'
import { requireString } from './object-fields.ts'
import { hasTruncatedList, ListChangedError, readNestedLists } from './nested-objects.ts'
import type { PageBudget } from './page-budget.ts'
import { findObjectPath, type StripeResource } from './resources.ts'

/** The most that Stripe returns in one page. */
export const PAGE_SIZE_MAX = 100

export interface EventsPage {
  /** Newest first. */
  readonly events: StripeEvent[]
  readonly hasMore: boolean
  /** The `Date` header. It may be wrong, so it only ever makes a reader more careful. */
  readonly serverTime: number | null
}

export interface CompleteObject {
  readonly object: JsonObject
  /** Its lists go on in pages of their own, which a cache may have kept for as long as an event may take to show. */
  readonly isAssembled: boolean
}

/** The requests that the backfill and the delta of a stream make. */
export class StripeApi {
  readonly client: HttpClient
  readonly limit: number
  /** Fields that lists expand, as paths from the object. */
  readonly expand: readonly string[]

  constructor(client: HttpClient, limit: number, expand: readonly string[]) {
    this.client = client
    this.limit = limit
    this.expand = expand.map((path) => path.replace(/^data\./, ''))
  }

  async listObjects({ path, query }: StripeResource, after: string | undefined, context: SyncContext): Promise<{ data: JsonObject[]; hasMore: boolean }> {
    const expand = this.expand.map((field) => `data.${field}`)
    const { body } = await this.client.get(path, { ...query, starting_after: after, limit: this.limit, 'expand[]': expand }, context, after === undefined ? {} : CURSOR_REQUEST_OPTIONS)
    const page = parseList(body)
    if (page.data.some(({ id }) => id === after)) throw createWrongPageError()
    return page
  }

  async listEvents(query: Query, context: SyncContext): Promise<EventsPage> {
    const hasCursor = 'ending_before' in query || 'starting_after' in query
    const { body, serverTime } = await this.client.get('/events', query, context, hasCursor ? CURSOR_REQUEST_OPTIONS : {})
    const { data, hasMore } = parseList(body)
    const events = data.map(parseEvent)
    if (events.some(({ id }) => id === query['ending_before'])) throw createWrongPageError()
    return { events, hasMore, serverTime }
  }

  /** As it is now, with its lists whole; null when it is gone. Fields are expanded as in the list of `stream`. */
  async readObject(
    type: string, id: string, stream: StripeResource, budget: PageBudget, context: SyncContext,
  ): Promise<CompleteObject | null> {
    const object = await this.#readOne(type, id, stream, budget, context)
    return object === null ? null : this.completeObject(object, type, stream, budget, context)
  }

  /**
   * The object with every list inside it, all of one version; null when it is gone. A list that is cut goes on in
   * requests of its own, so the object is read again after them: it must be as it was before.
   */
  async completeObject(
    shown: JsonObject, type: string, stream: StripeResource, budget: PageBudget, context: SyncContext,
  ): Promise<CompleteObject | null> {
    let before = shown
    for (let reads = 0; reads < COMPLETE_READS_MAX; reads++) {
      if (!hasTruncatedList(before)) return { object: before, isAssembled: false }
      const object = await this.#readLists(before, budget, context)
      const after = await this.#readOne(type, requireString(before, 'id'), stream, budget, context)
      if (after === null) return null
      if (object !== null && equalsJson(stringifyJson(before), stringifyJson(after))) return { object, isAssembled: true }
      before = after
    }
    throw new SyncError('SOURCE_INVALID', 'An object of Stripe kept changing while its lists were read.')
  }

  /** Null when a list is not that of the object. */
  async #readLists(object: JsonObject, budget: PageBudget, context: SyncContext): Promise<JsonObject | null> {
    try {
      return await readNestedLists(object, this.client, budget, context)
    } catch (error) {
      if (error instanceof ListChangedError) return null
      throw error
    }
  }

  async #readOne(
    type: string, id: string, stream: StripeResource, budget: PageBudget, context: SyncContext,
  ): Promise<JsonObject | null> {
    budget.spend()
    const query = type === stream.type ? { 'expand[]': this.expand } : {}
    const { status, body } = await this.client.get(`${findObjectPath(type)!}/${encodePathSegment(id)}`, query, context, { answers: [404] })
    if (status === 404 || (isObject(body) && body.deleted === true)) return null
    if (!isObject(body) || body.id !== id) throw new SyncError('SOURCE_INVALID', 'Stripe answered with another object than the one it was asked for.')
    return body
  }
}

const COMPLETE_READS_MAX = 4
const CURSOR_REQUEST_OPTIONS = { cursorRefusals: [400, 404] }

/** A cursor is never on the page that follows it. Taken for that page, the page before could end the list. */
function createWrongPageError(): SyncError {
  return new SyncError('SOURCE_INVALID', 'Stripe answered with the page before the one it was asked for.')
}

/** `has_more` is the only sign of the end; a short page is none. */
function parseList(body: JsonValue): { data: JsonObject[]; hasMore: boolean } {
  if (!isObject(body) || !Array.isArray(body.data) || !body.data.every(isObject) || typeof body.has_more !== 'boolean') {
    throw new SyncError('SOURCE_INVALID', 'Stripe answered with something that is not a list.')
  }
  if (body.has_more && body.data.length === 0) throw new SyncError('SOURCE_INVALID', 'Stripe sent an empty page and says that more follow.')
  return { data: body.data, hasMore: body.has_more }
}
