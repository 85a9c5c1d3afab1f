import { Worker } from 'tidemark'
import { airbyte } from 'tidemark/sources/airbyte'
import { realOrSimulated } from '@tidemark/simulators'

// Until STRIPE_KEY is set in .env, the worker reads a simulated account in this process.
const simulated = realOrSimulated('stripe', { unless: 'STRIPE_KEY', since: '{{now}}' })
// Put the manifest of any Airbyte connector here. `npx tidemark check` lists the streams that are not supported.
const source = airbyte({ manifest: 'manifest.yaml', folder: import.meta.dirname, config: { api_key: '${STRIPE_KEY}' } })

const worker = new Worker({ name: '{{name}}' })
worker.sync('customers', {
  database: worker.database('customers'), schedule: '15m', ...simulated(source.stream('customers')),
})

export default worker
