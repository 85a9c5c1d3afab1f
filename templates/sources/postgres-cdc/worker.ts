import { Worker } from 'tidemark'
import { postgresCdc } from 'tidemark/sources/postgres-cdc'
import { realOrEmbeddedPostgres } from '@tidemark/simulators'

// Until SOURCE_URL is set in .env, a small PostgreSQL with simulated edits runs in postgres/ while this worker reads it.
// Its URL is in postgres/url; you can write to it as well. Your own server needs wal_level = logical.
const server = realOrEmbeddedPostgres({ unless: 'SOURCE_URL', folder: new URL('postgres', import.meta.url), since: '{{now}}' })

// Every insert, update and delete from the write-ahead log.
const worker = new Worker({ name: '{{name}}' })
worker.track('orders', {
  database: worker.database('orders'),
  source: server(postgresCdc({ url: 'SOURCE_URL', tables: [{ table: 'public.orders' }] })),
  schedule: 'continuous',
})

export default worker
