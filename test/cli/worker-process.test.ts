import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Project } from './project.ts'

const sync = (body: string): string => `
import { Worker } from 'tidemark'
const worker = new Worker({ name: 'shop' })
const people = worker.database('people')
worker.sync('people', { database: people, mode: 'replace', execute: async () => { ${body} } })
worker.sync('places', { database: worker.database('places'), mode: 'replace', execute: async () => ({ changes: [{ type: 'upsert', key: '1', record: { id: 1 } }], hasMore: false }) })
export default worker
`
const PAGE = `return { changes: [{ type: 'upsert', key: '1', record: { id: 1, url: process.env.SHOP_URL ?? null } }], hasMore: false }`

describe("a worker's own code in the process of a command", () => {
  test('writes to standard output with console.log and process.stdout.write: --json stays JSON', async () => {
    const project = new Project()
    project.write(
      'worker.ts',
      sync(
        `console.log('noise 1'); process.stdout.write('noise 2\\n'); process.stdout.write(Buffer.from('noise 3\\n')); ${PAGE}`,
      ),
    )
    const { code, stdout, stderr } = await project.run('run', '--json')
    expect(code).toBe(0)
    for (const line of stdout.trim().split('\n')) expect(() => JSON.parse(line) as unknown).not.toThrow()
    expect(stderr.match(/noise \d/g)).toEqual(['noise 1', 'noise 2', 'noise 3'])
  })

  test('throws in a timer: the other syncs complete, and the log names the file and line', async () => {
    const project = new Project()
    project.write(
      'worker.ts',
      sync(
        `setTimeout(() => { throw new Error('from a timer') }, 0); await new Promise((done) => setTimeout(done, 50)); ${PAGE}`,
      ),
    )
    const { code, stderr, stdout } = await project.run('run')
    expect(stdout).toMatch(/✓ people/)
    expect(stdout).toMatch(/✓ places/)
    expect(stderr).toMatch(/a timer or listener of a connector threw.*from a timer.*worker\.ts:5/)
    expect(code).toBe(0)
  })

  test('throws in execute: the error names the file and line', async () => {
    const project = new Project()
    project.write('worker.ts', sync(`const settings: any = undefined\n settings.url`))
    const { code, stdout } = await project.run('run', 'people')
    expect(code).toBe(1)
    expect(stdout).toMatch(/CONNECTOR_FAILED {2}Cannot read properties of undefined.*\(at worker\.ts:6\)/)
  })

  test('reads a variable of .env from process.env; one that is set already stays', async () => {
    const project = new Project()
    project.write('worker.ts', sync(PAGE))
    project.write('.env', 'SHOP_URL=https://shop.example\n')
    const landed = async (env: Record<string, string>): Promise<unknown> => {
      expect((await project.run('run', { env })).code).toBe(0)
      return (await project.json('query', 'select url from people'))['rows']
    }
    expect(await landed({})).toEqual([{ url: 'https://shop.example' }])
    expect(await landed({ SHOP_URL: 'https://other.example' })).toEqual([{ url: 'https://other.example' }])
  })
})

test('hints repeat the flags for worker, store and tenant, and work as printed', async () => {
  const project = new Project()
  mkdirSync(join(project.folder, 'sub folder'))
  project.write('sub folder/worker.ts', sync(PAGE))
  const flags = ['--file', 'sub folder/worker.ts', '--store', `sqlite:${project.folder}/other.db`, '--tenant', 'acme']
  const { stderr } = await project.run('run', ...flags)
  const [, hint] = /Query it: npx tidemark (.*)/.exec(stderr)!
  expect(hint).toContain(`--file 'sub folder/worker.ts' --store sqlite:${project.folder}/other.db --tenant acme`)
  const words = [...hint!.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
    ([, single, double, bare]) => single ?? double ?? bare!,
  )
  expect((await project.run(...words)).stdout).toMatch(/^\s*1/m)

  project.write('sub folder/worker.ts', sync(`throw Object.assign(new Error('no'), { name: 'Error' })`))
  const failed = await project.run('run', 'people', ...flags)
  expect(failed.stdout).toContain(`tidemark preview people --file 'sub folder/worker.ts'`)
  expect((await project.run('status', ...flags)).stdout).toContain(
    `tidemark preview people --file 'sub folder/worker.ts'`,
  )
})
