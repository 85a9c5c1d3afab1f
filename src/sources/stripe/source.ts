import { SyncError, type Change, type Execute, type JsonObject, type JsonValue, type Lookup, type SyncContext } from '../../contract/index.ts'
import { eventFeed, token, type Anchored, type EventFeedState, type TokenState } from '../../strategies/index.ts'
import { stringifyJson } from '../../values/json.ts'
import { bearer, type Auth, type SecretSource } from '../kit/auth.ts'
import { createHttpClient, type HttpAnswer, type HttpClient, type Query } from '../kit/http-client.ts'
import { isObject } from '../kit/judge.ts'
import { segment } from '../kit/origin.ts'
import { extract, hasCutList, readNestedLists } from './nested.ts'

export interface StripeOptions {
  /** A secret or restricted key, or the name of the secret that holds it. */
  readonly apiKey?: SecretSource
  /** Instead of a key. */
  readonly auth?: Auth
  readonly baseUrl?: string
  /** The `Stripe-Version` of lists; events keep the version they were made with. */
  readonly apiVersion?: string
  /** Stripe allows up to 100. Fewer where objects hold long lists of their own. */
  readonly limit?: number
  /** Fields of listed objects to be sent whole, such as `data.payment_method`. */
  readonly expand?: readonly string[]
  /** Where objects inside objects go, by their type: `{ payment_method: 'payment_methods' }`. The sync declares these `databases`. */
  readonly nested?: Readonly<Record<string, string>>
  /** How many further pages of lists inside objects one page may need; beyond it the page fails. */
  readonly followUpsMax?: number
}

export interface StripeStream {
  readonly backfill: Execute<StripeListState>
  readonly delta: Execute<StripeDeltaState>
  readonly anchor: (context: SyncContext) => Promise<StripeDeltaState>
  readonly lookup: Lookup
}

/** `since`: Stripe's clock when the cycle began. What it lists from then on is no older. */
export type StripeListState = TokenState & { readonly since: number | null }

/** Without a cursor while the log of events has never held one. */
export type StripeDeltaState = EventFeedState | { readonly cursor: null }

const STREAMS = {
  charges: { type: 'charge', path: '/charges', query: {} },
  customers: { type: 'customer', path: '/customers', query: {} },
  invoices: { type: 'invoice', path: '/invoices', query: {} },
  paymentIntents: { type: 'payment_intent', path: '/payment_intents', query: {} },
  paymentMethods: { type: 'payment_method', path: '/payment_methods', query: {} },
  prices: { type: 'price', path: '/prices', query: {} },
  products: { type: 'product', path: '/products', query: {} },
  // Without it the list leaves out what was cancelled, and a backfill would sweep it.
  subscriptions: { type: 'subscription', path: '/subscriptions', query: { status: 'all' } },
} as const satisfies Record<string, Stream>

interface Stream {
  readonly type: string
  readonly path: string
  readonly query: Query
}

/** Lists for the backfill, the log of events for what changes and goes: `worker.track('customers', { database, source: stripe({ apiKey: 'STRIPE_KEY' }).customers })`. */
export function stripe(options: StripeOptions): { readonly [Name in keyof typeof STREAMS]: StripeStream } {
  const account = new Account(options)
  return Object.fromEntries(Object.entries(STREAMS).map(([name, stream]) => [name, account.stream(stream)])) as { [Name in keyof typeof STREAMS]: StripeStream }
}

/** Events may show seconds after the moment they are stamped with, below events that were listed before. */
const LAG_MS = 10_000
const RETENTION_MS = 30 * 86_400_000
/** Their last event says `deleted`, and they stay as what was cancelled. */
const KEPT_TYPES = new Set(['subscription'])

interface Event {
  readonly id: string
  readonly type: string
  readonly created: number
  readonly object: JsonObject
  /** When the object was read, where it is not the one the event came with. */
  readonly readAt?: string | undefined
  /** Another event of the page says it for this one. */
  readonly isSettled?: boolean
}

class Account {
  readonly #client: HttpClient
  readonly #limit: number
  readonly #expand: readonly string[]
  readonly #nested: Readonly<Record<string, string>>
  readonly #followUpsMax: number

