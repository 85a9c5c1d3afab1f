import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { loadWorker } from '../../src/worker/load-worker.ts'

const WORKER = `import { Worker } from 'tidemark'
const worker = new Worker()
worker.database('contacts')
worker.sync('all', { database: 'contacts', execute: async () => ({ changes: [], hasMore: false }) })
export default worker
`

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tidemark load-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const write = (name: string, text: string): void => writeFileSync(join(folder, name), text)
const load = (name?: string): ReturnType<typeof loadWorker> => loadWorker(name, { folder })

describe('a worker file', () => {
  test.each(['worker.ts', 'worker.mts', 'worker.js', 'worker.mjs'])(
    '%s is found and run where nothing is installed',
    async (name) => {
      write(name, WORKER)
      const { worker, file } = await load()
      expect(file).toBe(join(folder, name))
      expect(worker.name).toBe('worker')
      expect(worker.plan('all').owner).toBe('worker/all')
    },
  )

  test('is called by its stem, unless it names itself', async () => {
    write('my crm (v2).ts', WORKER)
    write('b.ts', WORKER.replace('new Worker()', "new Worker({ name: 'mine' })"))
    expect((await load('my crm (v2).ts')).worker.name).toBe('my-crm-v2')
    expect((await load('b.ts')).worker.name).toBe('mine')
  })

  test('gets the parts of the package that it names as they are, not compiled again', async () => {
    const { sql } = await import('../../src/sources/sql/source.ts')
    write('worker.ts', `import { sql } from 'tidemark/sources/sql'\n${WORKER}Object.assign(worker, { sql })\n`)
    expect((await load()).worker).toHaveProperty('sql', sql)
  })

  test('may use TypeScript, files of its own and top-level await', async () => {
    write(
      'names.ts',
      `import { SyncError } from 'tidemark'\nexport interface Named { name: string }\nexport const named = { name: SyncError.name } satisfies Named\n`,
    )
    write(
      'worker.ts',
      `import type { Page } from 'tidemark'\nimport { Worker } from 'tidemark'\nimport { named, type Named } from './names.ts'
const given: Named = await Promise.resolve(named)
const worker = new Worker({ name: given.name })
worker.database('contacts')
worker.sync('all', { database: 'contacts', execute: async (state: { page: number } | undefined): Promise<Page<{ page: number }>> => ({ changes: [], hasMore: false }) })
export default worker\n`,
    )
    expect((await load()).worker.manifest).toMatchObject({ name: 'SyncError', syncs: [{ name: 'all' }] })
  })

  test('may carry another copy of the package', async () => {
    mkdirSync(join(folder, 'node_modules/other-copy'), { recursive: true })
    write('node_modules/other-copy/package.json', '{"name":"other-copy","type":"module","exports":"./index.js"}')
    write(
      'node_modules/other-copy/index.js',
      `export class Worker { name; plan(name) { return { sync: name } } plans() { return [] } get manifest() { return { syncs: [] } } }`,
    )
    write('worker.ts', `import { Worker } from 'other-copy'\nexport default new Worker()`)
    const { worker } = await load()
    expect(worker.name).toBe('worker')
    expect(worker.plan('x').sync).toBe('x')
  })

  test('imports packages of either kind', async () => {
    for (const [name, type, text] of [
      ['plain', 'commonjs', 'module.exports = { one: 1 }'],
      [
        'marked',
        'commonjs',
        'Object.defineProperty(exports, "__esModule", { value: true }); exports.default = 2; exports.two = 2',
      ],
      ['esm', 'module', 'export default 3; export const three = 3'],
    ] as const) {
      mkdirSync(join(folder, 'node_modules', name), { recursive: true })
      write(`node_modules/${name}/package.json`, JSON.stringify({ name, type, main: 'index.js' }))
      write(`node_modules/${name}/index.js`, text)
    }
    const imports = `import plain, { one } from 'plain'\nimport { two } from 'marked'\nimport three, { three as named } from 'esm'\nimport { join } from 'node:path'\nimport * as path from 'node:path'\n`
    write(
      'worker.ts',
      imports +
        WORKER.replace(
          'new Worker()',
          "new Worker({ name: [plain.one, one, two, three, named, typeof join, typeof path.join].join('.') })",
        ),
    )
    expect((await load()).worker.name).toBe('1.1.2.3.3.function.function')
  })

  test('is read again each time, and reading it writes nothing', async () => {
    write('worker.ts', WORKER)
    chmodSync(folder, 0o555)
    try {
      await load()
    } finally {
      chmodSync(folder, 0o755)
    }
    write('worker.ts', WORKER.replaceAll("'all'", "'every'"))
    expect((await load()).worker.manifest.syncs[0]!.name).toBe('every')
    expect(readdirSync(folder)).toEqual(['worker.ts'])
  })

  test('reaches sources and stores by the names of the package', async () => {
    write(
      'worker.ts',
      `import { openSqliteStore } from 'tidemark/stores/sqlite'\n${WORKER.replace('new Worker()', 'new Worker({ name: typeof openSqliteStore })')}`,
    )
    expect((await load()).worker.name).toBe('function')
  })

  test('may be passed as a symbolic link or an absolute path', async () => {
    write('real.ts', WORKER)
    symlinkSync(join(folder, 'real.ts'), join(folder, 'link.ts'))
    expect((await load('link.ts')).worker.name).toBe('link')
    expect((await loadWorker(resolve(folder, 'real.ts'))).worker.name).toBe('real')
  })
})

