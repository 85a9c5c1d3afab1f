import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { DatabaseSync } from '@photostructure/sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import { INIT_SOURCES, type InitSource } from '../../src/cli/kit/init-sources.ts'
import { loadWorker } from '../../src/worker/load-worker.ts'
import { openStore } from '../../src/stores/open-store.ts'
import { SyncError, type SyncContext } from '../../src/contract/index.ts'
import { runCycle } from '../../src/engine/cycle.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { sql } from '../../src/sources/sql/source.ts'
import { realOrSampleShop } from '../../simulators/src/index.ts'
import { EmbeddedPostgres } from '../simulators/postgres/embedded-postgres.ts'
import { ROOT } from './package.ts'
import { Project } from './project.ts'

const TEMPLATES = join(ROOT, 'templates/sources')
const NAMES = Object.keys(INIT_SOURCES).filter((name) => name !== 'harbour')

describe('there is a template for every source', () => {
  test('and for nothing else', () => {
    const shipped = readdirSync(join(ROOT, 'src/sources')).filter((name) =>
      existsSync(join(ROOT, 'src/sources', name, 'source.ts')),
    )
    expect(readdirSync(TEMPLATES).toSorted()).toEqual(shipped)
    expect(NAMES.toSorted()).toEqual(shipped)
  })
})

const SOURCES: Readonly<Record<string, InitSource>> = INIT_SOURCES

describe.each(NAMES)('%s', (name) => {
  test('runs immediately, finds later changes, and uses the real source once configured', async () => {
    const folder = folderFor(name)
    writeTemplate(name, folder)
    onTestFinished(() => new EmbeddedPostgres(join(folder, 'postgres')).remove())
    const store = await openStore('sqlite:store.db', { folder, environment: {} })
    onTestFinished(() => store.close())
    const requested: string[] = []
    /** A process of its own each time: what the source knows, it knows from the file and the store. */
    const run = async (
      agoMs: number,
      environment: Record<string, string> = {},
    ): Promise<Awaited<ReturnType<typeof runCycle>>[]> => {
      const { worker } = await loadWorker(join(folder, 'worker.ts'))
      const results = []
      for (const plan of worker.plans({ limits: { retriesMax: 0 } })) {
        results.push(
          await runCycle(plan, {
            store,
            holder: `h:${requested.length}:${results.length}:${agoMs}`,
            trigger: 'test',
            ports: {
              clock: { ...systemClock, now: () => Date.now() - agoMs },
              random: systemRandom,
              log: { debug: nothing, info: nothing, warn: nothing, error: nothing },
            },
            secrets: { get: (secret) => environment[secret] ?? fail(secret) },
            fetch: async (url) => {
              requested.push(String(url))
              throw new TypeError('nothing leaves this machine')
            },
          }),
        )
      }
      return results
    }
    // For a folder the time of the files counts, for a tap the time of the machine.
    const first = await run(name === 'files' ? -60_000 : name === 'singer' ? 0 : 3_600_000)
    expect(first.map(({ error }) => error)).toEqual(first.map(() => null))
    const { database, settings } = SOURCES[name]!
    expect((await store.databases()).find((known) => known.name === database)!.rows).toBeGreaterThan(2)
    if (name === 'files') return
    const position = await store.headSequence()
    if (name === 'singer') happens(folder)
    const second = await run(0)
    expect(second.map(({ error }) => error)).toEqual(second.map(() => null))
    expect(await store.headSequence()).toBeGreaterThan(position)
    expect(requested).toEqual([])
    if (name === 'singer') return
    const real = await run(
      0,
      Object.fromEntries(Object.keys(settings).map((setting) => [setting, realOf(name, setting)])),
    )
    if (name === 'sql' || name === 'postgres-cdc' || name === 'kafka')
      return expect(real.map(({ error }) => error?.code)).toEqual(real.map(() => 'SOURCE_UNAVAILABLE'))
    expect(requested.length).toBeGreaterThan(0)
    for (const url of requested) expect(url).toMatch(/^https:\/\/(?!127|localhost)/)
  })
})

