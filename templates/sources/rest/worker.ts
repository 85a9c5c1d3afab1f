import { Worker } from 'tidemark'
import { bearer, rest } from 'tidemark/sources/rest'
import { realOrSimulated } from '@tidemark/simulators'

// Until API_TOKEN is set in .env, the worker reads a simulated account in this process.
const simulated = realOrSimulated('stripe', { unless: 'API_TOKEN', since: '{{now}}' })
// A declarative description of an HTTP API. See docs/guides/choose-a-strategy.md, or run `npx tidemark advise`.
const api = rest({
  baseUrl: 'https://api.stripe.com/v1',
  auth: bearer('API_TOKEN'),
  streams: [
    {
      name: 'customers', path: '/customers', query: { limit: 100 }, records: 'data', key: 'id',
      page: { kind: 'token', parameter: 'starting_after', next: { last: 'id' }, more: 'has_more' },
      // For the key of a deleted customer the API returns this flag, not a 404.
      lookup: { path: '/customers/{key}' }, deleted: 'deleted',
    },
  ],
})

const worker = new Worker({ name: '{{name}}' })
worker.sync('customers', { database: worker.database('customers'), schedule: '15m', ...simulated(api.customers) })

export default worker
