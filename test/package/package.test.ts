import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { publint } from 'publint'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { listTemplateFiles } from '../../src/cli/kit/project-files.ts'
import { buildPackage } from '../cli/package.ts'

const root = resolve(import.meta.dirname, '../..')
const read = (file: string): string => readFileSync(join(root, file), 'utf8')
const PACKAGE = JSON.parse(read('package.json')) as {
  dependencies: Record<string, string>
  scripts: Record<string, string>
  exports: Record<string, string | { types: string; default: string }>
}
interface LockEntry {
  hasInstallScript?: boolean
  dev?: boolean
  devOptional?: boolean
  peer?: boolean
  integrity?: string
  link?: boolean
  optional?: boolean
  os?: string[]
  cpu?: string[]
  libc?: string[]
  resolved?: string
  engines?: { node?: string }
}
const LOCK = JSON.parse(read('package-lock.json')) as { packages: Record<string, LockEntry> }
/** The registry does not list these builds; a hash that becomes available lowers the number. */
const UNHASHED_MAX = 41
/** The packages that an installation of `tidemark` contains, with their own dependencies. */
const INSTALLED = Object.entries(LOCK.packages).filter(
  ([path, { dev, devOptional, peer, link }]) =>
    path.startsWith('node_modules/') && !dev && !devOptional && !peer && !link,
)

