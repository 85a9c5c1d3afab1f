import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { buildPackage, ROOT } from './package.ts'

/** The package, packed and installed in a folder, as `npm install` of the tarball does without asking the registry. Returns the tarball's name. */
export function installPacked(folder: string): string {
  const tarball = execFileSync('npm', ['pack', buildPackage(), '--ignore-scripts', '--silent'], {
    cwd: folder,
    encoding: 'utf8',
  })
    .trim()
    .split('\n')
    .at(-1)!
  const modules = join(folder, 'node_modules')
  mkdirSync(join(modules, 'tidemark'), { recursive: true })
  mkdirSync(join(modules, '.bin'))
  execFileSync('tar', ['xzf', join(folder, tarball), '-C', join(modules, 'tidemark'), '--strip-components=1'])
  symlinkSync('../tidemark/dist/cli/main.js', join(modules, '.bin/tidemark'))
  for (const name of readdirSync(join(ROOT, 'node_modules'))) {
    if (!name.startsWith('.') && name !== 'tidemark') symlinkSync(join(ROOT, 'node_modules', name), join(modules, name))
  }
  return tarball
}
