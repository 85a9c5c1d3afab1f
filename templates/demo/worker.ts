import { Worker } from 'tidemark'
import { github } from 'tidemark/sources/github'
import { hubspot } from 'tidemark/sources/hubspot'
import { stripe } from 'tidemark/sources/stripe'

// What `tidemark demo` runs. The three accounts are simulated, on this machine, and gone when the demo ends; without
// their `baseUrl` these sources read the real ones.
const billing = stripe({ apiKey: 'STRIPE_KEY', baseUrl: '{{stripe}}/v1' })
const portal = hubspot({ accessToken: 'HUBSPOT_TOKEN', baseUrl: '{{hubspot}}', lagMs: 2_000 })
const code = github({ token: 'GITHUB_TOKEN', baseUrl: '{{github}}' })

const worker = new Worker({ name: 'demo' })

// A schema is optional. With one, what does not fit goes to quarantine with the reason, and the rest lands.
const contacts = worker.database('contacts', {
  schema: {
    type: 'object',
    required: ['id', 'properties'],
    properties: { properties: { type: 'object', properties: { email: { type: 'string', pattern: '^\\S+@\\S+$' } } } },
  },
})

// A backfill and a delta each: the first reads everything when asked, the second follows what changes.
worker.track('customers', { database: worker.database('customers'), source: billing.customers, schedule: 'continuous' })
worker.track('products', { database: worker.database('products'), source: billing.products, schedule: 'continuous' })
worker.track('contacts', { database: contacts, source: portal.contacts, schedule: 'continuous' })
worker.track('companies', { database: worker.database('companies'), source: portal.companies, schedule: 'continuous' })

// GitHub does not tell what changed: all of it each time, and what is gone is swept.
worker.sync('repositories', { database: worker.database('repositories'), schedule: '1m', ...code.repositories })
worker.sync('issues', { database: worker.database('issues'), schedule: 'continuous', ...code.issues })

export default worker
