import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { packagePaths } from '../setup/package-paths.ts'

const root = resolve(import.meta.dirname, '../..')

test('every TypeScript snippet of the README and the docs compiles', () => {
  const folder = join(root, 'node_modules/.cache/tidemark-snippets')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  let count = 0
  for (const page of pages()) {
    for (const [, code] of readFileSync(join(root, page), 'utf8').matchAll(/^```ts\n([\s\S]*?)^```/gm)) {
      writeFileSync(join(folder, `${page.replaceAll(/\W/g, '-')}-${++count}.ts`), `${code!}\nexport {}\n`)
    }
  }
  expect(count).toBeGreaterThan(1)
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      extends: join(root, 'tsconfig.json'),
      compilerOptions: {
        rootDir: root,
        rewriteRelativeImportExtensions: false,
        allowImportingTsExtensions: true,
        paths: packagePaths(),
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

test('every path in the documents exists', () => {
  const missing: string[] = []
  for (const page of pages()) {
    const text = readFileSync(join(root, page), 'utf8')
    for (const [, path] of text.matchAll(/`((?:src|simulators|test|docs|bench|examples|scripts)\/[\w./-]*)`/g)) {
      if (!existsSync(join(root, path!))) missing.push(`${page}: ${path}`)
    }
  }
  expect(missing).toEqual([])
})

function pages(): string[] {
  const docs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => join('docs', file))
  return ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', ...docs]
}
