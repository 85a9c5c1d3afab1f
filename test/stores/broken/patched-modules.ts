import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLoader } from '../../planted/create-loader.ts'
import { patchText } from '../../planted/patch-text.ts'
import type { SqliteModules } from '../sqlite-harness.ts'

/** A change of the store's source that breaks one guarantee. */
export interface Patch {
  /** Under src/. */
  readonly file: string
  /** Must occur in the file exactly once. */
  readonly from: string
  readonly to: string
}

const ROOT = new URL('../../../', import.meta.url).pathname

/** A copy of the SQLite store with the patches applied. */
export async function loadPatched(patches: readonly Patch[]): Promise<SqliteModules & AsyncDisposable> {
  const folder = await mkdtemp(join(tmpdir(), 'tidemark-broken-'))
  for (const part of ['contract', 'values', 'registry', 'stores/kit', 'stores/sqlite'])
    await cp(join(ROOT, 'src', part), join(folder, 'src', part), { recursive: true })
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  for (const { file, from, to } of patches) {
    const path = join(folder, 'src', file)
    const source = await readFile(path, 'utf8')
    await writeFile(path, patchText(source, from, to))
  }
  // One entry module: the harness must patch the class that the store uses.
  const entry = join(folder, 'src/stores/sqlite/entry.ts')
  await writeFile(entry, "export { openSqliteStore } from './store.ts'\nexport { Connection } from './connection.ts'\n")
  const { openSqliteStore, Connection } = await createLoader(import.meta.url, {
    moduleCache: false,
  }).import<SqliteModules>(entry)
  return {
    openSqliteStore,
    Connection,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  }
}
