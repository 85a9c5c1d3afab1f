import { AUTH_OPTION, HTTP_PACE, secretOption, type SourceReference } from '../kit/source-reference.ts'

export default {
  auth: 'A secret key, or a restricted key that may read the objects and events.',
  streams: [
    ['stripe(options).charges', 'backfill and delta', 'charges'],
    ['stripe(options).customers', 'backfill and delta', 'customers'],
    ['stripe(options).invoices', 'backfill and delta', 'invoices'],
    ['stripe(options).paymentIntents', 'backfill and delta', 'payment intents'],
    ['stripe(options).paymentMethods', 'backfill and delta', 'payment methods'],
    ['stripe(options).prices', 'backfill and delta', 'prices'],
    ['stripe(options).products', 'backfill and delta', 'products'],
    ['stripe(options).subscriptions', 'backfill and delta', 'subscriptions, also canceled ones'],
  ],
  lag: '10 seconds.',
  retention: '30 days: the log of events.',
  deletions: 'By the delta, from events, and by the backfill.',
  pace: HTTP_PACE,
  groups: [
    {
      title: 'stripe(options)',
      file: 'stripe/source.ts',
      name: 'StripeOptions',
      members: {
        apiKey: secretOption('The key'),
        auth: AUTH_OPTION,
        baseUrl: ['`https://api.stripe.com/v1`', 'Base URL of the API.'],
        apiVersion: ["the account's", '`Stripe-Version` of lists. Events keep the version they were created with.'],
        limit: ['100', 'Objects of a page, 1 to 100.'],
        expand: [
          'none',
          'Fields to expand, such as `data.payment_method`. The delta reads each changed object that has such a field.',
        ],
        nested: [
          'none',
          "Databases of nested objects, by type: `{ payment_method: 'payment_methods' }`. Declare them in `databases` of the sync.",
        ],
        followUpsMax: [
          '20',
          'Requests that one page may make for its objects, 1 and more. A page that needs more is split.',
        ],
      },
    },
  ],
} satisfies SourceReference
