import { spawn } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../..')

export interface Build {
  /** Holds the compiled package as `dist`, and may hold what else the tests need. */
  readonly folder: string
  readonly dist: string
  remove(): void
}

/** Compiles the package as it is published: a process of its own and a worker thread run JavaScript, not the sources. */
export async function buildPackage(): Promise<Build> {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-process-'))
  const dist = join(folder, 'dist')
  copyFileSync(join(root, 'package.json'), join(folder, 'package.json'))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  const compiler = spawn(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', join(root, 'tsconfig.build.json'), '--outDir', dist, '--declaration', 'false'], {
    cwd: root, stdio: 'ignore',
  })
  // A type error stops no output, and the type check is a test of its own.
  await new Promise((done, fail) => compiler.once('exit', done).once('error', fail))
  return { folder, dist, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
