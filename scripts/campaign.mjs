#!/usr/bin/env node
// Runs the campaigns of the guarantees on all cores, prints their totals, and records them.
//   npm run campaign [-- --minutes <n>] [--only engine,vendors,verify,connections] [--dry-run]
// Three fifths of the time are for worlds of the engine and of the vendors, on all cores and with seeds that no recorded run
// has used; then rounds of verifications and a fleet of connections. --dry-run records nothing. Exits with 1 if a promise is broken.
import { spawn } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { addTotals, nextSeedOf, updatePage } from './campaign-results.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const RESULTS = join(root, 'docs/explanation/campaigns.json')
const PAGE = join(root, 'docs/explanation/guarantees.md')
/** More seeds than a process can run in an hour. */
const SEEDS_PER_PROCESS = 1_000_000
const VERIFY_WORLDS = 5

const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    only: { type: 'string', default: 'engine,vendors,verify,connections' },
    'dry-run': { type: 'boolean', default: false },
  },
})
const minutes = Number(options.minutes)
const names = options.only.split(',')
if (!(minutes > 0) || names.some((name) => !['engine', 'vendors', 'verify', 'connections'].includes(name))) {
  console.error('Usage: npm run campaign -- [--minutes <n>] [--only engine,vendors,verify,connections] [--dry-run]')
  process.exit(2)
}
const cores = availableParallelism()
const runs = JSON.parse(readFileSync(RESULTS, 'utf8'))
const firstSeed = nextSeedOf(runs)
const campaigns = []

const simulated = names.filter((name) => name === 'engine' || name === 'vendors')
const others = names.filter((name) => !simulated.includes(name))
const simulatedShare = others.length === 0 ? 1 : 0.6
if (simulated.length > 0) campaigns.push(...(await runSimulations(minutes * 60 * simulatedShare)))
const secondsEach = (minutes * 60 * (simulated.length === 0 ? 1 : 1 - simulatedShare)) / Math.max(1, others.length)
if (others.includes('verify')) campaigns.push(await runVerifications(secondsEach))
if (others.includes('connections')) campaigns.push(await runConnections(secondsEach))

console.table(campaigns)
const violations = addTotals('all', campaigns).violations
if (!options['dry-run']) {
  const run = {
    date: new Date().toISOString().slice(0, 10),
    minutes,
    cores,
    nextSeed: firstSeed + Math.max(cores, simulated.length) * SEEDS_PER_PROCESS,
    campaigns,
  }
  const all = [...runs, run]
  writeFileSync(RESULTS, `${JSON.stringify(all, null, 2)}\n`)
  writeFileSync(PAGE, updatePage(readFileSync(PAGE, 'utf8'), all))
}
process.exitCode = violations === 0 ? 0 : 1

/** One process per core, alternating between the campaigns. */
async function runSimulations(seconds) {
  const processes = Array.from({ length: Math.max(cores, simulated.length) }, (_, index) => ({
    name: simulated[index % simulated.length],
    seed: firstSeed + index * SEEDS_PER_PROCESS,
  }))
  const parts = await Promise.all(
    processes.map(async ({ name, seed }) => {
      const args = [
        'sim',
        '--json',
        '--seeds',
        SEEDS_PER_PROCESS,
        '--first-seed',
        seed,
        '--seconds',
        Math.ceil(seconds),
      ]
      const { stdout } = await runNode(['dist/cli/main.js', ...args, ...(name === 'vendors' ? ['--vendors'] : [])])
      const report = JSON.parse(stdout.trim().split('\n').at(-1))
      for (const { seed: failed, oracle, message } of report.failures)
        console.error(`${name} ${failed}: ${oracle}: ${message}`)
      return { name, worlds: report.seeds, faults: report.faults, violations: report.failures.length }
    }),
  )
  return simulated.map((name) =>
    addTotals(
      name,
      parts.filter((part) => part.name === name),
    ),
  )
}

/** Rounds of worlds whose syncs lose changes: every loss must be found. At least one round. */
async function runVerifications(seconds) {
  const end = Date.now() + seconds * 1_000
  const parts = []
  do {
    const environment = {
      TIDEMARK_VERIFY_WORLDS: VERIFY_WORLDS,
      TIDEMARK_FIRST_SEED: firstSeed + parts.length * VERIFY_WORLDS,
    }
    const { failed, stdout } = await runTests('test/verify/vendor-losses.test.ts', environment)
    const found = [...stdout.matchAll(/: (\d+) worlds, (\d+) losses found/g)]
    const sum = (group) => found.reduce((total, match) => total + Number(match[group]), 0)
    parts.push({ worlds: sum(1), faults: sum(2), violations: failed })
  } while (Date.now() < end)
  return addTotals('verify', parts)
}

/** A fleet that renews rotating tokens while its processes are killed. */
async function runConnections(seconds) {
  const environment = {
    TIDEMARK_FLEET_CONNECTIONS: 100,
    TIDEMARK_FLEET_PROCESSES: Math.max(2, cores),
    TIDEMARK_FLEET_SECONDS: Math.ceil(seconds),
    TIDEMARK_FLEET_KILL_SECONDS: 5,
  }
  const { failed, stdout } = await runTests('test/connections/fleet', environment)
  return { name: 'connections', worlds: 1, faults: Number(/(\d+) kills:/.exec(stdout)?.[1] ?? 0), violations: failed }
}

async function runTests(file, environment) {
  const results = join(tmpdir(), `tidemark-campaign-${process.pid}.json`)
  const args = ['node_modules/vitest/vitest.mjs', 'run', file, '--reporter=default', '--reporter=json']
  const { stdout } = await runNode([...args, `--outputFile.json=${results}`], environment)
  const { numFailedTests, numFailedTestSuites } = JSON.parse(readFileSync(results, 'utf8'))
  rmSync(results)
  return { failed: Math.max(numFailedTests, numFailedTestSuites), stdout }
}

function runNode(args, environment = {}) {
  const texts = Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, String(value)]))
  const child = spawn(process.execPath, args.map(String), {
    cwd: root,
    env: { ...process.env, ...texts },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let stdout = ''
  child.stdout.on('data', (chunk) => (stdout += chunk))
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', () => resolve({ stdout }))
  })
}
