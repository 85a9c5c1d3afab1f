import { Worker } from 'tidemark'
import { airtable } from 'tidemark/sources/airtable'
import { realOrSimulated } from '@tidemark/simulators'

// Until AIRTABLE_TOKEN is set in .env, the worker reads a simulated account in this process.
const simulated = realOrSimulated('airtable', { unless: 'AIRTABLE_TOKEN', since: '{{now}}' })
// The URL of a table contains the ids of its base and table: airtable.com/app…/tbl…
const base = airtable({ baseId: 'appSimulated00001', token: 'AIRTABLE_TOKEN' })

const worker = new Worker({ name: '{{name}}' })
// Airtable allows five requests per second for each base.
const pacer = worker.pacer('airtable-api', { allowedRequests: 5, intervalMs: 1_000 })
worker.sync('tasks', { database: worker.database('tasks'), schedule: '15m', pacer, ...simulated(base.table('Tasks')) })

export default worker
