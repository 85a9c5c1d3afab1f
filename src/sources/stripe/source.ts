import { SyncError, type Execute, type Lookup, type SyncContext } from '../../contract/index.ts'
import { bearer, type Auth, type SecretSource } from '../kit/auth.ts'
import { createHttpClient } from '../kit/http-client.ts'
import { checkPageSize } from '../kit/page-size.ts'
import { LIMIT_MAX, StripeApi } from './api.ts'
import { listed, upsertsOf } from './changes.ts'
import { LAG_MS, RETENTION_MS, StripeDelta, type StripeDeltaState } from './delta.ts'
import { listing, type StripeListState } from './listing.ts'
import { PageBudget } from './page-budget.ts'
import { STREAMS, type Resource } from './resources.ts'

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
  const { apiKey, auth, baseUrl = 'https://api.stripe.com/v1', apiVersion, limit = LIMIT_MAX, expand = [], nested = {}, followUpsMax = 20 } = options
  if ((apiKey === undefined) === (auth === undefined)) throw new SyncError('SYNC_INVALID', 'Stripe needs either `apiKey` or `auth`.')
  checkPageSize('Stripe', limit, LIMIT_MAX)
  if (!Number.isInteger(followUpsMax) || followUpsMax < 1) throw new SyncError('SYNC_INVALID', 'Stripe: `followUpsMax` must be a whole number from 1 up.')
  // An answer from a cache would be taken for the present.
  const headers = { 'cache-control': 'no-cache', ...(apiVersion !== undefined && { 'stripe-version': apiVersion }) }
  const api = new StripeApi(createHttpClient({ baseUrl, auth: auth ?? bearer(apiKey!), headers }), limit, expand)
  const streams = Object.entries(STREAMS).map(([name, stream]) => [name, streamOf(api, stream, nested, followUpsMax)])
  return Object.fromEntries(streams) as { [Name in keyof typeof STREAMS]: StripeStream }
}

function streamOf(api: StripeApi, stream: Resource, nested: Readonly<Record<string, string>>, followUpsMax: number): StripeStream {
  const databases = { type: stream.type, nested }
  const delta = new StripeDelta(api, stream, databases, followUpsMax)
  return {
    backfill: listing(api, stream, databases, followUpsMax),
    delta: Object.assign((state: StripeDeltaState | undefined, context: SyncContext) => delta.page(state, context), { startsAtEnd: true, retentionMs: RETENTION_MS - LAG_MS }),
    anchor: (context) => delta.anchor(context),
    lookup: async (key, context) => {
      const whole = await api.object(stream.type, key, stream, new PageBudget(followUpsMax, context), context)
      return whole === null ? null : upsertsOf(whole.object, databases, listed(whole.object))[0]!
    },
  }
}
