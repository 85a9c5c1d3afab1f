import { Worker } from 'tidemark'
import { postgresCdc } from 'tidemark/sources/postgres-cdc'
import { realOrEmbeddedPostgres } from 'tidemark/testing'

// Without SOURCE_URL in .env a small PostgreSQL runs in postgres/ while this worker reads from it, and people work in it; its
// address is in postgres/url, so write to it as well if you like. With it, your own server, which needs wal_level = logical.
const server = realOrEmbeddedPostgres({ unless: 'SOURCE_URL', folder: new URL('postgres', import.meta.url), since: '{{now}}' })

// Every insert, update and delete from the server's own log.
const worker = new Worker({ name: '{{name}}' })
worker.track('orders', {
  database: worker.database('orders'),
  source: server(postgresCdc({ url: 'SOURCE_URL', tables: [{ table: 'public.orders' }] })),
  schedule: 'continuous',
})

export default worker
