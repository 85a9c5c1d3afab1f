// node bench/programs/queries.mjs <store url> <records> <page size> <turns>: queries on the copy and on a table of
// the user's with the same columns, in turns; as one JSON line. The median of each counts.
import { DatabaseSync } from '@photostructure/sqlite'
import pg from 'pg'
import { Lander, landingOf, openBareStore } from '../lander.mjs'
import { median } from '../measures.mjs'
import { pagesOf, recordOf } from '../records.mjs'

const [url, count, size, turns] = [process.argv[2], ...process.argv.slice(3).map(Number)]
const MEMBERS = 'id, name, email, city, country, balance, active, created_at, updated_at, notes'
const email = `customer${Math.floor(count * 0.9)}@example.com`
const name = `Customer number ${Math.floor(count * 0.9)}`
const QUERIES = {
  unindexed: { sql: (table) => `select id, name, balance from ${table} where email = '${email}'`, times: 3, rows: 1 },
  indexed: { sql: (table) => `select id, email, balance from ${table} where name = '${name}'`, times: 200, rows: 1 },
  group: { sql: (table) => `select active, sum(balance) from ${table} group by active`, times: 3, rows: 2 },
  count: { sql: (table) => `select count(*) from ${table}`, times: 3, rows: 1 },
}

await load()
const database = url.startsWith('sqlite:') ? openSqlite(url.slice('sqlite:'.length)) : await openPostgres(url)
const results = {}
for (const [query, { sql, times, rows }] of Object.entries(QUERIES)) {
  const ms = { accounts: [], own: [] }
  for (let turn = 0; turn < 3 * turns; turn++) {
    for (const table of turn % 2 === 0 ? ['accounts', 'own'] : ['own', 'accounts']) {
      const startedAt = performance.now()
      for (let n = 0; n < times; n++) {
        const found = await database.query(sql(table))
        if (found.length !== rows) throw new Error(`${query}: ${found.length} rows of ${table}`)
      }
      ms[table].push((performance.now() - startedAt) / times)
    }
  }
  const [ours, raw] = [median(ms.accounts), median(ms.own)]
  results[query] = { ratio: raw / ours, ours, raw }
}
await database.close()
console.log(JSON.stringify(results))

async function load() {
  const store = await openBareStore(url)
  const lander = await Lander.take(store, 'queries')
  for (const page of pagesOf('first', count, size)) await lander.cycle(page.map(([i]) => landingOf(recordOf(i))))
  await lander.release()
  await store.close()
}

function openSqlite(file) {
  const opened = new DatabaseSync(file)
  opened.exec(`create table own (id text not null primary key, name text, email text, city text, country text,
      balance real, active boolean, created_at datetime, updated_at datetime, notes text);
    insert into own select ${MEMBERS} from accounts;
    create index own_by_name on own (name); create index accounts_by_name on accounts (name);
    analyze; pragma wal_checkpoint(truncate)`)
  return { query: async (sql) => opened.prepare(sql).all(), close: async () => opened.close() }
}

async function openPostgres(connectionString) {
  const client = new pg.Client({ connectionString })
  await client.connect()
  await client.query(`create table own (id text collate "C" primary key, name text, email text, city text, country text,
      balance double precision, active boolean, created_at timestamptz, updated_at timestamptz, notes text);
    insert into own select ${MEMBERS} from accounts;
    create index on own (name); create index on accounts (name)`)
  await client.query('vacuum analyze own, accounts')
  return { query: async (sql) => (await client.query(sql)).rows, close: () => client.end() }
}
