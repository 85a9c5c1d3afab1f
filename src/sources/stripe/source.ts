import { SyncError, type Execute, type Lookup, type SyncContext, type TimeRange } from '../../contract/index.ts'
import { bearer, requireOneAuth, type Auth, type SecretSource } from '../kit/auth.ts'
import { connectionAuth, connectionBaseUrl, withConnection, type ConnectionOption } from '../kit/connection-auth.ts'
import { createHttpClient } from '../kit/http-client.ts'
import { checkPageSize } from '../kit/page-size.ts'
import { parseSince, withSinceScope } from '../kit/since.ts'
import { PAGE_SIZE_MAX, StripeApi } from './api.ts'
import { getListedObjectFacts, toUpserts } from './changes.ts'
import { EVENT_LAG_MS, EVENT_RETENTION_MS, StripeDelta, type StripeDeltaState } from './delta.ts'
import { createBackfill, type StripeListState } from './backfill.ts'
import { PageBudget } from './page-budget.ts'
import { isCreatedIn, toCreatedRange } from './created-range.ts'
import { LISTED_STREAMS, TRACKED_STREAMS, type StripeResource } from './resources.ts'

export type { StripeDeltaState, StripeListState }

/** Options of `stripe`. */
export interface StripeOptions extends ConnectionOption {
  /** A secret or restricted key, or the name of the secret that holds it. */
  readonly apiKey?: SecretSource
  /** Replaces `apiKey`. */
  readonly auth?: Auth
  readonly baseUrl?: string
  /** The `Stripe-Version` of lists. Events keep the version they were created with. */
  readonly apiVersion?: string
  /** Objects per page, up to 100. */
  readonly limit?: number
  /**
   * Fields to expand in listed objects, such as `data.payment_method`. Events contain ids there, so the delta reads each
   * changed object that has such a field.
   */
  readonly expand?: readonly string[]
  /** The databases of nested objects, by type: `{ payment_method: 'payment_methods' }`. The sync must declare these `databases`. */
  readonly nested?: Readonly<Record<string, string>>
  /**
   * A date or RFC 3339: only objects created at or after this time are copied. Changes of older objects are skipped, whenever they
   * happen.
   */
  readonly since?: string
  /** The maximum number of requests per page for objects and their nested lists. A page that needs more is split. */
  readonly followUpsMax?: number
}

/** One object type of a Stripe account. Pass it to `worker.track`. */
export interface StripeStream {
  readonly backfill: Execute<StripeListState>
  readonly delta: Execute<StripeDeltaState>
  readonly anchor: (context: SyncContext) => Promise<StripeDeltaState>
  readonly lookup: Lookup
}

/** An object type whose new objects have no events. Pass it to `worker.sync`. */
export interface StripeList {
  readonly mode: 'replace'
  readonly execute: Execute<StripeListState>
}

/** The object types of a Stripe account. */
export type StripeStreams = { readonly [Name in keyof typeof TRACKED_STREAMS]: StripeStream } & {
  readonly [Name in keyof typeof LISTED_STREAMS]: StripeList
}

/** Uses lists for the backfill and the event log for the delta: `worker.track('customers', { database, source: stripe({ apiKey: 'STRIPE_KEY' }).customers })`. */
export function stripe(options: StripeOptions): StripeStreams {
  return withConnection(options.connection, createStripe(options))
}

function createStripe(options: StripeOptions): StripeStreams {
  const {
    apiKey,
    auth,
    connection,
    baseUrl = 'https://api.stripe.com/v1',
    apiVersion,
    limit = PAGE_SIZE_MAX,
    expand = [],
    nested = {},
    since,
    followUpsMax = 20,
  } = options
  const chosenAuth = requireOneAuth(
    auth,
    apiKey === undefined ? undefined : bearer(apiKey),
    'Stripe needs either `apiKey`, `auth` or `connection`.',
    connection === undefined ? undefined : connectionAuth(),
  )
  checkPageSize('Stripe', limit, PAGE_SIZE_MAX)
  if (!Number.isInteger(followUpsMax) || followUpsMax < 1)
    throw new SyncError('SYNC_INVALID', 'Stripe: `followUpsMax` must be an integer of at least 1.')
  // A cached response would be mistaken for the current version.
  const headers = { 'cache-control': 'no-cache', ...(apiVersion !== undefined && { 'stripe-version': apiVersion }) }
  const api = new StripeApi(
    createHttpClient({ baseUrl: connectionBaseUrl(connection, baseUrl), auth: chosenAuth, headers }),
    limit,
    expand,
  )
  const shared = { api, nested, followUpsMax, since: parseSince(since) }
  const entries = [
    ...Object.entries(TRACKED_STREAMS).map(([name, stream]) => [name, createStream(stream, shared)] as const),
    ...Object.entries(LISTED_STREAMS).map(([name, stream]) => [name, createList(stream, shared)] as const),
  ]
  return Object.fromEntries(entries) as StripeStreams
}

interface StreamSettings {
  readonly api: StripeApi
  readonly nested: Readonly<Record<string, string>>
  readonly followUpsMax: number
  readonly since: string | undefined
}

function createStream(stream: StripeResource, settings: StreamSettings): StripeStream {
  const { api, nested, followUpsMax, since } = settings
  const delta = new StripeDelta(api, stream, { type: stream.type, nested }, followUpsMax, toCreatedRange({}, since))
  const backfill = createListing(stream, settings)
  return {
    backfill,
    delta: Object.assign(
      (state: StripeDeltaState | undefined, context: SyncContext) => delta.readPage(state, context),
      { startsAtEnd: true, retentionMs: EVENT_RETENTION_MS - EVENT_LAG_MS },
    ),
    anchor: (context) => delta.anchor(context),
    lookup: backfill.lookup,
  }
}

function createList(stream: StripeResource, settings: StreamSettings): StripeList {
  return { mode: 'replace', execute: createListing(stream, settings) }
}

function createListing(
  stream: StripeResource,
  { api, nested, followUpsMax, since }: StreamSettings,
): Execute<StripeListState> & { readonly lookup: Lookup } {
  const databases = { type: stream.type, nested }
  const created = toCreatedRange({}, since)
  const lookup: Lookup = async (key, context) => {
    const complete = await api.readObject(stream.type, key, stream, new PageBudget(followUpsMax, context), context)
    return complete === null || !isCreatedIn(complete.object, created)
      ? null
      : toUpserts(complete.object, databases, getListedObjectFacts(complete.object))[0]
  }
  const read = (range: TimeRange): Execute<StripeListState> =>
    createBackfill(api, stream, databases, followUpsMax, toCreatedRange(range, since))
  return Object.assign(withSinceScope(read({}), since), { lookup, range: read })
}
