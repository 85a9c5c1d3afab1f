import { Worker } from 'tidemark'
import { stripe } from 'tidemark/sources/stripe'

/**
 * Customers and subscriptions: a backfill on request, then changes from the event log. Subscription items and their
 * prices have their own databases.
 */
const account = stripe({
  apiKey: 'STRIPE_KEY',
  nested: { subscription_item: 'subscription_items', price: 'prices' },
  ...(process.env.STRIPE_URL !== undefined && { baseUrl: process.env.STRIPE_URL }),
})

const worker = new Worker({ name: 'stripe' })
const pacer = worker.pacer('stripe-api', { allowedRequests: 25, intervalMs: 1_000 })
const items = worker.database('subscription_items')
const prices = worker.database('prices')
worker.track('customers', {
  database: worker.database('customers'),
  databases: [items, prices],
  source: account.customers,
  schedule: '1m',
  pacer,
})
worker.track('subscriptions', {
  database: worker.database('subscriptions'),
  databases: [items, prices],
  source: account.subscriptions,
  schedule: '1m',
  pacer,
})

export default worker
