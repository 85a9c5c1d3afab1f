#!/usr/bin/env node
// Plants the bugs of test/planted/ one at a time in a temporary copy of the checkout and runs the tests that should fail.
//   node scripts/planted-bugs.mjs [--only <regular expression>] [--sample <n>] [--list] [--results <file>]
// --sample takes n bugs at equal distances in the list, so that every folder has its share.
// With --results every verdict is appended to a file, and bugs that the file names as killed are not run again.
// KILLED: a test failed. SURVIVED: every test passed. STALE: the text to replace is not in the file exactly once.
// UNSOUND: the test that failed also fails without the bug, or the code with the bug does not parse.
// Exits with 1 unless every bug was killed.
import { spawn, spawnSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { createJiti } from 'jiti'

/** A bug that makes a test run for longer than this counts as noticed. */
const HANG_MS = 10 * 60_000

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const { values: options } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    sample: { type: 'string', default: '' },
    list: { type: 'boolean', default: false },
    results: { type: 'string', default: '' },
  },
})
const jiti = createJiti(import.meta.url)
const { PLANTED_BUGS } = await jiti.import('../test/planted/index.ts')
const { findCode, patchText } = await jiti.import('../test/planted/patch-text.ts')
const pattern = new RegExp(options.only, 'i')
const done = killedBefore()
const matching = PLANTED_BUGS.filter(({ name, file }) => pattern.test(name) || pattern.test(file))
const bugs = sampleOf(matching).filter(({ name, file }) => !done.has(`${file}: ${name}`))
if (done.size > 0) console.log(`${done.size} bugs were killed before, ${bugs.length} are left`)

if (options.list) {
  for (const { name, file } of bugs) console.log(`${file}: ${name}`)
  process.exit(0)
}

const copy = mkdtempSync(join(tmpdir(), 'tidemark-planted-'))
process.on('exit', () => rmSync(copy, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130))
// The account that runs PostgreSQL must be able to enter it.
chmodSync(copy, 0o755)
copyCheckout()

/** Started by the first bug that needs it, and shared by the runs: a private server costs every run seconds. */
let postgres = null
/** Tests that pass without any bug, by file and name. Failures are not remembered: they may be due to the machine. */
const sound = new Set()
const counts = { KILLED: 0, SURVIVED: 0, STALE: 0, UNSOUND: 0 }
const notKilled = []
for (const bug of bugs) {
  const startedAt = Date.now()
  const verdict = await judge(bug)
  counts[verdict]++
  const line = `${verdict.padEnd(8)} ${bug.file}: ${bug.name}`
  if (verdict !== 'KILLED') notKilled.push(line)
  console.log(`${line} (${Math.round((Date.now() - startedAt) / 1_000)} s)`)
  if (options.results !== '') appendFileSync(options.results, `${line}\n`)
}
if (notKilled.length > 0) console.log(`\nNot killed:\n${notKilled.join('\n')}`)
const totals = Object.entries(counts).map(([verdict, count]) => `${count} ${verdict.toLowerCase()}`)
console.log(`\n${bugs.length} bugs: ${totals.join(', ')}`)
await postgres?.stop()
process.exit(bugs.length + done.size > 0 && counts.KILLED === bugs.length ? 0 : 1)

function sampleOf(all) {
  const size = options.sample === '' ? all.length : Number(options.sample)
  if (!Number.isInteger(size) || size < 1) {
    console.error(`--sample is "${options.sample}", but it must be a positive integer.`)
    process.exit(2)
  }
  const distance = Math.max(1, all.length / size)
  return all.filter((_, index) => Math.floor(index / distance) !== Math.floor((index - 1) / distance))
}

function killedBefore() {
  if (options.results === '' || !existsSync(options.results)) return new Set()
  const lines = readFileSync(options.results, 'utf8').split('\n')
  return new Set(lines.filter((line) => line.startsWith('KILLED ')).map((line) => line.slice('KILLED'.length).trim()))
}

async function judge({ file, text, replacement, tests, title }) {
  const path = join(copy, file)
  const original = existsSync(path) ? readFileSync(path, 'utf8') : ''
  if (findCode(original, text).length !== 1) return 'STALE'
  const mistaken = patchText(original, text, replacement)
  // Code that does not parse is noticed by every test and proves nothing.
  const compiled = jiti.transform({ source: mistaken, filename: path, ts: true })
  if (compiled.startsWith('exports.__JITI_ERROR__')) return 'UNSOUND'
  writeFileSync(path, mistaken)
  const failures = await run(tests, title)
  writeFileSync(path, original)
  if (failures.length === 0) return 'SURVIVED'
  // Only a failure needs the proof that the same test passes without the bug.
  for (const failure of failures) if (await passes(failure, title)) return 'KILLED'
  return 'UNSOUND'
}