describe('a worker file that cannot be used', () => {
  test('is missing', async () => {
    await expect(load()).rejects.toMatchObject({ code: 'WORKER_NOT_FOUND', message: expect.stringContaining(folder) })
    await expect(load('nope.ts')).rejects.toMatchObject({
      code: 'WORKER_NOT_FOUND',
      message: expect.stringContaining('nope.ts'),
    })
    mkdirSync(join(folder, 'worker.ts'))
    await expect(load()).rejects.toMatchObject({ code: 'WORKER_NOT_FOUND' })
    await expect(load('worker.ts')).rejects.toMatchObject({
      code: 'WORKER_NOT_FOUND',
      message: `${join(folder, 'worker.ts')} is not a file.`,
    })
  })

  test.each([
    ['export const worker = 3', 'missing (it exports worker)'],
    ['', 'missing'],
    ['export default 5', 'a number'],
    ['export default () => 5', 'a function'],
    ["export { Worker as default } from 'tidemark'", 'the class Worker itself (write `new Worker()`)'],
    ['export default { databases: [], syncs: {} }', 'an object with databases, syncs'],
    ['export default Promise.resolve(5)', 'a promise'],
    ['export default [1]', 'an object with 0'],
  ])('%j says what its default export is', async (text, said) => {
    write('worker.ts', text)
    await expect(load()).rejects.toMatchObject({
      code: 'WORKER_INVALID',
      message: expect.stringContaining(`default export of worker.ts is ${said}`),
    })
  })

  test('exports null', async () => {
    write('worker.ts', 'export default null')
    await expect(load()).rejects.toMatchObject({
      code: 'WORKER_INVALID',
      message: expect.stringMatching(/^worker\.ts: .*null/),
    })
  })

  test('is broken, at a line', async () => {
    write('worker.ts', `import { Worker } from 'tidemark'\n\nconst a: number = = 3\nexport default new Worker()`)
    await expect(load()).rejects.toMatchObject({
      code: 'WORKER_INVALID',
      message: expect.stringMatching(/^worker\.ts:3:\d+: syntax error: /),
    })
  })

  test('throws, at a line of its own', async () => {
    write(
      'worker.ts',
      `interface A {\n  x: string\n}\nfunction fail(): never {\n  throw new Error('boom')\n}\nfail()\nexport default 3`,
    )
    await expect(load()).rejects.toMatchObject({
      code: 'WORKER_INVALID',
      message: expect.stringMatching(/^worker\.ts:5: boom$/),
    })
    write('worker.ts', `throw 'text'`)
    await expect(load()).rejects.toMatchObject({ code: 'WORKER_INVALID', message: 'worker.ts: text' })
  })

  test('breaks in a file it imports, and that file is named', async () => {
    write('names.ts', 'export const a = 1\nconst b = = 2')
    write('worker.ts', `import { a } from './names.ts'\nexport default a`)
    await expect(load()).rejects.toMatchObject({ message: expect.stringMatching(/^names\.ts:2:\d+: syntax error: /) })
    write('names.ts', "throw new Error('inside')")
    await expect(load()).rejects.toMatchObject({ message: expect.stringMatching(/^names\.ts:1: inside$/) })
  })

  test('imports what is not installed', async () => {
    write('worker.ts', `import x from 'no-such-package'\nexport default x`)
    await expect(load()).rejects.toMatchObject({
      code: 'WORKER_INVALID',
      message: expect.stringMatching(/^worker\.ts:1: Cannot find .*no-such-package/),
    })
  })

  test('declares something invalid: the code is kept and the line is reported', async () => {
    write(
      'worker.ts',
      `import { Worker } from 'tidemark'\nconst worker = new Worker()\nworker.database('contacts')\n\nworker.database('contacts')\nexport default worker`,
    )
    await expect(load()).rejects.toMatchObject({
      code: 'NAME_TAKEN',
      message: expect.stringMatching(/^worker\.ts:5: .*"contacts"/),
    })
  })
})
