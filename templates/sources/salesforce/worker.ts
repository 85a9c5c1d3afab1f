import { Worker } from 'tidemark'
import { salesforce } from 'tidemark/sources/salesforce'
import { realOrSimulated } from 'tidemark/testing'

// Without SALESFORCE_TOKEN in .env a simulated account answers, inside this process; with it, the real one.
const simulated = realOrSimulated('salesforce', { unless: 'SALESFORCE_TOKEN', since: '{{now}}' })
// The address of your org. Tokens expire: `auth: refreshToken({ … })` from tidemark/connector renews them.
const org = salesforce({ instanceUrl: 'https://example.my.salesforce.com', accessToken: 'SALESFORCE_TOKEN' })

const worker = new Worker({ name: '{{name}}' })
worker.track('accounts', { database: worker.database('accounts'), source: simulated(org.object('Account')), schedule: '5m' })

export default worker
