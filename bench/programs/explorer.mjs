// node bench/programs/explorer.mjs <store url> <records> <page size> <turns>: pages of `searchRows` and the same SQL by
// hand, in turns; as one JSON line. The median of each counts.
import { DatabaseSync } from '@photostructure/sqlite'
import pg from 'pg'
import { Lander, landingOf, openBareStore } from '../lander.mjs'
import { median } from '../measures.mjs'
import { pagesOf, recordOf } from '../records.mjs'

const [url, count, size, turns] = [process.argv[2], ...process.argv.slice(3).map(Number)]
const isSqlite = url.startsWith('sqlite:')
const store = await load()
const byHand = isSqlite ? openSqlite(url.slice('sqlite:'.length)) : await openPostgres(url)
const contains = (column) => `${column} ${isSqlite ? 'like' : 'ilike'} '%no such text%'`
const TEXTS = ['id', 'name', 'email', 'city', 'country', 'notes']
const VIEWS = {
  first: [{}, 'select * from accounts order by _key limit 101'],
  sorted: [
    { order: { by: 'field', field: 'name', descending: true } },
    'select * from accounts where name is not null order by name desc, _key desc limit 101',
  ],
  unindexed: [
    { order: { by: 'field', field: 'email', descending: false } },
    'select * from accounts where email is not null order by email, _key limit 101',
  ],
  filtered: [
    { filters: [{ field: 'name', test: 'equals', value: `Customer number ${Math.floor(count * 0.9)}` }] },
    `select * from accounts where name = 'Customer number ${Math.floor(count * 0.9)}' order by _key limit 101`,
  ],
  search: [
    { order: { by: 'changed', descending: true }, search: 'no such text' },
    `select count(*) from (select * from accounts order by _sequence desc limit 50000) n where ${TEXTS.map(contains).join(' or ')}`,
  ],
  statistics: [
    { statistics: 'city' },
    'select city, count(*) from (select city from accounts order by _sequence desc limit 100000) n group by city order by 2 desc limit 10',
  ],
}
const results = {}
for (const [view, [request, sql]] of Object.entries(VIEWS)) {
  const ms = { ours: [], raw: [] }
  for (let turn = 0; turn < 3 * turns; turn++) {
    ms.ours.push(await time(() => read(request)))
    ms.raw.push(await time(() => byHand.query(sql)))
  }
  const [ours, raw] = [median(ms.ours), median(ms.raw)]
  results[view] = { ratio: raw / ours, ours, raw }
}
await byHand.close()
await store.close()
console.log(JSON.stringify(results))

async function time(body) {
  const startedAt = performance.now()
  await body()
  return performance.now() - startedAt
}

function read({ statistics, ...request }) {
  const selection = { database: 'accounts', filters: [], deadlineMs: 60_000, ...request }
  if (statistics !== undefined) return store.columnStatistics({ ...selection, field: statistics, scanMax: 100_000 })
  const order = { by: 'key', descending: false }
  return store.searchRows({ order, limit: 100, bytesMax: 4_194_304, scanMax: 50_000, ...selection })
}

async function load() {
  const opened = await openBareStore(url)
  const lander = await Lander.take(opened, 'explorer')
  for (const page of pagesOf('first', count, size)) await lander.cycle(page.map(([i]) => landingOf(recordOf(i))))
  await lander.release()
  return opened
}

function openSqlite(file) {
  const opened = new DatabaseSync(file)
  opened.exec('create index accounts_by_name on accounts (name); pragma wal_checkpoint(truncate)')
  return { query: async (sql) => opened.prepare(sql).all(), close: async () => opened.close() }
}

async function openPostgres(connectionString) {
  const client = new pg.Client({ connectionString })
  await client.connect()
  await client.query('create index on accounts (name, _key)')
  await client.query('vacuum analyze accounts')
  return { query: async (sql) => (await client.query(sql)).rows, close: () => client.end() }
}
