export interface StripeResource {
  /** The path below /v1. */
  readonly path: string
  /** The `object` of its records, which is also their type in the simulator. */
  readonly object: string
  readonly idPrefix: string
  /** Prefix of its event types; absent where Stripe has none. */
  readonly events?: string
  /** Expandable fields that hold an id, with the type they refer to. */
  readonly expandable?: Readonly<Record<string, string>>
  /** Filters of its list beyond paging and `created`. */
  readonly filters?: readonly string[]
  /** A nested list in each record, truncated after ten: below the record, or at `path`, filtered by the record's id. */
  readonly nested?: {
    readonly field: string
    readonly object: string
    readonly idPrefix: string
    readonly path?: string
    /** Fields of an item that hold an id and are always expanded, with the type they refer to. */
    readonly whole?: Readonly<Record<string, string>>
  }
  /** Never deleted: an ended record stays with this status, and is listed only on request. */
  readonly endStatus?: string
  /** Stripe cannot delete it. */
  readonly isUndeletable?: true
  readonly defaults?: Readonly<Record<string, unknown>>
}

export const RESOURCES: readonly StripeResource[] = [
  {
    path: 'customers',
    object: 'customer',
    idPrefix: 'cus_',
    events: 'customer',
    filters: ['email'],
    defaults: { email: null, name: null, metadata: {}, livemode: false },
  },
  {
    path: 'payment_intents',
    object: 'payment_intent',
    idPrefix: 'pi_',
    events: 'payment_intent',
    isUndeletable: true,
    filters: ['customer'],
    expandable: { customer: 'customer', payment_method: 'payment_method', latest_charge: 'charge' },
    defaults: {
      amount: 0,
      currency: 'usd',
      customer: null,
      payment_method: null,
      latest_charge: null,
      status: 'requires_payment_method',
      metadata: {},
      livemode: false,
    },
  },
  {
    path: 'payment_methods',
    object: 'payment_method',
    idPrefix: 'pm_',
    filters: ['customer', 'type'],
    expandable: { customer: 'customer' },
    defaults: { type: 'card', customer: null, metadata: {}, livemode: false },
  },
  {
    path: 'charges',
    object: 'charge',
    idPrefix: 'ch_',
    events: 'charge',
    isUndeletable: true,
    filters: ['customer', 'payment_intent'],
    expandable: { customer: 'customer', payment_intent: 'payment_intent' },
    defaults: { amount: 0, currency: 'usd', customer: null, payment_intent: null, metadata: {}, livemode: false },
  },
  {
    path: 'prices',
    object: 'price',
    idPrefix: 'price_',
    events: 'price',
    filters: ['active', 'currency', 'product', 'type'],
    expandable: { product: 'product' },
    defaults: {
      active: true,
      currency: 'usd',
      product: null,
      type: 'recurring',
      unit_amount: 0,
      metadata: {},
      livemode: false,
    },
  },
  {
    path: 'subscriptions',
    object: 'subscription',
    idPrefix: 'sub_',
    events: 'customer.subscription',
    filters: ['customer', 'price', 'status'],
    expandable: { customer: 'customer' },
    endStatus: 'canceled',
    nested: {
      field: 'items',
      object: 'subscription_item',
      idPrefix: 'si_',
      path: 'subscription_items',
      whole: { price: 'price' },
    },
    defaults: { customer: null, status: 'active', currency: 'usd', metadata: {}, livemode: false },
  },
  {
    path: 'products',
    object: 'product',
    idPrefix: 'prod_',
    events: 'product',
    filters: ['active'],
    defaults: { name: '', active: true, metadata: {}, livemode: false },
  },
  {
    path: 'invoices',
    object: 'invoice',
    idPrefix: 'in_',
    events: 'invoice',
    filters: ['customer', 'status'],
    expandable: { customer: 'customer' },
    nested: { field: 'lines', object: 'line_item', idPrefix: 'il_' },
    defaults: { customer: null, status: 'draft', currency: 'usd', metadata: {}, livemode: false },
  },
]

export function findResource(object: string): StripeResource | undefined {
  return RESOURCES.find((resource) => resource.object === object)
}
