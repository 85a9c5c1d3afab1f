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

const SOURCES = new URL('../../../src/', import.meta.url).pathname

/** The SQLite store with the patches applied while it is loaded; every call loads it again. */
export async function loadPatched(patches: readonly Patch[]): Promise<SqliteModules> {
  const left = new Set(patches)
  const patch = (path: string, source: string): string => {
    const own = patches.filter(({ file }) => join(SOURCES, file) === path)
    for (const one of own) left.delete(one)
    return own.reduce((text, { from, to }) => patchText(text, from, to), source)
  }
  const loader = createLoader(import.meta.url, { moduleCache: false, patch })
  // One entry module: the harness must patch the class that the store uses.
  const { openSqliteStore, Connection } = await loader.import<SqliteModules>('./entry.ts')
  for (const { file } of left) throw new Error(`The store does not load ${file}.`)
  return { openSqliteStore, Connection }
}
