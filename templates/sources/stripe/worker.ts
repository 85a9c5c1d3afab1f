import { Worker } from 'tidemark'
import { stripe } from 'tidemark/sources/stripe'
import { realOrSimulated } from '@tidemark/simulators'

// Until STRIPE_KEY is set in .env, the worker reads a simulated account in this process.
const simulated = realOrSimulated('stripe', { unless: 'STRIPE_KEY', since: '{{now}}' })
const account = stripe({ apiKey: 'STRIPE_KEY' })

const worker = new Worker({ name: '{{name}}' })
const pacer = worker.pacer('stripe-api', { allowedRequests: 25, intervalMs: 1_000 })
worker.track('customers', { database: worker.database('customers'), source: simulated(account.customers), schedule: '1m', pacer })
worker.track('products', { database: worker.database('products'), source: simulated(account.products), schedule: '1m', pacer })

export default worker
