#!/usr/bin/env node
// Plants the bugs of test/planted/ one at a time in a temporary copy of the checkout and runs the tests that should fail.
//   node scripts/planted-bugs.mjs [--only <regular expression>] [--list] [--results <file>]
// With --results every verdict is appended to a file, and bugs that the file names as killed are not run again.
// KILLED: a test failed. SURVIVED: every test passed. STALE: the text to replace is not in the file exactly once.
// UNSOUND: a test fails without the bug, or the code with the bug does not parse.
// Exits with 1 unless every bug was killed.
import { spawn, spawnSync } from 'node:child_process'
import { appendFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { createJiti } from 'jiti'

/** A bug that makes a test run for longer than this is noticed by anyone who runs it. */
const HANG_MS = 10 * 60_000

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const { values: options } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    list: { type: 'boolean', default: false },
    results: { type: 'string', default: '' },
  },
})
const jiti = createJiti(import.meta.url)
const { PLANTED_BUGS } = await jiti.import('../test/planted/index.ts')
const pattern = new RegExp(options.only, 'i')
const done = killedBefore()
const bugs = PLANTED_BUGS.filter(({ name, file }) => pattern.test(name) || pattern.test(file))
  .filter(({ name, file }) => !done.has(`${file}: ${name}`))
if (done.size > 0) console.log(`${done.size} bugs were killed before, ${bugs.length} are left`)

if (options.list) {
  for (const { name, file } of bugs) console.log(`${file}: ${name}`)
  process.exit(0)
}

const copy = mkdtempSync(join(tmpdir(), 'tidemark-planted-'))
process.on('exit', () => rmSync(copy, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(130))
copyCheckout()

/** By test file, whether it passes without any bug; otherwise no bug can be judged by it. */
const sound = new Map()
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
process.exit(bugs.length + done.size > 0 && counts.KILLED === bugs.length ? 0 : 1)

function killedBefore() {
  if (options.results === '' || !existsSync(options.results)) return new Set()
  const lines = readFileSync(options.results, 'utf8').split('\n')
  return new Set(lines.filter((line) => line.startsWith('KILLED ')).map((line) => line.slice('KILLED'.length).trim()))
}

async function judge({ file, text, replacement, tests }) {
  const path = join(copy, file)
  const original = existsSync(path) ? readFileSync(path, 'utf8') : ''
  if (original.split(text).length !== 2) return 'STALE'
  const mistaken = original.replace(text, () => replacement)
  // Code that does not parse is noticed by every test and proves nothing.
  const compiled = jiti.transform({ source: mistaken, filename: path, ts: true })
  if (compiled.startsWith('exports.__JITI_ERROR__')) return 'UNSOUND'
  writeFileSync(path, mistaken)
  const failed = !(await passes(tests))
  writeFileSync(path, original)
  if (!failed) return 'SURVIVED'
  // Only a failure needs the proof that the same tests pass without the bug.
  for (const test of tests) if (!sound.has(test)) sound.set(test, await passes([test]))
  return tests.every((test) => sound.get(test)) ? 'KILLED' : 'UNSOUND'
}

/** In a process group of its own, so that a run that hangs is ended with its workers. */
function passes(tests) {
  // Only suites named *.pg.test.ts need the server that a run otherwise starts.
  const needsServer = tests.some((test) => test.includes('.pg.'))
  const environment = needsServer ? {} : { TIDEMARK_TEST_POSTGRES_URL: 'postgres://unused.invalid' }
  const vitest = join(root, 'node_modules/vitest/vitest.mjs')
  const child = spawn(process.execPath, [vitest, 'run', '--bail=1', '--reporter=dot', ...tests], {
    cwd: copy, detached: true, stdio: 'ignore', env: { ...process.env, ...environment },
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
  return new Promise((resolve) => {
    child.on('close', (code) => {
      clearTimeout(timer)
      process.off('exit', end)
      resolve(code === 0)
    })
  })
}

/** Every file that git knows or would add, as it is now; what is installed and built is linked. */
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
}
