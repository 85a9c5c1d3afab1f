import { Worker } from 'tidemark'
import { bearer, rest } from 'tidemark/sources/rest'
import { realOrSimulated } from 'tidemark/testing'

// Without API_TOKEN in .env a simulated account answers, inside this process; with it, the real one.
const simulated = realOrSimulated('stripe', { unless: 'API_TOKEN', since: '{{now}}' })
// An HTTP API by its description; docs/guides/choose-a-strategy.md says which words fit yours, `npx tidemark advise` asks you.
const api = rest({
  baseUrl: 'https://api.stripe.com/v1',
  auth: bearer('API_TOKEN'),
  streams: [
    {
      name: 'customers', path: '/customers', query: { limit: 100 }, records: 'data', key: 'id',
      page: { kind: 'token', parameter: 'starting_after', next: { last: 'id' }, more: 'has_more' },
      // Asked for by its key, a deleted customer is answered with this mark, not with a 404.
      lookup: { path: '/customers/{key}' }, deleted: 'deleted',
    },
  ],
})

const worker = new Worker({ name: '{{name}}' })
worker.sync('customers', { database: worker.database('customers'), schedule: '15m', ...simulated(api.customers) })

export default worker
