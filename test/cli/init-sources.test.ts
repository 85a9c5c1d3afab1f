import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { INIT_SOURCES, type InitSource } from '../../src/cli/init-sources.ts'
import { loadWorker } from '../../src/config/load-worker.ts'
import { openStore } from '../../src/config/open-store.ts'
import { SyncError } from '../../src/contract/index.ts'
import { runCycle } from '../../src/engine/cycle.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { ROOT } from './package.ts'
import { Project } from './project.ts'

const TEMPLATES = join(ROOT, 'templates/sources')
const NAMES = Object.keys(INIT_SOURCES).filter((name) => name !== 'harbour')

describe('there is a template for every source', () => {
  test('and for nothing else', () => {
    const shipped = readdirSync(join(ROOT, 'src/sources')).filter((name) => existsSync(join(ROOT, 'src/sources', name, 'source.ts')))
    expect(readdirSync(TEMPLATES).toSorted()).toEqual(shipped)
    expect(NAMES.toSorted()).toEqual(shipped)
  })

  test('each passes the type check, with the settings of the project it becomes', () => {
    const folder = folderFor('types')
    for (const name of NAMES) writeTemplate(name, join(folder, name))
    const settings = JSON.parse(readFileSync(join(ROOT, 'templates/worker/tsconfig.json'), 'utf8')) as { compilerOptions: object }
    const paths = { tidemark: [join(ROOT, 'src/index.ts')], 'tidemark/testing': [join(ROOT, 'src/testing/index.ts')], 'tidemark/sources/*': [join(ROOT, 'src/sources/*/source.ts')] }
    const compilerOptions = { ...settings.compilerOptions, allowImportingTsExtensions: true, types: ['node'], typeRoots: [join(ROOT, 'node_modules/@types')], paths }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*/*.ts'] }))
    expect(compile(folder)).toEqual([])
    writeFileSync(join(folder, 'stripe/worker.ts'), `${readFileSync(join(folder, 'stripe/worker.ts'), 'utf8')}\nworker.track(1)\n`)
    expect(compile(folder)).not.toEqual([])
  })
})

describe.each(NAMES.filter((name) => (INIT_SOURCES[name as keyof typeof INIT_SOURCES] as InitSource).runsAtOnce))('%s', (name) => {
  test('runs at once, finds later what happened since, and asks the real one as soon as it may', { timeout: 120_000 }, async () => {
    const folder = folderFor(name)
    writeTemplate(name, folder)
    const store = await openStore('sqlite:store.db', { folder, environment: {} })
    onTestFinished(() => store.close())
    const requested: string[] = []
    /** A process of its own each time: what the source knows, it knows from the file and the store. */
    const run = async (agoMs: number, environment: Record<string, string> = {}): Promise<Awaited<ReturnType<typeof runCycle>>[]> => {
      const { worker } = await loadWorker(join(folder, 'worker.ts'))
      const results = []
      for (const plan of worker.plans({ limits: { retriesMax: 0 } })) {
        results.push(await runCycle(plan, {
          store, holder: `h:${requested.length}:${results.length}:${agoMs}`, trigger: 'test',
          ports: { clock: { ...systemClock, now: () => Date.now() - agoMs }, random: systemRandom, log: { debug: nothing, info: nothing, warn: nothing, error: nothing } },
          secrets: { get: (secret) => environment[secret] ?? fail(secret) },
          fetch: async (url) => {
            requested.push(String(url))
            throw new TypeError('nothing leaves this machine')
          },
        }))
      }
      return results
    }
    const first = await run(name === 'files' ? -60_000 : 3_600_000)
    expect(first.map(({ error }) => error)).toEqual(first.map(() => null))
    const { database, settings } = INIT_SOURCES[name as keyof typeof INIT_SOURCES] as InitSource
    expect((await store.databases()).find((known) => known.name === database)!.rows).toBeGreaterThan(2)
    if (name === 'files') return
    const position = await store.position()
    const second = await run(0)
    expect(second.map(({ error }) => error)).toEqual(second.map(() => null))
    expect(await store.position()).toBeGreaterThan(position)
    expect(requested).toEqual([])
    await run(0, Object.fromEntries(Object.keys(settings).map((setting) => [setting, Buffer.from('a real one').toString('base64')])))
    expect(requested.length).toBeGreaterThan(0)
    for (const url of requested) expect(url).toMatch(/^https:\/\/(?!127|localhost)/)
  })
})

test('init --source stripe: the project runs, and runs again, before anybody has an account', { timeout: 120_000 }, async () => {
  const project = new Project()
  const made = await project.run('init', 'billing', '--source', 'stripe', '--yes')
  expect(made).toMatchObject({ code: 0, stdout: expect.stringContaining('simulated account until STRIPE_KEY is set') })
  const folder = join(project.folder, 'billing')
  expect(readdirSync(folder).toSorted()).toEqual(['.env.example', '.gitignore', 'AGENTS.md', 'README.md', 'node_modules', 'package.json', 'tsconfig.json', 'worker.ts'])
  expect(readFileSync(join(folder, '.env.example'), 'utf8')).toContain('# STRIPE_KEY=')
  for (const file of readdirSync(folder).filter((one) => one !== 'node_modules')) expect(readFileSync(join(folder, file), 'utf8')).not.toContain('{{')
  expect(await project.run('run', { folder })).toMatchObject({ code: 0, stdout: expect.stringMatching(/✓ customers-backfill .*5\d\d created|✓ customers-backfill .*4\d\d created/) })
  expect(await project.run('run', { folder })).toMatchObject({ code: 0, stdout: expect.stringContaining('✓ customers ') })
})

test('a source that is none is refused, with those there are', async () => {
  expect(await new Project().run('init', '--source', 'strip')).toMatchObject({ code: 2, stderr: expect.stringMatching(/stripe/) })
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
    const text = readFileSync(path, 'utf8').replaceAll('{{name}}', 'made').replaceAll('{{now}}', new Date(Date.now() - 3_600_000).toISOString())
    // Where a folder is read, the one beside the worker.
    writeFileSync(target, text.replace("folder: 'drop'", `folder: '${join(folder, 'drop')}'`))
  }
}

function compile(folder: string): string[] {
  try {
    execFileSync(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', folder], { cwd: folder, stdio: 'pipe' })
    return []
  } catch (error) {
    return String((error as { stdout: Buffer }).stdout).split('\n').filter((line) => /^[\w-]+\/worker\.ts/.test(line))
  }
}

function nothing(): void {}

function fail(secret: string): never {
  throw new SyncError('SECRET_MISSING', `${secret} is not set.`)
}
