import { Worker } from 'tidemark'
import { hubspot } from 'tidemark/sources/hubspot'
import { realOrSimulated } from 'tidemark/testing'

// Without HUBSPOT_TOKEN in .env a simulated account answers, inside this process; with it, the real one.
const simulated = realOrSimulated('hubspot', { unless: 'HUBSPOT_TOKEN', since: '{{now}}' })
const portal = hubspot({ accessToken: 'HUBSPOT_TOKEN' })

const worker = new Worker({ name: '{{name}}' })
// A search may be asked four times a second, whoever asks.
const pacer = worker.pacer('hubspot-api', { allowedRequests: 40, intervalMs: 10_000 })
worker.track('contacts', { database: worker.database('contacts'), source: simulated(portal.contacts), schedule: '5m', pacer })
worker.track('companies', { database: worker.database('companies'), source: simulated(portal.companies), schedule: '5m', pacer })

export default worker
