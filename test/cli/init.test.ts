import { execFileSync, spawn } from 'node:child_process'
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { packagePaths } from '../setup/package-paths.ts'
import { ROOT } from './package.ts'
import { installPacked } from './packed.ts'
import { Project } from './project.ts'

describe('init creates a project that runs immediately', () => {
  test('init, run, query, edit, run again', async () => {
    const project = new Project()
    expect(await project.run('init', 'harbour')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('npx tidemark run'),
    })
    const folder = join(project.folder, 'harbour')

    const first = await project.run('run', '--json', { folder })
    expect(last(first.stdout)).toMatchObject({
      ok: true,
      syncs: [{ counts: { created: 240 } }, { counts: { created: 23 } }],
    })
    const { rows } = last(
      (await project.run('query', 'select id, name, status from vessels order by id limit 2', '--json', { folder }))
        .stdout,
    )
    expect(rows).toMatchObject([
      { id: 'V001', name: 'Alcyone 1' },
      { id: 'V002', name: 'Borealis 1' },
    ])

    const worker = join(folder, 'worker.ts')
    writeFileSync(
      worker,
      readFileSync(worker, 'utf8').replace('record: { ...berth }', 'record: { ...berth, harbour: "north" }'),
    )
    const second = last((await project.run('run', 'berth-list', '--json', { folder })).stdout)
    expect(second['syncs'][0].counts.updated).toBeGreaterThanOrEqual(22)
    expect(
      last((await project.run('query', 'select distinct harbour from berths', '--json', { folder })).stdout)['rows'],
    ).toContainEqual({ harbour: 'north' })
    expect(await project.run('doctor', { folder })).toMatchObject({ code: 0 })
  })

  test('an existing file is not overwritten and nothing is written; --force overwrites', async () => {
    const project = new Project()
    project.write('README.md', 'mine')
    const refused = await project.run('init')
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('already has README.md') })
    expect(readdirSync(project.folder)).toEqual(['README.md'])
    expect(await project.run('init', '--force')).toMatchObject({ code: 0 })
    expect(readFileSync(join(project.folder, 'README.md'), 'utf8')).not.toBe('mine')
  })

  test('an existing package.json is kept', async () => {
    const project = new Project()
    project.write('package.json', '{"name":"mine"}')
    expect(await project.run('init')).toMatchObject({ code: 0, stdout: expect.stringContaining('kept: package.json') })
    expect(readFileSync(join(project.folder, 'package.json'), 'utf8')).toBe('{"name":"mine"}')
  })

  test('from a checkout it links the package, so that npx finds the command before npm install', async () => {
    const project = new Project()
    await project.run('init', 'harbour')
    const folder = join(project.folder, 'harbour')
    expect(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))).toMatchObject({
      name: 'harbour',
      dependencies: { tidemark: expect.stringMatching(/^file:\.\.\//) },
    })
    expect(npx(folder, 'run')).toContain('✓ vessel-moves')
  })

  test('the worker of the template passes the type check', async () => {
    const project = new Project()
    await project.run('init')
    // Its own settings, with the sources in place of the installed package.
    const settings = JSON.parse(readFileSync(join(project.folder, 'tsconfig.json'), 'utf8')) as {
      compilerOptions: object
    }
    const compilerOptions = {
      ...settings.compilerOptions,
      allowImportingTsExtensions: true,
      types: ['node'],
      typeRoots: [join(ROOT, 'node_modules/@types')],
      paths: packagePaths(),
    }
    project.write('tsconfig.json', JSON.stringify({ ...settings, compilerOptions }))
    const said = await compile(project.folder)
    expect(said.filter((line) => line.startsWith('worker.ts'))).toEqual([])
    project.write('worker.ts', `${readFileSync(join(project.folder, 'worker.ts'), 'utf8')}\nworker.sync(1)\n`)
    expect((await compile(project.folder)).filter((line) => line.startsWith('worker.ts'))).not.toEqual([])
  })
})

