import { SyncError, type JsonObject, type JsonValue, type SyncContext } from '../../contract/index.ts'
import { sameJson, stringifyJson } from '../../values/json.ts'
import type { HttpClient, Query } from '../kit/http-client.ts'
import { isObject } from '../kit/judge.ts'
import { segment } from '../kit/origin.ts'
import { eventOf, type StripeEvent } from './events.ts'
import { textOf } from './members.ts'
import { hasCutList, ListChanged, readNestedLists } from './nested.ts'
import type { PageBudget } from './page-budget.ts'
import { pathOf, type Resource } from './resources.ts'

/** The most that Stripe returns in one page. */
export const LIMIT_MAX = 100

export interface EventsAnswer {
  /** Newest first. */
  readonly events: StripeEvent[]
  readonly hasMore: boolean
  /** The `Date` header. It may be wrong, so it only ever makes a reader more careful. */
  readonly serverTime: number | null
}

export interface WholeObject {
  readonly object: JsonObject
  /** Its lists go on in pages of their own, which a cache may have kept for as long as an event may take to show. */
  readonly isJoined: boolean
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

  async list({ path, query }: Resource, after: string | undefined, context: SyncContext): Promise<{ data: JsonObject[]; hasMore: boolean }> {
    const expand = this.expand.map((field) => `data.${field}`)
    const { body } = await this.client.get(path, { ...query, starting_after: after, limit: this.limit, 'expand[]': expand }, context, after === undefined ? {} : CURSOR_REFUSALS)
    const page = listOf(body)
    if (page.data.some(({ id }) => id === after)) throw pageBefore()
    return page
  }

  async events(query: Query, context: SyncContext): Promise<EventsAnswer> {
    const hasCursor = 'ending_before' in query || 'starting_after' in query
    const { body, serverTime } = await this.client.get('/events', query, context, hasCursor ? CURSOR_REFUSALS : {})
    const { data, hasMore } = listOf(body)
    const events = data.map(eventOf)
    if (events.some(({ id }) => id === query['ending_before'])) throw pageBefore()
    return { events, hasMore, serverTime }
  }

  /** As it is now, with its lists whole; null when it is gone. Fields are expanded as in the list of `stream`. */
  async object(
    type: string, id: string, stream: Resource, budget: PageBudget, context: SyncContext,
  ): Promise<WholeObject | null> {
    const object = await this.#one(type, id, stream, budget, context)
    return object === null ? null : this.whole(object, type, stream, budget, context)
  }

  /**
   * The object with every list inside it, all of one version; null when it is gone. A list that is cut goes on in
   * requests of its own, so the object is read again after them: it must be as it was before.
   */
  async whole(
    shown: JsonObject, type: string, stream: Resource, budget: PageBudget, context: SyncContext,
  ): Promise<WholeObject | null> {
    let before = shown
    for (let reads = 0; reads < WHOLE_READS_MAX; reads++) {
      if (!hasCutList(before)) return { object: before, isJoined: false }
      const object = await this.#withLists(before, budget, context)
      const after = await this.#one(type, textOf(before, 'id'), stream, budget, context)
      if (after === null) return null
      if (object !== null && sameJson(stringifyJson(before), stringifyJson(after))) return { object, isJoined: true }
      before = after
    }
    throw new SyncError('SOURCE_INVALID', 'An object of Stripe kept changing while its lists were read.')
  }

  /** Null when a list is not that of the object. */
  async #withLists(object: JsonObject, budget: PageBudget, context: SyncContext): Promise<JsonObject | null> {
    try {
      return await readNestedLists(object, this.client, budget, context)
    } catch (error) {
      if (error instanceof ListChanged) return null
      throw error
    }
  }

  async #one(
    type: string, id: string, stream: Resource, budget: PageBudget, context: SyncContext,
  ): Promise<JsonObject | null> {
    budget.spend()
    const query = type === stream.type ? { 'expand[]': this.expand } : {}
    const { status, body } = await this.client.get(`${pathOf(type)!}/${segment(id)}`, query, context, { answers: [404] })
    if (status === 404 || (isObject(body) && body.deleted === true)) return null
    if (!isObject(body) || body.id !== id) throw new SyncError('SOURCE_INVALID', 'Stripe answered with another object than the one it was asked for.')
    return body
  }
}

const WHOLE_READS_MAX = 4
const CURSOR_REFUSALS = { cursorRefusals: [400, 404] }

/** A cursor is never on the page that follows it. Taken for that page, the page before could end the list. */
function pageBefore(): SyncError {
  return new SyncError('SOURCE_INVALID', 'Stripe answered with the page before the one it was asked for.')
}

/** `has_more` is the only sign of the end; a short page is none. */
function listOf(body: JsonValue): { data: JsonObject[]; hasMore: boolean } {
  if (!isObject(body) || !Array.isArray(body.data) || !body.data.every(isObject) || typeof body.has_more !== 'boolean') {
    throw new SyncError('SOURCE_INVALID', 'Stripe answered with something that is not a list.')
  }
  if (body.has_more && body.data.length === 0) throw new SyncError('SOURCE_INVALID', 'Stripe sent an empty page and says that more follow.')
  return { data: body.data, hasMore: body.has_more }
}
