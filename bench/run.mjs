#!/usr/bin/env node
// npm run bench [-- --records N --only sqlite,postgres,http]
// Every figure is a ratio to a raw limit measured in the same run on the same machine. The raw limit is measured before and
// after, and its mean counts, because machines get tired.
import { fork, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { createJiti } from 'jiti'

const here = dirname(fileURLToPath(import.meta.url))
const { values } = parseArgs({ options: { records: { type: 'string', default: '1000000' }, only: { type: 'string', default: 'sqlite,postgres,http' }, json: { type: 'boolean', default: false } } })
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
  if (only.includes('http')) report.http = await benchHttp()
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
