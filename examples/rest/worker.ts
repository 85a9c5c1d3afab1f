import { Worker } from 'tidemark'
import { bearer, rest } from 'tidemark/sources/rest'

/** A declarative description of an HTTP API: Stripe's customers, and the event log with their changes. */
const api = rest({
  baseUrl: process.env.STRIPE_URL ?? 'https://api.stripe.com/v1',
  auth: bearer('STRIPE_KEY'),
  streams: [
    {
      name: 'customers',
      path: '/customers',
      query: { limit: 100 },
      records: 'data',
      key: 'id',
      page: { kind: 'token', parameter: 'starting_after', next: { last: 'id' }, more: 'has_more' },
      lagMs: 10_000,
      follow: {
        kind: 'events',
        path: '/events',
        query: { limit: 100 },
        records: 'data',
        id: 'id',
        at: 'created',
        time: 's',
        after: 'ending_before',
        order: 'newest-first',
        more: 'has_more',
        newest: { limit: 1 },
        record: 'data.object',
        only: { at: 'data.object.object', are: ['customer'] },
        deletions: { at: 'type', are: ['*.deleted'] },
        retentionMs: 30 * 86_400_000,
      },
    },
  ],
})

const worker = new Worker({ name: 'rest' })
worker.track('customers', {
  database: worker.database('customers'),
  source: api.customers,
  schedule: '1m',
  pacer: worker.pacer('api', { allowedRequests: 25, intervalMs: 1_000 }),
})

export default worker
