import { execFileSync } from 'node:child_process'
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
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../..')
const read = (file: string): string => readFileSync(join(root, file), 'utf8')
const PACKAGE = JSON.parse(read('package.json')) as {
  dependencies: Record<string, string>
  scripts: Record<string, string>
}
const LOCK = JSON.parse(read('package-lock.json')) as {
  packages: Record<
    string,
    {
      hasInstallScript?: boolean
      dev?: boolean
      devOptional?: boolean
      peer?: boolean
      integrity?: string
      link?: boolean
      resolved?: string
      engines?: { node?: string }
    }
  >
}
/** Those that whoever installs the package gets, with all that they bring. */
const INSTALLED = Object.entries(LOCK.packages).filter(
  ([path, { dev, devOptional, peer, link }]) =>
    path.startsWith('node_modules/') && !dev && !devOptional && !peer && !link,
)

describe('Z44 what the package brings', () => {
  test('every dependency is pinned and has a recorded reason; removed dependencies have none', () => {
    const listed = [...read('docs/decisions/0010-what-the-package-depends-on.md').matchAll(/^\| `([^`]+)` \|/gm)].map(
      (match) => match[1]!,
    )
    expect(listed.toSorted()).toEqual(Object.keys(PACKAGE.dependencies).toSorted())
    expect(Object.values(PACKAGE.dependencies).filter((version) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([])
  })

  test('nothing that is installed runs a script, but for the driver that carries its builds and works without', () => {
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
    // Of all: npm leaves out too much with --omit dev, namely what a tool of ours needs as well.
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
  const templates = execFileSync('git', ['ls-files', 'templates'], { cwd: root, encoding: 'utf8' })
    .trim()
    .split('\n')
    .toSorted()
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'tidemark-pack-'))
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  /** A checkout of its own, built and packed. */
  function pack(name: string): { hash: string; files: string[] } {
    const checkout = join(folder, name)
    mkdirSync(checkout)
    for (const file of [
      'src',
      'templates',
      'examples/harbour/worker.mjs',
      'scripts',
      'console/package.json',
      'package.json',
      'tsconfig.json',
      'tsconfig.build.json',
      'README.md',
      'LICENSE',
    ])
      cpSync(join(root, file), join(checkout, file), { recursive: true })
    symlinkSync(join(root, 'node_modules'), join(checkout, 'node_modules'))
    // A store and its key, as a run inside a template would leave them.
    for (const template of ['worker', 'sources/stripe']) {
      mkdirSync(join(checkout, 'templates', template, '.tidemark'), { recursive: true })
      writeFileSync(join(checkout, 'templates', template, '.tidemark/tidemark.db'), 'a store')
      writeFileSync(join(checkout, 'templates', template, '.tidemark/key'), 'a key')
    }
    execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.build.json'], {
      cwd: checkout,
      stdio: 'pipe',
    })
    execFileSync(process.execPath, ['scripts/make-executable.mjs'], { cwd: checkout, stdio: 'pipe' })
    const [{ filename, files }] = JSON.parse(npm(checkout, 'pack', '--ignore-scripts', '--json')) as [
      { filename: string; files: Array<{ path: string }> },
    ]
    return {
      hash: createHash('sha256')
        .update(readFileSync(join(checkout, filename)))
        .digest('hex'),
      files: files.map(({ path }) => path),
    }
  }

  test('Z44 Z45 two checkouts give the same bytes, and in them is what is meant to be published and nothing else', () => {
    const [one, two] = [pack('one'), pack('two')]
    expect(one.hash).toBe(two.hash)
    expect(one.files.filter((file) => file.startsWith('templates/')).toSorted()).toEqual(templates)
    const strangers = one.files.filter(
      (file) =>
        !/^(?:(?:dist|templates)\/[\w/.-]+|README\.md|LICENSE|package\.json)$/.test(file) ||
        /\.(?:map|tsbuildinfo|key|db)$|^dist\/.*(?<!\.d)\.tsx?$/.test(file),
    )
    expect(strangers).toEqual([])
    const init = (name: string, ...flags: string[]): string =>
      execFileSync(process.execPath, ['dist/cli/main.js', 'init', name, '--yes', ...flags], {
        cwd: join(folder, 'one'),
        encoding: 'utf8',
      })
    init('made')
    init('made-for-stripe', '--source', 'stripe')
    for (const name of ['made', 'made-for-stripe'])
      expect(existsSync(join(folder, 'one', name, '.tidemark'))).toBe(false)
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

  test("the README's first command runs twice, leaves its store outside the templates, and the second time finds what moved", () => {
    const [, block] = /^## Two commands\n[\s\S]*?```sh\n([\s\S]*?)```/m.exec(read('README.md'))!
    const [, command] = /^npm ci && npx tidemark (.*?) +#/m.exec(block!)!
    const run = (): string =>
      execFileSync(process.execPath, ['dist/cli/main.js', ...command!.split(' ')], {
        cwd: join(folder, 'two'),
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      })
    expect(run()).toMatch(/✓ vessel-moves .*240 created/)
    expect(run()).not.toContain('240 created')
    expect(existsSync(join(folder, 'two/examples/harbour/.tidemark/tidemark.db'))).toBe(true)
    expect(readdirSync(join(folder, 'two/templates/worker')).filter((name) => name.startsWith('.'))).toEqual([
      '.tidemark',
    ])
  })
})

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
