// node bench/programs/tenants.mjs <url> <tenants> <turns>: commit latency, catalog, status and memory with few
// tenants and with many, ten databases each; as one JSON line. One store and its pool serve all of them, as `start
// --all-tenants` does.
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { openBareStore, Lander, landings } from '../lander.mjs'

const [url, count, turns] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])]
const FEW = Math.min(10, Math.ceil(count / 2))
const DATABASES = Array.from({ length: 10 }, (_, n) => `accounts_${n}`)
const COMMAND = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const store = await openBareStore(url)
const client = new pg.Client(url)
await client.connect()
const landers = []
const results = {}
results.few = { tenants: FEW, createMs: await addTenants(FEW), ...(await measure(FEW)) }
results.many = { tenants: count, createMs: await addTenants(count), sameMs: await commits(FEW) }
Object.assign(results.many, await measure(count))
await client.end()
await store.close()
console.log(JSON.stringify(results))

/** Eight at a time, except the last few, whose first commits are timed one after the other. */
async function addTenants(until) {
  const ms = []
  const add = async () => {
    const at = landers.push(null) - 1
    const lander = (landers[at] = await Lander.take(store.forTenant(`tenant_${at}`), 'load'))
    const page = DATABASES.flatMap((database) => landings(0, 10, 0, database))
    ms.push(await timed(() => lander.cycle(page, DATABASES)))
  }
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      while (landers.length < until - FEW) await add()
    }),
  )
  ms.length = 0
  while (landers.length < until) await add()
  return ms
}

/** A page of 100 new rows for one database of each of the first tenants, in turns, 40 commits a turn. */
async function commits(tenants) {
  const ms = []
  for (let n = 0; n < turns * 40; n++) {
    const [lander, database] = [landers[(n * 7) % tenants], DATABASES[n % DATABASES.length]]
    const page = landings((commits.next += 100), 100, 0, database)
    await lander.begin('incremental', [database])
    ms.push(await timed(() => lander.complete(page)))
  }
  return ms
}

async function measure(tenants) {
  commits.next ??= 0
  const commitMs = await commits(tenants)
  const [statusMs, listMs] = [[], []]
  for (let n = 0; n < turns * 3; n++) {
    const one = store.forTenant(`tenant_${(n * 7) % tenants}`)
    statusMs.push(await timed(() => one.listSyncStatus({ at: Date.now(), recent: 5 })))
    listMs.push(await timed(() => store.tenants()))
  }
  return {
    commitMs,
    statusMs,
    listMs,
    statusAllMs: await timed(statusOfAll),
    catalog: await catalog(),
    tableKb: await tableKb(),
    processMb: process.memoryUsage().rss / 2 ** 20,
    backendMb: await backendMb(),
  }
}

async function statusOfAll() {
  const child = spawn(process.execPath, [COMMAND, 'status', '--all', '--all-tenants', '--store', url, '--json'], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const status = await new Promise((resolve) => child.once('close', resolve))
  if (status !== 0) throw new Error(`tidemark status ended with ${status}`)
}

async function catalog() {
  const { rows } = await client.query(`select (select count(*) from pg_class) as classes,
    (select count(*) from pg_attribute) as attributes,
    (select sum(pg_total_relation_size(oid)) / 1048576 from pg_class
      where relnamespace = 'pg_catalog'::regnamespace and relkind = 'r') as mb`)
  return Object.fromEntries(Object.entries(rows[0]).map(([name, value]) => [name, Number(value)]))
}

/** A table with its history and indexes, with few rows. */
async function tableKb() {
  const { rows } = await client.query(`select avg(kb) as kb from (select sum(pg_total_relation_size(c.oid)) / 1024 as kb
    from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname like 'tenant%' and c.relkind = 'r'
    group by n.nspname, replace(c.relname, '_history', '')) t`)
  return Number(rows[0].kb)
}

/** The catalog entries that a connection has used stay in its memory. */
async function backendMb() {
  const { rows } = await client.query(
    "select pid from pg_stat_activity where datname = current_database() and backend_type = 'client backend'",
  )
  const sizes = rows.map(({ pid }) => {
    try {
      return Number(/^RssAnon:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024
    } catch {
      return 0 // The server is on another machine, or the connection ended.
    }
  })
  return Math.max(...sizes)
}

async function timed(act) {
  const startedAt = performance.now()
  await act()
  return performance.now() - startedAt
}
