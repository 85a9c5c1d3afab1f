import { Worker } from 'tidemark'
import { basic, odata } from 'tidemark/sources/odata'
import { realOrSimulated } from 'tidemark/testing'

// Without ODATA_PASSWORD in .env a simulated service answers, inside this process; with it, the real one at this address.
const simulated = realOrSimulated('odata', { unless: 'ODATA_PASSWORD', since: '{{now}}' })
const service = odata({ url: 'https://services.example/odata', auth: basic({ user: 'ODATA_USER', password: 'ODATA_PASSWORD' }) })

const worker = new Worker({ name: '{{name}}' })
// Followed by a cursor; `tracked` follows the service's own delta links, `listing` reads all of it each time.
worker.track('accounts', { database: worker.database('accounts'), source: simulated(service.entitySet('Accounts', { cursor: 'LastUpdated' })), schedule: '5m', backfillSchedule: '1d' })

export default worker
