import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { buildPackage } from '../cli/package.ts'

const root = resolve(import.meta.dirname, '../..')
const strategies = [
  ...readdirSync(join(root, 'src/strategies')).filter((file) => file.endsWith('.ts') && file !== 'index.ts'),
  'failover/failover.ts',
]

test('every strategy has an example, and it compiles as it stands', () => {
  const folder = join(root, 'node_modules/.cache/tidemark-strategies')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  for (const file of strategies) {
    const example = /^ \* ```ts\n([\s\S]*?)^ \* ```$/m.exec(
      readFileSync(join(root, 'src/strategies', file), 'utf8'),
    )?.[1]
    expect(example, file).toBeDefined()
    writeFileSync(join(folder, file.replace('/', '-')), example!.replaceAll(/^ \* ?/gm, ''))
  }
  const declarations = join(buildPackage(), 'dist')
  writeFileSync(
    join(folder, 'tidemark.ts'),
    `export * from '${declarations}/strategies/index.js'\nexport type { Change, SyncContext } from '${declarations}/contract/index.js'\n`,
  )
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      extends: join(root, 'tsconfig.json'),
      compilerOptions: {
        rootDir: root,
        rewriteRelativeImportExtensions: false,
        allowImportingTsExtensions: true,
        paths: { tidemark: [join(folder, 'tidemark.ts')] },
        typeRoots: [join(root, 'node_modules/@types')],
      },
      include: [folder],
      exclude: [],
    }),
  )
  const { stdout, status } = spawnSync(
    process.execPath,
    [join(root, 'node_modules/typescript/bin/tsc'), '-p', folder],
    { cwd: root, encoding: 'utf8' },
  )
  expect(stdout).toBe('')
  expect(status).toBe(0)
})
