import { copyFileSync, cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildPackage as builtPackage, ROOT } from '../cli/package.ts'

export interface Build {
  /** Contains the compiled package as `dist`, and may contain other files of the tests. */
  readonly folder: string
  readonly dist: string
  remove(): void
}

/**
 * The package as it is published, in a separate folder: a child process and a worker thread run JavaScript, not the
 * sources.
 */
export async function buildPackage(): Promise<Build> {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-process-'))
  const dist = join(folder, 'dist')
  cpSync(join(builtPackage(), 'dist'), dist, { recursive: true })
  copyFileSync(join(ROOT, 'package.json'), join(folder, 'package.json'))
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  return { folder, dist, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
