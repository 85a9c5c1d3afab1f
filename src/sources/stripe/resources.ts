import type { Query } from '../kit/http-client.ts'

export interface StripeResource {
  /** The value of `object` in its records. */
  readonly type: string
  readonly path: string
  /** Query parameters of every list request. */
  readonly query: Query
}

export const STREAMS = {
  charges: { type: 'charge', path: '/charges', query: {} },
  customers: { type: 'customer', path: '/customers', query: {} },
  invoices: { type: 'invoice', path: '/invoices', query: {} },
  paymentIntents: { type: 'payment_intent', path: '/payment_intents', query: {} },
  paymentMethods: { type: 'payment_method', path: '/payment_methods', query: {} },
  prices: { type: 'price', path: '/prices', query: {} },
  products: { type: 'product', path: '/products', query: {} },
  // Without `status` the list omits canceled subscriptions, and a backfill would sweep them.
  subscriptions: { type: 'subscription', path: '/subscriptions', query: { status: 'all' } },
} as const satisfies Record<string, StripeResource>

/** Paths to read an object by id. Line items and other types that exist only inside a parent have none. */
const PATH_BY_TYPE: ReadonlyMap<string, string> = new Map([
  ...Object.values(STREAMS).map(({ type, path }): [string, string] => [type, path]),
  ['balance_transaction', '/balance_transactions'],
  ['coupon', '/coupons'],
  ['credit_note', '/credit_notes'],
  ['dispute', '/disputes'],
  ['invoiceitem', '/invoiceitems'],
  ['payout', '/payouts'],
  ['plan', '/plans'],
  ['promotion_code', '/promotion_codes'],
  ['quote', '/quotes'],
  ['refund', '/refunds'],
  ['setup_intent', '/setup_intents'],
  ['tax_rate', '/tax_rates'],
])

/** Undefined for types that cannot be read by id. */
export function findObjectPath(type: string): string | undefined {
  return PATH_BY_TYPE.get(type)
}
