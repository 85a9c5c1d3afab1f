// node bench/programs/partitions.mjs <file> <postgres url> <records> <page size> <turns>: a slow API on loopback and a
// PostgreSQL table, near and 25 ms away, each read in 16 partitions to SQLite, one and then eight at a time; as one
// JSON line.
import { createServer } from 'node:http'
import { connect, createServer as createProxy } from 'node:net'
import pg from 'pg'
import { openStore, partitioned, runCycle } from '../../dist/index.js'
import { sql } from '../../dist/sources/sql/source.js'

const [file, url] = process.argv.slice(2)
const [records, size, turns] = process.argv.slice(4).map(Number)
const PARTITIONS = 16
const CONCURRENCY = 8
/** How long the API takes for a page. */
const LATENCY_MS = 100
/** A page of an API is small. */
const apiPage = Math.min(size, 100)
const apiPages = Math.max(1, Math.min(4, Math.floor(records / apiPage / PARTITIONS)))

const server = createServer((request, response) => {
  const [partition, page] = request.url.slice(1).split('/')
  const items = Array.from({ length: apiPage }, (_, index) => ({
    id: `${partition}/${page}/${index}`,
    name: 'x'.repeat(50),
  }))
  setTimeout(() => response.end(JSON.stringify(items)), LATENCY_MS)
}).listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
const origin = `http://127.0.0.1:${server.address().port}`

const client = new pg.Client({ connectionString: url })
await client.connect()
await client.query('create table orders (id bigint primary key, name text, amount numeric, at timestamptz)')
await client.query(
  `insert into orders select n, repeat('x', 50), n / 100.0, now() from generate_series(1, ${records}) n`,
)
await client.query('vacuum analyze orders')
await client.end()

/** The same server, as far away as another region: every piece of an answer takes 25 ms. */
const { hostname, port } = new URL(url)
const proxy = createProxy((near) => {
  const far = connect(Number(port || 5432), hostname)
  near.pipe(far)
  far.on('data', (data) => setTimeout(() => near.write(data), 25))
  far.on('end', () => setTimeout(() => near.end(), 25))
  far.on('error', () => near.destroy())
  near.on('error', () => far.destroy())
}).listen(0, '127.0.0.1')
await new Promise((resolve) => proxy.once('listening', resolve))
const distant = Object.assign(new URL(url), { host: `127.0.0.1:${proxy.address().port}` }).href

const api = (concurrency) =>
  partitioned({
    list: async () => ({
      partitions: Array.from({ length: PARTITIONS }, (_, index) => ({ key: `p${index}`, value: index })),
    }),
    read: async ({ value }, state, { fetch }) => {
      const page = state?.page ?? 0
      const items = await (await fetch(`${origin}/${value}/${page}`)).json()
      const changes = items.map((item) => ({ type: 'upsert', key: item.id, record: item }))
      return { changes, hasMore: page + 1 < apiPages, nextState: { page: page + 1 } }
    },
    concurrency,
  })
const table = (concurrency, at = url) =>
  sql({ url: at }).listing('orders', {
    pageSize: size,
    ...(concurrency > 0 && { partitions: PARTITIONS, concurrency }),
  }).execute

const results = { api: { one: [], many: [] }, sql: { plain: [], one: [], many: [] }, distant: { one: [], many: [] } }
for (let turn = 0; turn < turns; turn++) {
  const apiRows = PARTITIONS * apiPages * apiPage
  results.api.one.push(await rateOf(`api1-${turn}`, api(1), apiRows))
  results.api.many.push(await rateOf(`api8-${turn}`, api(CONCURRENCY), apiRows))
  results.sql.plain.push(await rateOf(`sql0-${turn}`, table(0), records))
  results.sql.one.push(await rateOf(`sql1-${turn}`, table(1), records))
  results.sql.many.push(await rateOf(`sql8-${turn}`, table(CONCURRENCY), records))
  results.distant.one.push(await rateOf(`far1-${turn}`, table(1, distant), records))
  results.distant.many.push(await rateOf(`far8-${turn}`, table(CONCURRENCY, distant), records))
}
server.close()
proxy.close()
console.log(JSON.stringify(results))

async function rateOf(name, execute, rows) {
  const store = await openStore(`sqlite:${file}.${name}`)
  const startedAt = performance.now()
  const result = await runCycle({
    store,
    worker: 'bench',
    sync: { name: 'partitions', database: 'orders', mode: 'replace', execute },
  })
  const ms = performance.now() - startedAt
  if (result.stopReason !== 'complete' || result.counts.created !== rows) throw new Error(JSON.stringify(result))
  await store.close()
  return rows / (ms / 1_000)
}
