import { Worker } from 'tidemark'
import { github } from 'tidemark/sources/github'
import { hubspot } from 'tidemark/sources/hubspot'
import { stripe } from 'tidemark/sources/stripe'

// The worker of `tidemark demo`. The three accounts are simulated on this machine and are deleted when the demo ends.
// Without `baseUrl` these sources read the real accounts.
const billing = stripe({ apiKey: 'STRIPE_KEY', baseUrl: '{{stripe}}/v1' })
const portal = hubspot({ accessToken: 'HUBSPOT_TOKEN', baseUrl: '{{hubspot}}', lagMs: 2_000 })
const code = github({ token: 'GITHUB_TOKEN', baseUrl: '{{github}}' })

const worker = new Worker({ name: 'demo' })

// A schema is optional. With one, invalid records are quarantined with the reason, and the others are committed.
const contacts = worker.database('contacts', {
  schema: {
    type: 'object',
    required: ['id', 'properties'],
    properties: { properties: { type: 'object', properties: { email: { type: 'string', pattern: '^\\S+@\\S+$' } } } },
  },
})

// A backfill and a delta each: the first reads everything on request, the second reads changes.
worker.track('customers', { database: worker.database('customers'), source: billing.customers, schedule: 'continuous' })
worker.track('products', { database: worker.database('products'), source: billing.products, schedule: 'continuous' })
worker.track('contacts', { database: contacts, source: portal.contacts, schedule: 'continuous' })
worker.track('companies', { database: worker.database('companies'), source: portal.companies, schedule: 'continuous' })

// GitHub has no change feed: each cycle lists everything, and rows that are no longer there are swept.
worker.sync('repositories', { database: worker.database('repositories'), schedule: '1m', ...code.repositories })
worker.sync('issues', { database: worker.database('issues'), schedule: 'continuous', ...code.issues })

export default worker
