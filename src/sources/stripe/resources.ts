import type { Query } from '../kit/http-client.ts'

export interface StripeResource {
  /** The `object` of its records. */
  readonly type: string
  readonly path: string
  /** Sent with every request for its list. */
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
  // Without it the list leaves out canceled subscriptions, and a backfill would sweep them.
  subscriptions: { type: 'subscription', path: '/subscriptions', query: { status: 'all' } },
} as const satisfies Record<string, StripeResource>

/** Where an object is read by its id. Line items and others that exist only inside a parent are not listed here. */
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

/** Undefined for a type whose objects cannot be read by their id. */
export function findObjectPath(type: string): string | undefined {
  return PATH_BY_TYPE.get(type)
}
