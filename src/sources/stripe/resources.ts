import type { Query } from '../kit/http-client.ts'

export interface StripeResource {
  /** The value of `object` in its records. */
  readonly type: string
  readonly path: string
  /** Query parameters of every list request. */
  readonly query?: Query
  /** Its list takes no `created`, so a start date is applied to the response. */
  readonly isWithoutCreatedFilter?: true
}

/** Every new object of these types has an event, so that the log can be followed. */
export const TRACKED_STREAMS = {
  applicationFees: { type: 'application_fee', path: '/application_fees' },
  charges: { type: 'charge', path: '/charges' },
  coupons: { type: 'coupon', path: '/coupons' },
  creditGrants: { type: 'billing.credit_grant', path: '/billing/credit_grants', isWithoutCreatedFilter: true },
  creditNotes: { type: 'credit_note', path: '/credit_notes' },
  customers: { type: 'customer', path: '/customers' },
  disputes: { type: 'dispute', path: '/disputes' },
  earlyFraudWarnings: { type: 'radar.early_fraud_warning', path: '/radar/early_fraud_warnings' },
  files: { type: 'file', path: '/files' },
  invoiceItems: { type: 'invoiceitem', path: '/invoiceitems' },
  invoices: { type: 'invoice', path: '/invoices' },
  issuingAuthorizations: { type: 'issuing.authorization', path: '/issuing/authorizations' },
  issuingCardholders: { type: 'issuing.cardholder', path: '/issuing/cardholders' },
  issuingCards: { type: 'issuing.card', path: '/issuing/cards' },
  issuingDisputes: { type: 'issuing.dispute', path: '/issuing/disputes' },
  issuingTransactions: { type: 'issuing.transaction', path: '/issuing/transactions' },
  meters: { type: 'billing.meter', path: '/billing/meters', isWithoutCreatedFilter: true },
  paymentIntents: { type: 'payment_intent', path: '/payment_intents' },
  paymentLinks: { type: 'payment_link', path: '/payment_links', isWithoutCreatedFilter: true },
  paymentMethods: { type: 'payment_method', path: '/payment_methods', isWithoutCreatedFilter: true },
  payouts: { type: 'payout', path: '/payouts' },
  plans: { type: 'plan', path: '/plans' },
  prices: { type: 'price', path: '/prices' },
  products: { type: 'product', path: '/products' },
  promotionCodes: { type: 'promotion_code', path: '/promotion_codes' },
  quotes: { type: 'quote', path: '/quotes', isWithoutCreatedFilter: true },
  refunds: { type: 'refund', path: '/refunds' },
  reviews: { type: 'review', path: '/reviews' },
  setupIntents: { type: 'setup_intent', path: '/setup_intents' },
  // Without `status` the list omits canceled subscriptions, and a backfill would sweep them.
  subscriptions: { type: 'subscription', path: '/subscriptions', query: { status: 'all' } },
  subscriptionSchedules: { type: 'subscription_schedule', path: '/subscription_schedules' },
  taxRates: { type: 'tax_rate', path: '/tax_rates' },
  topups: { type: 'topup', path: '/topups' },
  transfers: { type: 'transfer', path: '/transfers' },
  verificationSessions: { type: 'identity.verification_session', path: '/identity/verification_sessions' },
} as const satisfies Record<string, StripeResource>

/** A new object of these types has no event. A delta would miss it, so every cycle reads the complete list. */
export const LISTED_STREAMS = {
  balanceTransactions: { type: 'balance_transaction', path: '/balance_transactions' },
  checkoutSessions: { type: 'checkout.session', path: '/checkout/sessions' },
  invoicePayments: { type: 'invoice_payment', path: '/invoice_payments' },
  shippingRates: { type: 'shipping_rate', path: '/shipping_rates' },
} as const satisfies Record<string, StripeResource>

/** Line items and other types that exist only inside a parent have no path. */
const PATH_BY_TYPE: ReadonlyMap<string, string> = new Map(
  [...Object.values(TRACKED_STREAMS), ...Object.values(LISTED_STREAMS)].map(({ type, path }) => [type, path]),
)

/** Undefined for types that cannot be read by id. */
export function findObjectPath(type: string): string | undefined {
  return PATH_BY_TYPE.get(type)
}
