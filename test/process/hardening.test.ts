import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Project } from '../cli/project.ts'

/** Fields and keys that every JavaScript object seems to have. */
const NAMES = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty']

const KEY = randomBytes(32).toString('base64')

interface Spawned {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

function node(project: Project, flags: readonly string[], ...args: string[]): Spawned {
  return spawned(project, [...flags, project.command, ...args])
}

/** Several commands that differ in Node's start options. The process exits with 99 if a foreign object was changed. */
function inOneProcess(project: Project, flags: readonly string[], commands: readonly (readonly string[])[]): Spawned[] {
  const { status, stdout, stderr } = spawned(project, [
    ...flags,
    join(import.meta.dirname, 'children/commands.mjs'),
    project.command,
    JSON.stringify(commands),
  ])
  expect({ status, stderr }).toMatchObject({ status: 0 })
  return JSON.parse(stdout) as Spawned[]
}

function spawned(project: Project, args: readonly string[]): Spawned {
  const { PATH = '', HOME = '', NODE_OPTIONS = '' } = process.env
  return spawnSync(process.execPath, args, {
    cwd: project.folder,
    env: { PATH, HOME, NODE_OPTIONS, TZ: 'UTC', TIDEMARK_KEY: KEY },
    encoding: 'utf8',
  })
}

describe('Z38 names that every object seems to have', () => {
  const worker = `
    import { Worker } from 'tidemark'
    import { files } from 'tidemark/sources/files'
    const worker = new Worker({ name: 'office' })
    worker.sync('drop', { database: worker.database('drop'), ...files({ folder: 'drop', settleMs: 0 }) })
    worker.sync('api', { database: worker.database('api'), mode: 'replace', schedule: 'manual', execute: async () => ({
      changes: ${JSON.stringify(NAMES)}.map((key) => ({ type: 'upsert', key, record: JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"toString":1}') })), hasMore: false,
    }) })
    export default worker
    process.on('exit', () => { if ({}.polluted !== undefined || Object.prototype.polluted !== undefined) process.exitCode = 99 })
  `

  test.each([
    ['as Node starts', []],
    ['without __proto__', ['--disable-proto=delete']],
    ['with the prototype frozen', ['--import', 'freeze']],
    ['with every intrinsic frozen', ['--frozen-intrinsics']],
  ])('are data through every input, %s', (_, given) => {
    const project = new Project()
    const freeze = join(project.folder, 'freeze.mjs')
    writeFileSync(freeze, 'Object.freeze(Object.prototype)')
    const flags = given.map((flag) => (flag === 'freeze' ? freeze : flag))
    project.write('worker.mjs', worker)
    mkdirSync(join(project.folder, 'drop'))
    project.write('drop/a.ndjson', '{"__proto__":{"polluted":true},"constructor":1,"id":1}\n')
    project.write('drop/b.csv', '__proto__,constructor,hasOwnProperty\n1,2,3\n')
    expect(node(project, flags, 'run', '--file', 'worker.mjs')).toMatchObject({ status: 0 })
    const file = ['--file', 'worker.mjs']
    const [keys, records, set, state, exported, ...named] = inOneProcess(project, flags, [
      ['query', 'select _key from api order by _key', '--json'],
      ['query', 'select * from "drop" order by _key', '--json'],
      [
        'state',
        'set',
        'api',
        '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}',
        ...file,
        '--reason',
        'x',
        '--yes',
      ],
      ['state', 'get', 'api', '--reveal', ...file, '--json'],
      ['export', 'api', '--to', 'api.ndjson'],
      ...NAMES.map((name) => ['why', 'api', name, ...file]),
      ...NAMES.map((name) => ['run', name, ...file]),
    ])
    const rows = (answer: Spawned | undefined): unknown => (JSON.parse(answer!.stdout) as { rows: unknown }).rows
    expect(rows(keys)).toEqual(NAMES.toSorted().map((key) => ({ _key: key })))
    expect(JSON.stringify(rows(records))).toContain('polluted')
    expect([set, exported]).toMatchObject([{ status: 0 }, { status: 0 }])
    expect(state!.stdout).toContain('"__proto__":{"polluted":true}')
    expect(readFileSync(join(project.folder, 'api.ndjson'), 'utf8').match(/"polluted":true/g)).toHaveLength(
      2 * NAMES.length,
    )
    expect(named.slice(0, NAMES.length)).toMatchObject(NAMES.map(() => ({ status: 0 })))
    expect(named.slice(NAMES.length).map(({ status }) => [1, 2].includes(status!))).toEqual(NAMES.map(() => true))
  })
})

const [major = 0] = process.versions.node.split('.').map(Number)
const PERMISSION = major >= 24 ? '--permission' : '--experimental-permission'

test('Z42 a run needs write access to the folder of its store only, starts no process, and loads only the SQLite driver as native code', () => {
  const project = Project.withWorker()
  const inside = [PERMISSION, '--allow-fs-read=*', '--allow-worker', '--allow-addons']
  const written = (folder: string): string[] => [...inside, `--allow-fs-write=${join(project.folder, folder)}`]
  spawnSync('cp', [join(project.folder, 'worker.ts'), join(project.folder, 'worker.mjs')])
  // On a read-only root the folder exists already and the key is given: Node forbids the link that creates one.
  mkdirSync(join(project.folder, '.tidemark'))
  for (const args of [['run'], ['status'], ['state', 'verify'], ['keys', 'list'], ['doctor']])
    expect(node(project, written('.tidemark'), ...args, '--file', 'worker.mjs'), args.join(' ')).toMatchObject({
      status: 0,
    })
  // The restriction holds: a store elsewhere cannot be created.
  expect(
    node(project, written('.tidemark'), 'run', '--file', 'worker.mjs', '--store', 'sqlite:elsewhere.db').status,
  ).not.toBe(0)
  expect(project.has('elsewhere.db')).toBe(false)
})

test.skipIf(process.platform !== 'linux')(
  'Z20 a service whose crash would dump its memory reports it; Node writes no crash report by default',
  async () => {
    const { reportOnFatalError, reportOnSignal, reportOnUncaughtException } = process.report
    expect({ reportOnFatalError, reportOnSignal, reportOnUncaughtException }).toEqual({
      reportOnFatalError: false,
      reportOnSignal: false,
      reportOnUncaughtException: false,
    })
    const started = (limit: string): string => {
      const project = Project.withWorker()
      const { PATH = '', HOME = '' } = process.env
      const script = `ulimit -S -c ${limit}; '${process.execPath}' '${project.command}' start --port 0 2>err & pid=$!; until grep -q Feed: out 2>/dev/null; do sleep 0.05; kill -0 $pid || break; done; kill $pid; wait $pid; cat err`
      return spawnSync('bash', ['-c', script.replace('2>err &', '>out 2>err &')], {
        cwd: project.folder,
        env: { PATH, HOME },
        encoding: 'utf8',
      }).stdout
    }
    const allowed = spawnSync('bash', ['-c', 'ulimit -S -c 1']).status === 0
    if (allowed) expect(started('1')).toContain('ulimit -c 0')
    expect(started('0')).not.toContain('ulimit -c 0')
  },
)
