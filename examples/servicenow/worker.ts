import { Worker } from 'tidemark'
import { servicenow } from 'tidemark/sources/servicenow'

/** Incidents: a backfill on request, then updates, and deletions from the audit table. */
const instance = servicenow({
  instanceUrl: process.env.SERVICENOW_URL ?? 'https://example.service-now.com',
  user: 'SERVICENOW_USER',
  password: 'SERVICENOW_PASSWORD',
})

const worker = new Worker({ name: 'servicenow' })
worker.track('incidents', {
  database: worker.database('incidents'),
  source: instance.table('incident'),
  schedule: '5m',
  pacer: worker.pacer('servicenow-api', { allowedRequests: 50, intervalMs: 10_000 }),
})

export default worker
