import { Worker } from 'tidemark'
import { airtable } from 'tidemark/sources/airtable'

/** One table, whole each time: what is no longer there is swept. */
const base = airtable({
  baseId: process.env.AIRTABLE_BASE ?? 'app00000000000000',
  token: 'AIRTABLE_TOKEN',
  ...(process.env.AIRTABLE_URL !== undefined && { baseUrl: process.env.AIRTABLE_URL }),
})

const worker = new Worker({ name: 'airtable' })
worker.sync('tasks', {
  database: worker.database('tasks'),
  schedule: '30m',
  // Five a second; one too many costs half a minute.
  pacer: worker.pacer('airtable-api', { allowedRequests: 4, intervalMs: 1_000 }),
  ...base.table(process.env.AIRTABLE_TABLE ?? 'Tasks'),
})

export default worker
