import { Worker } from 'tidemark'
import { stripe } from 'tidemark/sources/stripe'
import { realOrSimulated } from 'tidemark/testing'

// Without STRIPE_KEY in .env a simulated account answers, inside this process; with it, the real one.
const simulated = realOrSimulated('stripe', { unless: 'STRIPE_KEY', since: '{{now}}' })
const account = stripe({ apiKey: 'STRIPE_KEY' })

const worker = new Worker({ name: '{{name}}' })
const pacer = worker.pacer('stripe-api', { allowedRequests: 25, intervalMs: 1_000 })
worker.track('customers', { database: worker.database('customers'), source: simulated(account.customers), schedule: '1m', pacer })
worker.track('products', { database: worker.database('products'), source: simulated(account.products), schedule: '1m', pacer })

export default worker
