import { Worker } from 'tidemark'
import { salesforce } from 'tidemark/sources/salesforce'

/** Accounts: a backfill on request, then changes and deletions every five minutes. */
const org = salesforce({
  instanceUrl: process.env.SALESFORCE_URL ?? 'https://example.my.salesforce.com',
  accessToken: 'SALESFORCE_TOKEN',
})

const worker = new Worker({ name: 'salesforce' })
worker.track('accounts', {
  database: worker.database('accounts'),
  source: org.object('Account'),
  schedule: '5m',
  pacer: worker.pacer('salesforce-api', { allowedRequests: 100, intervalMs: 10_000 }),
})

export default worker
