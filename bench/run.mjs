#!/usr/bin/env node
// npm run bench [-- --records N --only sqlite,postgres,tables,http,feed,scheduler,replica,compaction,fleet]; the last three are run only when named, and `fleet` takes some twenty minutes
// Every figure is a ratio to a raw limit measured in the same run on the same machine. The raw limit is measured before and
// after, and its mean counts, because machines get tired.
import { fork, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { createJiti } from 'jiti'

const here = dirname(fileURLToPath(import.meta.url))
const { values } = parseArgs({ options: { records: { type: 'string', default: '1000000' }, only: { type: 'string', default: 'sqlite,postgres,tables,http,feed,scheduler' }, entries: { type: 'string', default: '5000000' }, json: { type: 'boolean', default: false } } })
const count = Number(values.records)
const only = values.only.split(',')
const folder = mkdtempSync(join(tmpdir(), 'tidemark-bench-'))
process.env.TIDEMARK_KEY ??= randomBytes(32).toString('base64')
const report = { records: count, node: process.version }

if (!existsSync(join(here, '../dist/index.js'))) spawnSync('npm', ['run', 'build'], { cwd: join(here, '..'), stdio: 'inherit' })
try {
  if (only.includes('sqlite')) report.sqlite = bench('SQLite', 'raw-sqlite.mjs', (n) => [join(folder, `raw${n}.db`)], `sqlite:${join(folder, 'land.db')}`, `sqlite:${join(folder, 'commit.db')}`)
  if (only.includes('postgres')) {
    const { startPostgres } = await createJiti(import.meta.url).import(join(here, '../test/setup/postgres-server.ts'))
    const server = await startPostgres({ fsync: true })
    try {
      report.postgres = bench('PostgreSQL', 'raw-postgres.mjs', () => [server.url], server.url, server.url)
    } finally {
      await server.stop()
    }
  }
  if (only.includes('tables')) report.tables = await benchTables()
  if (only.includes('http')) report.http = await benchHttp()
  if (only.includes('feed')) report.feed = await benchFeed(Number(values.entries))
  if (only.includes('scheduler')) report.scheduler = await benchScheduler()
  if (only.includes('replica')) report.replica = await benchReplica()
  if (only.includes('compaction')) report.compaction = await benchCompaction()
  if (only.includes('fleet')) report.fleet = simulateFleet()
} finally {
  rmSync(folder, { recursive: true, force: true })
}
if (values.json) console.log(JSON.stringify(report))

function bench(name, rawScript, rawArguments, url, commitUrl) {
  say(`\n${name}: ${count.toLocaleString('en')} records of about 350 bytes, pages of 1,000`)
  const before = child(rawScript, ...rawArguments(1), count).rate
  const { rates } = child('commit.mjs', commitUrl, count)
  const { passes, peakMb } = child('land.mjs', url, count)
  const after = child(rawScript, ...rawArguments(2), count).rate
  const raw = (before + after) / 2
  say(`  raw limit            ${thousands(raw)} rows/s (${thousands(before)} before, ${thousands(after)} after)`)
  say('  landing: the store alone')
  for (const [pass, rate] of Object.entries(rates)) say(`    ${pass.padEnd(18)} ${thousands(rate)} rows/s = ${(rate / raw).toFixed(2)} × raw`)
  say('  cycle: making, checking, serialising, hashing and landing')
  for (const [pass, { rate, firstTenth, lastTenth }] of Object.entries(passes)) {
    say(`    ${pass.padEnd(18)} ${thousands(rate)} rows/s = ${(rate / raw).toFixed(2)} × raw   first tenth ${thousands(firstTenth)}, last tenth ${thousands(lastTenth)}`)
  }
  const bareMb = JSON.parse(spawnSync(process.execPath, ['-p', 'process.resourceUsage().maxRSS / 1024'], { encoding: 'utf8' }).stdout)
  say(`  peak memory          ${peakMb.toFixed(0)} MB, of which Node itself ${bareMb.toFixed(0)} MB`)
  return { raw: { before, after }, landing: rates, cycle: passes, peakMb, bareMb }
}

async function benchTables() {
  const records = Math.min(count, 100_000)
  say(`\nA table of PostgreSQL to PostgreSQL: ${records.toLocaleString('en')} rows of ten columns`)
  const { startPostgres } = await createJiti(import.meta.url).import(join(here, '../test/setup/postgres-server.ts'))
  const server = await startPostgres({ fsync: true })
  try {
    const result = child('tables.mjs', server.url, records)
    const medians = Object.fromEntries(['raw', 'reading', 'readingDecoded', 'cycle', 'decoded', 'given'].map((name) => [name, { rate: median(result[name].map(({ rate }) => rate)), cpu: median(result[name].map(({ cpu }) => cpu)) }]))
    const { raw, reading, readingDecoded, cycle, decoded, given } = medians
    const line = (name, { rate, cpu }, than) => say(`  ${name.padEnd(22)} ${thousands(rate)} rows/s = ${(rate / raw.rate).toFixed(2)} × COPY${than}; ${cpu.toFixed(1)} µs of this process a row`)
    line('COPY to COPY', raw, '')
    line('reading as bytes', reading, '')
    line('reading and decoding', readingDecoded, '')
    line('a cycle, as bytes', cycle, ` = ${(cycle.rate / decoded.rate).toFixed(2)} × decoded`)
    line('a cycle, decoded', decoded, '')
    line('with pages at hand', given, ` = ${(given.rate / cycle.rate).toFixed(2)} × the cycle: the most that faster reading could bring`)
    return result
  } finally {
    await server.stop()
  }
}

async function benchHttp() {
  const records = Math.min(count, 200_000)
  say(`\nHTTP API on loopback to SQLite: ${records.toLocaleString('en')} records`)
  const server = fork(join(here, 'http-server.mjs'), [String(records)], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  try {
    const port = await new Promise((resolve) => server.stdout.once('data', (data) => resolve(String(data).trim())))
    const result = child('http.mjs', port, join(folder, 'http.db'), records)
    for (const [part, rate] of Object.entries(result.alone)) say(`  ${`${part} alone`.padEnd(20)} ${thousands(rate)} rows/s`)
    say(`  one thread would do  ${thousands(result.oneThread)} rows/s`)
    say(`  end to end           ${thousands(result.rate)} rows/s = ${(result.rate / result.oneThread).toFixed(2)} × that`)
    return result
  } finally {
    server.kill()
  }
}

/** Ten thousand due syncs in one process, and what it costs that they are idle afterwards. */
async function benchScheduler() {
  say('\nThe scheduler: one process, 10,000 syncs of five tenants, a store in memory')
  const { startPostgres } = await createJiti(import.meta.url).import(join(here, '../test/setup/postgres-server.ts'))
  const server = await startPostgres({ fsync: true })
  try {
    const result = child('scheduler.mjs', 2_000, server.url)
    const { cyclesPerSecond, halfway, lastSmall, triggered, idleUsPerSync, bareMb, drainedMb, peakMb, postgres } = result
    say(`  all due at once      ${cyclesPerSecond.toFixed(0)} cycles/s; half-way through, of each tenant: ${Object.values(halfway).join(', ')}`)
    say(`  2,000 of one tenant and 10 of each other: the last of the small ones was number ${lastSmall} of ${triggered}`)
    say(`  an idle sync         ${idleUsPerSync.toFixed(2)} µs of CPU per second`)
    say(`  memory               ${drainedMb.toFixed(0)} MB after all had run (${bareMb.toFixed(0)} before, ${peakMb.toFixed(0)} at most)`)
    say(`  PostgreSQL, asked about 10,000: ${postgres.allMs.toFixed(1)} ms for all, ${postgres.movedMs.toFixed(1)} ms for those that moved, ${postgres.oneMs.toFixed(1)} ms for one`)
    say(`  PostgreSQL, sixteen at once: ${postgres.barePerSecond.toFixed(0)} bare transactions/s, ${postgres.cyclesPerSecond.toFixed(0)} cycles/s of sixteen tenants that find nothing, ${postgres.cyclesOfOnePerSecond.toFixed(0)} of one tenant, ${postgres.slotsPerSecond.toFixed(0)} slots/s of one pacer`)
    return result
  } finally {
    await server.stop()
  }
}

/** What a streaming replica adds, on the machine of its primary. */
async function benchReplica() {
  say('\nA streaming replica on the machine of its primary')
  const { startPostgres } = await createJiti(import.meta.url).import(join(here, '../test/setup/postgres-server.ts'))
  const primary = await startPostgres({ fsync: true })
  const replica = await primary.replica()
  try {
    const result = child('replica.mjs', primary.url, replica.url)
    const { lag, pages } = result
    const line = (name, ms) => say(`  ${name.padEnd(22)} ${median(ms).toFixed(1)} ms in the middle, ${ms.toSorted((a, b) => a - b)[Math.floor(ms.length * 0.99)].toFixed(1)} ms for one in a hundred`)
    line('a commit is seen here', lag.here)
    line('and there', lag.there)
    line('while four land pages', lag.busy)
    say(`  a page of 100 changes  ${median(pages.here).toFixed(0)}/s here, ${median(pages.there).toFixed(0)}/s there = ${median(pages.there.map((rate, turn) => rate / pages.here[turn])).toFixed(2)} × here`)
    return result
  } finally {
    await replica.stop()
    await primary.stop()
  }
}

/** What commits notice of it that the log behind them is compacted. */
async function benchCompaction() {
  say(`\nCompaction: a log of ${count.toLocaleString('en')} entries in PostgreSQL, of which a tenth is still stood on, while pages of 100 are landed`)
  const { startPostgres } = await createJiti(import.meta.url).import(join(here, '../test/setup/postgres-server.ts'))
  const server = await startPostgres({ fsync: true })
  try {
    const result = child('compaction.mjs', server.url, count)
    const { removed, steps, tookMs, commits } = result
    const worst = (ms) => ms.toSorted((a, b) => a - b)[Math.floor(ms.length * 0.99)]
    say(`  ${removed.toLocaleString('en')} entries went in ${(tookMs / 1_000).toFixed(0)} s and ${steps.length} steps of ${median(steps).toFixed(0)} ms, ${Math.max(...steps).toFixed(0)} ms at most`)
    for (const [when, ...phases] of [['meanwhile', 'during'], ['before and after', 'before', 'after']]) {
      const [own, other] = ['own', 'other'].map((whose) => phases.flatMap((phase) => commits[whose][phase]))
      say(`  a commit ${when.padEnd(16)} ${median(own).toFixed(0)} ms, of another tenant at the same time ${median(other).toFixed(0)} ms = ${(median(own) / median(other)).toFixed(1)} ×; one in a hundred ${worst(own).toFixed(0)} and ${worst(other).toFixed(0)} ms`)
    }
    return result
  } finally {
    await server.stop()
  }
}

/** Virtual time, real runner and engine; see bench/fleet/simulate.mjs. */
function simulateFleet() {
  say('\nA simulated fleet: 1,000 tenants with 100 hourly syncs each, 8 processes with 32 places, cycles of 2 s; one process dies')
  const result = child('fleet/simulate.mjs')
  const { cycles, overlaps, early, drainedAfterS, lagS, heldShare, cpuMsPerCycle, peakMb, realS } = result
  say(`  all due at once      done after ${drainedAfterS} s (${((100_000 * 2) / 256).toFixed(0)} s would be no overhead at all and nobody dying)`)
  say(`  a slot is late by    ${lagS.p50} s in the middle, ${lagS.p99} s for one in a hundred, ${lagS.max} s at most`)
  say(`  of ${cycles} cycles: ${overlaps} twice at once, ${early} before their time; ${(heldShare * 100).toFixed(1)} % of the leases asked for were taken`)
  say(`  scheduler and engine ${cpuMsPerCycle.toFixed(2)} ms of CPU per cycle, ${peakMb.toFixed(0)} MB for all 8 processes together, ${realS.toFixed(0)} s of real time`)
  return result
}

/**
 * A page of 100 changes, from memory and from the store, beside a bare server that sends the same bytes; then the same over
 * a log thousands of times as long. In turns, and the middle ratio counts: on a busy machine two runs in a row differ.
 */
async function benchFeed(long) {
  const short = 1_000
  say(`\nThe feed on loopback: pages of 100 changes, from logs of ${short.toLocaleString('en')} and of ${long.toLocaleString('en')} entries`)
  const [small, large] = [await feedServer(short), await feedServer(long)]
  const page = join(folder, 'page.json')
  writeFileSync(page, await (await fetch(`http://127.0.0.1:${small.port}/agents/v1/changes?limit=100`, { headers: { authorization: `Bearer ${small.key}`, 'accept-encoding': 'identity' } })).text())
  writeFileSync(`${page}.gz`, gzipSync(readFileSync(page), { level: 4 }))
  const [bare, barePacked] = [await startedServer('feed-bare.mjs', page), await startedServer('feed-bare.mjs', `${page}.gz`)]
  try {
    const rates = { bare: [], barePacked: [], hot: [], hotLong: [], packed: [], walk: [], walkLong: [] }
    for (let turn = 0; turn < 7; turn++) {
      rates.bare.push(child('feed-load.mjs', bare.said, '-', 2, 'stay', '').pages)
      const load = ({ port, key, starts }, mode) => child('feed-load.mjs', port, key, 2, mode, ...starts).pages
      rates.hot.push(load(small, 'stay'))
      rates.hotLong.push(load(large, 'stay'))
      rates.barePacked.push(child('feed-load.mjs', barePacked.said, '-', 2, 'stay', '').pages)
      rates.packed.push(load(small, 'packed'))
      rates.walk.push(load(small, 'walk'))
      rates.walkLong.push(load(large, 'walk'))
    }
    const ratio = (of, to) => median(rates[of].map((rate, turn) => rate / rates[to][turn]))
    say(`  bare server          ${median(rates.bare).toFixed(0).padStart(6)} pages/s`)
    say(`  from memory          ${median(rates.hot).toFixed(0).padStart(6)} pages/s = ${ratio('hot', 'bare').toFixed(2)} × bare`)
    say(`    of the long log    ${median(rates.hotLong).toFixed(0).padStart(6)} pages/s = ${ratio('hotLong', 'bare').toFixed(2)} × bare, ${ratio('hotLong', 'hot').toFixed(2)} × the short log`)
    say(`  packed, from memory  ${median(rates.packed).toFixed(0).padStart(6)} pages/s = ${ratio('packed', 'barePacked').toFixed(2)} × bare that sends the packed bytes (${median(rates.barePacked).toFixed(0)} pages/s)`)
    say(`  page after page      ${median(rates.walk).toFixed(0).padStart(6)} pages/s = ${ratio('walk', 'bare').toFixed(2)} × bare (the short log fits in memory)`)
    say(`    of the long log    ${median(rates.walkLong).toFixed(0).padStart(6)} pages/s = ${ratio('walkLong', 'bare').toFixed(2)} × bare`)
    const [one, other] = [child('feed-read.mjs', small.file, short), child('feed-read.mjs', large.file, long)]
    say(`  reading a page       ${one.us.toFixed(0)} µs of the short log, ${other.us.toFixed(0)} µs of the long = ${(one.us / other.us).toFixed(2)} × the rate`)
    return { rates, readUs: { short: one.us, long: other.us } }
  } finally {
    for (const { process } of [small, large, bare, barePacked]) process.kill()
  }
}

async function feedServer(entries) {
  const file = join(folder, `feed-${entries}.db`)
  const { process, said } = await startedServer('feed-server.mjs', file, entries)
  const { port, key, firstAt, lastAt } = JSON.parse(said)
  // Eight readers, each at a place of its own.
  const starts = Array.from({ length: 8 }, (_, n) => `&updatedSince=${new Date(firstAt + Math.floor(((lastAt - firstAt) * n) / 9)).toISOString()}`)
  return { process, port, key, starts, file }
}

async function startedServer(script, ...args) {
  const process = fork(join(here, script), args.map(String), { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  return { process, said: await new Promise((resolve) => process.stdout.once('data', (data) => resolve(String(data).trim()))) }
}

function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]
}

function child(script, ...args) {
  const { status, stdout } = spawnSync(process.execPath, [join(here, script), ...args.map(String)], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], maxBuffer: 1e8 })
  if (status !== 0) throw new Error(`${script} failed`)
  return JSON.parse(stdout.trim().split('\n').at(-1))
}

function say(line) {
  if (!values.json) console.log(line)
}

function thousands(rate) {
  return `${(rate / 1000).toFixed(0)} k`.padStart(6)
}
