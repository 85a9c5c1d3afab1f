import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, test } from 'vitest'
import { describeStore } from '../../src/testing/describe-store.ts'
import { openHarnessOf, type SqliteModules } from './sqlite-harness.ts'

// The store of a file runs in its own thread, which only compiled code can start: so it is compiled first.
const ROOT = new URL('../../', import.meta.url).pathname
const folder = mkdtempSync(join(tmpdir(), 'tidemark-compiled-'))
afterAll(() => rmSync(folder, { recursive: true }))

const compiled = compile()
describeStore(
  'sqlite, in a thread,',
  async () => {
    const modules = (await import(compiled)) as SqliteModules
    const { supports, ...harness } = await openHarnessOf(modules)
    // Another thread cannot be stopped between two statements; the same code is stopped everywhere in sqlite.test.ts.
    return { ...harness, supports: { select: supports!.select! } }
  },
  { runner: { describe, test } },
)

function compile(): string {
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({
      extends: join(ROOT, 'tsconfig.json'),
      compilerOptions: {
        noEmit: false,
        declaration: false,
        rootDir: join(ROOT, 'src'),
        outDir: join(folder, 'out'),
        typeRoots: [join(ROOT, 'node_modules/@types')],
      },
      include: [],
      files: ['store', 'thread'].map((name) => join(ROOT, `src/stores/sqlite/${name}.ts`)),
    }),
  )
  execFileSync(join(ROOT, 'node_modules/.bin/tsc'), ['-p', folder], { stdio: 'inherit' })
  return join(folder, 'out/stores/sqlite/store.js')
}
