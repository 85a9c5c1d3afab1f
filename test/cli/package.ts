import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

export const ROOT = resolve(import.meta.dirname, '../..')

/**
 * The package as it is published, built once for every state of the sources: the command runs as JavaScript in a process
 * of its own. Several test files may build it at once: the build that ends first is used by all of them.
 */
export function buildPackage(): string {
  const place = join(tmpdir(), `tidemark-cli-${fingerprint()}`)
  if (existsSync(place)) return place
  forgetOld()
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
  if (!existsSync(join(ROOT, 'simulators/dist')))
    execFileSync(process.execPath, [compiler, '-p', join(ROOT, 'simulators')], { stdio: 'pipe' })
  const making = mkdtempSync(join(tmpdir(), 'tidemark-cli-making-'))
  try {
    execFileSync(
      process.execPath,
      [compiler, '-p', join(ROOT, 'tsconfig.build.json'), '--outDir', join(making, 'dist')],
      { stdio: 'pipe' },
    )
  } catch (error) {
    // A type error somewhere stops no output, and the type check is a test of its own.
    if (!existsSync(join(making, 'dist/cli/main.js'))) throw error
  }
  chmodSync(join(making, 'dist/cli/main.js'), 0o755)
  copyFileSync(join(ROOT, 'package.json'), join(making, 'package.json'))
  symlinkSync(join(ROOT, 'node_modules'), join(making, 'node_modules'))
  execFileSync('cp', ['-r', join(ROOT, 'templates'), join(making, 'templates')])
  try {
    renameSync(making, place)
  } catch {
    rmSync(making, { recursive: true, force: true })
  }
  return place
}

function fingerprint(): string {
  const hash = createHash('sha256')
  for (const folder of ['src', 'templates', 'package.json']) {
    const path = join(ROOT, folder)
    const files = statSync(path).isDirectory()
      ? readdirSync(path, { recursive: true, encoding: 'utf8' })
          .toSorted()
          .map((file) => join(path, file))
      : [path]
    for (const file of files) {
      const { mtimeMs, size } = statSync(file)
      hash.update(`${file} ${mtimeMs} ${size}\n`)
    }
  }
  return hash.digest('hex').slice(0, 16)
}

function forgetOld(): void {
  for (const name of readdirSync(tmpdir()).filter((entry) => entry.startsWith('tidemark-cli-'))) {
    const path = join(tmpdir(), name)
    const ageMs = Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Infinity)
    if (ageMs > 3_600_000) rmSync(path, { recursive: true, force: true })
  }
}
