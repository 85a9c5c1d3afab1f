import { SyncError, type JsonObject, type JsonValue, type SyncContext } from '../../contract/index.ts'
import { equalsJson, stringifyJson } from '../../values/json.ts'
import { required } from '../../values/required.ts'
import type { HttpClient, Query } from '../kit/http-client.ts'
import { isObject } from '../kit/classify-response.ts'
import { encodePathSegment } from '../kit/origin.ts'
import { parseEvent, type StripeEvent } from './events.ts'
import { requireString } from './object-fields.ts'
import { hasTruncatedList, ListChangedError, readNestedLists } from './nested-objects.ts'
import type { PageBudget } from './page-budget.ts'
import { ALL_TIMES, toCreatedQuery, type CreatedRange } from './created-range.ts'
import { findObjectPath, type StripeResource } from './resources.ts'

/** The largest page that Stripe returns. */
export const PAGE_SIZE_MAX = 100

export interface EventsPage {
  /** Newest first. */
  readonly events: StripeEvent[]
  readonly hasMore: boolean
  /** The `Date` header. It may be wrong, so it can only make a reader more cautious. */
  readonly serverTime: number | null
}

export interface CompleteObject {
  readonly object: JsonObject
  /** Its lists were read in separate pages, which may come from a cache that is as old as the visibility delay of an event. */
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

  async listObjects(
    stream: StripeResource,
    after: string | undefined,
    context: SyncContext,
    created: CreatedRange = ALL_TIMES,
  ): Promise<{ data: JsonObject[]; hasMore: boolean }> {
    const expand = this.expand.map((field) => `data.${field}`)
    const { body } = await this.client.get(
      stream.path,
      {
        ...stream.query,
        ...toCreatedQuery(stream, created),
        starting_after: after,
        limit: this.limit,
        'expand[]': expand,
      },
      context,
      after === undefined ? {} : CURSOR_REQUEST_OPTIONS,
    )
    const page = parseList(body)
    if (page.data.some(({ id }) => id === after)) throw createWrongPageError()
    return page
  }

  async listEvents(query: Query, context: SyncContext): Promise<EventsPage> {
    const hasCursor = 'ending_before' in query || 'starting_after' in query
    const { body, serverTime } = await this.client.get(
      '/events',
      query,
      context,
      hasCursor ? CURSOR_REQUEST_OPTIONS : {},
    )
    const { data, hasMore } = parseList(body)
    const events = data.map(parseEvent)
    if (events.some(({ id }) => id === query['ending_before'])) throw createWrongPageError()
    return { events, hasMore, serverTime }
  }

  /** Reads the current version with complete lists; null if deleted. Fields are expanded as in the list of `stream`. */
  async readObject(
    type: string,
    id: string,
    stream: StripeResource,
    budget: PageBudget,
    context: SyncContext,
  ): Promise<CompleteObject | null> {
    const object = await this.#readOne(type, id, stream, budget, context)
    return object === null ? null : this.completeObject(object, type, stream, budget, context)
  }

  /**
   * Completes every list inside the object, all of one version; null if deleted. A truncated list needs further requests, so
   * the object is read again after them and must be unchanged.
   */
  async completeObject(
    listed: JsonObject,
    type: string,
    stream: StripeResource,
    budget: PageBudget,
    context: SyncContext,
  ): Promise<CompleteObject | null> {
    let before = listed
    for (let reads = 0; reads < COMPLETE_READS_MAX; reads++) {
      if (!hasTruncatedList(before)) return { object: before, isAssembled: false }
      const object = await this.#readLists(before, budget, context)
      const after = await this.#readOne(type, requireString(before, 'id'), stream, budget, context)
      if (after === null) return null
      if (object !== null && equalsJson(stringifyJson(before), stringifyJson(after)))
        return { object, isAssembled: true }
      before = after
    }
    throw new SyncError(
      'SOURCE_INVALID',
      'A Stripe object kept changing while its lists were read. The page is read again.',
    )
  }

  /** Null if a list belongs to another version of the object. */
  async #readLists(object: JsonObject, budget: PageBudget, context: SyncContext): Promise<JsonObject | null> {
    try {
      return await readNestedLists(object, this.client, budget, context)
    } catch (error) {
      if (error instanceof ListChangedError) return null
      throw error
    }
  }

  async #readOne(
    type: string,
    id: string,
    stream: StripeResource,
    budget: PageBudget,
    context: SyncContext,
  ): Promise<JsonObject | null> {
    budget.spend()
    const query = type === stream.type ? { 'expand[]': this.expand } : {}
    const { status, body } = await this.client.get(
      `${required(findObjectPath(type), `The path of ${type} objects`)}/${encodePathSegment(id)}`,
      query,
      context,
      { answers: [404] },
    )
    if (status === 404 || (isObject(body) && body.deleted === true)) return null
    if (!isObject(body) || body.id !== id)
      throw new SyncError('SOURCE_INVALID', 'Stripe returned another object than the requested one.')
    return body
  }
}

const COMPLETE_READS_MAX = 4
const CURSOR_REQUEST_OPTIONS = { cursorRefusals: [400, 404] }

/** A page never contains its own cursor. Accepting the previous page again could end the list early. */
function createWrongPageError(): SyncError {
  return new SyncError('SOURCE_INVALID', 'Stripe returned the previous page instead of the requested one.')
}

/** Only `has_more` marks the end of a list; a short page does not. */
function parseList(body: JsonValue): { data: JsonObject[]; hasMore: boolean } {
  if (
    !isObject(body) ||
    !Array.isArray(body.data) ||
    !body.data.every(isObject) ||
    typeof body.has_more !== 'boolean'
  ) {
    throw new SyncError('SOURCE_INVALID', 'Stripe returned a response that is not a list.')
  }
  if (body.has_more && body.data.length === 0)
    throw new SyncError('SOURCE_INVALID', 'Stripe returned an empty page with `has_more`.')
  return { data: body.data, hasMore: body.has_more }
}
