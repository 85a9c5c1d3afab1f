import { SyncError, type Execute, type Lookup, type SyncContext } from '../../contract/index.ts'
import { bearer, type Auth, type SecretSource } from '../kit/auth.ts'
import { createHttpClient } from '../kit/http-client.ts'
import { checkPageSize } from '../kit/page-size.ts'
import { PAGE_SIZE_MAX, StripeApi } from './api.ts'
import { getListedObjectFacts, toUpserts } from './changes.ts'
import { EVENT_LAG_MS, EVENT_RETENTION_MS, StripeDelta, type StripeDeltaState } from './delta.ts'
import { createBackfill, type StripeListState } from './backfill.ts'
import { PageBudget } from './page-budget.ts'
import { STREAMS, type StripeResource } from './resources.ts'

export type { StripeDeltaState, StripeListState }

export interface StripeOptions {
  /** A secret or restricted key, or the name of the secret that holds it. */
  readonly apiKey?: SecretSource
  /** Instead of a key. */
  readonly auth?: Auth
  readonly baseUrl?: string
  /** The `Stripe-Version` of lists; events keep the version they were made with. */
  readonly apiVersion?: string
  /** Objects in a page, up to 100. */
  readonly limit?: number
  /**
   * Fields of listed objects to be sent whole, such as `data.payment_method`. Events hold ids there, so the delta reads
   * each changed object that has such a field.
   */
  readonly expand?: readonly string[]
  /** Where objects inside objects go, by their type: `{ payment_method: 'payment_methods' }`. The sync declares these `databases`. */
  readonly nested?: Readonly<Record<string, string>>
  /** Requests that one page may make for its objects and the lists inside them. A page that needs more is split. */
  readonly followUpsMax?: number
}

export interface StripeStream {
  readonly backfill: Execute<StripeListState>
  readonly delta: Execute<StripeDeltaState>
  readonly anchor: (context: SyncContext) => Promise<StripeDeltaState>
  readonly lookup: Lookup
}

/** Lists for the backfill, the log of events for the delta: `worker.track('customers', { database, source: stripe({ apiKey: 'STRIPE_KEY' }).customers })`. */
export function stripe(options: StripeOptions): { readonly [Name in keyof typeof STREAMS]: StripeStream } {
  const { apiKey, auth, baseUrl = 'https://api.stripe.com/v1', apiVersion, limit = PAGE_SIZE_MAX, expand = [], nested = {}, followUpsMax = 20 } = options
  if ((apiKey === undefined) === (auth === undefined)) throw new SyncError('SYNC_INVALID', 'Stripe needs either `apiKey` or `auth`.')
  checkPageSize('Stripe', limit, PAGE_SIZE_MAX)
  if (!Number.isInteger(followUpsMax) || followUpsMax < 1) throw new SyncError('SYNC_INVALID', 'Stripe: `followUpsMax` must be a whole number from 1 up.')
  // An answer from a cache would be taken for the present.
  const headers = { 'cache-control': 'no-cache', ...(apiVersion !== undefined && { 'stripe-version': apiVersion }) }
  const api = new StripeApi(createHttpClient({ baseUrl, auth: auth ?? bearer(apiKey!), headers }), limit, expand)
  const streams = Object.entries(STREAMS).map(([name, stream]) => [name, createStream(api, stream, nested, followUpsMax)])
  return Object.fromEntries(streams) as { [Name in keyof typeof STREAMS]: StripeStream }
}

function createStream(api: StripeApi, stream: StripeResource, nested: Readonly<Record<string, string>>, followUpsMax: number): StripeStream {
  const databases = { type: stream.type, nested }
  const delta = new StripeDelta(api, stream, databases, followUpsMax)
  return {
    backfill: createBackfill(api, stream, databases, followUpsMax),
    delta: Object.assign((state: StripeDeltaState | undefined, context: SyncContext) => delta.readPage(state, context), { startsAtEnd: true, retentionMs: EVENT_RETENTION_MS - EVENT_LAG_MS }),
    anchor: (context) => delta.anchor(context),
    lookup: async (key, context) => {
      const whole = await api.readObject(stream.type, key, stream, new PageBudget(followUpsMax, context), context)
      return whole === null ? null : toUpserts(whole.object, databases, getListedObjectFacts(whole.object))[0]!
    },
  }
}
