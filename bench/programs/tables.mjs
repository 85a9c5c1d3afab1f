// node bench/programs/tables.mjs <url> <records> <turns>: a table of a PostgreSQL copied into the same server, as one
// JSON line. The raw limit is COPY out of one table and into another; it alternates with each of the others. Rows with
// an empty array beside them must be decoded. Pages read beforehand show the maximum gain of faster reading.
import { pipeline } from 'node:stream/promises'
import pg from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import { openStore, runCycle } from '../../dist/index.js'
import { sql } from '../../dist/sources/sql/source.js'
import { recordOf } from '../records.mjs'

const [url, count, turns] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])]
const [reader, writer] = [new pg.Client(url), new pg.Client(url)]
await Promise.all([reader.connect(), writer.connect()])
await reader.query(
  'create table accounts_there (id text collate "C" primary key, name text, email text, city text, country text, balance float8, active boolean, created_at timestamptz, updated_at timestamptz, notes text)',
)
await reader.query(
  'insert into accounts_there select r.* from unnest($1::json[]) j, json_populate_record(null::accounts_there, j) r',
  [[JSON.stringify(recordOf(0))]],
)
await reader.query(`insert into accounts_there select 'acc_' || lpad(i::text, 10, '0'), 'Customer number ' || i, 'customer' || i || '@example.com', city, country, i * 1.5, i % 3 = 0, created_at, updated_at, notes
  from accounts_there, generate_series(1, ${count - 1}) i`)
await reader.query('create table accounts_here (like accounts_there including all)')
await reader.query('create table accounts_decoded (like accounts_there including all, tags text[])')
await reader.query('insert into accounts_decoded select * from accounts_there')
await reader.query('analyze accounts_there, accounts_decoded')

const { execute, mode } = sql({ url }).listing('public.accounts_there')
const { execute: decoded } = sql({ url }).listing('public.accounts_decoded')
const context = {
  signal: new AbortController().signal,
  log: { debug() {}, info() {}, warn() {}, error() {} },
  clock: { now: Date.now },
  cycle: { id: 0, mode: 'replace', startedAt: Date.now() },
  secrets: {},
}
const results = { raw: [], reading: [], readingDecoded: [], cycle: [], decoded: [], given: [] }
let pages = []
const store = await openStore(url)
for (let turn = 0; turn < turns; turn++) {
  results.raw.push(await copied())
  results.reading.push(await rated(async () => void (pages = await readAll(execute))))
  results.readingDecoded.push(await rated(() => readAll(decoded)))
  const sources = { cycle: execute, decoded, given: async (_, { cycle }) => pages[cycle.page - 1] }
  for (const [name, source] of Object.entries(sources)) {
    results[name].push(
      await rated(async () => {
        const sync = { name: `${name}${turn}`, database: `${name}${turn}`, mode, execute: source }
        const result = await runCycle({ store, worker: 'bench', sync })
        if (result.counts.created !== count) {
          throw new Error(`${result.stopReason} ${result.error?.message ?? result.counts.created}`)
        }
      }),
    )
  }
}
await store.close()
await Promise.all([reader.end(), writer.end()])
console.log(JSON.stringify(results))

async function copied() {
  await writer.query('truncate accounts_here')
  return rated(() =>
    pipeline(
      reader.query(copyTo('copy accounts_there to stdout')),
      writer.query(copyFrom('copy accounts_here from stdin')),
    ),
  )
}

async function readAll(execute) {
  const pages = []
  for (let state, more = true; more;) {
    const page = await execute(state, context)
    pages.push(page)
    more = page.hasMore
    state = page.nextState
  }
  return pages
}

/** Rows a second, and the processor time of this process for a row: on a busy machine the steadier of the two. */
async function rated(act) {
  const [startedAt, before] = [performance.now(), process.cpuUsage()]
  await act()
  const { user, system } = process.cpuUsage(before)
  return { rate: count / ((performance.now() - startedAt) / 1000), cpu: (user + system) / count }
}
