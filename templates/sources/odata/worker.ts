import { Worker } from 'tidemark'
import { basic, odata } from 'tidemark/sources/odata'
import { realOrSimulated } from '@tidemark/simulators'

// Until ODATA_PASSWORD is set in .env, the worker reads a simulated service in this process, then the one at `url`.
const simulated = realOrSimulated('odata', { unless: 'ODATA_PASSWORD', since: '{{now}}' })
const service = odata({ url: 'https://services.example/odata', auth: basic({ user: 'ODATA_USER', password: 'ODATA_PASSWORD' }) })

const worker = new Worker({ name: '{{name}}' })
// `entitySet` reads changes by a cursor. `tracked` uses the service's delta links, `listing` reads everything.
worker.track('accounts', { database: worker.database('accounts'), source: simulated(service.entitySet('Accounts', { cursor: 'LastUpdated' })), schedule: '5m', backfillSchedule: '1d' })

export default worker
