import { execFile, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { INIT_SOURCES, type InitSource } from '../../src/cli/kit/init-sources.ts'
import { EmbeddedPostgres } from '../simulators/postgres/embedded-postgres.ts'
import { ROOT } from './package.ts'
import { installPacked } from './packed.ts'

const SOURCES: Readonly<Record<string, InitSource>> = INIT_SOURCES
const NAMES = Object.keys(SOURCES)
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-templates-')))
const tidemark = async (cwd: string, ...args: string[]): Promise<string> =>
  (await promisify(execFile)(process.execPath, [join(folder, 'node_modules/.bin/tidemark'), ...args], { cwd })).stdout

/** Every project that `init` can make, by the packed package and nothing else. */
beforeAll(async () => {
  const tarball = installPacked(folder)
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify({ name: 'outside', type: 'module', dependencies: { tidemark: `file:${tarball}` } }),
  )
  for (const name of NAMES) await tidemark(folder, 'init', name, '--source', name)
}, 240_000)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('each template type-checks as is, with its own settings and without Node types', () => {
  const settings = JSON.parse(readFileSync(join(folder, 'stripe/tsconfig.json'), 'utf8')) as { compilerOptions: object }
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ ...settings, include: NAMES.map((name) => `${name}/*.ts`) }),
  )
  expect(compile()).toBe('')
  writeFileSync(
    join(folder, 'stripe/wrong.ts'),
    "import { realOrSampleShop } from 'tidemark/testing'\nrealOrSampleShop({ file: 1 })\n",
  )
  expect(compile()).toContain('wrong.ts')
})

describe.each(NAMES)('%s', (name) => {
  test('runs at once, and its rows can be queried', async () => {
    const { syncs } = JSON.parse((await tidemark(join(folder, name), 'run', '--json')).trim().split('\n').at(-1)!) as {
      syncs: Array<{ error: unknown; pages: number }>
    }
    expect(syncs.map(({ error, pages }) => [error, pages > 0])).toEqual(syncs.map(() => [null, true]))
    const { rows } = JSON.parse(
      await tidemark(join(folder, name), 'query', `select * from ${SOURCES[name]!.database} limit 3`, '--json'),
    ) as { rows: unknown[] }
    expect(rows).toHaveLength(3)
    await new EmbeddedPostgres(join(folder, name, 'postgres')).remove()
  })
})

test('the demo, as the README writes it: it prints its console address, its commands work as printed, and Ctrl-C ends it', async () => {
  const [, block] = /^## See it\n[\s\S]*?```sh\n([\s\S]*?)```/m.exec(readFileSync(join(ROOT, 'README.md'), 'utf8'))!
  const demo = spawn('sh', ['-c', block!], { cwd: folder, detached: true, stdio: ['ignore', 'pipe', 'ignore'] })
  const isOver = new Promise<void>((resolve) => void demo.once('close', () => resolve()))
  const signal = (name: NodeJS.Signals): void => {
    try {
      process.kill(-demo.pid!, name)
    } catch {
      // It is over.
    }
  }
  onTestFinished(() => signal('SIGKILL'))
  let said = ''
  demo.stdout.setEncoding('utf8').on('data', (text: string) => void (said += text))
  await expect.poll(() => said, { timeout: 120_000, interval: 200 }).toMatch(/4 {2}Show the history of a row\n.+\n/)
  const [look, follow, query, why] = [...said.matchAll(/^\d {2}.*\n {3}(.*)$/gm)].map(([, command]) => command!)
  // The page itself is built apart, and looked at by the tests of the console.
  expect(look).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/console\/$/)
  expect((await fetch(new URL('/api/syncs', look))).status).toBe(200)
  const run = async (command: string): Promise<string> =>
    (await promisify(execFile)('sh', ['-c', command], { cwd: folder })).stdout
  expect(await run(query!)).toMatch(/@example\.com/)
  expect(await run(why!)).toMatch(/created/)
  expect(await run(`${follow!} --max-time 5 || true`)).toMatch(/^event: change$/m)
  signal('SIGINT')
  await isOver
  expect(said).toMatch(/All data of the demo is deleted\.\n$/)
})

function compile(): string {
  try {
    return execFileSync(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', folder], {
      cwd: folder,
      encoding: 'utf8',
      stdio: 'pipe',
    })
  } catch (error) {
    return (error as { stdout: string }).stdout
  }
}
