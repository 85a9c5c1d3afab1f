import { Worker } from 'tidemark'
import { airtable } from 'tidemark/sources/airtable'
import { realOrSimulated } from 'tidemark/testing'

// Without AIRTABLE_TOKEN in .env a simulated account answers, inside this process; with it, the real one.
const simulated = realOrSimulated('airtable', { unless: 'AIRTABLE_TOKEN', since: '{{now}}' })
// The ids of your base and table stand in their address: airtable.com/app…/tbl…
const base = airtable({ baseId: 'appSimulated00001', token: 'AIRTABLE_TOKEN' })

const worker = new Worker({ name: '{{name}}' })
// Five requests a second for each base.
const pacer = worker.pacer('airtable-api', { allowedRequests: 5, intervalMs: 1_000 })
worker.sync('tasks', { database: worker.database('tasks'), schedule: '15m', pacer, ...simulated(base.table('Tasks')) })

export default worker
