import { Worker } from 'tidemark'
import { hubspot } from 'tidemark/sources/hubspot'

/** Contacts and companies: a backfill on request, then modified and archived records. */
const portal = hubspot({
  accessToken: 'HUBSPOT_TOKEN',
  ...(process.env.HUBSPOT_URL !== undefined && { baseUrl: process.env.HUBSPOT_URL }),
})

const worker = new Worker({ name: 'hubspot' })
// The search API allows four requests per second for all callers together.
const pacer = worker.pacer('hubspot-api', { allowedRequests: 40, intervalMs: 10_000 })
worker.track('contacts', { database: worker.database('contacts'), source: portal.contacts, schedule: '5m', pacer })
worker.track('companies', { database: worker.database('companies'), source: portal.companies, schedule: '5m', pacer })

export default worker