test('sql: the file is created once; external writes are read and kept', async () => {
  const folder = folderFor('shop')
  const since = new Date(Date.now() - 120_000).toISOString()
  const shop = realOrSampleShop({ unless: 'SOURCE_URL', file: pathToFileURL(join(folder, 'shop.db')), since })
  const { lookup } = shop(sql({ url: 'SOURCE_URL' }).listing('customers'))
  const context = (aheadMs: number): SyncContext =>
    ({ clock: { ...systemClock, now: () => Date.now() + aheadMs }, secrets: { get: fail } }) as unknown as SyncContext
  expect(await lookup('1', context(0))).toMatchObject({ record: { id: 1 } })
  const db = new DatabaseSync(join(folder, 'shop.db'))
  db.exec(
    "update customers set name = 'Mine', email = 'mine' where id = 1; insert into customers (id, name) values (9999, 'New')",
  )
  expect(
    db.prepare('select count(*) as late from customers where id in (1, 9999) and updated_at > ?').get(since),
  ).toEqual({ late: 2 })
  db.close()
  expect(await lookup('9999', context(60_000))).toMatchObject({ record: { name: 'New' } })
  expect(await lookup('1', context(60_000))).toMatchObject({ record: { name: 'Mine' } })
})

test('doctor recognizes secrets with a simulated fallback', async () => {
  const project = new Project()
  await project.run('init', '--source', 'kraken', '--yes')
  expect(await project.run('doctor')).toMatchObject({
    stdout: expect.stringMatching(/✓ secrets  KRAKEN_\w+: not set; using simulated data/),
  })
  project.write('.env', 'KRAKEN_SECRET=x\n')
  expect(await project.run('doctor')).toMatchObject({
    stdout: expect.stringMatching(/! secrets  not set: KRAKEN_KEY\n/),
  })
})

test('init --source stripe: the project runs, and runs again, without an account', async () => {
  const project = new Project()
  const made = await project.run('init', 'billing', '--source', 'stripe', '--yes')
  expect(made).toMatchObject({ code: 0, stdout: expect.stringContaining('simulated account until STRIPE_KEY is set') })
  const folder = join(project.folder, 'billing')
  expect(readdirSync(folder).toSorted()).toEqual([
    '.env.example',
    '.gitignore',
    'AGENTS.md',
    'README.md',
    'node_modules',
    'package.json',
    'tsconfig.json',
    'worker.ts',
  ])
  expect(readFileSync(join(folder, '.env.example'), 'utf8')).toContain('# STRIPE_KEY=')
  for (const file of readdirSync(folder).filter((one) => one !== 'node_modules'))
    expect(readFileSync(join(folder, file), 'utf8')).not.toContain('{{')
  expect(await project.run('run', { folder })).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/✓ customers-backfill .*5\d\d created|✓ customers-backfill .*4\d\d created/),
  })
  expect(await project.run('run', { folder })).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('✓ customers '),
  })
  // A backfill has no lag of its own: its delta has the lag.
  const { syncs } = JSON.parse((await project.run('status', '--json', { folder })).stdout) as {
    syncs: Array<{ sync: string; lag_ms: number | null }>
  }
  expect(Object.fromEntries(syncs.map(({ sync, lag_ms: lag }) => [sync, lag === null]))).toMatchObject({
    customers: false,
    'customers-backfill': true,
  })
})

test('an unknown source is refused, and the error lists the sources', async () => {
  expect(await new Project().run('init', '--source', 'strip')).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/stripe/),
  })
})

function folderFor(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `tidemark-init-${name}-`))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Opened an hour ago. */
function writeTemplate(name: string, folder: string): void {
  for (const file of readdirSync(join(TEMPLATES, name), { recursive: true, withFileTypes: true })) {
    if (!file.isFile()) continue
    const path = join(file.parentPath, file.name)
    const target = join(folder, path.slice(join(TEMPLATES, name).length))
    mkdirSync(dirname(target), { recursive: true })
    const text = readFileSync(path, 'utf8')
      .replaceAll('{{name}}', 'made')
      .replaceAll('{{now}}', new Date(Date.now() - 3_600_000).toISOString())
    // Where a folder is read, the one beside the worker.
    writeFileSync(target, text.replace("folder: 'drop'", `folder: '${join(folder, 'drop')}'`))
  }
}

/** A minute goes by for the tap. */
function happens(folder: string): void {
  const file = join(folder, 'tap.mjs')
  writeFileSync(file, readFileSync(file, 'utf8').replace('Date.now())', 'Date.now() + 60_000)'))
}

function realOf(name: string, setting: string): string {
  if (name === 'sql' || name === 'postgres-cdc') return 'postgres://127.0.0.1:1/none'
  if (name === 'kafka') return '127.0.0.1:1'
  return setting.endsWith('_URL')
    ? 'https://eth-mainnet.g.alchemy.com/v2/real'
    : Buffer.from('a real one').toString('base64')
}

function nothing(): void {}

function fail(secret: string): never {
  throw new SyncError('SECRET_MISSING', `${secret} is not set.`)
}
