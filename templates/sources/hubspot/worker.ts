import { Worker } from 'tidemark'
import { hubspot } from 'tidemark/sources/hubspot'
import { realOrSimulated } from '@tidemark/simulators'

// Until HUBSPOT_TOKEN is set in .env, the worker reads a simulated account in this process.
const simulated = realOrSimulated('hubspot', { unless: 'HUBSPOT_TOKEN', since: '{{now}}' })
const portal = hubspot({ accessToken: 'HUBSPOT_TOKEN' })

const worker = new Worker({ name: '{{name}}' })
// The search API allows four requests per second for all callers together.
const pacer = worker.pacer('hubspot-api', { allowedRequests: 40, intervalMs: 10_000 })
worker.track('contacts', { database: worker.database('contacts'), source: simulated(portal.contacts), schedule: '5m', pacer })
worker.track('companies', { database: worker.database('companies'), source: simulated(portal.companies), schedule: '5m', pacer })

export default worker
