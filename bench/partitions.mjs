// node bench/partitions.mjs <url> <tenants> <rows of each>: the log and the rows in tables that are whole and in sixteen hash
// partitions by tenant, as one JSON line. Two databases of one server, and every step in both, one right after the other, each
// first as often as the other: on a busy machine only such pairs can be compared.
import pg from 'pg'
import { openPostgresStore } from '../dist/stores/postgres/store.js'
import { landings, Lander } from './lander.mjs'
import { PAGE } from './records.mjs'

const [url, tenants, rows] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])]
const PARTITIONS = 16
const names = ['whole', 'hashed']
const stores = Object.fromEntries(await Promise.all(names.map(async (name) => [name, await openPostgresStore({ url: await created(name), poolMax: 16 })])))
await partition()

const ms = {}
/** In both, in turns; what it takes each time, by name. */
async function both(step, turn, act) {
  ms[step] ??= { whole: [], hashed: [] }
  for (const name of turn % 2 === 0 ? names : names.toReversed()) {
    const from = performance.now()
    await act(name)
    ms[step][name].push(performance.now() - from)
  }
}

const tenantOf = (n) => `tenant-${n}`
const landers = Object.fromEntries(await Promise.all(names.map(async (name) => [name, await Promise.all(Array.from({ length: tenants }, (_, n) => Lander.take(stores[name].forTenant(tenantOf(n)), 'load')))])))
const pass = async (step, versionOf) => {
  for (let n = 0; n < tenants; n++) for (let from = 0; from < rows; from += PAGE) {
    const page = landings(from, PAGE).map((landing, i) => (versionOf(from + i) === 0 ? landing : landings(from + i, 1, versionOf(from + i))[0]))
    await both(step, n, (name) => landers[name][n].cycle(page))
  }
}
await pass('first', () => 0)
await vacuum('vacuum after the first')
await pass('unchanged', () => 0)
for (let n = 0; n < tenants; n++) await both('feed page', n, async (name) => {
  for (let page = 0; page < 5; page++) await stores[name].forTenant(tenantOf(n)).feed({ after: (page * 397) % (rows - 100), limit: 101, scanMax: 1 })
})
for (let turn = 0; turn < 40; turn++) await both('sixteen empty cycles at once', turn, (name) => Promise.all(Array.from({ length: 16 }, async (_, i) => {
  const store = stores[name].forTenant(tenantOf((turn * 16 + i) % tenants))
  const lander = await Lander.take(store, `empty-${i}`)
  await lander.cycle([])
  await lander.release()
})))
for (let turn = 0; turn < 3; turn++) {
  await pass('a tenth changed', (i) => (i % 10 <= turn ? (i % 10) + 1 : 0))
  await vacuum('vacuum after changes')
}
const sizes = {}
for (const name of names) sizes[name] = await sizeOf(name)
for (let n = 0; n < Math.min(20, tenants); n++) await both('compacting a tenant', n, (name) => stores[name].forTenant(tenantOf(n)).compact({ before: Number.MAX_SAFE_INTEGER, scanMax: 1_000_000 }))
for (let n = 0; n < Math.min(20, tenants); n++) {
  for (const name of names) await landers[name][n].release()
  await both('erasing a tenant', n, async (name) => {
    const erased = await stores[name].forTenant(tenantOf(n)).erase({ actor: 'bench', at: Date.now() })
    if (erased.kind !== 'erased') throw new Error(erased.kind)
  })
}
await vacuum('vacuum after erasing')
for (const name of names) await stores[name].close()
console.log(JSON.stringify({ ms, sizes }))

async function created(name) {
  await ask(url, `create database ${name}`)
  return urlOf(name)
}

function urlOf(name) {
  return Object.assign(new URL(url), { pathname: `/${name}` }).href
}

async function ask(where, sql) {
  const client = new pg.Client(where)
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

/** As somebody would who wants them, before anything has landed. */
async function partition() {
  for (const [table, options] of [['log', ''], ['rows', 'with (fillfactor = 90)']]) {
    await ask(urlOf('hashed'), [
      `create table tidemark.parted (like tidemark.${table} including all) partition by hash (tenant_id)`, `drop table tidemark.${table} cascade`, `alter table tidemark.parted rename to ${table}`,
      ...Array.from({ length: PARTITIONS }, (_, n) => `create table tidemark.${table}_${n} partition of tidemark.${table} for values with (modulus ${PARTITIONS}, remainder ${n}) ${options}`),
      `alter table tidemark.${table} enable row level security, force row level security`,
      `create policy tenant on tidemark.${table} using (tenant_id = nullif(current_setting('tidemark.tenant', true), '')) with check (tenant_id = nullif(current_setting('tidemark.tenant', true), ''))`,
    ].join(';'))
  }
}

async function vacuum(step) {
  await both(step, (ms[step]?.whole.length ?? 0) + step.length, (name) => ask(urlOf(name), 'vacuum tidemark.log, tidemark.rows'))
}

async function sizeOf(name) {
  // A table that is whole has no tree.
  const size = (table) => `coalesce((select sum(pg_total_relation_size(relid)) from pg_partition_tree('tidemark.${table}')), pg_total_relation_size('tidemark.${table}'))::float8 as ${table}`
  const [{ log, rows }] = await ask(urlOf(name), `select ${size('log')}, ${size('rows')}`)
  return { log, rows }
}