describe('Z44 what the package brings', () => {
  test('every dependency is pinned and has a recorded reason; removed dependencies have none', () => {
    const listed = [...read('docs/decisions/0010-runtime-dependencies.md').matchAll(/^\| `([^`]+)` \|/gm)].map(
      (match) => match[1]!,
    )
    expect(listed.toSorted()).toEqual(Object.keys(PACKAGE.dependencies).toSorted())
    expect(Object.values(PACKAGE.dependencies).filter((version) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([])
  })

  test('no installed package runs a script, except the SQLite driver, which includes its builds', () => {
    expect(INSTALLED.length).toBeGreaterThan(50)
    expect(INSTALLED.filter(([, { hasInstallScript }]) => hasInstallScript === true).map(([path]) => path)).toEqual([
      'node_modules/@photostructure/sqlite',
    ])
    // The build that fits is in the package itself.
    expect(readdirSync(join(root, 'node_modules/@photostructure/sqlite/prebuilds')).length).toBeGreaterThan(3)
    expect(Object.keys(PACKAGE.scripts).filter((name) => /install/.test(name))).toEqual([])
  })

  test('the lockfile has the hash of every package, and no download URLs', () => {
    expect(INSTALLED.filter(([, { integrity }]) => !integrity?.startsWith('sha512-')).map(([path]) => path)).toEqual([])
    expect(INSTALLED.filter(([, { resolved }]) => resolved !== undefined).map(([path]) => path)).toEqual([])
  })

  test('only optional builds for platforms other than Linux on x64 may lack a hash', () => {
    const unhashed = Object.entries(LOCK.packages).filter(
      ([path, { integrity, link }]) => path.includes('node_modules/') && link !== true && integrity === undefined,
    )
    const isForOtherPlatform = ({ optional, os, cpu, libc }: LockEntry): boolean =>
      optional === true &&
      !(
        (os ?? ['linux']).includes('linux') &&
        (cpu ?? ['x64']).includes('x64') &&
        (libc ?? ['glibc']).includes('glibc')
      )
    expect(unhashed.filter(([, entry]) => !isForOtherPlatform(entry)).map(([path]) => path)).toEqual([])
    expect(unhashed.length).toBeLessThanOrEqual(UNHASHED_MAX)
  })

  test('nothing that is installed needs a newer Node than the package says', () => {
    const { engines } = JSON.parse(read('package.json')) as { engines: { node: string } }
    const [, oldest] = /^>=(\d+)/.exec(engines.node)!
    const tooNew = INSTALLED.filter(([, entry]) => !admits(entry.engines?.node, Number(oldest))).map(([path]) => path)
    expect(tooNew).toEqual([])
    expect([
      admits('>=22', 20),
      admits('^20.19.0 || >=22', 20),
      admits('>= 18', 20),
      admits(undefined, 20),
      admits('20 || >=22', 20),
    ]).toEqual([false, true, true, true, true])
  })

  test('a bill of materials can be made without a network, and names every one of them', () => {
    // With all dependencies: `--omit dev` also leaves out packages that a runtime dependency needs.
    const bill = JSON.parse(npm(root, 'sbom', '--sbom-format', 'cyclonedx', '--package-lock-only')) as {
      bomFormat: string
      components: Array<{ name: string; hashes?: unknown[] }>
    }
    expect(bill.bomFormat).toBe('CycloneDX')
    const hashed = new Set(bill.components.filter(({ hashes = [] }) => hashes.length > 0).map(({ name }) => name))
    expect(INSTALLED.map(([path]) => path.split('node_modules/').at(-1)!).filter((name) => !hashed.has(name))).toEqual(
      [],
    )
  })

  test('no secret is among the files of the repository', () => {
    const files = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).trim().split('\n')
    expect(files.filter((file) => /(?:^|\/)\.env$|\.(?:key|pem|p12)$|id_rsa|\.npmrc$/.test(file))).toEqual([])
    const SECRET =
      /-----BEGIN (?:RSA |EC |OPENSSH )?PRIVATE KEY|\bAKIA[0-9A-Z]{16}\b|\bghp_\w{36}\b|\bnpm_\w{36}\b|\bsk_live_\w{20,}|\bxox[bp]-\d{10}/
    expect(SECRET.test(`AKIA${'A'.repeat(16)}`)).toBe(true)
    expect(files.filter((file) => /\.(?:ts|mjs|md|json|yaml|txt)$/.test(file) && SECRET.test(read(file)))).toEqual([])
  })
})

describe('Z45 the tarball', () => {
  let folder: string
  let one: Packed
  let two: Packed
  const templates = execFileSync('git', ['ls-files', 'templates'], { cwd: root, encoding: 'utf8' })
    .trim()
    .split('\n')
    .toSorted()
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'tidemark-pack-'))
    one = pack('one', ['templates/worker', 'templates/sources/stripe', 'examples/harbour', 'src', '.'], compile)
    // Compiled once for all tests, in another folder.
    two = pack('two', [], (checkout) =>
      cpSync(join(buildPackage(), 'dist'), join(checkout, 'dist'), { recursive: true }),
    )
  }, 600_000)
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  /** A fresh clone, built and packed. Each of the folders has a store and its key, as a run in it leaves them. */
  function pack(name: string, usedFolders: readonly string[], makeDist: (checkout: string) => void): Packed {
    const checkout = join(folder, name)
    for (const file of listRepositoryFiles()) cpSync(join(root, file), join(checkout, file))
    symlinkSync(join(root, 'node_modules'), join(checkout, 'node_modules'))
    for (const used of usedFolders) {
      mkdirSync(join(checkout, used, '.tidemark'), { recursive: true })
      writeFileSync(join(checkout, used, '.tidemark/tidemark.db'), 'a store')
      writeFileSync(join(checkout, used, '.tidemark/key'), 'a key')
    }
    makeDist(checkout)
    execFileSync(process.execPath, ['scripts/make-executable.mjs'], { cwd: checkout, stdio: 'pipe' })
    const [{ filename, files }] = JSON.parse(npm(checkout, 'pack', '--ignore-scripts', '--json')) as [
      { filename: string; files: Array<{ path: string }> },
    ]
    const tarball = join(checkout, filename)
    return {
      checkout,
      tarball,
      hash: createHash('sha256').update(readFileSync(tarball)).digest('hex'),
      files: files.map(({ path }) => path),
    }
  }

  function compile(checkout: string): void {
    execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.build.json'], {
      cwd: checkout,
      stdio: 'pipe',
    })
  }

  test('Z44 Z45 a used and a fresh checkout give the same bytes: the files that are meant to be published and no others', () => {
    expect(one.hash).toBe(two.hash)
    expect(one.files.filter((file) => file.startsWith('templates/')).toSorted()).toEqual(templates)
    const strangers = one.files.filter(
      (file) =>
        !/^(?:(?:dist|templates)\/[\w/.-]+|README\.md|LICENSE|package\.json)$/.test(file) ||
        /\.(?:map|tsbuildinfo)$|^dist\/.*(?<!\.d)\.tsx?$/.test(file) ||
        isStoreOrKey(file),
    )
    expect(strangers).toEqual([])
    expect(one.files).toEqual(
      expect.arrayContaining([
        'dist/cli/main.js',
        'dist/index.js',
        'dist/index.d.ts',
        'dist/testing/index.js',
        'templates/worker/worker.ts',
      ]),
    )
  })

  test('publint finds no problem in the tarball', async () => {
    const tarball = readFileSync(one.tarball)
    const { messages } = await publint({ pack: { tarball: new Uint8Array(tarball).buffer }, strict: true })
    expect(messages).toEqual([])
  })

  test('every entry point of the tarball resolves to its types', () => {
    // One folder for each pattern: its declarations are resolved in the same way as those of the others.
    const entryPoints = Object.entries(PACKAGE.exports)
      .filter(([, target]) => typeof target === 'object')
      .map(([entryPoint]) =>
        entryPoint
          .replace('sources/*', 'sources/rest')
          .replace('stores/*', 'stores/sqlite')
          .replace('destinations/*', 'destinations/postgres'),
      )
    // The package is ESM only: a CommonJS program loads it with import().
    const { status, stdout } = spawnSync(
      process.execPath,
      [
        join(root, 'node_modules/@arethetypeswrong/cli/dist/index.js'),
        one.tarball,
        '--profile',
        'esm-only',
        '--no-definitely-typed',
        '--format',
        'ascii',
        '--no-color',
        '--entrypoints',
        ...entryPoints,
      ],
      { cwd: folder, encoding: 'utf8' },
    )
    expect(status, stdout).toBe(0)
    for (const entryPoint of entryPoints) expect(stdout).toContain(`"${join('tidemark', entryPoint)}"`)
  })

  test.each([
    ['the default', [], ['worker']],
    ['stripe', ['--source', 'stripe'], ['worker', 'sources/stripe']],
    ['files', ['--source', 'files'], ['worker', 'sources/files']],
  ])('init copies the listed files of %s and no others', (name, flags, used) => {
    const project = join(folder, `made-${name.replace(' ', '-')}`)
    execFileSync(process.execPath, ['dist/cli/main.js', 'init', project, '--yes', ...flags], {
      cwd: one.checkout,
      stdio: 'ignore',
    })
    const listed = new Set(used.flatMap(listTemplateFiles).map((file) => file.replace(/^(?=env|gitignore)/, '.')))
    const made = listFiles(project).filter((file) => !file.startsWith('node_modules/'))
    expect(made).toEqual([...listed].toSorted())
  })

  describe("the README's two commands, in a fresh clone", () => {
    const [, block] = /^## Two commands\n[\s\S]*?```sh\n([\s\S]*?)```/m.exec(read('README.md'))!
    const commands = block!.trim().split('\n')

    test('both begin with npm ci, which accepts the lockfile', () => {
      const lines = commands.map((line) => line.replace(/\s+#.*$/, ''))
      expect(lines).toEqual([expect.stringMatching(/^npm ci && npx tidemark run /), 'npm ci && npm test'])
      npm(two.checkout, 'ci', '--dry-run', '--ignore-scripts')
    })

    test('twice in a row: the job finds what changed, the suite starts, and no store or key is left behind', () => {
      const [, job] = /^npm ci && npx tidemark (.*?) +#/.exec(commands[0]!)!
      const before = listFiles(two.checkout)
      const runJob = (): string =>
        execFileSync(process.execPath, ['dist/cli/main.js', ...job!.split(' ')], {
          cwd: two.checkout,
          encoding: 'utf8',
          stdio: ['ignore', 'pipe', 'ignore'],
        })
      expect(runJob()).toMatch(/✓ vessel-moves .*240 created/)
      expect(startSuite(two.checkout)).toEqual(STEPS_OF_SUITE)
      expect(runJob()).not.toContain('240 created')
      expect(startSuite(two.checkout)).toEqual(STEPS_OF_SUITE)

      const added = listFiles(two.checkout).filter((file) => !before.includes(file))
      expect(added).toContain('examples/harbour/.tidemark/tidemark.db')
      expect(added.filter((file) => !file.startsWith('examples/harbour/.tidemark/'))).toEqual([])
    })
  })

  /** Runs `npm test` with tools that only record their call, so that the suite does not run inside itself. */
  function startSuite(checkout: string): string[] {
    const tools = mkdtempSync(join(folder, 'tools-'))
    const calls = join(tools, 'calls')
    symlinkSync(process.execPath, join(tools, 'node'))
    symlinkSync('/bin/sh', join(tools, 'sh'))
    for (const tool of ['npm', 'npx'])
      writeFileSync(
        join(tools, tool),
        RECORDING_TOOL.replace('{{calls}}', () => calls),
        { mode: 0o755 },
      )
    const npmPath = execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim()
    const { status, stdout } = spawnSync(npmPath, ['test'], {
      cwd: checkout,
      encoding: 'utf8',
      env: { PATH: tools, HOME: tools },
    })
    expect(status, stdout).toBe(0)
    expect(stdout).toContain('1 passed, 0 failed')
    return readFileSync(calls, 'utf8').trim().split('\n')
  }
})

interface Packed {
  readonly checkout: string
  readonly tarball: string
  readonly hash: string
  readonly files: readonly string[]
}

const STEPS_OF_SUITE = [
  'npm run --silent build',
  'npm run --silent check',
  'npm run --silent format:check',
  'npx oxlint --type-aware',
  'npx vitest run',
]

/** Records its call. Called as vitest, it also reports one passed test. */
const RECORDING_TOOL = `#!/usr/bin/env node
const { appendFileSync, writeFileSync } = require('node:fs')
const { basename } = require('node:path')
const args = process.argv.slice(2)
const words = args.filter((word) => !/^--(?:reporter|outputFile)/.test(word))
appendFileSync('{{calls}}', [basename(process.argv[1]), ...words].join(' ') + '\\n')
const report = args.find((word) => word.startsWith('--outputFile.json='))
const passed = { fullName: 'a test', status: 'passed' }
const results = { testResults: [{ name: 'a file', status: 'passed', assertionResults: [passed] }] }
if (report !== undefined) writeFileSync(report.slice(report.indexOf('=') + 1), JSON.stringify(results))
`

/** The files that a clone of this working tree has. */
function listRepositoryFiles(): string[] {
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
  })
  return [...new Set(listed.trim().split('\n'))].filter((file) => existsSync(join(root, file)))
}

/** Relative paths of all files, without those behind a link. */
function listFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .toSorted()
}

function isStoreOrKey(file: string): boolean {
  return /(?:^|\/)\.tidemark\/|(?:^|\/)key$|\.(?:key|pem|db|db-wal|db-shm|sqlite)$/.test(file)
}

/** Whether a range of versions allows some release of this major version. */
function admits(range: string | undefined, major: number): boolean {
  return (
    range === undefined ||
    range.split('||').some((part) => {
      const [, operator = '', from] = /^\s*(>=|\^|~|>)?\s*v?(\d+)/.exec(part) ?? []
      return from === undefined || (operator.startsWith('>') ? Number(from) <= major : Number(from) === major)
    })
  )
}

function npm(cwd: string, ...args: string[]): string {
  return execFileSync('npm', args, {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    maxBuffer: 1e8,
    env: { ...process.env, npm_config_offline: 'true', npm_config_update_notifier: 'false' },
  })
}