/**
 * Whether the failed test passes now. Its whole file is run, once for all bugs that it notices, unless that takes
 * minutes; a test that depends on earlier ones passes only with them.
 */
async function passes({ file, name }, title) {
  const id = (test) => JSON.stringify([file, test])
  const exact = name === null ? title : `^${escape(name)}$`
  for (const only of new Set(file.includes('.pg.') ? [exact, title] : [title, exact])) {
    if (sound.has(id(name ?? title))) return true
    const passed = await run([file], only, (tests) => tests.forEach((test) => sound.add(id(test))))
    if (name === null && passed.length === 0) sound.add(id(title))
  }
  return sound.has(id(name ?? title))
}

function escape(text) {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')
}

/**
 * Runs test files, or their tests of a title, and returns the failures; a failure without a name is one of a whole
 * file. It uses a separate process group, so that a hanging run is ended with its workers.
 */
async function run(tests, title, onPassed = () => {}) {
  const report = join(copy, 'report.json')
  rmSync(report, { force: true })
  // Only suites named *.pg.test.ts need the server that a run otherwise starts.
  const server = tests.some((test) => test.includes('.pg.')) ? await postgresUrl() : 'postgres://unused.invalid'
  const only = title === undefined ? [] : ['-t', title]
  const vitest = join(root, 'node_modules/vitest/vitest.mjs')
  const flags = ['--config=planted.config.ts', '--bail=1', '--reporter=json', `--outputFile=${report}`]
  const child = spawn(process.execPath, [vitest, 'run', ...flags, ...only, ...tests], {
    cwd: copy,
    detached: true,
    stdio: 'ignore',
    env: { ...process.env, TIDEMARK_TEST_POSTGRES_URL: server },
  })
  const end = () => {
    try {
      process.kill(-Number(child.pid), 'SIGKILL')
    } catch {
      // It has ended by itself.
    }
  }
  process.once('exit', end)
  const timer = setTimeout(end, HANG_MS)
  const code = await new Promise((resolve) => child.on('close', resolve))
  clearTimeout(timer)
  process.off('exit', end)
  const results = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : null
  onPassed(results === null ? [] : namesIn(results, 'passed').map(({ name }) => name))
  if (code === 0 && results?.numPassedTests > 0) return []
  const named = results === null ? [] : namesIn(results, 'failed')
  return named.length > 0 ? named : tests.map((file) => ({ file, name: null }))
}

function namesIn({ testResults }, wanted) {
  return testResults.flatMap(({ name: path, assertionResults }) => {
    const file = relative(copy, path)
    return assertionResults.filter(({ status }) => status === wanted).map(({ fullName }) => ({ file, name: fullName }))
  })
}

async function postgresUrl() {
  const { startPostgres } = await jiti.import('../test/setup/postgres-server.ts')
  postgres ??= await startPostgres()
  return postgres.url
}

/**
 * Copies every file that git knows or would add, as it is now; installed and built files are linked. Modules that no
 * bug changes are compiled once, and kept beside the copy.
 */
function copyCheckout() {
  const listing = ['ls-files', '-z', '--cached', '--others', '--exclude-standard']
  const { stdout } = spawnSync('git', listing, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 26 })
  for (const file of stdout.split('\0').filter((name) => name !== '' && existsSync(join(root, name)))) {
    mkdirSync(dirname(join(copy, file)), { recursive: true })
    cpSync(join(root, file), join(copy, file))
  }
  for (const folder of ['node_modules', 'dist', 'console/node_modules', 'console/dist']) {
    if (!existsSync(join(root, folder)) || existsSync(join(copy, folder))) continue
    symlinkSync(join(root, folder), join(copy, folder))
  }
  const experimental = { fsModuleCache: true, fsModuleCachePath: join(copy, '.compiled') }
  writeFileSync(
    join(copy, 'planted.config.ts'),
    `import config from './vitest.config.ts'
const experimental = ${JSON.stringify(experimental)}
const projects = config.test.projects.map((project) => ({ ...project, test: { ...project.test, experimental } }))
export default { ...config, test: { ...config.test, experimental, projects } }
`,
  )
}
