import { Worker } from 'tidemark'
import { airtable } from 'tidemark/sources/airtable'

/** One table, listed completely in each cycle: rows that are no longer there are swept. */
const base = airtable({
  baseId: process.env.AIRTABLE_BASE ?? 'app00000000000000',
  token: 'AIRTABLE_TOKEN',
  ...(process.env.AIRTABLE_URL !== undefined && { baseUrl: process.env.AIRTABLE_URL }),
})

const worker = new Worker({ name: 'airtable' })
worker.sync('tasks', {
  database: worker.database('tasks'),
  schedule: '30m',
  // The limit is five per second; one request above it costs 30 seconds.
  pacer: worker.pacer('airtable-api', { allowedRequests: 4, intervalMs: 1_000 }),
  ...base.table(process.env.AIRTABLE_TABLE ?? 'Tasks'),
})

export default worker
