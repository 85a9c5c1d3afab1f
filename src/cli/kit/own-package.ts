import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ownVersion } from '../../platform/own-version.ts'
import { SIMULATORS_PACKAGE } from './import-simulators.ts'

/** The root of the running package, which contains this file under `src` or `dist`. */
const PACKAGE_ROOT = fileURLToPath(new URL('../../..', import.meta.url)).replace(/[\\/]$/, '')

export interface OwnPackage {
  /** The version specifier for `dependencies` of a project in the folder. */
  readonly dependency: string
  /** The same for the simulators. */
  readonly simulators: string
  /** The folder of the checkout; null when running from node_modules. */
  readonly checkout: string | null
  /** Whether `npx tidemark` already works in the folder. */
  readonly runsHere: boolean
}

export function templatesFolder(): string {
  return join(PACKAGE_ROOT, 'templates')
}

/**
 * Chooses the dependency of a new project: the checkout if running from one, the same `file:` dependency as the
 * surrounding project, or else this version from the registry.
 */
export function findPackage(folder: string): OwnPackage {
  const runsHere = ancestorFolders(folder).some((parent) =>
    existsSync(join(parent, 'node_modules', '.bin', 'tidemark')),
  )
  const modules = `${sep}node_modules${sep}`
  if (!PACKAGE_ROOT.includes(modules))
    return {
      dependency: `file:${toPosixPath(relative(folder, PACKAGE_ROOT) || '.')}`,
      simulators: `file:${toPosixPath(relative(folder, join(PACKAGE_ROOT, 'simulators')))}`,
      checkout: PACKAGE_ROOT,
      runsHere,
    }
  const project = PACKAGE_ROOT.slice(0, PACKAGE_ROOT.lastIndexOf(modules))
  const specifierOf = (name: string): string => {
    const given = dependencyOf(project, name)
    return given?.startsWith('file:') === true
      ? `file:${toPosixPath(relative(folder, resolve(project, given.slice('file:'.length))))}`
      : `^${ownVersion()}`
  }
  return { dependency: specifierOf('tidemark'), simulators: specifierOf(SIMULATORS_PACKAGE), checkout: null, runsHere }
}

/**
 * Links the package, its command and the simulators as `npm install` does for a `file:` folder, so that the project runs without a
 * network. Does nothing if node_modules exists. Returns whether `npx tidemark` works in the folder.
 */
export function linkPackage(checkout: string, folder: string): boolean {
  const modules = join(folder, 'node_modules')
  const command = join(checkout, 'dist', 'cli', 'main.js')
  if (existsSync(modules) || !existsSync(command) || process.platform === 'win32')
    return existsSync(join(modules, '.bin', 'tidemark'))
  // The compiler does not set the executable bit.
  chmodSync(command, 0o755)
  mkdirSync(join(modules, '.bin'), { recursive: true })
  symlinkSync(relative(modules, checkout), join(modules, 'tidemark'))
  const simulators = join(modules, SIMULATORS_PACKAGE)
  mkdirSync(dirname(simulators))
  symlinkSync(relative(dirname(simulators), join(checkout, 'simulators')), simulators)
  symlinkSync(join('..', 'tidemark', 'dist', 'cli', 'main.js'), join(modules, '.bin', 'tidemark'))
  return true
}

function dependencyOf(project: string, name: string): string | undefined {
  try {
    const { dependencies, devDependencies } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as Record<
      string,
      Record<string, string> | undefined
    >
    return dependencies?.[name] ?? devDependencies?.[name]
  } catch {
    return undefined
  }
}

function ancestorFolders(folder: string): string[] {
  return dirname(folder) === folder ? [folder] : [folder, ...ancestorFolders(dirname(folder))]
}

/** Paths in package.json use slashes on every system. */
function toPosixPath(path: string): string {
  return path.split(sep).join('/')
}
