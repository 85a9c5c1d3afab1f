import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'

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
  writeFileSync(
    join(folder, 'tidemark.ts'),
    `export * from '${root}/src/strategies/index.ts'\nexport type { Change, SyncContext } from '${root}/src/contract/index.ts'\n`,
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
  const { stdout, status } = spawnSync('npx', ['tsc', '-p', folder], { cwd: root, encoding: 'utf8' })
  expect(stdout).toBe('')
  expect(status).toBe(0)
})