describe('the packed package', () => {
  test('the ten minutes of the README, in an empty folder that installed it', { timeout: 240_000 }, async () => {
    const project = new Project()
    const tarball = installPacked(project.folder)
    project.write(
      'package.json',
      JSON.stringify({ name: 'outside', type: 'module', dependencies: { tidemark: `file:${tarball}` } }),
    )

    const [, block] = /^## Ten minutes\n[\s\S]*?```sh\n([\s\S]*?)```/m.exec(
      readFileSync(join(ROOT, 'README.md'), 'utf8'),
    )!
    const said = await follow(block!, project.folder)
    const expected: [string, RegExp][] = [
      ['init my-sync --source stripe --yes', /Created a worker project in my-sync/],
      ['run', /✓ customers-backfill .* created/],
      ['query', /@example\.com/],
      ['run', /✓ customers /],
      ['status', /HEALTHY/],
      ['why-not customers cus_missing', /^not in source/m],
      ['start', /Feed: http/],
    ]
    expect(said.map(({ command }) => command)).toEqual(
      expected.map(([command]) => expect.stringMatching(new RegExp(`^${command}`))),
    )
    for (const [at, [, words]] of expected.entries()) expect(said[at]!.stdout).toMatch(words)

    // The names that connectors import, and every source.
    const names = readdirSync(join(ROOT, 'src/sources')).filter((name) =>
      existsSync(join(ROOT, 'src/sources', name, 'source.ts')),
    )
    project.write(
      'names.mjs',
      `${names.map((name, n) => `import * as source${n} from 'tidemark/sources/${name}'`).join('\n')}
import * as connector from 'tidemark/connector'
import { serve, StripeSimulator } from '@tidemark/simulators'
console.log(JSON.stringify({ connector: Object.keys(connector), sources: [${names.map((_, n) => `Object.values(source${n}).some((value) => typeof value === 'function')`).join(', ')}], testing: [typeof serve, typeof StripeSimulator] }))\n`,
    )
    const exported = JSON.parse(
      execFileSync(process.execPath, ['names.mjs'], { cwd: project.folder, encoding: 'utf8' }),
    ) as Record<string, unknown>
    expect(exported).toEqual({
      connector: [
        'MemoryTokenStore',
        'Secret',
        'anonymous',
        'apiKey',
        'basic',
        'bearer',
        'classifyGraphqlResponse',
        'clientCredentials',
        'createHttpClient',
        'encodePathSegment',
        'fileTokens',
        'isObject',
        'parseNextLink',
        'path',
        'refreshToken',
        'serializedUpsert',
        'session',
      ],
      sources: names.map(() => true),
      testing: ['function', 'function'],
    })

    expect(JSON.parse(readFileSync(join(project.folder, 'my-sync/package.json'), 'utf8'))).toMatchObject({
      dependencies: { tidemark: `file:../${tarball}` },
    })
    for (const file of ['.gitignore', '.env.example'])
      expect(existsSync(join(project.folder, 'my-sync', file))).toBe(true)
  })
})

interface Said {
  readonly command: string
  readonly stdout: string
}

/** Every `npx tidemark` of a block of shell, one after the other, in the folder that `cd` leads to. What does not end by itself is stopped once it serves. */
async function follow(block: string, start: string): Promise<Said[]> {
  const said: Said[] = []
  let folder = start
  for (const line of block.split('\n')) {
    for (const part of line.replace(/\s+#.*$/, '').split(' && ')) {
      const words = [...part.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare!)
      if (words[0] === 'cd') folder = join(folder, words[1]!)
      if (words[1] !== 'tidemark') continue
      const command = words.slice(2)
      said.push({
        command: command.join(' '),
        stdout: command[0] === 'start' ? await startAndStop(folder) : npx(folder, ...command),
      })
    }
  }
  return said
}

async function startAndStop(folder: string): Promise<string> {
  const service = spawn(process.execPath, [join(folder, '../node_modules/.bin/tidemark'), 'start'], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  onTestFinished(() => void service.kill('SIGKILL'))
  let stdout = ''
  await new Promise<void>((resolve) =>
    service.stdout.on('data', (text: Buffer) => {
      stdout += text
      if (stdout.includes('Feed:')) resolve()
    }),
  )
  expect((await fetch(`${/http:\/\/[\d.:]+/.exec(stdout)![0]}/agents/v1/changes`)).status).toBe(401)
  service.kill('SIGINT')
  expect(await new Promise((resolve) => service.once('close', resolve))).toBe(0)
  return stdout
}

function npx(folder: string, ...args: readonly string[]): string {
  return execFileSync('npx', ['--no', 'tidemark', ...args], {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
}

async function compile(folder: string): Promise<string[]> {
  try {
    execFileSync(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', folder], {
      cwd: folder,
      stdio: 'pipe',
    })
    return []
  } catch (error) {
    return String((error as { stdout: Buffer }).stdout).split('\n')
  }
}

function last(stdout: string): Record<string, any> {
  return JSON.parse(stdout.trim().split('\n').at(-1)!) as Record<string, unknown>
}
