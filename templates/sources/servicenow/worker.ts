import { Worker } from 'tidemark'
import { servicenow } from 'tidemark/sources/servicenow'
import { realOrSimulated } from '@tidemark/simulators'

// Until SERVICENOW_PASSWORD is set in .env, the worker reads a simulated account in this process.
const simulated = realOrSimulated('servicenow', { unless: 'SERVICENOW_PASSWORD', since: '{{now}}' })
// The URL of your instance.
const instance = servicenow({ instanceUrl: 'https://example.service-now.com', user: 'SERVICENOW_USER', password: 'SERVICENOW_PASSWORD' })

const worker = new Worker({ name: '{{name}}' })
worker.track('incidents', { database: worker.database('incidents'), source: simulated(instance.table('incident')), schedule: '5m' })

export default worker
