import { Worker } from 'tidemark'
import { postgresCdc } from 'tidemark/sources/postgres-cdc'

// Every insert, update and delete from the server's own log. Its URL is in .env; README.md says what the server needs.
const worker = new Worker({ name: '{{name}}' })
worker.track('orders', {
  database: worker.database('orders'),
  source: postgresCdc({ url: 'SOURCE_URL', tables: [{ table: 'public.orders' }] }),
  schedule: 'continuous',
})

export default worker
