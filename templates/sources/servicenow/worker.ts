import { Worker } from 'tidemark'
import { servicenow } from 'tidemark/sources/servicenow'
import { realOrSimulated } from 'tidemark/testing'

// Without SERVICENOW_PASSWORD in .env a simulated account answers, inside this process; with it, the real one.
const simulated = realOrSimulated('servicenow', { unless: 'SERVICENOW_PASSWORD', since: '{{now}}' })
// The address of your instance.
const instance = servicenow({ instanceUrl: 'https://example.service-now.com', user: 'SERVICENOW_USER', password: 'SERVICENOW_PASSWORD' })

const worker = new Worker({ name: '{{name}}' })
worker.track('incidents', { database: worker.database('incidents'), source: simulated(instance.table('incident')), schedule: '5m' })

export default worker