  constructor({ apiKey, auth, baseUrl = 'https://api.stripe.com/v1', apiVersion, limit = 100, expand = [], nested = {}, followUpsMax = 20 }: StripeOptions) {
    if ((apiKey === undefined) === (auth === undefined)) throw new SyncError('SYNC_INVALID', 'Stripe needs either `apiKey` or `auth`.')
    this.#client = createHttpClient({ baseUrl, auth: auth ?? bearer(apiKey!), ...(apiVersion !== undefined && { headers: { 'stripe-version': apiVersion } }) })
    this.#limit = limit
    this.#expand = expand
    this.#nested = nested
    this.#followUpsMax = followUpsMax
  }

  stream(stream: Stream): StripeStream {
    const feedFrom = (cursorTime: string | null): Anchored<EventFeedState> => eventFeed<Event>({
      anchor: (context) => this.#anchor(context),
      read: async ({ after }, context) => {
        const answer = await this.#events({ ending_before: after, limit: this.#limit }, context)
        return { ...answer, events: await this.#completed(answer.events, cursorTime, stream, context) }
      },
      id: ({ id }) => id,
      time: ({ created }) => isoOf(created),
      toChanges: (event) => this.#changesOf(event, stream),
      lagMs: LAG_MS,
      order: 'newest-first',
      retentionMs: RETENTION_MS,
    })
    const anchor = async (context: SyncContext): Promise<StripeDeltaState> => (await feedFrom(null).anchor(context)) ?? { cursor: null }
    return {
      anchor,
      lookup: async (key, context) => {
        const current = await this.#current({ object: stream.type, id: key }, 0, context)
        // When it was changed Stripe does not say; since when it is there it does.
        return current === null ? null : this.#upserts(current!.object, typeof current!.object.created === 'number' ? isoOf(current!.object.created) : undefined)[0]!
      },
      backfill: async (state, context) => {
        // A page of its own, so that whatever is broken off goes on after it.
        if (state === undefined) return { changes: [], hasMore: true, nextState: { cursor: null, since: (await this.#events({ limit: 1 }, context)).serverTime } }
        const page = await token({ read: ({ token }, context) => this.#list(stream, token, state.since, context) })(state, context)
        return { ...page, nextState: page.nextState && { ...page.nextState, since: state.since } }
      },
      delta: async (state, context) => {
        if (state === undefined) return { changes: [], hasMore: false, nextState: await anchor(context) }
        if (state.cursor !== null) return feedFrom(state.cursorTime)(state, context)
        const first = await this.#firstEvent(context)
        // Nothing lies below the very first event, so nothing can show up there late except before it is old enough.
        if (first === undefined || first.event.created * 1_000 >= first.safeMs) return { changes: [], hasMore: false, nextState: state }
        const [event] = await this.#completed([first.event], null, stream, context)
        return { changes: this.#changesOf(event!, stream), hasMore: true, nextState: { cursor: event!.id, cursorTime: isoOf(event!.created) } }
      },
    }
  }

  async #list({ path, query }: Stream, after: string | undefined, since: number | null, context: SyncContext): Promise<{ changes: Change[]; next: string | null }> {
    const askedAt = context.clock.now()
    const answer = await this.#client.get(path, { ...query, starting_after: after, limit: this.#limit, 'expand[]': this.#expand }, context, after === undefined ? {} : CURSOR_REFUSALS)
    const tookMs = Math.max(0, context.clock.now() - askedAt)
    const { data, hasMore } = listOf(answer.body)
    const followUps = { left: this.#followUpsMax }
    const changes: Change[] = []
    for (const object of data) {
      const whole = await readNestedLists(object, this.#client, followUps, context)
      changes.push(...this.#upserts(whole, listedAt(answer, object, tookMs, since)))
    }
    const last = data.at(-1)
    if (hasMore && last === undefined) throw new SyncError('SOURCE_INVALID', 'Stripe sent an empty page and says that more follow.')
    return { changes, next: hasMore ? textOf(last!, 'id') : null }
  }

  async #events(query: Query, context: SyncContext): Promise<{ events: Event[]; hasMore: boolean; serverTime: number | null }> {
    const isPosition = 'ending_before' in query || 'starting_after' in query
    const { body, serverTime } = await this.#client.get('/events', query, context, isPosition ? CURSOR_REFUSALS : {})
    const { data, hasMore } = listOf(body)
    return { events: data.map(eventOf), hasMore, serverTime }
  }

  /** The newest event, unless others may still show below it, where nobody who follows it would see them; then the newest that is old enough. */
  async #anchor(context: SyncContext): Promise<Event | undefined> {
    const askedAt = context.clock.now()
    const { events: [newest], serverTime } = await this.#events({ limit: 1 }, context)
    const tookMs = Math.max(0, context.clock.now() - askedAt)
    const safeMs = Math.min(context.cycle.startedAt, serverTime === null ? Infinity : serverTime - tookMs) - LAG_MS
    if (newest === undefined || newest.created * 1_000 < safeMs) return newest
    return (await this.#events({ 'created[lt]': Math.floor(safeMs / 1_000), limit: 1 }, context)).events[0]
  }

  /** The log was empty when the sync began, so all that it holds is new. It is listed newest first, from the other end. */
  async #firstEvent(context: SyncContext): Promise<{ event: Event; safeMs: number } | undefined> {
    let first: Event | undefined
    let safeMs = context.cycle.startedAt - LAG_MS
    for (let pages = 0; pages < FIRST_EVENT_PAGES_MAX; pages++) {
      const { events, hasMore, serverTime } = await this.#events({ ...(first !== undefined && { starting_after: first.id }), limit: PAGE_MAX }, context)
      if (serverTime !== null) safeMs = Math.min(safeMs, serverTime - LAG_MS)
      first = events.at(-1) ?? first
      if (!hasMore) return first && { event: first, safeMs }
    }
    throw new SyncError('HISTORY_LOST', `The first event lies more than ${FIRST_EVENT_PAGES_MAX} pages back. Reset the state, let the sync take a new anchor, then run a backfill.`)
  }

  /**
   * The events with what they say made whole. The events of one second stand in no order, so an object that was changed more than
   * once in a second, or may have been on the page before, is asked for itself; so is one that came with only part of a list.
   */
  async #completed(events: readonly Event[], cursorTime: string | null, stream: Stream, context: SyncContext): Promise<Event[]> {
    const followUps = { left: this.#followUpsMax }
    const settled = new Set<string>()
    const completed: Event[] = []
    for (const event of events) {
      const { object, created } = event
      // Some, such as a balance, have no id.
      const key = `${created} ${typeof object.id === 'string' ? object.id : ''}`
      if (!this.#isLanded(object, stream) || stageOf(event) === 'deleted' || created * 1_000 >= context.cycle.startedAt - LAG_MS) completed.push(event)
      else if (settled.has(key)) completed.push({ ...event, isSettled: true })
      else {
        const rivals = events.filter((other) => other.created === created && other.object.id === object.id && stageOf(other) === 'changed')
        const isTied = stageOf(event) === 'changed' && (isoOf(created) === cursorTime || rivals.some((other) => stringifyJson(other.object) !== stringifyJson(object)))
        // The rest of a list is only known as it is now, so the object it belongs to is read as it is now as well.
        const current = isTied || hasCutList(object) ? await this.#current(object, created * 1_000 + 1, context) : undefined
        if (isTied && current !== undefined) settled.add(key)
        completed.push(current === null
          ? { ...event, isSettled: true }
          : { ...event, ...current, object: await readNestedLists(current?.object ?? object, this.#client, followUps, context) })
      }
    }
    return completed
  }

  /** As it is now; null when it is gone, of which the log tells as well; undefined for types that are only known from inside others. */
  async #current(object: JsonObject, eventMs: number, context: SyncContext): Promise<{ object: JsonObject; readAt: string | undefined } | null | undefined> {
    const stream = Object.values(STREAMS).find(({ type }) => type === object.object)
    if (stream === undefined) return undefined
    const askedAt = context.clock.now()
    const answer = await this.#client.get(`${stream.path}/${segment(textOf(object, 'id'))}`, {}, context, { answers: [404] })
    if (answer.status === 404 || (isObject(answer.body) && answer.body.deleted === true)) return null
    if (!isObject(answer.body) || answer.body.id !== object.id) throw new SyncError('SOURCE_INVALID', 'Stripe answered with another object than the one it was asked for.')
    const readAt = listedAt(answer, answer.body, Math.max(0, context.clock.now() - askedAt), eventMs)
    return { object: answer.body, readAt }
  }

  #isLanded(object: JsonObject, { type }: Stream): boolean {
    return object.object === type || Object.hasOwn(this.#nested, typeOf(object))
  }

  #changesOf(event: Event, stream: Stream): Change[] {
    const { object } = event
    if (event.isSettled === true || !this.#isLanded(object, stream)) return []
    const database = object.object === stream.type ? undefined : this.#nested[typeOf(object)]
    const stage = stageOf(event)
    if (stage === 'deleted') return [{ type: 'delete', key: textOf(object, 'id'), upstreamUpdatedAt: timeOf(event), ...(database !== undefined && { database }) }]
    return this.#upserts(object, event.readAt ?? timeOf(event), database)
  }

  #upserts(object: JsonObject, upstreamUpdatedAt: string | undefined, database?: string): Change[] {
    const at = upstreamUpdatedAt !== undefined && { upstreamUpdatedAt }
    const { record, found } = extract(object, this.#nested)
    return [
      { type: 'upsert', key: textOf(record, 'id'), record, ...at, ...(database !== undefined && { database }) },
      ...found.map(({ database, record }): Change => ({ type: 'upsert', key: textOf(record, 'id'), record, ...at, database })),
    ]
  }
}

/** The most that Stripe gives: whoever looks for the end takes the largest steps. */
const PAGE_MAX = 100
const FIRST_EVENT_PAGES_MAX = 100
const CURSOR_REFUSALS = { cursorRefusals: [400, 404] }

/**
 * Objects do not say when they were changed, but a list shows what is true when it is asked. So what it shows is as new as
 * the answer, less the time that took; its events up to then are older and do not come through (invariant 6). An answer may be
 * long on its way, so also as new as what was known before it was asked: else a slow reading would count as older than a quick one
 * before it.
 */
function listedAt({ serverTime }: HttpAnswer, object: JsonObject, tookMs: number, sinceMs: number | null): string | undefined {
  if (serverTime !== null) return new Date(Math.max(serverTime - tookMs, sinceMs ?? 0)).toISOString()
  return typeof object.created === 'number' ? isoOf(object.created) : undefined
}

type Stage = 'created' | 'changed' | 'deleted'

function stageOf({ type, object }: Event): Stage {
  if (type.endsWith('.deleted') && !KEPT_TYPES.has(typeOf(object))) return 'deleted'
  return type.endsWith('.created') ? 'created' : 'changed'
}

/** Within its second a thing is first created, then changed, then deleted, in whatever order the log has it; and what is deleted never returns. */
const MICROS = { created: '000000', changed: '000001', deleted: '999999' } as const satisfies Record<Stage, string>

function timeOf(event: Event): string {
  return `${isoOf(event.created).slice(0, 20)}${MICROS[stageOf(event)]}Z`
}

function eventOf(value: JsonObject): Event {
  const { created, data } = value
  if (typeof created !== 'number' || !isObject(data) || !isObject(data.object)) throw new SyncError('SOURCE_INVALID', 'An event of Stripe has no time or no object.')
  return { id: textOf(value, 'id'), type: textOf(value, 'type'), created, object: data.object }
}

/** `has_more` is the only word on whether more follow; a short page is none. */
function listOf(body: JsonValue): { data: JsonObject[]; hasMore: boolean } {
  if (!isObject(body) || !Array.isArray(body.data) || !body.data.every(isObject) || typeof body.has_more !== 'boolean') {
    throw new SyncError('SOURCE_INVALID', 'Stripe answered with something that is not a list.')
  }
  return { data: body.data, hasMore: body.has_more }
}

function textOf(object: JsonObject, member: string): string {
  const value = object[member]
  if (typeof value !== 'string' || value === '') throw new SyncError('SOURCE_INVALID', `An object of Stripe has no \`${member}\`.`)
  return value
}

function typeOf({ object }: JsonObject): string {
  return typeof object === 'string' ? object : ''
}

function isoOf(seconds: number): string {
  return new Date(seconds * 1_000).toISOString()
}
