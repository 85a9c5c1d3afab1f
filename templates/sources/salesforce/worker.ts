import { Worker } from 'tidemark'
import { salesforce } from 'tidemark/sources/salesforce'
import { realOrSimulated } from '@tidemark/simulators'

// Until SALESFORCE_TOKEN is set in .env, the worker reads a simulated account in this process.
const simulated = realOrSimulated('salesforce', { unless: 'SALESFORCE_TOKEN', since: '{{now}}' })
// The URL of your org. Tokens expire: `auth: refreshToken({ … })` from tidemark/connector renews them.
const org = salesforce({ instanceUrl: 'https://example.my.salesforce.com', accessToken: 'SALESFORCE_TOKEN' })

const worker = new Worker({ name: '{{name}}' })
worker.track('accounts', { database: worker.database('accounts'), source: simulated(org.object('Account')), schedule: '5m' })

export default worker
